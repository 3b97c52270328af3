#!/bin/sh
# usage: build.sh FOLDER
# Builds those programs for which there is what they need, into this folder, and says of the others what they lack.
set -u
folder=${1:?usage: build.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
failed=0

# zenoh: from its registry.
if (cd "$here/zenoh" && cargo build --release --locked --target-dir "$folder/zenoh-build"); then
  cp "$folder/zenoh-build/release/laxity-rival-zenoh" "$folder/zenoh"
else
  echo "zenoh: not built" >&2
  failed=1
fi

# CycloneDDS: from the distribution (Debian: cyclonedds-dev, cyclonedds-tools).
if command -v idlc >/dev/null; then
  made="$folder/cyclone-build"
  mkdir -p "$made" && cp "$here/cyclone/message.idl" "$made"
  (cd "$made" && idlc message.idl) &&
    ${CC:-cc} -O2 -Wall -I"$made" "$here/cyclone/driver.c" "$made/message.c" -lddsc -lpthread -o "$folder/cyclone" ||
    { echo "cyclone: not built" >&2; failed=1; }
else
  echo "cyclone: there is no idlc (Debian: cyclonedds-dev, cyclonedds-tools)" >&2
  failed=1
fi
exit $failed
