/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of any bytes: what is kept must be short printable text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/crash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_crash c = {0};
	const uint8_t *p = data, *end = data + size;
	const char *line;

	while (p < end) {
		const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((newline ? newline : end) - p);

		kb_crash_feed(&c, (const char *)p, len);
		p += len + (newline ? 1 : 0);
	}
	enum kb_crash_kind kind = kb_crash_result(&c, &line);
	if ((kind == KB_CRASH_NONE) != (line[0] == '\0'))
		abort();
	for (; *line; line++)
		if (*line < ' ' || *line > '~')
			abort();
	return 0;
}
