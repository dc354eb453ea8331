/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises a kernel in trouble by its console lines. Pure. */
#ifndef KB_HARNESS_CRASH_H
#define KB_HARNESS_CRASH_H

#include <stdbool.h>
#include <stddef.h>

enum kb_crash_kind {
	KB_CRASH_NONE = 0,
	KB_CRASH_WARNING, /* noted only */
	KB_CRASH_OOM,	  /* the OOM killer ran, or memory ran out for good */
	KB_CRASH_OOPS,	  /* oops, BUG, sanitizer report, hung task, lockup, stall */
	KB_CRASH_PANIC,
};

#define KB_CRASH_LINE_MAX 240

struct kb_crash { /* zero-initialise */
	bool warned, oom, oops, panic;
	char warning_line[KB_CRASH_LINE_MAX]; /* the first line of each kind, sanitized */
	char oom_line[KB_CRASH_LINE_MAX];
	char oops_line[KB_CRASH_LINE_MAX];
	char panic_line[KB_CRASH_LINE_MAX];
	bool oom_was_first; /* before any panic: the panic is its consequence */
};

/** What one line (any bytes, no newline, need not end in NUL) says by itself. */
enum kb_crash_kind kb_crash_match(const char *line, size_t len);

/** Adds one console line to what is known. */
void kb_crash_feed(struct kb_crash *c, const char *line, size_t len);

/** Does a line contain `pattern` (a plain string; "" never matches)? */
bool kb_crash_line_has(const char *line, size_t len, const char *pattern);

/** The overall finding and the line that shows it (borrowed; "" for NONE). */
enum kb_crash_kind kb_crash_result(const struct kb_crash *c, const char **ret_line);

#endif
