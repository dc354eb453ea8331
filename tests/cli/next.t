#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `kbisect next`: what it prints and how it exits.
set -u
kbisect=$(realpath "${KBISECT:-build/kbisect}")
count=0
failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/kbisect-next-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org
export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org

is() { # GOT WANT NAME
	count=$((count + 1))
	if [ "$1" == "$2" ]; then
		echo "ok $count - $3"
	else
		echo "not ok $count - $3"
		echo "# got '$1', want '$2'" >&2
		failed=$((failed + 1))
	fi
}

has() { # TEXT PART NAME
	case $1 in
	*"$2"*) is yes yes "$3" ;;
	*) is "$1" "...$2..." "$3" ;;
	esac
}

run() { # leaves $out, $err and $code
	out=$("$kbisect" next --repo "$dir/r" "$@" 2>"$dir/err" </dev/null)
	code=$?
	err=$(cat "$dir/err")
}

# main: c1 .. c8; side: s1 s2, forked at c3.
date=1600000000
commit() { # TAG FILE
	date=$((date + 60))
	echo "$1" >"$dir/r/$2"
	git -C "$dir/r" add -A
	GIT_COMMITTER_DATE="$date +0000" git -C "$dir/r" commit -qm "$1"
	git -C "$dir/r" tag "$1"
}
git init -q -b main "$dir/r"
for i in 1 2 3 4 5 6 7 8; do
	commit "c$i" "f$((i % 2))"
done
git -C "$dir/r" checkout -q -b side c3
commit s1 s
commit s2 s
id() { git -C "$dir/r" rev-parse "$1"; }

run --good c1 --bad c8
is "$code" 0 "a plain range succeeds"
is "$out" "commit $(id c4)
candidates 7
steps 2" "with commit, candidates and steps"
is "$err" "" "and nothing on stderr"

run --good c1 --bad c8 --skip c4
is "$code" 0 "a skip"
has "$out" "candidates 7" "leaves all candidates"
is "${out/$(id c4)/}" "$out" "but is not chosen"

run --good c1 --bad c8 -- f0
has "$out" "candidates 4" "paths limit the candidates"

run --good c7 --bad c8
is "$code" 0 "one candidate"
is "$out" "commit $(id c8)
candidates 1
steps 0" "is the answer"

run --good c1 --bad c4 --skip c2 --skip c3
is "$code" 3 "only skipped ones left"
is "$out" "candidate $(id c2)
candidate $(id c3)
candidate $(id c4)
candidates 3" "are all listed"

run --good s2 --bad c8
is "$code" 0 "a good commit on another branch"
is "$out" "commit $(id c3)
candidates 5
steps 1
merge-base 1" "asks for the fork point first"
run --good s2 --good c3 --bad c8
is "$code $(grep -c merge-base <<<"$out")" "0 0" "unless it is known to be good"
run --good s2 --skip c3 --bad c8
is "$code $(grep -c merge-base <<<"$out")" "0 0" "or skipped"
has "$err" "$(id c3 | cut -c 1-12)" "which is warned of"
run --good s2 --ancestors-ok --bad c8
is "$code $(grep -c merge-base <<<"$out")" "0 0" "or said to be settled"

run --good c1 --bad c1
is "$code" 2 "equal endpoints"
has "$err" "same commit" "are named"
run --good c8 --bad c1
is "$code" 2 "reversed endpoints"
has "$err" "swap" "are named"
run --good v6.99 --bad c1
is "$code" 2 "an unknown revision"
has "$err" "'v6.99' not found" "is named"
run --good c1 --bad c8 -- nowhere
is "$code" 2 "a path that nothing touches"
run --good c1
is "$code" 2 "no bad commit"
run --good c1 --bad c8 --frist-parent
is "$code" 2 "an unknown option"
is "$(git -C "$dir/r" status --porcelain)" "" "the work tree is clean"

echo "1..$count"
[ "$failed" -eq 0 ]
