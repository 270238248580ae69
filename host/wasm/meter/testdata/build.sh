#!/bin/sh
# Builds the fixtures again from their sources. Needs wabt, clang and lld; the
# tests themselves need none of them.
set -e
cd "$(dirname "$0")"
for source in *.wat; do
  wat2wasm --enable-tail-call --debug-names "$source" -o "${source%.wat}.wasm"
done
for source in *.c; do
  [ -e "$source" ] || continue
  clang --target=wasm32 -O2 -nostdlib -Wall -mbulk-memory -Wl,--no-entry -Wl,--strip-all "$source" -o "${source%.c}.wasm"
  chmod -x "${source%.c}.wasm"
done
