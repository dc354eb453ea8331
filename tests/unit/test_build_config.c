/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "harness/base/mem.h"
#include "harness/build_config.h"
#include "tests/tap.h"

static const char final[] = "# Linux/x86 6.1 Kernel Configuration\n"
			    "CONFIG_A=y\n"
			    "# CONFIG_B is not set\n"
			    "CONFIG_NR=4\n"
			    "CONFIG_S=\"a = b\"\n"
			    "CONFIG_AB=m\n"
			    "CONFIG_LAST=y";

static void values(void)
{
	static const struct {
		const char *symbol, *want;
	} rows[] = {
		{ "A", "y" },	 { "CONFIG_A", "y" }, { "B", "n" },
		{ "NR", "4" },	 { "S", "\"a = b\"" }, { "AB", "m" },
		{ "LAST", "y" }, { "C", NULL },	       { "", NULL },
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		KB_AUTO_FREE char *got = kb_config_get(final, rows[i].symbol);

		is_str(got, rows[i].want, "value of '%s'", rows[i].symbol);
	}
	ok(kb_config_is_set(final, "AB") && kb_config_is_set(final, "NR"), "set");
	ok(!kb_config_is_set(final, "B") && !kb_config_is_set(final, "C"), "not set");
}

static void missing(void)
{
	KB_AUTO(kb_strv_free) struct kb_strv v = { 0 };

	kb_config_missing("CONFIG_A=y\nCONFIG_B=y\n# comment CONFIG_X=y\nCONFIG_NR=8\n"
			  "CONFIG_GONE=y\nCONFIG_GONE=y\n# CONFIG_AB is not set\n"
			  "CONFIG_LATER=y\n# CONFIG_LATER is not set\nCONFIG_S=\"a = b\"\r\n"
			  "CONFIG_OFF=n\n",
			  final, &v);
	is_int(v.count, 3, "three did not survive");
	is_str(v.count > 0 ? v.items[0] : NULL, "B", "switched off");
	is_str(v.count > 1 ? v.items[1] : NULL, "NR", "another value");
	is_str(v.count > 2 ? v.items[2] : NULL, "GONE", "absent, named once");
}

int main(void)
{
	values();
	missing();
	return tap_done();
}
