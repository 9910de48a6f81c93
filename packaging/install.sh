#!/bin/sh
# Installs Tenure from the folder this script lies in: binaries, units, directories, users. It needs no network and no
# other program of Tenure, and it starts, stops and restarts nothing. Run it again at any time: what is already as it
# should be is not touched. It looks first, and refuses by name before it has changed anything.
#
#   install.sh --host [--control] [--root DIR]
#   install.sh --control [--host] [--root DIR]
set -eu

# refused CODE WHAT-HAPPENED WHAT-IT-MEANS WHAT-TO-DO
refused() {
    printf 'install.sh: refused (%s): %s\n  %s\n  %s\n' "$1" "$2" "$3" "$4" >&2
    exit 3
}

usage() {
    [ $# -eq 0 ] || printf 'install.sh: %s\n' "$1" >&2
    printf 'usage: install.sh [--host] [--control] [--root DIR]
  --host      this machine becomes a node: tenure-host and its unit
  --control   this machine holds a fleet: tenure-control, its unit and user, and the command line tenure
  --root DIR  install below DIR instead of /\n' >&2
    exit 2
}

has() { command -v "$1" >/dev/null 2>&1; }

host= control= root=
while [ $# -gt 0 ]; do
    case $1 in
        --host) host=yes ;;
        --control) control=yes ;;
        --root)
            [ $# -gt 1 ] || usage '--root needs a folder'
            shift
            root=${1%/}
            ;;
        *) usage "unknown argument \`$1\`" ;;
    esac
    shift
done
[ -n "$host$control" ] || usage 'say --host, --control or both'
here=$(cd "$(dirname "$0")" && pwd)
binaries="${host:+tenure-host} ${control:+tenure-control tenure}"
unit_folder=/usr/lib/systemd/system

# --- Look -------------------------------------------------------------------------------------------------------------

if [ -z "$root" ]; then
    [ "$(id -u)" = 0 ] || refused not_root 'this is not root' \
        'programs, units and users of the machine are written' 'run it as root, or with --root DIR to fill a folder'
    has systemctl || refused no_systemd 'systemctl was not found' \
        'both daemons are services of systemd' 'install on a machine that runs systemd'
    # Where /lib is not yet /usr/lib, units of the machine's own distribution lie in /lib.
    [ -d /usr/lib/systemd/system ] || [ ! -d /lib/systemd/system ] || unit_folder=/lib/systemd/system
else
    [ -d "$root" ] || refused no_root "$root is not a folder" 'there is nothing to install into' "run: mkdir -p $root"
fi

# Says which package a file belongs to; nothing when none does.
owner_of() {
    if has dpkg-query && dpkg-query --search "$1" >/dev/null 2>&1; then
        dpkg-query --search "$1" | sed 's/: .*//;q'
    elif has rpm && rpm --query --file "$1" >/dev/null 2>&1; then
        rpm --query --file "$1"
    elif has pacman && pacman --query --owns --quiet "$1" >/dev/null 2>&1; then
        pacman --query --owns --quiet "$1"
    fi
}

for binary in $binaries; do
    [ -f "$here/$binary" ] || refused incomplete "$binary is not in $here" \
        'the archive is not whole, or was made without it' 'unpack the whole archive and run install.sh from there'
    [ -z "$root" ] || continue
    "$here/$binary" --version >/dev/null 2>&1 || refused does_not_run "$here/$binary --version failed" \
        'it was built for another machine, or lies where nothing may be executed' \
        "run it by hand to see why; take the archive for $(uname -m)"
    package=$(owner_of "/usr/bin/$binary")
    [ -z "$package" ] || refused packaged "/usr/bin/$binary belongs to the package $package" \
        'the package manager would no longer know what it has installed' "upgrade that package, or remove it first"
done

writable() {
    folder=$root$1
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    # Asked by writing: permissions do not tell whether a file system is read-only.
    if probe=$(mktemp "$folder/.tenure.XXXXXX" 2>/dev/null); then
        rm -f "$probe"
    else
        refused read_only "$folder cannot be written" 'this machine keeps its system read-only' \
            'make it writable, or build Tenure into its image with --root DIR'
    fi
}
for folder in /usr/bin $unit_folder /etc /var/lib; do writable "$folder"; done

