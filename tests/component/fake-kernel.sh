#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a repository with a tiny stand-in for a kernel tree: it knows O=, tinyconfig,
# olddefconfig and bzImage, has symbols, .cmd files and one real compilation. Branches:
#   base              builds
#   docs              as base, another README (nothing built changes)
#   other             builds, another value in main.c
#   broken            does not compile
#   hangs             make starts a stubborn grandchild and never ends
#   needs-host        fails for a tool that the host lacks
#   moved             fails when old objects are around, without a compiler's word
# usage: fake-kernel.sh FOLDER
# shellcheck disable=SC2016 # make's variables
set -euo pipefail
cd "$1"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org
export GIT_COMMITTER_DATE='1700000000 +0000'
git init -q -b base .

cat >Makefile <<'MAKEFILE'
tinyconfig:
	@mkdir -p $(O) && printf '# fake\nCONFIG_TINY=y\n# CONFIG_FS is not set\n' >$(O)/.config
# keeps the last word on each known symbol, as Kconfig does
olddefconfig:
	@sh symbols.sh Kconfig $(O)/.config
bzImage: $(O)/main.o
	@touch $(O)/built-once
	@mkdir -p $(O)/arch/x86/boot
	cp $(O)/main.o $(O)/arch/x86/boot/bzImage
	cp $(O)/main.o $(O)/vmlinux
	nm $(O)/main.o >$(O)/System.map
$(O)/main.o: main.c $(O)/.config
	@echo compiled >>$(O)/../compiled
	@test ! -e $(O)/../stall || { touch $@ $(O)/../stalled; sleep 1000; }
	@echo "  CC      main.o"
	cd $(O) && $(CC) $(KCFLAGS) $(EXTRA) -g -c $(CURDIR)/main.c -o $@
	@echo 'cmd_$@ := cc' >$(O)/.main.o.cmd
CC = gcc
MAKEFILE
cat >symbols.sh <<'SCRIPT'
while read -r s; do
	last=$(grep -E "^(CONFIG_$s=|# CONFIG_$s is)" "$2" | tail -n1)
	echo "${last:-# CONFIG_$s is not set}"
done <"$1" >"$2.new"
mv "$2.new" "$2"
SCRIPT
printf 'TINY\nFS\nNR\n' >Kconfig
cat >main.c <<'CODE'
const char *where(void);
const char *where(void)
{
	return __FILE__ VALUE;
}
CODE
sed -i '1i #ifdef LEAKED\n#define VALUE "leaked"\n#else\n#define VALUE "1"\n#endif' main.c
echo one >README
commit() {
	git add -f . && git commit -q -m "$1"
}
branch() {
	git checkout -q -b "$1" base
}
commit base
branch docs && echo two >README && commit docs
branch other && sed -i 's/"1"/"2"/' main.c && commit other
branch broken && sed -i 's/return __FILE__/return frob() __FILE__/' main.c && commit broken
branch hangs
sed -i 's|^\(bzImage:.*\)|\1\n\tsh -c "trap : TERM; echo \$\$\$\$ >$(O)/../grandchild; sleep 1000; sleep 1000"|' \
	Makefile
commit hangs
branch needs-host
sed -i 's|^\(bzImage:.*\)|\1\n\t@echo "/bin/sh: 1: flex: not found"; exit 127|' Makefile
commit needs-host
branch moved
sed -i '1i $(if $(wildcard $(O)/built-once),$(error it does not fit together))' Makefile
commit moved
git checkout -q base
