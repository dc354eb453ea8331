#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kbisect doctor: text and JSON agree, and a host without tools is told what to install.
# shellcheck disable=SC2016 # Perl's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$KBISECT" doctor >"$work/text" 2>"$work/err"
status=$?
"$KBISECT" doctor --json >"$work/json" 2>"$work/err"
is $? "$status" "the same exit code with and without --json"
is "$(json "$work/json" '$d->{format}{name}')" kbisect-doctor "a versioned document"
is "$(grep -cE '^(ok|warn|missing) ' "$work/text")" "$(json "$work/json" 'scalar @{$d->{checks}}')" \
	"one line for each check"
missing=$(json "$work/json" 'scalar grep { $_->{status} eq "missing" } @{$d->{checks}}')
is "$status" "$([ "$missing" -gt 0 ] && echo 4 || echo 0)" "exit code 4 exactly when something is missing"

mkdir "$work/empty"
PATH=$work/empty "$KBISECT" doctor >"$work/text" 2>"$work/err"
is $? 4 "without programs in PATH"
text=$(cat "$work/text")
for package in flex bison bc make gcc qemu-system-x86; do
	like "$text" "apt install $package\$" "names the package $package"
done
"$KBISECT" doctor --no-such-option >"$work/text" 2>"$work/err"
is $? 2 "an unknown option is a usage error"
done_testing
