#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whole bisections with a fake unit program: every outcome and its exit code.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

r=$work/linear
make_repo "$r"
for i in $(seq 1 20); do commit "$r" "before $i" file "$i"; done
commit "$r" "the culprit" level 1100000
culprit=$(git -C "$r" rev-parse HEAD)
for i in $(seq 1 15); do commit "$r" "after $i" file "a$i"; done
good=$(git -C "$r" rev-list --max-parents=0 HEAD)

out=$(bisect "$r" --good "$good" --bad main --json 2>"$work/err")
is $? 0 "a culprit that is found and confirmed exits 0"
echo "$out" >"$work/report.json"
is "$(json "$work/report.json" '$d->{verdict}')" culprit "verdict"
is "$(json "$work/report.json" '$d->{candidates}[0]{commit}')" "$culprit" "the right commit"
is "$(json "$work/report.json" '$d->{confirmed}')" true "confirmed"
is "$(json "$work/report.json" '$d->{format}{major}')" 1 "the document says its version"
is "$(json "$work/report.json" '$d->{effect}{ratio} > 1.09 && $d->{effect}{ratio} < 1.11
	? "yes" : $d->{effect}{ratio}')" yes "the effect is 10 %"
is "$(json "$work/report.json" '$d->{effect}{ci_low} < 1.1 && 1.1 < $d->{effect}{ci_high} + 0.01
	? "yes" : "no"')" yes "with a confidence interval"
is "$(git -C "$r" status --porcelain | wc -l)" 0 "the user's work tree is untouched"
[ "$(json "$work/report.json" '$d->{builds}')" -le 9 ]
ok $? "no more builds than a bisection needs"

text=$("$KBISECT" report)
like "$text" "$(cut -c1-12 <<<"$culprit")" "report names it"
like "$text" "the culprit" "with its subject"

"$KBISECT" log >"$work/log"
git clone -q "$r" "$work/replay"
git -C "$work/replay" bisect replay "$work/log" >"$work/replay.out" 2>&1
ok $? "git bisect replay accepts the log"
like "$(cat "$work/replay.out")" "$culprit is the first bad commit" "and comes to the same answer"

bisect "$r" --good "$good" --bad main --quiet >/dev/null 2>"$work/err"
is "$(wc -c <"$work/err")" 0 "--quiet says nothing on stderr"

out=$(bisect "$r" --good main~15 --bad main 2>&1)
is $? 5 "endpoints that do not differ exit 5"
like "$(tr "\n" " " <<<"$out")" "difference of [0-9.]+ % would have been seen" "and the smallest detectable effect is named"

out=$(bisect "$r" --good main --bad "$good" 2>&1)
is $? 2 "reversed endpoints are a usage error"
like "$out" "ancestor|swap|revers" "that says so"
out=$(bisect "$r" --good main --bad main 2>&1)
is $? 2 "equal endpoints are a usage error"
out=$(bisect "$r" --good nonsense --bad main 2>&1)
is $? 2 "an unknown revision is a usage error"
like "$out" "nonsense" "that names it"
out=$(bisect "$r" --good "$good" --bad main --set vm.memroy_mib=1 2>&1)
is $? 2 "an unknown key is a usage error"
like "$out" "vm.memory_mib" "that knows the right one"

# a side branch with the culprit in it, forked before an unrelated change
m=$work/merges
make_repo "$m"
for i in 1 2 3; do commit "$m" "main $i" file "$i"; done
git -C "$m" checkout -q -b side
commit "$m" "side 1" side 1
commit "$m" "side 2 culprit" level 1080000
culprit=$(git -C "$m" rev-parse HEAD)
commit "$m" "side 3" side 3
git -C "$m" checkout -q main
for i in 4 5 6; do commit "$m" "main $i" file "$i"; done
GIT_AUTHOR_DATE="$((clock + 60)) +0000" GIT_COMMITTER_DATE="$((clock + 60)) +0000" \
	git -C "$m" merge -q --no-ff -m "Merge side" side
