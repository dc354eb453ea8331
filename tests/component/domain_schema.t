#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The golden domain descriptions against libvirt's own schema.
set -u
src=${KB_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
schema=/usr/share/libvirt/schemas/domain.rng
n=0 failed=0

result() { # STATUS TEXT
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=$((failed + 1))
	fi
}

if ! command -v xmllint >/dev/null || [ ! -e "$schema" ]; then
	echo "ok 1 # SKIP xmllint (libxml2-utils) or libvirt's schemas are not installed"
	echo "# SKIPPED: domain schema check" >&2
	echo 1..1
	exit 0
fi
for file in "$src"/tests/golden/domain-*.xml; do
	out=$(xmllint --noout --relaxng "$schema" "$file" 2>&1)
	status=$?
	result $status "$(basename "$file") is valid"
	[ $status -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /' | head -20
done
# The check itself must be able to fail.
! sed 's/<vcpu>/<vcpus>/; s/<\/vcpu>/<\/vcpus>/' "$file" |
	xmllint --noout --relaxng "$schema" - >/dev/null 2>&1
result $? "a wrong element is refused"
echo "1..$n"
exit $((failed > 0))
