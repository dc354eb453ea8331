/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static enum kb_log_level current_level = KB_LOG_INFO;
static void (*before_line)(void);

void kb_log_set_level(enum kb_log_level level)
{
	current_level = level;
}

enum kb_log_level kb_log_get_level(void)
{
	return current_level;
}

void kb_log_set_hook(void (*fn)(void))
{
	before_line = fn;
}

void kb_log(enum kb_log_level level, const char *fmt, ...)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };
	char line[4096];
	va_list ap;

	if (level > current_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* guest or user text may be inside: keep it on one line and away from the terminal */
	for (char *p = line; *p; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			*p = '?';
	if (before_line)
		before_line();
	fprintf(stderr, "kbisect: %s%s\n", words[level], line);
}
