/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void clean(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

/* Goes through a buffer of its own: the arguments may point into err->message. */
static void fill(struct kb_error *err, enum kb_errno code, const char *text)
{
	char line[sizeof(err->message)];

	snprintf(line, sizeof(line), "%s", text);
	clean(line);
	err->code = code;
	memcpy(err->message, line, sizeof(line));
}

int kb_error_set(struct kb_error *err, enum kb_errno code, const char *fmt, ...)
{
	char text[sizeof(((struct kb_error *)0)->message)];
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fill(err, code, text);
	return code;
}

int kb_error_errno(struct kb_error *err, enum kb_errno code, int errno_value,
		   const char *fmt, ...)
{
	char text[sizeof(((struct kb_error *)0)->message)];
	char reason[128];
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* the reason matters more than the tail of a very long path */
	snprintf(reason, sizeof(reason), ": %s",
		 strerror_r(errno_value, (char[100]){ 0 }, 100));
	size_t used = n < 0 ? 0 : strlen(text);
	size_t room = sizeof(text) - 1 - strlen(reason);
	if (used > room)
		used = room;
	memcpy(text + used, reason, strlen(reason) + 1);
	fill(err, code, text);
	return code;
}

int kb_error_prefix(struct kb_error *err, const char *fmt, ...)
{
	char text[2 * sizeof(((struct kb_error *)0)->message)];
	va_list ap;

	if (!err)
		return KB_EINTERNAL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(err->message), fmt, ap);
	va_end(ap);
	size_t used = strlen(text);
	snprintf(text + used, sizeof(text) - used, ": %s", err->message);
	fill(err, err->code, text);
	return err->code;
}

const char *kb_errno_name(enum kb_errno code)
{
	switch (code) {
	case KB_OK:
		return "ok";
	case KB_EUSAGE:
		return "usage";
	case KB_ECONFIG:
		return "config";
	case KB_EREPO:
		return "repo";
	case KB_EBUILD:
		return "build";
	case KB_EVM:
		return "vm";
	case KB_EGUEST:
		return "guest";
	case KB_ETIMEOUT:
		return "timeout";
	case KB_EIO:
		return "io";
	case KB_EINTERRUPTED:
		return "interrupted";
	case KB_EINTERNAL:
		return "internal";
	}
	return "unknown";
}
