#!/bin/sh
# Makes the tarball that installs without packages: binaries, units, install script.
#
#   packaging/tarball.sh BINARIES VERSION OUT.tar.gz
#
# BINARIES is a folder with tenure-host, and for a control plane tenure-control and tenure. The same input gives the
# same bytes.
set -eu

fail() {
    printf 'tarball.sh: %s\n' "$1" >&2
    exit "${2:-1}"
}

[ $# -eq 3 ] || fail 'usage: tarball.sh BINARIES VERSION OUT.tar.gz' 2
binaries=$1 version=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$binaries/tenure-host" ] || [ -f "$binaries/tenure-control" ] || fail "there is neither tenure-host nor tenure-control in $binaries"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=tenure-$version-$(uname -m)
mkdir "$work/$name"
for binary in tenure-host tenure-control tenure; do
    [ ! -f "$binaries/$binary" ] || cp "$binaries/$binary" "$work/$name/"
done
for file in install.sh tenure-host.service tenure-control.service tenure-control.sysusers needrestart.conf; do
    cp "$here/$file" "$work/$name/"
done
[ ! -f "$here/../LICENSE" ] || cp "$here/../LICENSE" "$work/$name/"
chmod 0755 "$work/$name" "$work/$name"/*
chmod 0644 "$work/$name"/*.service "$work/$name"/*.sysusers "$work/$name"/*.conf
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2000-01-01 00:00:00Z' -C "$work" -cf - "$name" | gzip -n >"$out"
printf '%s\n' "$out"