clock=$((clock + 120))
merge=$(git -C "$m" rev-parse HEAD)
for i in 7 8; do commit "$m" "main $i" file "$i"; done
root=$(git -C "$m" rev-list --max-parents=0 HEAD)
bisect "$m" --good "$root" --bad main --json >"$work/report.json" 2>"$work/err"
is $? 0 "a culprit on a merged side branch"
is "$(json "$work/report.json" '$d->{candidates}[0]{commit}')" "$culprit" "is named"
bisect "$m" --good "$root" --bad main --first-parent --json >"$work/report.json" 2>"$work/err"
is $? 0 "--first-parent"
is "$(json "$work/report.json" '$d->{candidates}[0]{commit}')" "$merge" "names the merge"
bisect "$m" --good "$root" --bad main --json -- level >"$work/report.json" 2>"$work/err"
is $? 0 "path limiting"
is "$(json "$work/report.json" '$d->{candidates}[0]{commit}')" "$culprit" "finds it as well"
[ "$(json "$work/report.json" '$d->{builds}')" -le 4 ]
ok $? "with next to no builds"

# untestable commits around the culprit
u=$work/untestable
make_repo "$u"
for i in $(seq 1 8); do commit "$u" "before $i" file "$i"; done
commit "$u" "break the build" state nobuild
commit "$u" "slow it down" level 1100000
culprit=$(git -C "$u" rev-parse HEAD)
commit "$u" "panic instead" state panic
commit "$u" "repair" state ok
for i in $(seq 1 6); do commit "$u" "after $i" file "a$i"; done
root=$(git -C "$u" rev-list --max-parents=0 HEAD)
bisect "$u" --good "$root" --bad main --json >"$work/report.json" 2>"$work/err"
is $? 3 "a culprit among commits that cannot be tested exits 3"
is "$(json "$work/report.json" '$d->{verdict}')" set "with a set"
is "$(json "$work/report.json" '$d->{confirmed}')" false "that is not called confirmed"
is "$(json "$work/report.json" \
	'scalar grep { $_->{commit} eq "'"$culprit"'" } @{$d->{candidates}}')" 1 \
	"the set holds the culprit"
is "$(json "$work/report.json" 'scalar @{$d->{candidates}}')" 4 "and only what cannot be excluded"
is "$(json "$work/report.json" \
	'join " ", sort map { $_->{verdict} } grep { $_->{verdict} eq "bad" && !$_->{endpoint}
	&& $_->{boots} == 0 } @{$d->{tested}}')" "" "nothing untestable was called bad"

# units that fail are never a verdict
FAKE_BREAK=boot bisect "$r" --good "$good" --bad main --fresh >"$work/out" 2>"$work/err"
is $? 4 "boot units that fail exit 4"
like "$(cat "$work/err")" "kbisect resume" "and say how to go on"
FAKE_BREAK=build bisect "$r" --good "$good" --bad main >"$work/out" 2>"$work/err"
is $? 4 "build units that fail exit 4"
"$KBISECT" resume --json >"$work/report.json" 2>"$work/err"
is $? 0 "and once they work again, resume finishes"
is "$(json "$work/report.json" '$d->{verdict}')" culprit "with the answer"

# good is not an ancestor of bad
g=$work/fork
make_repo "$g"
for i in 1 2 3; do commit "$g" "common $i" file "$i"; done
base=$(git -C "$g" rev-parse HEAD)
git -C "$g" checkout -q -b stable
commit "$g" "stable 1" stable 1
git -C "$g" checkout -q main
for i in 4 5; do commit "$g" "main $i" file "$i"; done
commit "$g" "slow" level 1100000
culprit=$(git -C "$g" rev-parse HEAD)
commit "$g" "main 7" file 7
bisect "$g" --good stable --bad main --json >"$work/report.json" 2>"$work/err"
is $? 0 "good on another branch"
is "$(json "$work/report.json" '$d->{candidates}[0]{commit}')" "$culprit" "finds the culprit"
is "$(json "$work/report.json" \
	'scalar grep { $_->{commit} eq "'"$base"'" && $_->{verdict} eq "good" } @{$d->{tested}}')" 1 \
	"after testing the merge base"
git -C "$g" checkout -q stable
commit "$g" "repaired here" level 900000
out=$(bisect "$g" --good stable --bad "$base" 2>&1)
is $? 2 "bad that is an ancestor of good is refused"

done_testing
