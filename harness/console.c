/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/console.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"

enum {
	EXCERPT_BYTES = 4096,
	EXCERPT_BEFORE = 800, /* of the trouble's first line */
	READ_BYTES = 65536,
};

int kb_console_init(struct kb_console *c, const char *path, uint64_t max_bytes,
		    const char *nonce, const struct kb_strv *deny, struct kb_error *err)
{
	memset(c, 0, sizeof(*c));
	c->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (c->fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot make %s", path);
	c->path = kb_strdup(path);
	c->max_bytes = max_bytes;
	c->nonce = nonce;
	c->deny = deny;
	return 0;
}

void kb_console_free(struct kb_console *c)
{
	if (!c->path) /* never made */
		return;
	kb_close(&c->fd);
	free(c->path);
	c->path = NULL;
}

static void take_marker(struct kb_console *c, const char *line, size_t len)
{
	struct kb_marker m;

	switch (kb_marker_parse(line, len, &m)) {
	case KB_MARKER_NONE:
		break;
	case KB_MARKER_BROKEN:
		c->broken_markers++;
		break;
	case KB_MARKER_START:
		if (kb_streq(m.nonce, c->nonce))
			c->started = true;
		else
			c->lied = true;
		break;
	case KB_MARKER_PHASE:
		memcpy(c->phase, m.name, sizeof(c->phase));
		break;
	case KB_MARKER_FAIL:
		if (!c->has_fail && !c->has_late_fail)
			c->fail = m;
		if (c->has_result) /* the result stays valid; only serving it failed */
			c->has_late_fail = true;
		else
			c->has_fail = true;
		break;
	case KB_MARKER_RESULT:
		if (!kb_streq(m.nonce, c->nonce) ||
		    (c->has_result && (m.bytes != c->result.bytes ||
				       !kb_streq(m.sha256, c->result.sha256))))
			c->lied = true;
		if (!c->has_result)
			c->result = m;
		c->has_result = true;
		break;
	}
}

static void take_denied(struct kb_console *c, const char *line, size_t len)
{
	if (!c->deny || c->denied_line[0])
		return;
	for (size_t i = 0; i < c->deny->count; i++) {
		if (!kb_crash_line_has(line, len, c->deny->items[i]))
			continue;
		size_t max = sizeof(c->denied_line) - 1;
		KB_AUTO_FREE char *clean = kb_str_sanitize(line, len, max);
		size_t n = strnlen(clean, max);

		memcpy(c->denied_line, clean, n);
		c->denied_line[n] = '\0';
		return;
	}
}

static void take_line(struct kb_console *c, uint64_t offset)
{
	size_t len = c->line_len;

	while (len && c->line[len - 1] == '\r')
		len--;
	enum kb_crash_kind kind = kb_crash_match(c->line, len);

	kb_crash_feed(&c->crash, c->line, len);
	if (kind > KB_CRASH_WARNING && !c->has_trouble) {
		c->has_trouble = true;
		c->trouble_offset = offset;
	}
	take_denied(c, c->line, len);
	if (!c->line_continues) /* only whole lines can be markers */
		take_marker(c, c->line, len);
	c->line_len = 0;
}

void kb_console_feed(struct kb_console *c, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t at = c->bytes + i;

		if (data[i] == '\n') {
			take_line(c, at - c->line_len);
			c->line_continues = false;
			continue;
		}
		if (c->line_len == sizeof(c->line)) {
			/* A piece of a long line is no whole line, nor is its rest. */
			c->line_continues = true;
			take_line(c, at - c->line_len);
		}
		c->line[c->line_len++] = data[i];
	}
	c->bytes += len;
}

int kb_console_poll(struct kb_console *c, struct kb_error *err)
{
	KB_AUTO_FREE char *buf = NULL;

	while (!c->flooded) {
		if (!buf)
			buf = kb_malloc(READ_BYTES);
		ssize_t n = pread(c->fd, buf, READ_BYTES, (off_t)c->bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kb_error_errno(err, KB_EIO, errno, "cannot read %s",
					      c->path);
		if (n == 0)
			return 0;
		kb_console_feed(c, buf, (size_t)n);
		c->flooded = c->bytes > c->max_bytes;
	}
	return 0;
}

/* Half of the limit from the start, half from the end. */
static int cut_log(struct kb_console *c, uint64_t size, struct kb_error *err)
{
	uint64_t half = c->max_bytes / 2;
	KB_AUTO_FREE char *note = kb_asprintf(
		"\n[kbisect: %" PRIu64 " bytes were cut out here]\n", size - 2 * half);
	KB_AUTO_FREE char *tail = kb_malloc(half + 1);
	ssize_t n = pread(c->fd, tail, half, (off_t)(size - half));

	if (n < 0 || ftruncate(c->fd, (off_t)half) || lseek(c->fd, 0, SEEK_END) < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot shorten %s", c->path);
	int r = kb_write_all(c->fd, note, strlen(note), err);
	return r ? r : kb_write_all(c->fd, tail, (size_t)n, err);
}

int kb_console_finish(struct kb_console *c, struct kb_error *err)
{
	struct stat st;
	int r = kb_console_poll(c, err);

	if (r)
		return r;
	if (c->line_len)
		take_line(c, c->bytes - c->line_len);
	if (fstat(c->fd, &st))
		return kb_error_errno(err, KB_EIO, errno, "%s", c->path);
	if ((uint64_t)st.st_size <= c->max_bytes)
		return 0;
	c->flooded = true;
	c->bytes = (uint64_t)st.st_size;
	return cut_log(c, (uint64_t)st.st_size, err);
}

char *kb_console_excerpt(const struct kb_console *c)
{
	char buf[EXCERPT_BYTES];
	struct stat st;
	off_t from = 0;

	if (fstat(c->fd, &st))
		return kb_strdup("");
	if (c->has_trouble && c->trouble_offset > EXCERPT_BEFORE)
		from = (off_t)(c->trouble_offset - EXCERPT_BEFORE);
	else if (!c->has_trouble && st.st_size > EXCERPT_BYTES)
		from = st.st_size - EXCERPT_BYTES;
	ssize_t n = pread(c->fd, buf, sizeof(buf), from);
	if (n <= 0)
		return kb_strdup("");
	const char *start = buf, *newline = memchr(buf, '\n', (size_t)n);
	if (from > 0 && newline && newline + 1 < buf + n)
		start = newline + 1; /* whole lines */
	size_t len = (size_t)(buf + n - start);
	char *text = kb_str_sanitize(start, len, len);
	char *out = text;
	for (const char *p = text; *p; p++) /* sanitizing turned CR into '?' */
		if (!(p[0] == '?' && p[1] == '\n'))
			*out++ = *p;
	*out = '\0';
	return text;
}
