/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "harness/base/mem.h"
#include "harness/build_toolchain.h"
#include "tests/tap.h"

int main(void)
{
	static const struct {
		const char *args, *cc, *ld;
	} rows[] = {
		{ "", "gcc", "ld" },
		{ "V=1 W=1", "gcc", "ld" },
		{ "CC=clang-14", "clang-14", "ld" },
		{ "CC=gcc-11 CC=gcc-12", "gcc-12", "ld" },
		{ "LD=ld.gold", "gcc", "ld.gold" },
		{ "LLVM=1", "clang", "ld.lld" },
		{ "LLVM=-14", "clang-14", "ld.lld-14" },
		{ "LLVM=/opt/llvm/bin/", "/opt/llvm/bin/clang", "/opt/llvm/bin/ld.lld" },
		{ "LLVM=0", "gcc", "ld" },
		{ "LLVM=", "gcc", "ld" },
		{ "LLVM=1 LD=ld", "clang", "ld" },
		{ "CROSS_COMPILE=x86_64-linux-gnu-", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-ld" },
		{ "CCACHE=1 LDX=y", "gcc", "ld" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
		KB_AUTO(kb_strv_free) struct kb_strv cc = { 0 };
		KB_AUTO_FREE char *ld = NULL;

		kb_strv_split(&args, rows[i].args, " ");
		kb_toolchain_programs(&args, &cc, &ld);
		is_int(cc.count, 1, "'%s': one word", rows[i].args);
		is_str(cc.items[0], rows[i].cc, "'%s': compiler", rows[i].args);
		is_str(ld, rows[i].ld, "'%s': linker", rows[i].args);
	}
	KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
	KB_AUTO(kb_strv_free) struct kb_strv cc = { 0 };
	KB_AUTO_FREE char *ld = NULL;
	kb_strv_add(&args, "CC=ccache gcc");
	kb_toolchain_programs(&args, &cc, &ld);
	is_int(cc.count, 2, "a compiler of two words");
	is_str(cc.items[0], "ccache", "is run as two");
	return tap_done();
}
