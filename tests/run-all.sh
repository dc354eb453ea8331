#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs every test and ends with one line "N passed, N failed, N skipped". Each test program
# speaks TAP; one that dies, or runs another number of tests than it planned, has failed.
#
# usage: run-all.sh [--quick]     --quick: no sanitizer variant, no VMs

set -u
cd "$(dirname "$0")/.." || exit 1
build=${KB_BUILD:-$PWD/build}
logs=$build/test-logs
mkdir -p "$logs"
passed=0
failed=0
skipped=0
failures=()

run() { # name, command...
	local name=$1 log status planned ran not_ok
	shift
	log=$logs/${name//\//_}.log
	local began=$SECONDS
	"$@" >"$log" 2>&1 </dev/null
	status=$?
	planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log" | tail -n 1)
	ran=$(grep -cE '^(not )?ok\b' "$log")
	not_ok=$(grep -E '^not ok\b' "$log" | grep -cviE '# *todo')
	local skips
	skips=$(grep -ciE '^ok\b.*# *skip' "$log")
	if grep -qE '^1\.\.0 *# *skip' "$log"; then
		skips=1
		planned=0
	fi
	passed=$((passed + ran - not_ok - skips))
	skipped=$((skipped + skips))
	[ "$ran" -gt 0 ] || [ "$planned" = 0 ] || skips=0
	if [ "$not_ok" -gt 0 ] || [ $status -ne 0 ] || [ "${planned:-none}" != "$ran" ]; then
		[ "$not_ok" -gt 0 ] || not_ok=1
		failed=$((failed + not_ok))
		failures+=("$name")
		printf 'FAIL  %-40s (exit %d, %s planned, %d ran, %ds)\n' "$name" $status \
			"${planned:-none}" "$ran" $((SECONDS - began))
		grep -E -A6 '^not ok\b' "$log" | head -n 40
		tail -n 5 "$log"
	else
		printf 'ok    %-40s %4d tests %4ds\n' "$name" "$ran" $((SECONDS - began))
	fi
	grep -iE '^(ok\b.*# *skip|1\.\.0 *# *skip)' "$log" | sed 's/^/SKIPPED: /'
}

programs() { # folder of the variant
	local out=$1 t
	for t in "$out"/tests/unit/test_* "$out"/tests/component/test_*; do
		case $t in *.d | *.o) continue ;; esac
		[ -x "$t" ] && run "${t#"$build"/}" "$t"
	done
	for t in tests/component/*.t tests/cli/*.t tests/fuzz/replay.t; do
		[ -x "$t" ] && run "$t${VARIANT_NAME:+ ($VARIANT_NAME)}" "$t"
	done
}

# make's own state must not leak into tests that call make
unset MAKEFLAGS MFLAGS MAKELEVEL
home=${KBISECT_HOME:-} cache=${KBISECT_CACHE:-}
unset KBISECT_HOME KBISECT_CACHE

export KB_SRC=$PWD KB_BUILD=$build
make --no-print-directory test-programs >"$logs/make.log" 2>&1 || {
	tail -n 30 "$logs/make.log"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}
run tests/layers.sh tests/layers.sh
KB_OUT=$build KBISECT=$build/kbisect programs "$build"

if [ "${1:-}" != --quick ]; then
	make --no-print-directory VARIANT=asan CFLAGS="-O1 -g" test-programs \
		>"$logs/make-asan.log" 2>&1 || {
		tail -n 30 "$logs/make-asan.log"
		failed=$((failed + 1))
	}
	BISECT_AGREE_DAGS=30 VARIANT_NAME=asan KB_OUT=$build/asan KBISECT=$build/asan/kbisect programs "$build/asan"
	export KBISECT_HOME=${home:-$build/state} KBISECT_CACHE=${cache:-$build/cache}
	for t in tests/system/*.t; do
		KB_OUT=$build KBISECT=$build/kbisect run "$t" "$t"
	done
fi

[ ${#failures[@]} -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
