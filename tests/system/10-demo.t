#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The main job: the demo history's culprit is found, confirmed, with effect and interval.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

began=$SECONDS
"$KBISECT" bisect --repo "$history" --good demo-good --bad demo-bad --job trunc-demo --fresh \
	--json >"$report" 2>"$work/err"
is $? 0 "kbisect bisect exits 0"
tail -n 40 "$work/err" | sed 's/^/# /'
echo "# took $((SECONDS - began)) s"
is "$(json "$report" '$d->{verdict}')" culprit "verdict"
is "$(json "$report" '$d->{candidates}[0]{commit}')" "$(json "$truth" '$d->{culprit}')" \
	"the guilty commit is named"
is "$(json "$report" '$d->{confirmed}')" true "and confirmed against its parents"
is "$(json "$report" '$d->{effect}{ci_low} > 1 ? "yes" : "no"')" yes \
	"the interval of the effect excludes 1"
is "$(json "$report" '$d->{effect}{ci_low} < $d->{effect}{ratio} &&
	$d->{effect}{ratio} < $d->{effect}{ci_high} ? "yes" : "no"')" yes "and holds the effect"
is "$(json "$report" 'scalar grep { $_->{verdict} eq "bad" && $_->{boots} == 0 }
	@{$d->{tested}}')" 0 "no commit is called bad without a boot"
broken=$(json "$truth" 'join "|", map { $_->{commit} } grep { $_->{state} ne "ok" } @{$d->{commits}}')
is "$(json "$report" 'scalar grep { $_->{commit} =~ /^('"$broken"')$/ &&
	$_->{verdict} ne "untestable" } @{$d->{tested}}')" 0 "broken commits are untestable, not bad"
is "$(qemus)" 0 "no QEMU is left over"
done_testing
