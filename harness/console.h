/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follows a guest's console log while QEMU writes it: finds markers and signs of trouble,
 * and keeps within a size limit. The guest may write anything.
 */
#ifndef KB_HARNESS_CONSOLE_H
#define KB_HARNESS_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"
#include "harness/crash.h"
#include "harness/guestdoc.h"

#define KB_CONSOLE_LINE_MAX 4096 /* longer lines are looked at in pieces */

struct kb_console {
	char *path;		    /* owned */
	const char *nonce;	    /* borrowed; what markers must carry */
	const struct kb_strv *deny; /* borrowed; may be NULL */
	int fd;
	uint64_t bytes, max_bytes; /* read so far; over max_bytes nothing more is read */
	char line[KB_CONSOLE_LINE_MAX];
	size_t line_len;
	bool line_continues; /* the line at work is the rest of a longer one */
	/* What was found. */
	bool flooded; /* over the limit */
	bool started;
	bool lied; /* a well-formed marker that cannot be true */
	bool has_result, has_fail;
	bool has_late_fail; /* after the result: it could not be served */
	struct kb_marker result, fail;
	unsigned broken_markers;
	char phase[64]; /* the last one named */
	struct kb_crash crash;
	uint64_t trouble_offset; /* of the first line that was oom, oops or panic */
	bool has_trouble;
	char denied_line[KB_CRASH_LINE_MAX]; /* first line with a denied pattern; else ""
					      */
};

/** Makes the file, empty. Errors: KB_EIO. */
int kb_console_init(struct kb_console *c, const char *path, uint64_t max_bytes,
		    const char *nonce, const struct kb_strv *deny, struct kb_error *err);
void kb_console_free(struct kb_console *c);

/** Pure part: more bytes of the console. */
void kb_console_feed(struct kb_console *c, const char *data, size_t len);

/** Reads what is new in the file. Errors: KB_EIO. */
int kb_console_poll(struct kb_console *c, struct kb_error *err);

/** After the guest's end: reads the rest, takes an unfinished last line for a line, and
 * cuts a log over the limit down to its first and last parts. Errors: KB_EIO. */
int kb_console_finish(struct kb_console *c, struct kb_error *err);

/** The lines around the first trouble, or the last lines; sanitized, owned. */
char *kb_console_excerpt(const struct kb_console *c);

#endif
