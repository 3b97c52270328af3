#!/bin/sh
# Installs the headers, the libraries, the pkg-config file and the manual pages, once they are built:
#
#   cargo build --release --package laxity-capi
#   crates/laxity-capi/install.sh target/release /usr/local
#
# Below the prefix: include/laxity.h, include/rts.h, lib/liblaxity_capi.a, lib/liblaxity_capi.so, lib/pkgconfig/laxity.pc, share/man/man3/{laxity,rts}*.3; nothing else. README.md beside this
# file tells how programs are linked with them.
#
# `cargo cinstall` installs the same; this needs nothing but a shell.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: $0 BUILT PREFIX" >&2
    exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
built=$1
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml")
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
cp "$here/include/laxity.h" "$here/include/rts.h" "$prefix/include/"
cp "$built/liblaxity_capi.so" "$built/liblaxity_capi.a" "$prefix/lib/"
for header in laxity rts; do
    "$here/man.sh" "$here/include/$header.h" "$version" "$prefix/share/man/man3"
done
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$here/laxity.pc.in" >"$prefix/lib/pkgconfig/laxity.pc"
