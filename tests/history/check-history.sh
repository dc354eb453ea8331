#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks a demo history made by make-history.sh: its shape, that the truth file belongs to
# it, and that the culprit can be named. Prints TAP.
#
# Usage: check-history.sh DIR
set -euo pipefail

if [ $# -ne 1 ]; then
	echo "Usage: check-history.sh DIR" >&2
	exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=${1%/}
truth=$repo.truth.json
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C
count=0
failures=0

# check DESCRIPTION COMMAND...: one test, which passes when the command does.
check() {
	local description=$1
	shift
	count=$((count + 1))
	if "$@" >&2; then
		echo "ok $count - $description"
	else
		echo "not ok $count - $description"
		failures=$((failures + 1))
	fi
}

git_in() {
	git --git-dir="$repo" "$@"
}

truth_of() {
	jq -r "$1" "$truth"
}

# in_class CLASS...: how many commits of these classes there are.
in_class() {
	local class total=0

	for class in "$@"; do
		total=$((total + $(truth_of "[.commits[] | select(.class == \"$class\")] | length")))
	done
	echo "$total"
}

refs_are_right() {
	[ "$(git_in rev-parse demo-bad)" = "$(git_in rev-parse main)" ] &&
		[ "$(git_in rev-parse demo-bad)" = "$(truth_of .bad)" ] &&
		[ "$(git_in rev-parse demo-good)" = "$(truth_of .good)" ] &&
		git_in merge-base --is-ancestor demo-good demo-bad
}

commits_agree() {
	diff <(git_in log --reverse --topo-order --format='%H %P|%s' demo-bad) \
		<(truth_of '.commits[] | "\(.commit) \(.parents | join(" "))|\(.subject)"')
}

candidates_suffice() {
	[ "$(git_in rev-list --count demo-good..demo-bad)" -ge 48 ]
}

merges_suffice() {
	[ "$(git_in rev-list --count --merges demo-good..demo-bad)" -ge 2 ]
}

subjects_are_unique() {
	[ -z "$(git_in log --format=%s demo-bad | sort | uniq -d)" ]
}

# Two of five commits touch nothing that is built.
idle_share_is_right() {
	local idle total

	idle=$(in_class docs driver)
	total=$(git_in rev-list --count demo-bad)
	[ $((idle * 100)) -ge $((total * 35)) ] && [ $((idle * 100)) -le $((total * 45)) ]
}

classes_are_right() {
	[ "$(in_class culprit)" = 1 ] && [ "$(in_class improvement)" = 1 ] &&
		[ "$(in_class break-build)" = 2 ] && [ "$(in_class break-panic)" = 1 ] &&
		[ "$(in_class break-hang)" = 1 ] && [ "$(in_class neutral)" -ge 15 ]
}

# The culprit is no merge, is a candidate, and both it and its parent can be measured.
culprit_can_be_named() {
	local culprit parent

	culprit=$(truth_of .culprit)
	[ "$(git_in show --no-patch --format=%P "$culprit" | wc -w)" -eq 1 ] || return 1
	parent=$(git_in rev-parse "$culprit^")
	git_in merge-base --is-ancestor "$culprit" demo-bad || return 1
	! git_in merge-base --is-ancestor "$culprit" demo-good || return 1
	[ "$(state_of "$culprit")$(state_of "$parent")" = okok ]
}

state_of() {
	truth_of ".commits[] | select(.commit == \"$1\") | .state"
}

ends_are_measurable() {
	[ "$(state_of "$(truth_of .good)")$(state_of "$(truth_of .bad)")" = okok ]
}

# By the graph alone: slow means that the culprit is an ancestor, or the commit itself.
slow_marks_agree() {
	local culprit

	culprit=$(truth_of .culprit)
	diff <(truth_of '.commits[] | select(.slow) | .commit' | sort) \
		<({ echo "$culprit"; git_in rev-list --ancestry-path "$culprit..demo-bad"; } | sort)
}

# Broken from the break on, until the repair is in.
states_agree() {
	local id state broken repair kind

	while read -r id state; do
		kind=$(truth_of '.commits[] | select(.repaired_by) |
			"\(.commit) \(.repaired_by) \(.class)"' | while read -r broken repair kind; do
			if git_in merge-base --is-ancestor "$broken" "$id" &&
				! git_in merge-base --is-ancestor "$repair" "$id"; then
				echo "${kind#break-}"
			fi
		done | sort -u)
		if [ "${kind:-ok}" != "$state" ]; then
			echo "$id is '$state' in the truth, '$kind' in the graph"
			return 1
		fi
	done < <(truth_of '.commits[] | "\(.commit) \(.state)"')
}

# Only tests that know the archive can know the ids.
tip_is_known() {
	local source expected

	source=$(sed -n 's/^source-sha256 //p' "$repo/kbisect-stamp")
	expected=$(sed -n "s/^$source //p" "$here/known-tips")
	if [ -z "$expected" ]; then
		echo "# no known tip for an archive with the sha256 $source"
		return 0
	fi
	[ "$(git_in rev-parse main)" = "$expected" ]
}

command -v jq >/dev/null || {
	echo "Bail out! jq is missing: apt-get install jq"
	exit 1
}
check 'repository, stamp and truth are there' \
	test -f "$repo/HEAD" -a -f "$repo/kbisect-stamp" -a -f "$truth"
[ "$failures" -eq 0 ] || exit 1
check 'tags and branch are where the truth has them' refs_are_right
check 'commits, parents, order and subjects are those of the truth' commits_agree
check 'subjects are unique' subjects_are_unique
check 'there are at least 48 candidates' candidates_suffice
check 'at least two branches are merged' merges_suffice
check 'about two of five commits touch nothing that is built' idle_share_is_right
check 'one culprit, one improvement, and every kind of broken commit' classes_are_right
check 'the culprit can be named' culprit_can_be_named
check 'both ends can be measured' ends_are_measurable
check 'slow commits are those with the culprit' slow_marks_agree
check 'broken commits are those between a break and its repair' states_agree
check 'the tip is the one that this archive gives everywhere' tip_is_known
echo "1..$count"
[ "$failures" -eq 0 ]
