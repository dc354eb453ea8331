#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A real `git bisect run kbisect judge` finds the same commit.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report

git clone -q --shared --no-checkout "$history" "$work/linux" 2>/dev/null
cd "$work/linux" || exit 1
git bisect start --no-checkout demo-bad demo-good >/dev/null 2>&1
git bisect reset >/dev/null 2>&1
# judge measures HEAD's commit, so the files need not be there: a sparse work tree keeps the
# test from writing 80000 files at every step
git sparse-checkout set --no-cone /Makefile >/dev/null 2>&1
git checkout -q demo-bad
git bisect start "$(git rev-parse demo-bad)" "$(git rev-parse demo-good)" >/dev/null
began=$SECONDS
git bisect run "$KBISECT" judge --job trunc-demo >"$work/out" 2>&1
is $? 0 "git bisect run kbisect judge"
tail -n 25 "$work/out" | sed 's/^/# /'
echo "# took $((SECONDS - began)) s"
grep -q "$(json "$truth" '$d->{culprit}') is the first bad commit" "$work/out"
ok $? "finds the guilty commit"
done_testing