if [ -n "$control" ] && [ -z "$root" ] && ! id tenure-control >/dev/null 2>&1; then
    has systemd-sysusers || { has useradd && has groupadd; } || refused no_user_tool \
        'neither systemd-sysusers nor useradd was found' 'the control plane runs as a user of its own' \
        'make the groups tenure and tenure-control and the user tenure-control, a member of both, and run this again'
fi

# --- Change -----------------------------------------------------------------------------------------------------------

changed= new=
trap '[ -z "$new" ] || rm -f "$new"' EXIT

# put FROM TO MODE: a new file renamed into place, so that a running program keeps its own; nothing when it is the same.
put() {
    if [ -f "$root$2" ] && [ ! -L "$root$2" ] && cmp -s "$here/$1" "$root$2"; then
        chmod "$3" "$root$2"
        return
    fi
    mkdir -p "$root$(dirname "$2")"
    new=$(mktemp "$root$2.XXXXXX")
    cp "$here/$1" "$new"
    chmod "$3" "$new"
    # On the disk before it has the name, or a power cut could leave half a program there.
    sync "$new" 2>/dev/null || sync
    mv -f "$new" "$root$2"
    new=
    changed="$changed $2"
    printf 'installed %s\n' "$root$2"
}

# directory PATH MODE: made where it is missing; one that is there keeps its owner.
directory() {
    [ -d "$root$1" ] || { mkdir -p "$root$1" && printf 'made %s\n' "$root$1"; }
    chmod "$2" "$root$1"
}

make_users() {
    put tenure-control.sysusers /usr/lib/sysusers.d/tenure-control.conf 0644
    if [ -n "$root" ]; then
        ! has systemd-sysusers || systemd-sysusers --root="$root" "$root/usr/lib/sysusers.d/tenure-control.conf"
    elif has systemd-sysusers; then
        systemd-sysusers tenure-control.conf
    else
        getent group tenure >/dev/null || groupadd --system tenure
        id tenure-control >/dev/null 2>&1 || useradd --system --user-group --groups tenure --no-create-home \
            --home-dir /var/lib/tenure-control --shell /usr/sbin/nologin --comment 'Tenure control plane' tenure-control
    fi
}

[ -d "$root/etc/tenure" ] || directory /etc/tenure 0755
if [ -n "$host" ]; then
    put tenure-host /usr/bin/tenure-host 0755
    put tenure-host.service $unit_folder/tenure-host.service 0644
    put needrestart.conf /etc/needrestart/conf.d/tenure-host.conf 0644
    directory /var/lib/tenure-host 0700
fi
if [ -n "$control" ]; then
    make_users
    put tenure-control /usr/bin/tenure-control 0755
    put tenure /usr/bin/tenure 0755
    put tenure-control.service $unit_folder/tenure-control.service 0644
fi

# --- Say --------------------------------------------------------------------------------------------------------------

[ -n "$root" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload
active() { [ -z "$root" ] && systemctl --quiet is-active "$1" 2>/dev/null; }

[ -n "$changed" ] || printf 'everything was already installed\n'
if [ -n "$control" ]; then
    if active tenure-control; then
        case $changed in
            *?*) printf 'next: the control plane still runs what it was started from; to change over: systemctl restart tenure-control\n' ;;
        esac
    else
        printf 'next: write where nodes reach this machine into /etc/tenure/control.toml: advertise = ["NAME-OR-ADDRESS:7443"]
      then: systemctl enable --now tenure-control
      then: tenure invite NODE --out TOKEN\n'
    fi
fi
if [ -n "$host" ]; then
    if active tenure-host; then
        case $changed in
            */usr/bin/tenure-host*) printf 'next: nothing; the running host sees the new binary and changes over when its work is done\n' ;;
        esac
    else
        printf 'next: tenure-host enrol --token-file TOKEN
      then: systemctl enable --now tenure-host\n'
    fi
fi
