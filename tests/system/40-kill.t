#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGKILL of the controller at three moments of the real bisection; then resume.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report

export KBISECT_HOME=$work/state
# --fresh: the boots are really run, not taken from the cache of exact boots
"$KBISECT" bisect --repo "$history" --good demo-good --bad demo-bad --job trunc-demo --fresh \
	--quiet >/dev/null 2>&1 &
pid=$!
finished() {
	find "$KBISECT_HOME/runs" -path '*/boots/*' -name '*-*.json' ! -name 'request.json' | sort
}
declare -A seen
for boots in 2 11 20; do
	for _ in $(seq 1 6000); do
		[ "$(finished 2>/dev/null | wc -l)" -ge $boots ] && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill -0 $pid 2>/dev/null
	ok $? "still running when $boots boots are finished"
	sleep "0.$((RANDOM % 10))"
	kill -KILL $pid
	wait $pid 2>/dev/null
	sleep 1
	is "$(qemus)" 0 "killed after $boots boots: no QEMU left"
	while read -r path; do seen[$path]=$(stat -c '%Y %i' "$path"); done < <(finished)
	"$KBISECT" resume --fresh --json >"$work/report.json" 2>"$work/err" &
	pid=$!
done
wait $pid
is $? 0 "the last resume finishes"
tail -n 3 "$work/err" | sed 's/^/# /'
summary='join " ", $d->{verdict}, $d->{candidates}[0]{commit}, $d->{confirmed} ? "confirmed" : "",
	map { "$_->{commit}:$_->{boots}:$_->{mean}" } @{$d->{tested}}'
is "$(json "$work/report.json" "$summary")" "$(json "$report" "$summary")" \
	"and comes to the very same numbers as the run that was never killed"
changed=0
for path in "${!seen[@]}"; do
	[ "$(stat -c '%Y %i' "$path")" = "${seen[$path]}" ] || changed=$((changed + 1))
done
is $changed 0 "no finished boot was repeated (${#seen[@]} looked at)"
done_testing
