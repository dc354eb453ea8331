# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For tests/cli/*.t: TAP, a scratch folder, small "kernel" repositories and a fake unit
# program, so that whole bisections run in seconds.

set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
KBISECT=${KBISECT:-$top/build/kbisect}
# in memory where possible: every journal line is synced, and a disk makes that the whole time
base=${TMPDIR:-/dev/shm}
[ -w "$base" ] || base=/tmp
work=$(mktemp -d "$base/kbisect-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

export KBISECT_HOME=$work/state KBISECT_CACHE=$work/cache
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.org
export GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@example.org
echo "image" >"$work/image.cpio"
export KBISECT_IMAGE=$work/image.cpio
unit=${KB_OUT:-$top/build}/tests/fake-unit
job=$here/fake-job.json

test_count=0
test_failed=0

ok() { # exit status, description...
	local status=$1
	shift
	test_count=$((test_count + 1))
	if [ "$status" = 0 ]; then
		echo "ok $test_count - $*"
	else
		echo "not ok $test_count - $*"
		test_failed=1
	fi
}

is() { # got, want, description
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || printf '#   got: %s\n#  want: %s\n' "$1" "$2"
}

like() { # text, extended regular expression, description
	grep -qE -- "$2" <<<"$1"
	local status=$?
	ok $status "$3"
	[ $status = 0 ] || printf '#  text: %s\n# wants: %s\n' "$1" "$2"
}

done_testing() {
	echo "1..$test_count"
	exit $test_failed
}

# One JSON value: json FILE EXPR, with EXPR a Perl expression on $d.
json() {
	# shellcheck disable=SC2016 # Perl's variables
	perl -MJSON::PP -e 'local $/; open F, "<", $ARGV[0] or die $!;
		my $d = decode_json(<F>); my $v = eval $ARGV[1]; die $@ if $@;
		print ref $v eq "JSON::PP::Boolean" ? ($v ? "true" : "false") : $v // "null"' \
		"$1" "$2"
}

clock=1700000000
commit() { # repo, subject, [file content]...
	local repo=$1 subject=$2
	shift 2
	while [ $# -gt 1 ]; do
		echo "$2" >"$repo/$1"
		shift 2
	done
	clock=$((clock + 60))
	git -C "$repo" add -A
	GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000" \
		git -C "$repo" commit -q --allow-empty -m "$subject"
}

# A history of a slow kernel: what a commit's boots measure is in its file "level", how they
# end in "state" (ok, nobuild, panic, hang, invalid).
make_repo() { # path
	git init -q -b main "$1"
	commit "$1" "start" Makefile $'VERSION = 6\nPATCHLEVEL = 1' level 1000000 state ok
}

bisect() { # repo, further arguments
	local repo=$1
	shift
	"$KBISECT" bisect --repo "$repo" --job "$job" --unit-command "$unit" "$@"
}
