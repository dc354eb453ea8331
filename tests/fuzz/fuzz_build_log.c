/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A build's log holds whatever the tree's makefiles and sources like to print. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(char *text, size_t max)
{
	if (strlen(text) > max)
		abort();
	for (const char *p = text; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t' && *p != '\n') || *p == 0x7f)
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	/* small limits, too, so that they are met */
	size_t max = size > 0 ? (size_t)data[0] * 4 : 0;

	check(kb_build_log_excerpt(text, size, "/s/src/", 4096), 4096);
	check(kb_build_log_excerpt(text, size, NULL, max), max);
	char *reason = kb_build_log_reason(text, size, "/s/src/");
	if (strchr(reason, '\n'))
		abort();
	check(reason, 240);
	(void)kb_build_log_is_source_error(text, size);
	(void)kb_build_log_host_problem(text, size);
	return 0;
}
