#!/usr/bin/env bash
# Brings a machine to where deskfork runs: system packages, Docker's daemon, Python environment, images, templates.
# Does only what is missing, so a second call is quick.
#
#   scripts/setup.sh            everything
#   scripts/setup.sh python     the Python environment alone
#   scripts/setup.sh browser    the browser that tests look at pages with
#
# DESKFORK_NO_DOCKER=1   leave Docker alone; sandboxes are then plain processes
# DESKFORK_CACHE=DIR     where images and templates are kept (default: ~/.cache/deskfork)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

CACHE="${DESKFORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/deskfork}"
OLDEST_QEMU=9
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
SUDO=()
PROVIDERS=(qemu)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}
has() { command -v "$1" >/dev/null 2>&1; }
wants_docker() { [ "${DESKFORK_NO_DOCKER:-0}" != 1 ]; }
on_bookworm() { [ -r /etc/os-release ] && grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; }

may_install() {
    has apt-get || return 1
    [ "$(id -u)" -eq 0 ] && return 0
    has sudo || return 1
    # Without a terminal a password prompt would wait for ever.
    if sudo -n true 2>/dev/null || [ -t 0 ]; then
        SUDO=(sudo)
        return 0
    fi
    return 1
}

qemu_major() { qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\)\..*/\1/p'; }

has_qemu() {
    local major
    major="$(qemu_major)"
    [ "${major:-0}" -ge "$OLDEST_QEMU" ] && has qemu-img
}

has_python() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# Prints the Debian packages that are missing, QEMU apart.
missing_packages() {
    has mmdebstrap || echo mmdebstrap
    has mke2fs || echo e2fsprogs
    has ssh || echo openssh-client
    has git || echo git
    has_python || echo python3
    [ -d /usr/share/novnc ] || echo novnc
    [ -e "$KEYRING" ] || echo debian-archive-keyring
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    if [ ! -x .venv/bin/python ] && ! has uv && ! python3 -c 'import ensurepip' 2>/dev/null; then echo python3-venv; fi
    if wants_docker; then
        { has docker && has dockerd; } || docker info >/dev/null 2>&1 || docker_packages
    fi
}

docker_packages() {
    echo docker.io
    has iptables || echo iptables
    # Where the kernel enforces AppArmor, the daemon must be able to load its profile.
    if grep -qs Y /sys/module/apparmor/parameters/enabled && ! has apparmor_parser; then echo apparmor; fi
    # From Debian 13 on the client is a package of its own.
    if ! on_bookworm && has apt-cache && apt-cache show docker-cli >/dev/null 2>&1; then echo docker-cli; fi
}

apt_get() {
    "${SUDO[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >&2
}

# Installs QEMU. On Debian 12 that is the one of bookworm-backports, without a change to the system's own sources.
install_qemu() {
    local sources mirror signed=""
    if ! on_bookworm; then
        apt_get install --no-install-recommends qemu-system-x86 qemu-utils
        return
    fi
    # shellcheck disable=SC2016  # apt's own variable
    mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)"
    [ -n "$mirror" ] || fail "apt knows no mirror of Debian 12: add one to /etc/apt/sources.list and try again"
    [ -e "$KEYRING" ] && signed="[signed-by=$KEYRING] "
    sources="$(mktemp /tmp/deskfork-sources.XXXXXX.list)"
    # shellcheck disable=SC2064  # the name is wanted as it is now
    trap "rm -f '$sources'" EXIT
    # apt drops its rights for reading this.
    chmod 644 "$sources"
    cat /etc/apt/sources.list >"$sources" 2>/dev/null || true
    printf 'deb %s%s bookworm-backports main\n' "$signed" "$mirror" >>"$sources"
    apt_get -o "Dir::Etc::SourceList=$sources" update
    apt_get -o "Dir::Etc::SourceList=$sources" install --no-install-recommends -t bookworm-backports \
        qemu-system-x86 qemu-utils
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages)
    if [ "${#missing[@]}" -eq 0 ] && has_qemu; then return; fi
    if ! may_install; then
        has_qemu || missing+=(qemu-system-x86 "qemu-utils (QEMU $OLDEST_QEMU or newer: on Debian 12 with -t bookworm-backports)")
        fail "packages are missing, and this user may not install any. As root: apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]:-} $(has_qemu || echo qemu-system-x86 qemu-utils)"
    apt_get update
    if [ "${#missing[@]}" -gt 0 ]; then
        apt_get install --no-install-recommends "${missing[@]}"
    fi
    has_qemu || install_qemu
    has_qemu || fail "QEMU $(qemu_major) is too old, or incomplete: deskfork needs $OLDEST_QEMU or newer with qemu-img"
    has_python || fail "Python 3.11 or newer is needed; python3 is $(python3 --version 2>&1)"
}

