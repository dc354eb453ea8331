#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Guests that panic, hang, lie, flood, die: each is told apart, in bounded time and disk.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report
request=$(some_request)

fault() { # kind, wanted outcome, [further change]
	local dir=$work/$1
	mkdir -p "$dir"
	edit_json "$request" "$dir.request.json" '
		$d->{work_dir} = "'"$dir"'";
		delete $d->{params}{$_} for grep { /^param\./ } keys %{$d->{params}};
		$d->{params}{workload} = "fault";
		$d->{params}{"param.kind"} = "'"$1"'";
		$d->{console_max_bytes} = 1048576;
		$d->{timeout_ms} = 60000;'"${3:-}"
	local began=$SECONDS
	timeout 200 "$KBISECT" unit boot "$dir.request.json" "$dir.json" >"$dir.log" 2>&1
	is $? 0 "$1: there is a record"
	is "$(json "$dir.json" '$d->{outcome}')" "$2" "$1: is told as $2"
	echo "# $((SECONDS - began)) s: $(json "$dir.json" '$d->{reason}')"
	[ "$(json "$dir.json" 'length $d->{reason}')" -gt 0 ]
	ok $? "$1: with a reason"
	[ $((SECONDS - began)) -lt 120 ]
	ok $? "$1: in bounded time"
	[ "$(du -sk "$dir" | cut -f1)" -lt 24000 ]
	ok $? "$1: bounded on disk"
}

fault panic panic
fault oops oops
fault oom oom
fault hang hang '$d->{timeout_ms} = 25000;'
fault spin hang '$d->{timeout_ms} = 25000;'
fault die died
fault garbage garbage
fault lie-checksum garbage
fault lie-nonce garbage
fault lie-truncated garbage
fault flood flood '$d->{params}{"param.bytes"} = "1073741824";'
fault segv failed
fault fail failed
fault invalid invalid
is "$(qemus)" 0 "no QEMU is left over"

# QEMU killed from outside
mkdir "$work/killed"
edit_json "$request" "$work/killed.request.json" '
	$d->{work_dir} = "'"$work/killed"'";
	delete $d->{params}{$_} for grep { /^param\./ } keys %{$d->{params}};
	$d->{params}{workload} = "fault"; $d->{params}{"param.kind"} = "hang";'
"$KBISECT" unit boot "$work/killed.request.json" "$work/killed.json" >"$work/killed.log" 2>&1 &
unit=$!
for _ in $(seq 1 200); do
	[ "$(qemus)" -gt 0 ] && grep -q '@kb start' "$work/killed/console.log" 2>/dev/null && break
	sleep 0.1
done
pkill -KILL -f "qemu-system-x86_64 .*-initrd $work/killed/"
wait $unit
is "$(json "$work/killed.json" '$d->{outcome}')" killed "QEMU killed from outside is told as such"

# the controller killed: QEMU goes with it
mkdir "$work/orphan"
edit_json "$work/killed.request.json" "$work/orphan.request.json" \
	'$d->{work_dir} = "'"$work/orphan"'"'
"$KBISECT" unit boot "$work/orphan.request.json" "$work/orphan.json" >"$work/orphan.log" 2>&1 &
unit=$!
for _ in $(seq 1 200); do
	[ "$(qemus)" -gt 0 ] && break
	sleep 0.1
done
[ "$(qemus)" -gt 0 ]
ok $? "a VM runs"
kill -KILL $unit
wait $unit 2>/dev/null
sleep 1
is "$(qemus)" 0 "and is gone a second after its controller was SIGKILLed"
done_testing
