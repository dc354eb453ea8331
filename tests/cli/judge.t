#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# kbisect judge under a real `git bisect run`.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

r=$work/repo
make_repo "$r"
for i in $(seq 1 9); do commit "$r" "before $i" file "$i"; done
commit "$r" "does not build" state nobuild
commit "$r" "builds again" state ok
commit "$r" "slower" level 1060000
culprit=$(git -C "$r" rev-parse HEAD)
for i in $(seq 1 10); do commit "$r" "after $i" file "a$i"; done
good=$(git -C "$r" rev-list --max-parents=0 HEAD)

cd "$r" || exit 1
git bisect start main "$good" >/dev/null
git bisect run "$KBISECT" judge --job "$job" --unit-command "$unit" >"$work/out" 2>&1
ok $? "git bisect run kbisect judge"
like "$(cat "$work/out")" "$culprit is the first bad commit" "finds the commit"
git bisect reset >/dev/null 2>&1

git checkout -q main~12 # the one that does not build
"$KBISECT" judge --job "$job" --unit-command "$unit" --good "$good" --bad main >"$work/out" 2>&1
is $? 125 "a commit that does not build: 125"
like "$(cat "$work/out")" "mm/fake.c" "with the compiler's words"
git checkout -q main~3
"$KBISECT" judge --job "$job" --unit-command "$unit" --good "$good" --bad main >/dev/null 2>&1
is $? 1 "bad: 1"
git checkout -q main~15
"$KBISECT" judge --job "$job" --unit-command "$unit" --good "$good" --bad main >/dev/null 2>&1
is $? 0 "good: 0"
git checkout -q main~16
FAKE_BREAK=boot "$KBISECT" judge --job "$job" --unit-command "$unit" --good "$good" --bad main \
	>/dev/null 2>"$work/err"
is $? 129 "infrastructure: 129, so that git stops"
git checkout -q main~2
out=$("$KBISECT" judge --job "$job" --unit-command "$unit" 2>&1)
is $? 129 "no git bisect in progress: 129"
like "$out" "git bisect" "with a hint"
out=$("$KBISECT" judge --job "$job" --unit-command "$unit" --good main~4 --bad main 2>&1)
is $? 129 "endpoints that do not differ: 129, never a verdict"
done_testing
