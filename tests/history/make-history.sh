#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the demo history: a bare git repository with Debian's kernel source as its first
# commit and the patches of `series` on top of it. Names, dates and contents are fixed, so
# that the same archive gives the same commit ids on every machine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
package=linux-source-6.1
source_tar=/usr/src/$package.tar.xz
out=
force=no

start_epoch=1667260800	# 2022-11-01; each commit is half a day after the one before it
step_s=43200
who_name='kbisect history'
who_mail='history@kbisect.invalid'
needed_kib=$((700 * 1024))

usage() {
	cat <<-END
	Usage: make-history.sh --out DIR [--source TAR] [--force]

	  --out DIR     the bare repository to make; DIR.truth.json is written beside it
	  --source TAR  kernel source archive (default: $source_tar)
	  --force       makes it again even when it is up to date, and replaces a DIR
	                that was not made by this script
	END
}

die() {
	echo "make-history: $*" >&2
	exit 1
}

parse_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--out | --source)
			if [ $# -lt 2 ]; then
				usage >&2
				exit 2
			fi
			if [ "$1" = --out ]; then out=$2; else source_tar=$2; fi
			shift 2
			;;
		--force) force=yes; shift ;;
		-h | --help) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
	done
	if [ -z "$out" ]; then
		usage >&2
		exit 2
	fi
	out=${out%/}
	case $out in /*) ;; *) out=$PWD/$out ;; esac
}

# Nothing of the caller's git set-up, time zone, language or umask may reach the commits.
isolate() {
	local name

	export LC_ALL=C TZ=UTC
	umask 022
	for name in $(compgen -e GIT_ || true); do
		unset "$name"
	done
	export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
	export HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent
}

check_tools() {
	local pair usage_text

	for pair in git:git xz:xz-utils perl:perl sha256sum:coreutils; do
		command -v "${pair%%:*}" >/dev/null ||
			die "'${pair%%:*}' is missing: apt-get install ${pair##*:}"
	done
	# Its own exit status is that of any command shown its usage.
	usage_text=$(git merge-tree -h 2>&1 || true)
	[[ $usage_text == *--write-tree* ]] ||
		die "git 2.38 or later is needed (this is $(git version))"
	[ -r "$source_tar" ] ||
		die "cannot read $source_tar: apt-get install $package"
}

check_space() {
	local free_kib

	free_kib=$(df -Pk "$(dirname "$out")" | awk 'NR == 2 { print $4 }')
	[ "$free_kib" -ge "$needed_kib" ] ||
		die "not enough space for $out: $((needed_kib / 1024)) MiB needed," \
			"$((free_kib / 1024)) MiB free"
}

# Everything that decides what the commits and the truth look like.
recipe_digest() {
	(
		cd "$here"
		sha256sum make-history.sh tar-to-fast-import.pl series classes patches/*.patch
	) | sha256sum | cut -d ' ' -f 1
}

stamp_text() {
	echo "format 1"
	echo "source-sha256 $source_digest"
	echo "recipe-sha256 $recipe"
	echo "package $package $(package_version)"
}

# For the record only. An archive that did not come from the package has no version.
package_version() {
	dpkg-query -W -f '${Version}' "$package" 2>/dev/null || echo unknown
}

# The package version may be recorded differently; what counts are the two digests.
is_up_to_date() {
	[ -f "$out/kbisect-stamp" ] && [ -f "$out.truth.json" ] &&
		[ "$(grep sha256 "$out/kbisect-stamp")" = "$(stamp_text | grep sha256)" ]
}

remove_leftovers() {
	local path pid

	for path in "$out".partial.*; do
		pid=${path##*.}
		if [ -e "$path" ] && ! kill -0 "$pid" 2>/dev/null; then
			rm -rf "$path"
		fi
	done
}

git_in() {
	git --git-dir="$repo" -c gc.auto=0 -c maintenance.auto=false -c core.compression=1 "$@"
}

import_source() {
	git init --quiet --bare --template= --object-format=sha1 --initial-branch=main "$repo"
	git_in config gc.auto 0
	cat >"$work/message" <<-END
	Import the kernel source

	The archive that Debian's $package has, unpacked and unchanged.
	sha256: $source_digest
	END
	xz --decompress --stdout "$source_tar" |
		perl "$here/tar-to-fast-import.pl" refs/heads/main "$who_name <$who_mail>" \
			"$start_epoch +0000" "$work/message" |
		git_in -c pack.compression=1 -c fastimport.unpackLimit=1 \
			fast-import --quiet --done --depth=0 ||
		die "importing $source_tar failed"
}

# commit_tree TREE MESSAGE-FILE PARENT...: makes the next commit and moves `head` to it.
commit_tree() {
	local tree=$1 message=$2 parents=() parent
	shift 2

	for parent in "$@"; do
		parents+=(-p "$parent")
	done
	count=$((count + 1))
	GIT_COMMITTER_NAME=$who_name GIT_COMMITTER_EMAIL=$who_mail
	GIT_COMMITTER_DATE="$((start_epoch + count * step_s)) +0000"
	export GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
	head=$(git_in commit-tree "${parents[@]}" -F "$message" "$tree")
}

# The index follows `head`; reading a tree costs more than a patch, so only when needed.
load_index() {
	if [ "$indexed" != "$head" ]; then
		git_in read-tree "$head"
	fi
}

mail_field() {
	sed -n "s/^$1: //p" "$work/mail"
}

do_patch() {
	local file=$here/patches/$1 tree

	[ -r "$file" ] || die "series names $1, which is not in patches/"
	git mailinfo "$work/body" "$work/diff" <"$file" >"$work/mail"
	{
		mail_field Subject
		echo
		cat "$work/body"
	} >"$work/message"
	load_index
	git_in apply --cached -C1 --recount --whitespace=nowarn "$work/diff" ||
		die "$1 does not apply to this kernel source"
	tree=$(git_in write-tree)
	GIT_AUTHOR_NAME=$(mail_field Author) GIT_AUTHOR_EMAIL=$(mail_field Email)
	GIT_AUTHOR_DATE=$(mail_field Date)
	export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE
	commit_tree "$tree" "$work/message" "$head"
	indexed=$head
}

do_merge() {
	local name=$1 tree

	[ -n "${branch_head[$name]:-}" ] || die "series merges the unknown branch $name"
	tree=$(git_in merge-tree --write-tree "$head" "${branch_head[$name]}") ||
		die "merging $name does not work with this kernel source"
	echo "Merge branch '$name'" >"$work/message"
	GIT_AUTHOR_NAME=$who_name GIT_AUTHOR_EMAIL=$who_mail
	GIT_AUTHOR_DATE="$((start_epoch + (count + 1) * step_s)) +0000"
	export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE
	commit_tree "$tree" "$work/message" "$head" "${branch_head[$name]}"
}

play_series() {
	local verb name word origin branch=main indexed='' head count=0
	declare -A mark branch_head

	head=$(git_in rev-parse refs/heads/main)
	export GIT_INDEX_FILE=$work/index
	while read -r verb name word origin; do
		case $verb in
		'' | '#'*) continue ;;
		patch) do_patch "$name" ;;
		merge) do_merge "$name" ;;
		mark) mark[$name]=$head ;;
		on)
			head=${branch_head[$name]:-$head}
			branch=$name
			;;
		branch)
			head=${mark[$origin]:-}
			if [ "$word" != from ] || [ -z "$head" ]; then
				die "series: branch $name has no known origin"
			fi
			branch=$name
			;;
		good | bad) git_in update-ref "refs/tags/demo-$verb" "$head" ;;
		*) die "series: '$verb' is not understood" ;;
		esac
		branch_head[$branch]=$head
	done <"$here/series"
	unset GIT_INDEX_FILE
	git_in update-ref refs/heads/main "${branch_head[main]}"
}

json_string() {
	printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

patch_subject() {
	git mailinfo /dev/null /dev/null <"$here/patches/$1" | sed -n 's/^Subject: //p'
}

# The commit and all that have it as an ancestor, sorted by id.
commit_and_later() {
	{
		echo "$1"
		git_in rev-list --ancestry-path "$1..demo-bad"
	} | sort
}

# The truth is looked up by subject, so that it can be made for any copy of the repository.
write_truth() {
	local id parents subject patch class repair separator='' state slow broken
	declare -A id_of class_of repair_of state_of slow_of

	while IFS=$'\t' read -r id subject; do
		id_of[$subject]=$id
	done < <(git_in log --format='%H%x09%s' demo-bad)
	while read -r patch class repair; do
		case $patch in '' | '#'*) continue ;; esac
		subject=$(patch_subject "$patch")
		id=${id_of[$subject]:-}
		[ -n "$id" ] || die "$patch left no commit"
		class_of[$id]=$class
		if [ -n "$repair" ]; then
			repair_of[$id]=${id_of[$(patch_subject "$repair")]}
		fi
	done <"$here/classes"

	# A commit is broken when it has the breaking commit, but not its repair.
	for broken in "${!repair_of[@]}"; do
		while read -r id; do
			state=${class_of[$broken]#break-}
			# A kernel that cannot be built cannot be booted either.
			[ "${state_of[$id]:-}" = build ] || state_of[$id]=$state
		done < <(comm -23 <(commit_and_later "$broken") \
			<(commit_and_later "${repair_of[$broken]}"))
	done
	for id in "${!class_of[@]}"; do
		if [ "${class_of[$id]}" = culprit ]; then
			while read -r slow; do
				slow_of[$slow]=true
			done < <(commit_and_later "$id")
		fi
	done

	echo '{'
	echo '"format": {"name": "kbisect-truth", "major": 1, "minor": 0},'
	echo "\"source_sha256\": \"$source_digest\","
	echo "\"good\": \"$(git_in rev-parse demo-good)\","
	echo "\"bad\": \"$(git_in rev-parse demo-bad)\","
	for class in culprit improvement; do
		for id in "${!class_of[@]}"; do
			if [ "${class_of[$id]}" = "$class" ]; then
				echo "\"$class\": \"$id\","
			fi
		done
	done
	echo '"commits": ['
	# Not a tab between the fields: `read` takes two of those for one.
	while IFS=$'\x1f' read -r id parents subject; do
		printf '%s{"commit": "%s", "parents": [%s], "class": "%s", "state": "%s", ' \
			"$separator" "$id" "$(json_list "$parents")" \
			"$(class_name "$parents" "${class_of[$id]:-}")" "${state_of[$id]:-ok}"
		if [ -n "${repair_of[$id]:-}" ]; then
			printf '"repaired_by": "%s", ' "${repair_of[$id]}"
		fi
		printf '"slow": %s, "subject": ' "${slow_of[$id]:-false}"
		json_string "$subject"
		printf '}'
		separator=$',\n'
	done < <(git_in log --reverse --topo-order --format='%H%x1f%P%x1f%s' demo-bad)
	printf '\n]\n}\n'
}

# The import has no parent, a merge has two; all the others are in `classes`.
class_name() {
	case $1 in
	'') echo import ;;
	*' '*) echo merge ;;
	*) echo "${2:?a commit without a class}" ;;
	esac
}

json_list() {
	local word text=''

	for word in $1; do
		text+="${text:+, }\"$word\""
	done
	printf '%s' "$text"
}

publish() {
	stamp_text >"$repo/kbisect-stamp"
	mv -f "$work/truth.json" "$out.truth.json"
	if [ -e "$out" ]; then
		mv -T "$out" "$work/replaced"
	fi
	mv -T "$repo" "$out"
}

main() {
	parse_arguments "$@"
	isolate
	check_tools
	mkdir -p "$(dirname "$out")"
	recipe=$(recipe_digest)
	source_digest=$(sha256sum <"$source_tar" | cut -d ' ' -f 1)
	if [ "$force" = no ] && is_up_to_date; then
		echo "$out is up to date"
		return
	fi
	if [ "$force" = no ] && [ -e "$out" ] && [ ! -f "$out/kbisect-stamp" ]; then
		die "$out exists and is not a demo history; --force replaces it"
	fi

	remove_leftovers
	check_space
	work=$out.partial.$$
	repo=$work/repo.git
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir "$work"
	echo "importing $source_tar (about a minute)" >&2
	import_source
	echo "applying the patches" >&2
	play_series
	write_truth >"$work/truth.json"
	publish
	echo "$out: $(git --git-dir="$out" rev-list --count demo-good..demo-bad) commits" \
		"from demo-good to demo-bad, tip $(git --git-dir="$out" rev-parse main)"
}

main "$@"
