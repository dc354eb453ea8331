/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What init says to the controller on the serial console. */
#ifndef KB_GUEST_CONSOLE_H
#define KB_GUEST_CONSOLE_H

/**
 * Takes /dev/console as stdin, stdout and stderr, if it can be opened (else what the
 * kernel gave us stays), and switches off its output processing.
 */
void kb_console_open(void);

/** One "@kb" line in one write, sent before this returns. The format has no prefix and no
 * newline; bytes that are not printable are replaced. */
void kb_console_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** A line that is complete already. */
void kb_console_put(const char *line);

/** "@kb fail ..."; strerror() is added when errno_value is not 0. */
void kb_console_fail(const char *step, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
