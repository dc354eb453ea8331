#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGKILL at 20 random moments: resume reaches the same answer, repeats no finished boot.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

r=$work/repo
make_repo "$r"
for i in $(seq 1 12); do commit "$r" "before $i" file "$i"; done
commit "$r" "panics" state panic
commit "$r" "repaired" state ok
for i in $(seq 13 20); do commit "$r" "before $i" file "$i"; done
commit "$r" "slower" level 1060000
culprit=$(git -C "$r" rev-parse HEAD)
for i in $(seq 1 14); do commit "$r" "after $i" file "a$i"; done
good=$(git -C "$r" rev-list --max-parents=0 HEAD)

export FAKE_SLEEP_MS=20
# --fresh: nothing but the run's own records may save a boot
reference=$(bisect "$r" --good "$good" --bad main --fresh --json 2>/dev/null)
echo "$reference" >"$work/reference.json"
is "$(json "$work/reference.json" '$d->{candidates}[0]{commit}')" "$culprit" "reference run"
summary='join " ", $d->{verdict}, $d->{builds}, $d->{boots}, map { "$_->{commit}:$_->{boots}:$_->{mean}" } @{$d->{tested}}'
want=$(json "$work/reference.json" "$summary")

RANDOM=20261201
for round in $(seq 1 20); do
	export KBISECT_HOME=$work/state.$round FAKE_LOG=$work/log.$round
	"$KBISECT" bisect --repo "$r" --job "$job" --unit-command "$unit" --good "$good" \
		--bad main --fresh --quiet >/dev/null 2>&1 &
	pid=$!
	# the clock starts with the run: before it there is nothing to resume
	for _ in $(seq 1 500); do
		compgen -G "$KBISECT_HOME/runs/*/run.json" >/dev/null && break
		sleep 0.01
	done
	sleep "0.$(printf '%03d' $((RANDOM % 900 + 10)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	finished=$(find "$KBISECT_HOME" -name '*-*.json' -path '*/boots/*' | wc -l)
	# a second kill while resuming
	"$KBISECT" resume --fresh --quiet >/dev/null 2>&1 &
	pid=$!
	sleep "0.$(printf '%03d' $((RANDOM % 300 + 20)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	"$KBISECT" resume --fresh --json --quiet >"$work/report.json" 2>"$work/err"
	status=$?
	[ $status = 0 ] || cat "$work/err"
	is "$(json "$work/report.json" "$summary")" "$want" \
		"round $round: the same answer ($finished boots were finished at the first kill)"
	# a boot whose record was written is finished and must not be done twice
	is "$(grep ^boot "$FAKE_LOG" | sort | uniq -d | wc -l)" 0 \
		"round $round: no finished boot repeated"
done
is "$(pgrep -f "$unit" | wc -l)" 0 "no unit outlives its controller"

# a journal that was damaged is refused, and nothing in it is changed
export KBISECT_HOME=$work/state.1
run=$(echo "$KBISECT_HOME"/runs/*)
sed -i '3s/^/x/' "$run/journal.jsonl"
before=$(sha256sum "$run/journal.jsonl")
rm -f "$run/report.json"
out=$("$KBISECT" resume 2>&1)
is $? 4 "a damaged journal is refused"
like "$out" 'journal.jsonl:3' "with file and line"
is "$(sha256sum "$run/journal.jsonl")" "$before" "and left as it is"
done_testing
