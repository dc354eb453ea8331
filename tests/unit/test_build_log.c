/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/build_log.h"
#include "tests/tap.h"

static const char compile_failure[] =
	"make: Entering directory '/s/src'\n"
	"  CC      mm/util.o\n"
	"  CC      mm/truncate.o\n"
	"In file included from /s/src/include/linux/fs.h:8,\n"
	"                 from /s/src/mm/truncate.c:12:\n"
	"/s/src/mm/truncate.c: In function 'truncate_x':\n"
	"/s/src/mm/truncate.c:40:9: error: implicit declaration of function 'frob'\n"
	"   40 |         frob(page);\n"
	"      |         ^~~~\n"
	"make[3]: *** [/s/src/scripts/Makefile.build:250: mm/truncate.o] Error 1\n"
	"  CC      mm/vmscan.o\n"
	"make[2]: *** [/s/src/scripts/Makefile.build:500: mm] Error 2\n"
	"make: Leaving directory '/s/src'\n";

static void excerpts(void)
{
	KB_AUTO_FREE char *got = kb_build_log_excerpt(
		compile_failure, strlen(compile_failure), "/s/src/", 4096);
	KB_AUTO_FREE char *why =
		kb_build_log_reason(compile_failure, strlen(compile_failure), "/s/src/");

	is_str(got,
	       "In file included from include/linux/fs.h:8,\n"
	       "                 from mm/truncate.c:12:\n"
	       "mm/truncate.c: In function 'truncate_x':\n"
	       "mm/truncate.c:40:9: error: implicit declaration of function 'frob'\n"
	       "   40 |         frob(page);\n"
	       "      |         ^~~~",
	       "a compiler error with its context, without make's noise");
	is_str(why, "mm/truncate.c:40:9: error: implicit declaration of function 'frob'",
	       "the reason is the first diagnostic");
	ok(kb_build_log_is_source_error(compile_failure, strlen(compile_failure)),
	   "it is the source's fault");
	ok(!kb_build_log_host_problem(compile_failure, strlen(compile_failure)),
	   "and not the host's");
}

struct row {
	const char *name, *text, *excerpt, *reason;
	bool source;
};

static const struct row rows[] = {
	{ "linker",
	  "  LD      vmlinux.o\nld: mm/a.o: in function `f':\n"
	  "a.c:(.text+0x1): undefined reference to `gone'\n"
	  "make[1]: *** [Makefile:1213: vmlinux] Error 1\n",
	  "ld: mm/a.o: in function `f':\na.c:(.text+0x1): undefined reference to `gone'",
	  "ld: mm/a.o: in function `f':", true },
	{ "warnings are not errors",
	  "x.c:1:1: warning: unused\n  CC      y.o\ny.c:2:2: error: no\n",
	  "y.c:2:2: error: no", "y.c:2:2: error: no", true },
	{ "no rule",
	  "make[2]: *** No rule to make target 'mm/gone.o', needed by 'mm/built-in.a'.  Stop.\n",
	  "make[2]: *** No rule to make target 'mm/gone.o', needed by 'mm/built-in.a'.  Stop.",
	  "make[2]: *** No rule to make target 'mm/gone.o', needed by 'mm/built-in.a'.  Stop.",
	  false },
	{ "only noise", "  CC      a.o\nmake: *** [a] Error 1\n",
	  "  CC      a.o\nmake: *** [a] Error 1", "make: *** [a] Error 1", false },
	{ "Kconfig", "mm/Kconfig:3: syntax error\nmm/Kconfig:3: invalid statement\n",
	  "mm/Kconfig:3: syntax error\nmm/Kconfig:3: invalid statement",
	  "mm/Kconfig:3: syntax error", true },
	{ "nothing", "", "", "", false },
	{ "no newline at the end", "a.c:1:1: error: x", "a.c:1:1: error: x",
	  "a.c:1:1: error: x", true },
	{ "terminal escapes", "a.c:1:1: error: \x1b[31mx\n", "a.c:1:1: error: ?[31mx",
	  "a.c:1:1: error: ?[31mx", true },
};

static void table(void)
{
	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		const struct row *r = &rows[i];
		size_t len = strlen(r->text);
		KB_AUTO_FREE char *got = kb_build_log_excerpt(r->text, len, NULL, 4096);
		KB_AUTO_FREE char *why = kb_build_log_reason(r->text, len, NULL);

		is_str(got, r->excerpt, "%s: excerpt", r->name);
		is_str(why, r->reason, "%s: reason", r->name);
		is_int(kb_build_log_is_source_error(r->text, len), r->source, "%s: source",
		       r->name);
	}
}

static void bounds(void)
{
	KB_AUTO(kb_str_free) struct kb_str big = { 0 };

	for (int i = 0; i < 5000; i++)
		kb_str_appendf(&big, "file%d.c:1:1: error: number %d\n", i, i);
	KB_AUTO_FREE char *got = kb_build_log_excerpt(big.data, big.len, NULL, 1000);
	ok(strlen(got) <= 1000 && strlen(got) > 900, "the excerpt is bounded");
	ok(kb_starts_with(got, "file0.c"), "and keeps the first errors");
	kb_str_free(&big);
	kb_str_append(&big, "a.c:1:1: error: ");
	for (int i = 0; i < 5000; i++)
		kb_str_append(&big, "0123456789");
	KB_AUTO_FREE char *one = kb_build_log_excerpt(big.data, big.len, NULL, 4096);
	KB_AUTO_FREE char *why = kb_build_log_reason(big.data, big.len, NULL);
	ok(strlen(one) < 500 && strlen(why) < 300, "long lines are cut");
}

static void host_problems(void)
{
	static const struct {
		const char *text, *part; /* NULL: none */
	} cases[] = {
		{ "/bin/sh: 1: flex: not found\n", "apt install flex" },
		{ "/bin/sh: 1: bc: not found\n", "apt install bc" },
		{ "x.c:3:10: fatal error: gelf.h: No such file or directory\n", "libelf-dev" },
		{ "x.c:3:10: fatal error: openssl/evp.h: No such file or directory\n",
		  "libssl-dev" },
		{ "as: write error: No space left on device\n", "gc" },
		{ "gcc: fatal error: Killed signal terminated program cc1\n", "memory" },
		{ "mm/x.c:3:10: fatal error: linux/gone.h: No such file or directory\n", NULL },
		{ "m.c:1:10: fatal error: 'linux/flex_array.h' file not found\n", NULL },
		{ "m.c:1:10: fatal error: 'gelf.h' file not found\n", "libelf-dev" },
		{ "x.c:3:10: fatal error: linux/elf.h: No such file or directory\n", NULL },
		{ "x.c:1:1: error: 'flex' undeclared\n", NULL },
	};

	for (size_t i = 0; i < KB_COUNT_OF(cases); i++) {
		const char *got = kb_build_log_host_problem(cases[i].text,
							    strlen(cases[i].text));

		ok(cases[i].part ? got && strstr(got, cases[i].part) : !got,
		   "host problem, case %zu: %s", i, got ? got : "none");
	}
}

int main(void)
{
	excerpts();
	table();
	bounds();
	host_problems();
	return tap_done();
}
