#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs of every kind: reported, resumed and logged for what they are.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# QEMU killed by the host is no fact about a kernel
k=$work/killed
make_repo "$k"
commit "$k" "its boots lose QEMU" state killed
for i in 1 2 3 4 5 6; do commit "$k" "before $i" file "$i"; done
commit "$k" "repaired" state ok
commit "$k" "slow" level 1100000
commit "$k" "after" file a
root=$(git -C "$k" rev-list --max-parents=0 HEAD)
out=$(bisect "$k" --good "$root" --bad main 2>&1)
is $? 4 "QEMU that goes away ends in exit 4, not in a verdict"
like "$out" "QEMU went away" "and says so"

# the merge base is bad: the good side repaired it
g=$work/fork
make_repo "$g"
commit "$g" "slow since here" level 1100000
base=$(git -C "$g" rev-parse HEAD)
git -C "$g" checkout -q -b stable
commit "$g" "repair" level 1000000
git -C "$g" checkout -q main
for i in 1 2 3; do commit "$g" "main $i" file "$i"; done
first=$(bisect "$g" --good stable --bad main --json 2>/dev/null)
is $? 1 "a bad merge base is a failure of the question"
is "$(json <(echo "$first") '$d->{verdict}')" fixed-on-good-side "with a verdict of its own"
is "$(json <(echo "$first") 'scalar @{$d->{candidates}}')" 0 "and no candidates"
again=$("$KBISECT" resume --json 2>/dev/null)
is "$(json <(echo "$again") '$d->{verdict}')" fixed-on-good-side "resume says the same"
like "$("$KBISECT" log)" "git bisect bad $base" "the log has the merge base"

# --skip of a merge base: taken on trust, not booted
bisect "$g" --good stable --bad main --skip "$base" --json >"$work/report.json" 2>/dev/null
is "$(json "$work/report.json" 'scalar grep { $_->{commit} eq "'"$base"'" && $_->{boots} }
	@{$d->{tested}}')" 0 "a skipped merge base is not booted"
out=$(bisect "$g" --good "$base~1" --bad main --skip main 2>&1)
is $? 2 "skipping the bad endpoint is refused"

# a finished run is reported again even when the image is another one by now
r=$work/linear
make_repo "$r"
for i in $(seq 1 6); do commit "$r" "before $i" file "$i"; done
commit "$r" "slow" level 1100000 "o'dd" x
commit "$r" "after" file a
root=$(git -C "$r" rev-list --max-parents=0 HEAD)
bisect "$r" --good "$root" --bad main --first-parent --json -- level "o'dd" \
	>"$work/a.json" 2>/dev/null
is $? 0 "a bisection with --first-parent and paths"
cp "$KBISECT_IMAGE" "$work/old.cpio"
echo "another image" >"$KBISECT_IMAGE"
"$KBISECT" resume --json >"$work/b.json" 2>"$work/err"
is $? 0 "a finished run is reported again after the image changed"
is "$(json "$work/b.json" '$d->{verdict}')" culprit "with its answer"
cp "$work/old.cpio" "$KBISECT_IMAGE"

"$KBISECT" log >"$work/log"
git clone -q "$r" "$work/replay"
git -C "$work/replay" bisect replay "$work/log" >/dev/null 2>&1
ok $? "git replays its log"
[ -e "$work/replay/.git/BISECT_FIRST_PARENT" ]
ok $? "with --first-parent"
git clone -q "$r" "$work/real"
git -C "$work/real" bisect start --first-parent -- level "o'dd" >/dev/null 2>&1
is "$(cat "$work/replay/.git/BISECT_NAMES")" "$(cat "$work/real/.git/BISECT_NAMES")" \
	"and the paths, as git itself writes them"
like "$("$KBISECT" report)" "--first-parent" "the report's command can be pasted"

# a judge's run is a run too
cd "$r" || exit 1
git checkout -q main~1
"$KBISECT" judge --job "$job" --unit-command "$unit" --good "$root" --bad main >/dev/null 2>&1
"$KBISECT" report >"$work/out" 2>&1
is $? 0 "a judge's run is reported"
out=$("$KBISECT" measure -n 2 --job "$job" --unit-command "$unit" main main 2>&1)
is $? 2 "one revision named twice is refused"
FAKE_BREAK=boot "$KBISECT" measure -n 2 --fresh --job "$job" --unit-command "$unit" main \
	>/dev/null 2>&1
is $? 4 "a measurement without boots fails"
out=$("$KBISECT" report 2>&1)
is $? 2 "a cut short measurement is no bisection"
like "$out" "measure" "and is called what it is"

# forced: significant, but too close for the boots allowed
f=$work/close
make_repo "$f"
for i in 1 2 3; do commit "$f" "before $i" file "$i"; done
commit "$f" "a little slower" level 1008000
commit "$f" "after" file a
root=$(git -C "$f" rev-list --max-parents=0 HEAD)
FAKE_NOISE=0.006 bisect "$f" --good "$root" --bad main --set decision.commit_boots_max=2 \
	>/dev/null 2>&1
is $? 5 "too close for the boots allowed: refused"
FAKE_NOISE=0.006 bisect "$f" --good "$root" --bad main --set decision.commit_boots_max=2 \
	--force >/dev/null 2>&1
[ $? != 5 ]
ok $? "--force goes on"
done_testing
