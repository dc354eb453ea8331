/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/kversion.h"

#include <string.h>

#include "tests/tap.h"

static void is_version(const char *text, unsigned major, unsigned minor, const char *what)
{
	struct kb_kversion v = kb_kversion_from_makefile(text, strlen(text));

	is_int((int)(v.major * 1000 + v.minor), (int)(major * 1000 + minor), "%s", what);
}

int main(void)
{
	struct kb_kversion v414 = { 4, 14 }, v510 = { 5, 10 }, v519 = { 5, 19 }, v61 = { 6, 1 },
			   none = { 0, 0 };

	is_version("# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\n", 6, 1, "a real head");
	is_version("VERSION=4\nPATCHLEVEL=14\n", 4, 14, "no blanks");
	is_version("MYVERSION = 9\nVERSION = 5\nPATCHLEVEL = 10\n", 5, 10, "only whole names count");
	is_version("PATCHLEVEL = 10\n", 0, 0, "half a version is none");
	is_version("VERSION = x\nPATCHLEVEL = 1\n", 0, 0, "not a number");
	is_version("", 0, 0, "empty");
	ok(kb_kversion_compare(v414, v510) < 0, "4.14 < 5.10");
	ok(kb_kversion_compare(v519, v510) > 0, "5.19 > 5.10: numbers, not texts");
	ok(kb_kversion_compare(v61, v61) == 0, "6.1 = 6.1");
	ok(strstr(kb_kversion_mkfs_options(v414), "bigtime=0") != NULL,
	   "a range that begins at 4.14 has no bigtime");
	ok(strstr(kb_kversion_mkfs_options(v61), "bigtime=1") != NULL, "6.1 has");
	ok(strstr(kb_kversion_mkfs_options(v510), "nrext64=0") != NULL,
	   "5.10 cannot mount large extent counters");
	is_str(kb_kversion_mkfs_options(none), kb_kversion_mkfs_options(v414),
	       "an unknown version gets the most conservative set");
	return tap_done();
}
