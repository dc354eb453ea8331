#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Replays every fuzz corpus through its target: no crash, no sanitizer report.

out=${KB_OUT:-build}
src=${KB_SRC:-.}
n=0
failed=0
for target in "$src"/tests/fuzz/fuzz_*.c; do
	name=$(basename "$target" .c)
	n=$((n + 1))
	if text=$("$out/tests/fuzz/$name" "$src/tests/fuzz/corpus/${name#fuzz_}" 2>&1); then
		echo "ok $n - $name: $text"
	else
		echo "not ok $n - $name"
		tail -20 <<<"$text" | while IFS= read -r line; do echo "# $line"; done
		failed=1
	fi
done
echo "1..$n"
exit $failed