install_browser() {
    if has chromium || has google-chrome; then return; fi
    may_install || fail "a browser is missing, and this user may not install any. As root: apt-get install chromium"
    say "installing chromium"
    apt_get update
    apt_get install --no-install-recommends chromium
}

docker_answers() { scripts/has-docker.sh; }

start_docker() {
    local log="$CACHE/dockerd.log" tries=0
    if ! wants_docker; then
        say "DESKFORK_NO_DOCKER is set: sandboxes will be plain processes (provider qemu)"
        return
    fi
    if ! docker_answers; then
        if [ "$(id -u)" -ne 0 ] && ! may_install; then
            say "Docker's daemon does not answer this user: sandboxes will be plain processes (provider qemu)"
            return
        fi
        say "starting Docker's daemon"
        mkdir -p "$CACHE"
        if [ -d /run/systemd/system ]; then
            "${SUDO[@]}" systemctl start docker >&2 || true
        elif has dockerd; then
            "${SUDO[@]}" setsid nohup dockerd >"$log" 2>&1 </dev/null &
        fi
        until docker_answers || [ "$tries" -ge 40 ]; do
            tries=$((tries + 1))
            sleep 1
        done
    fi
    if docker_answers; then
        PROVIDERS+=(docker)
    elif [ "$(id -u)" -ne 0 ] && "${SUDO[@]}" docker info >/dev/null 2>&1; then
        say "Docker answers root but not $(id -un) (to change that: sudo adduser $(id -un) docker, and log in again):" \
            "sandboxes will be plain processes (provider qemu)"
    else
        say "Docker's daemon could not be started ($(tail -n 1 "$log" 2>/dev/null || echo 'see journalctl -u docker')):" \
            "sandboxes will be plain processes (provider qemu)"
    fi
}

install_python() {
    local uv=uv
    # An interpreter that uv would have to download is none.
    export UV_PYTHON_DOWNLOADS=never
    if ! has uv; then
        uv=.tools/bin/uv
        if [ ! -x "$uv" ]; then
            say "installing uv into .tools"
            python3 -m venv .tools || fail "no virtual environment could be made (Debian package: python3-venv)"
            .tools/bin/python -m pip install --quiet 'uv>=0.9' >&2 || fail "uv could not be installed; what pip says is above"
        fi
    fi
    # Where Python is not to write bytecode, each command would compile its libraries, for seconds.
    "$uv" sync --frozen --compile-bytecode --quiet >&2 || fail "the Python environment could not be made; what uv says is above"
}

# A Debian root filesystem is made by root; what is built already needs nobody.
build_image() {
    local code=0
    mkdir -p "$CACHE"
    .venv/bin/deskfork image build >&2 || code=$?
    [ "$code" -ne 0 ] || return 0
    [ "$(id -u)" -ne 0 ] && [ "$code" -eq 2 ] && may_install || exit "$code"
    say "building as root, by sudo"
    sudo env "DESKFORK_CACHE=$CACHE" .venv/bin/deskfork image build >&2
}

build() {
    local provider
    build_image
    for provider in "${PROVIDERS[@]}"; do
        .venv/bin/deskfork template build desktop jupyter --provider "$provider" >&2
    done
}

case "${1:-all}" in
    python)
        install_python
        ;;
    browser)
        install_browser
        ;;
    all)
        install_packages
        install_python
        start_docker
        build
        say "ready (providers: ${PROVIDERS[*]})"
        ;;
    *)
        fail "no part '$1' (parts: all, python, browser)"
        ;;
esac
