#!/bin/sh
# Builds guest.wasm again. Needs clang and lld with wasm32, and wasi-libc (on
# Debian: clang lld wasi-libc libclang-rt-14-dev-wasm32). The bench itself
# needs none of them.
set -e
cd "$(dirname "$0")"
clang --target=wasm32-wasi -mexec-model=reactor -O2 -Wall -Wextra -Wl,--strip-all *.c -o guest.wasm
