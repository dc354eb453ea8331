#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what kbisect needs on Debian 12, by package name, and makes the account that
# libvirt's embedded QEMU driver wants. Does nothing when all of it is there.
#
# usage: setup.sh [--check] [--dev]    --check: only say what is missing; --dev: linters too

set -eu

build="gcc make pkg-config libc6-dev libvirt-dev libssh-dev libgit2-dev libjansson-dev nettle-dev
	r-mathlib libgsl-dev"
kernel="flex bison bc libelf-dev libssl-dev cpio xz-utils lz4 kmod perl linux-source-6.1"
run="libvirt0 libvirt-daemon-driver-qemu qemu-system-x86 qemu-system-data seabios"
guest="xfsprogs dropbear-bin busybox-static"
tests="git perl jq shellcheck libxml2-utils clang libclang-rt-14-dev clang-tidy cppcheck"

check=no
for arg in "$@"; do
	case $arg in
	--check) check=yes ;;
	*) echo "setup.sh: unknown argument '$arg'" >&2; exit 2 ;;
	esac
done

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for package in $build $kernel $run $guest $tests; do
	installed "$package" || missing="$missing $package"
done

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		echo "setup.sh: '$*' must be run as root (no sudo here)" >&2
		exit 1
	fi
}

if [ -n "$missing" ]; then
	if [ "$check" = yes ]; then
		echo "missing packages:$missing" >&2
		echo "install them with: apt-get install --no-install-recommends$missing" >&2
		exit 1
	fi
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "setup.sh: no apt-get here; kbisect is set up by itself on Debian 12 only." >&2
		echo "Install the equivalents of:$missing" >&2
		exit 1
	fi
	echo "setup: installing$missing"
	as_root apt-get update -q >/dev/null || {
		echo "setup.sh: apt-get update failed; is there a network and a Debian mirror?" >&2
		exit 1
	}
	# shellcheck disable=SC2086 # a list of package names
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
		--no-install-recommends $missing >/dev/null || {
		echo "setup.sh: apt-get could not install:$missing" >&2
		exit 1
	}
fi

# Run as root, libvirt's QEMU driver insists that this account exists, whatever its
# configuration says; only libvirt-daemon-system, which is not needed, would make it.
if [ "$(id -u)" = 0 ] && ! getent passwd libvirt-qemu >/dev/null; then
	if [ "$check" = yes ]; then
		echo "missing account: useradd --system --user-group libvirt-qemu" >&2
		exit 1
	fi
	useradd --system --user-group libvirt-qemu
fi
