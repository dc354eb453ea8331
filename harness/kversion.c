/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/kversion.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

/* "NAME = 6" at the start of a line within the head of the Makefile. */
static int number_after(const char *text, const char *name, unsigned *ret_number)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, name, n) != 0)
			continue;
		const char *p = line + n + strspn(line + n, " \t");
		if (*p++ != '=')
			continue;
		p += strspn(p, " \t");
		char *end;
		unsigned long value = strtoul(p, &end, 10);
		if (end == p || value > 1000)
			return -1;
		*ret_number = (unsigned)value;
		return 0;
	}
	return -1;
}

struct kb_kversion kb_kversion_from_makefile(const char *text, size_t len)
{
	KB_AUTO_FREE char *head = kb_strndup(text, len < 4096 ? len : 4096);
	struct kb_kversion v = { 0, 0 };

	if (number_after(head, "VERSION", &v.major) || number_after(head, "PATCHLEVEL", &v.minor))
		return (struct kb_kversion){ 0, 0 };
	return v;
}

int kb_kversion_compare(struct kb_kversion a, struct kb_kversion b)
{
	if (a.major != b.major)
		return a.major < b.major ? -1 : 1;
	if (a.minor != b.minor)
		return a.minor < b.minor ? -1 : 1;
	return 0;
}

/* Newest first; the first row that is not newer than the oldest kernel applies. */
static const struct {
	struct kb_kversion from;
	const char *options;
} mkfs_rows[] = {
	{ { 5, 15 }, "-m crc=1,finobt=1,rmapbt=0,reflink=1,bigtime=1,inobtcount=1 "
		     "-i sparse=1,nrext64=0" },
	{ { 5, 4 }, "-m crc=1,finobt=1,rmapbt=0,reflink=1,bigtime=0,inobtcount=0 "
		     "-i sparse=1,nrext64=0" },
	{ { 0, 0 }, "-m crc=1,finobt=1,rmapbt=0,reflink=0,bigtime=0,inobtcount=0 "
		    "-i sparse=1,nrext64=0" },
};

const char *kb_kversion_mkfs_options(struct kb_kversion oldest)
{
	size_t i = 0;

	while (i + 1 < KB_COUNT_OF(mkfs_rows) &&
	       kb_kversion_compare(oldest, mkfs_rows[i].from) < 0)
		i++;
	return mkfs_rows[i].options;
}
