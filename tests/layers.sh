#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Reads the module list of docs/ARCHITECTURE.md ("### Layer N" headings, lines "- `module`")
# and checks that every source file is listed, that includes point to the same layer or
# below, and that each third-party header stays in its adapter.

set -uf
cd "$(dirname "$0")/.." || exit 1
fail=0
count=0

declare -A layer
current=
while IFS= read -r line; do
	case $line in
	"### Layer "[0-9]*) current=${line#"### Layer "}; current=${current%%[!0-9]*} ;;
	"## "*) current= ;;
	'- `'*)
		[ -n "$current" ] || continue
		module=${line#'- `'}
		module=${module%%'`'*}
		layer[$module]=$current
		;;
	esac
done <docs/ARCHITECTURE.md

result() { # ok?, description
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		fail=1
	fi
}

# The layer of a file: that of the listed module it is, or is a part of (name_part.c), or of a
# listed "folder/*".
layer_of() {
	local stem=${1%.[ch]}
	while :; do
		if [ -n "${layer[$stem]:-}" ]; then
			echo "${layer[$stem]}"
			return
		fi
		case ${stem##*/} in *_*) stem=${stem%_*} ;; *) break ;; esac
	done
	echo "${layer[${1%/*}/*]:-}"
}

allowed_in() { # header pattern -> files that may include it
	case $1 in
	git2*) echo 'bisect/repo*' ;;
	libvirt/*) echo 'harness/vm_libvirt*' ;;
	libssh/*) echo 'harness/guest_ssh.c' ;;
	jansson.h) echo 'harness/job*.c results/*' ;;
	nettle/*) echo 'harness/base/hash.c guest-init/*' ;;
	Rmath.h | gsl/*) echo 'bisect/stats*' ;;
	*) echo '*' ;;
	esac
}

bad=
unlisted=
strange=
for file in $(find harness bisect results -name '*.[ch]' | sort); do
	own=$(layer_of "$file")
	if [ -z "$own" ]; then
		unlisted="$unlisted $file"
		continue
	fi
	while IFS= read -r header; do
		other=$(layer_of "$header")
		if [ -n "$other" ] && [ "$other" -gt "$own" ]; then
			bad="$bad $file(layer $own)->$header(layer $other)"
		fi
	done < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$file")
	while IFS= read -r header; do
		ok=no
		for pattern in $(allowed_in "$header"); do
			# shellcheck disable=SC2254 # a pattern is meant
			case $file in $pattern) ok=yes ;; esac
		done
		[ $ok = yes ] || strange="$strange $file->$header"
	done < <(sed -n 's/^#include <\(.*\)>$/\1/p' "$file")
done

# stdout belongs to the command layer (and, as a terminal, to the guest's shell).
loose=
for file in $(find harness bisect results -name '*.c' |
	grep -vE 'harness/(cmd_[a-z_]*|main|opts|qwrap|guest_ssh)\.c'); do
	if grep -qE '(^|[^a-z_])(printf|puts|putchar)\(|[(, ]stdout[),]' "$file"; then
		loose="$loose $file"
	fi
done

[ -z "$unlisted" ]; result $? "every source file is listed in docs/ARCHITECTURE.md$unlisted"
[ -z "$bad" ]; result $? "includes point downward only$bad"
[ -z "$strange" ]; result $? "third-party headers stay in their adapters$strange"
[ -z "$loose" ]; result $? "only the command layer writes to stdout$loose"
missing=
for module in "${!layer[@]}"; do
	case $module in
	*/\*) compgen -G "$module" >/dev/null || missing="$missing $module" ;;
	*) [ -e "$module.c" ] || [ -e "$module.h" ] || missing="$missing $module" ;;
	esac
done
[ -z "$missing" ]; result $? "every listed module exists$missing"
echo "1..$count"
exit $fail
