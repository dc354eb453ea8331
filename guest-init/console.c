/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/console.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "guest-init/proto.h"
#include "guest-init/util.h"

enum { MAX_TEXT = 400 };

void kb_console_open(void)
{
	struct termios t;
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd >= 0) {
		for (int i = 0; i < 3; i++)
			dup2(fd, i);
		if (fd > 2)
			close(fd);
	}
	if (!tcgetattr(STDOUT_FILENO, &t)) {
		t.c_oflag &= ~(tcflag_t)OPOST;
		tcsetattr(STDOUT_FILENO, TCSANOW, &t);
	}
	/* The firmware leaves the cursor in the middle of a line; ours begin at its
	 * start. */
	kb_util_write_all(STDOUT_FILENO, "\n", 1);
}

void kb_console_put(const char *line)
{
	kb_util_write_all(STDOUT_FILENO, line, strlen(line));
	tcdrain(STDOUT_FILENO);
}

void kb_console_say(const char *fmt, ...)
{
	char text[MAX_TEXT], clean[MAX_TEXT], line[MAX_TEXT + 8];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kb_util_clean(clean, sizeof(clean), text);
	snprintf(line, sizeof(line), KB_PROTO_CONSOLE_PREFIX "%s\n", clean);
	kb_console_put(line);
}

void kb_console_fail(const char *step, int errno_value, const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (errno_value)
		kb_console_say("fail step=%s errno=%d text=%s: %s", step, errno_value,
			       text, strerror(errno_value));
	else
		kb_console_say("fail step=%s errno=0 text=%s", step, text);
}
