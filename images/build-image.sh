#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the guest's base initramfs (newc, uncompressed) from programs installed on this
# machine. Same inputs, same bytes: names are sorted, and owners, times, inode numbers, modes
# and link counts are fixed. Needs no root.
#
# What belongs to a single boot (parameters, SSH keys) is a second archive that the
# controller appends; the file made here ends on a 4-byte boundary for it.
set -eu
umask 022
LC_ALL=C
export LC_ALL

usage() {
	cat <<'EOF'
usage: build-image.sh --init FILE --out FILE [--bridge FILE] [--add SRC[:DEST]]...

  --init FILE        the guest's PID 1, installed as /init
  --bridge FILE      carries SSH between the virtio port and dropbear: /sbin/kb-bridge
  --add SRC[:DEST]   one more file (default DEST: SRC); shared libraries come along
  --out FILE         the archive; FILE.manifest.json describes it

The programs needed come from the Debian packages xfsprogs, dropbear-bin, busybox-static.
EOF
}

die() {
	echo "build-image.sh: $*" >&2
	exit 1
}

init='' bridge='' out='' adds=''
newline='
'
while [ $# -gt 0 ]; do
	case $1 in
	--help)
		usage
		exit 0
		;;
	--init | --bridge | --out | --add)
		[ $# -ge 2 ] || die "$1 needs a value"
		case $1 in
		--init) init=$2 ;;
		--bridge) bridge=$2 ;;
		--out) out=$2 ;;
		--add) adds=$adds$2$newline ;;
		esac
		shift 2
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
if [ -z "$init" ] || [ -z "$out" ]; then
	usage >&2
	exit 2
fi

PATH=$PATH:/usr/sbin:/sbin
for tool in cpio ldd sha256sum dpkg-query; do
	command -v "$tool" >/dev/null || die "no $tool on this machine"
done

mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$(dirname "$out")/.image.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
root=$work/root
mkdir "$root"
: >"$work/sources"

# put SRC DEST: a copy with mode 755 if executable, else 644; what it links against follows.
put() {
	[ -f "$1" ] || die "no file $1"
	[ ! -e "$root$2" ] || return 0
	mkdir -p "$root${2%/*}"
	cp -L "$1" "$root$2"
	if [ -x "$1" ]; then chmod 755 "$root$2"; else chmod 644 "$root$2"; fi
	echo "$1" >>"$work/sources"
	put_libraries "$1"
}

# ldd prints "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for the loader itself. Libraries keep
# the path the loader looks for.
put_libraries() {
	ldd "$1" >"$work/ldd" 2>/dev/null || return 0 # static, or no program at all
	if grep 'not found' "$work/ldd" >&2; then die "$1 lacks a library"; fi
	sed -n -e 's/.*=> \(\/[^ ]*\) (.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' \
		"$work/ldd" >"$work/libraries"
	while IFS= read -r library; do
		[ ! -e "$root$library" ] || continue
		mkdir -p "$root${library%/*}"
		cp -L "$library" "$root$library"
		chmod 755 "$root$library"
		echo "$library" >>"$work/sources"
	done <"$work/libraries"
}

# program NAME PACKAGE DEST
program() {
	found=$(command -v "$1") || die "no $1 on this machine: apt-get install $2"
	put "$found" "$3"
}

text() {
	mkdir -p "$root${1%/*}"
	cat >"$root$1"
	chmod 644 "$root$1"
}

for dir in dev proc sys tmp run mnt root etc/dropbear kbisect var/log var/run; do
	mkdir -p "$root/$dir"
done

put "$init" /init
chmod 755 "$root/init"
if [ -n "$bridge" ]; then
	put "$bridge" /sbin/kb-bridge
	chmod 755 "$root/sbin/kb-bridge"
fi
program busybox busybox-static /bin/busybox
if ldd "$root/bin/busybox" >/dev/null 2>&1; then
	die "busybox is not the static one: apt-get install busybox-static"
fi
program mkfs.xfs xfsprogs /sbin/mkfs.xfs
program dropbear dropbear-bin /sbin/dropbear
printf %s "$adds" >"$work/adds"
while IFS= read -r add; do
	case $add in
	*:*) put "${add%%:*}" "${add#*:}" ;;
	*) put "$add" "$add" ;;
	esac
done <"$work/adds"

