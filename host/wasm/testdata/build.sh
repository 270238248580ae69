#!/bin/sh
# Builds the fixtures again from their sources. Needs wabt, clang and lld;
# the tests themselves need none of them.
set -e
cd "$(dirname "$0")"
for source in *.wat refused/*.wat; do
  names=
  case "$source" in telling_*) names=--debug-names ;; esac
  wat2wasm $names "$source" -o "${source%.wat}.wasm"
done
for source in *.c; do
  clang --target=wasm32 -Os -nostdlib -Wall -Wl,--no-entry -Wl,--strip-all \
    -Wl,-z,stack-size=4096 "$source" -o "${source%.c}.wasm"
done
