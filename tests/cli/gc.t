#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kbisect gc on a made-up cache: what goes, what stays, what is only said.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

entry() { # KIND/KEY AGE_MINUTES
	mkdir -p "$KBISECT_CACHE/$1"
	head -c 1048576 /dev/zero | tr '\0' x >"$KBISECT_CACHE/$1/data"
	touch -d "-$2 minutes" "$KBISECT_CACHE/$1"
}
left() {
	(cd "$KBISECT_CACHE" && find . -path './*/*' -prune ! -name '*.lock' -print | sort | tr '\n' ' ')
}

"$KBISECT" gc >"$work/out" 2>"$work/err"
is $? 0 "a cache that does not exist is an empty one"

entry builds/old 30
entry builds/middle 20
entry builds/new 10
entry slots/tree 40

"$KBISECT" gc --dry-run --max-size 2500KiB >"$work/out" 2>"$work/err"
is $? 0 "gc --dry-run"
like "$(cat "$work/out")" 'would remove builds/old' "names what would go"
is "$(left)" "./builds/middle ./builds/new ./builds/old ./slots/tree " "and removes nothing"

"$KBISECT" gc --max-size 2500KiB >"$work/out" 2>"$work/err"
is $? 0 "gc"
is "$(left)" "./builds/middle ./builds/new ./slots/tree " "the least recently used goes"

exec 9<"$KBISECT_CACHE/builds/middle"
flock -s 9
"$KBISECT" gc --max-size 0 >"$work/out" 2>"$work/err"
is "$(left)" "./builds/middle ./slots/tree " "what is in use stays, slots too"
exec 9<&-

"$KBISECT" gc --max-size 0 --slots >"$work/out" 2>"$work/err"
is "$(left)" "" "with --slots everything may go"

for bad in "" x 1.5GiB "2.0x memory" -1 99999999999GiB; do
	"$KBISECT" gc --max-size="$bad" >"$work/out" 2>"$work/err"
	is $? 2 "--max-size '$bad' is a usage error"
done
done_testing
