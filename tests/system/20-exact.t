#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Ten exact-mode boots of one kernel, same perturbation, the other core busy: all equal.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
need_report

request=$(some_request)
( while :; do :; done ) &
busy=$!
trap 'kill $busy 2>/dev/null; rm -rf "$work"' EXIT
sum=
same=0
for i in $(seq 1 10); do
	mkdir "$work/$i"
	edit_json "$request" "$work/$i.request.json" '$d->{work_dir} = "'"$work/$i"'"'
	"$KBISECT" unit boot "$work/$i.request.json" "$work/$i.json" >"$work/$i.log" 2>&1
	values=$(json "$work/$i.json" 'join " ", $d->{outcome},
		(map { "$_->{name}=@{$_->{values}}" } @{$d->{metrics}}),
		(map { my $c = $_; map { "$c->{point}/$c->{repetition}/$_=$c->{values}{$_}" }
			sort keys %{$c->{values}} } @{$d->{counters}})')
	[ "$i" = 1 ] && sum=$values && echo "# ${values:0:300}"
	[ "$values" = "$sum" ] && same=$((same + 1))
done
kill $busy
is "$(json "$work/1.json" '$d->{outcome}')" ok "the boot is a valid one"
is $same 10 "ten boots: every metric and every counter equal"
[ "$(wc -w <<<"$sum")" -gt 200 ]
ok $? "and there is something to compare: $(wc -w <<<"$sum") values"

mkdir "$work/other"
edit_json "$request" "$work/other.request.json" \
	'$d->{work_dir} = "'"$work/other"'"; $d->{perturbation}++'
"$KBISECT" unit boot "$work/other.request.json" "$work/other.json" >"$work/other.log" 2>&1
[ "$(json "$work/other.json" '"@{$d->{metrics}[0]{values}}"')" != \
	"$(json "$work/1.json" '"@{$d->{metrics}[0]{values}}"')" ]
ok $? "another perturbation gives other values: the sample is over perturbations"
done_testing
