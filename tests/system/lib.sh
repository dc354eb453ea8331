# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# For tests/system/*.t: real kernels in real VMs, over the demo history.
# shellcheck disable=SC2034 # variables for the tests

set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${KB_BUILD:-$top/build}
KBISECT=${KBISECT:-$build/kbisect}
export KBISECT_HOME=${KBISECT_HOME:-$build/state} KBISECT_CACHE=${KBISECT_CACHE:-$build/cache}
history=$build/history/linux.git
truth=$build/history/linux.git.truth.json
report=$build/demo-report.json
work=$(mktemp -d "${TMPDIR:-/tmp}/kbisect-sys.XXXXXX")
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C

test_count=0
test_failed=0
ok() {
	local status=$1
	shift
	test_count=$((test_count + 1))
	if [ "$status" = 0 ]; then
		echo "ok $test_count - $*"
	else
		echo "not ok $test_count - $*"
		test_failed=1
	fi
}
is() {
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || printf '#   got: %s\n#  want: %s\n' "$1" "$2"
}
done_testing() {
	echo "1..$test_count"
	exit $test_failed
}
json() { # FILE EXPR on $d
	# shellcheck disable=SC2016 # Perl's variables
	perl -MJSON::PP -e 'local $/; open F, "<", $ARGV[0] or die $!;
		my $d = decode_json(<F>); my $v = eval $ARGV[1]; die $@ if $@;
		print ref $v eq "JSON::PP::Boolean" ? ($v ? "true" : "false") : $v // "null"' \
		"$1" "$2"
}
# edit_json IN OUT EXPR: EXPR changes $d.
edit_json() {
	# shellcheck disable=SC2016 # Perl's variables
	perl -MJSON::PP -e 'local $/; open F, "<", $ARGV[0] or die $!;
		my $d = decode_json(<F>); eval $ARGV[2]; die $@ if $@;
		open F, ">", $ARGV[1] or die $!; print F encode_json($d)' "$1" "$2" "$3"
}
# QEMU processes of this test and of this state folder: their initrd lies there.
qemus() {
	pgrep -f "qemu-system-x86_64 .*-initrd ($work|$KBISECT_HOME)/" | wc -l
}
need_report() {
	[ -s "$report" ] && return
	echo "1..1"
	echo "not ok 1 - 10-demo.t must have run before (no $report)"
	exit 1
}
# The request of some finished boot of the good endpoint.
some_request() {
	local good run
	good=$(json "$report" '$d->{good}' | cut -c1-12)
	run=$KBISECT_HOME/runs/$(json "$report" '$d->{run_id}')
	find "$run/boots" -path "*/$good-0.d/request.json" | head -n 1
}
