#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The other commands on real kernels: measure, shell, report, log, gc.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report

"$KBISECT" measure --repo "$history" --job trunc-demo --boots 2 --json demo-good \
	>"$work/measure.json" 2>"$work/err"
is $? 0 "measure"
is "$(json "$work/measure.json" '$d->{tested}[0]{boots}')" 2 "two boots"
is "$(json "$work/measure.json" '$d->{boots_cached}')" 2 \
	"both known from the bisection: an exact boot is never made twice"

echo 'uname -r; grep -c xfs /proc/mounts; ls /dev/pmem0; exit 7' |
	timeout 300 "$KBISECT" shell --repo "$history" --job trunc-demo demo-good \
		>"$work/shell.out" 2>"$work/shell.err"
is $? 7 "shell: the guest shell's exit code is ours"
grep -q '^6\.1\.' "$work/shell.out"
ok $? "shell: uname of the revision"
grep -q '^1' "$work/shell.out"
ok $? "shell: the scratch XFS is mounted"
is "$(qemus)" 0 "shell: no QEMU left"

run=$(json "$report" '$d->{run_id}')
"$KBISECT" report "$run" >"$work/report.txt"
is $? 0 "report of the demo's run"
grep -q "$(json "$truth" '$d->{culprit}' | cut -c1-12)" "$work/report.txt"
ok $? "names the culprit"
"$KBISECT" log "$run" >"$work/log"
git clone -q --shared --no-checkout "$history" "$work/linux" 2>/dev/null
(cd "$work/linux" && git sparse-checkout set --no-cone /Makefile >/dev/null 2>&1 &&
	git checkout -q demo-bad && git bisect replay "$work/log") >"$work/replay" 2>&1
grep -q "$(json "$truth" '$d->{culprit}') is the first bad commit" "$work/replay"
ok $? "git bisect replay of the log ends at the same commit"

"$KBISECT" gc --dry-run --max-size 1000GiB >"$work/gc"
is $? 0 "gc --dry-run"
done_testing
