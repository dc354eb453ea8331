#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A real `git bisect run kbisect judge` finds the same commit.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report

# A worktree of the same repository, without files: judge measures commits, not work trees, and
# kbisect's own source tree for this repository is reused.
git -C "$history" worktree prune
git -C "$history" worktree add --no-checkout --detach "$work/linux" demo-bad >/dev/null 2>&1
cd "$work/linux" || exit 1
git bisect start --no-checkout demo-bad demo-good >/dev/null 2>&1
began=$SECONDS
git bisect run "$KBISECT" judge --job trunc-demo >"$work/out" 2>&1
is $? 0 "git bisect run kbisect judge"
tail -n 25 "$work/out" | sed 's/^/# /'
echo "# took $((SECONDS - began)) s"
grep -q "$(json "$truth" '$d->{culprit}') is the first bad commit" "$work/out"
ok $? "finds the guilty commit"
git bisect reset >/dev/null 2>&1
done_testing