for applet in ash awk base64 cat chmod cp cut date dd df dmesg du echo env false find free \
	grep gzip gunzip head hexdump id kill ln ls mkdir mknod more mount mv od pidof ps \
	pwd readlink rm rmdir sed seq sh sha256sum sleep sort stat stty sync tail tar tee \
	test time timeout top touch tr true umount uname uptime vi wc xargs; do
	ln -s busybox "$root/bin/$applet"
done
for applet in halt poweroff reboot sysctl; do
	ln -s ../bin/busybox "$root/sbin/$applet"
done

text /etc/passwd <<'EOF'
root:x:0:0:root:/root:/bin/sh
EOF
text /etc/group <<'EOF'
root:x:0:
EOF
text /etc/shells <<'EOF'
/bin/sh
EOF
text /etc/nsswitch.conf <<'EOF'
passwd: files
group: files
shadow: files
EOF
text /etc/profile <<'EOF'
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
PS1='kbisect:\w# '
EOF
text /etc/shadow <<'EOF'
root:*:1:0:99999:7:::
EOF
chmod 600 "$root/etc/shadow"
chmod 700 "$root/root"
chmod 1777 "$root/tmp"

# The device nodes are written by hand, as an archive of their own in front of the other:
# mknod would need root. Fields of newc: inode, mode, uid, gid, links, mtime, size, device
# (2), node's device (2), length of the name with its NUL, checksum.
newc_entry() { # NAME MODE LINKS MAJOR MINOR
	length=$((${#1} + 1))
	newc_inode=$((newc_inode + 1))
	printf '070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\0' \
		"$newc_inode" "$2" 0 0 "$3" 0 0 0 0 "$4" "$5" "$length" 0 "$1"
	newc_pad $((110 + length))
}
newc_pad() {
	case $(($1 % 4)) in
	1) printf '\0\0\0' ;;
	2) printf '\0\0' ;;
	3) printf '\0' ;;
	esac
}
newc_inode=0
{
	newc_entry dev 0040755 2 0 0
	newc_entry dev/console 0020600 1 5 1
	newc_entry dev/null 0020666 1 1 3
	newc_entry TRAILER!!! 0 1 0 0
} >"$work/image"

# cpio pads its output to blocks of 512 bytes, so an appended archive starts aligned.
find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . -mindepth 1 | sed 's|^\./||' | sort |
	cpio --quiet --reproducible -o -H newc -R 0:0) >>"$work/image"
size=$(wc -c <"$work/image")
newc_pad "$size" >>"$work/image"
size=$(wc -c <"$work/image")

# Which package and version each file came from, looked up by either side of a merged /usr.
while IFS= read -r source; do
	path=$(readlink -f "$source")
	printf '%s\n' "$path" "/usr$path" "${path#/usr}"
	path=$(readlink -f "$(dirname "$source")")/${source##*/} # not through the file's own link
	printf '%s\n' "$path" "${path#/usr}"
done <"$work/sources" | sort -u >"$work/paths"
xargs dpkg-query -S <"$work/paths" 2>/dev/null |
	sed -n 's/^\([^ :,]*\).*: \/.*/\1/p' | sort -u >"$work/owners"
# shellcheck disable=SC2016 # the format is dpkg-query's, not the shell's
xargs -r dpkg-query -W -f '${Package} ${Version}\n' <"$work/owners" | sort -u >"$work/packages"

quote() {
	printf '"%s"' "$(printf %s "$1" | sed 's/[\\"]/\\&/g')"
}

sum=$(sha256sum <"$work/image")
{
	printf '{\n  "format": {"name": "kbisect-image", "major": 1, "minor": 0},\n'
	printf '  "sha256": "%s",\n  "bytes": %d,\n' "${sum%% *}" "$size"
	printf '  "packages": {'
	separator=''
	while read -r package version; do
		printf '%s\n    %s: %s' "$separator" "$(quote "$package")" "$(quote "$version")"
		separator=,
	done <"$work/packages"
	printf '\n  },\n  "files": {'
	separator=''
	(cd "$root" && find . -type f | sed 's|^\./||' | sort) >"$work/files"
	while IFS= read -r file; do
		sum=$(sha256sum <"$root/$file")
		printf '%s\n    %s: "%s"' "$separator" "$(quote "/$file")" "${sum%% *}"
		separator=,
	done <"$work/files"
	printf '\n  }\n}\n'
} >"$work/manifest"

mv "$work/image" "$out"
mv "$work/manifest" "$out.manifest.json"
