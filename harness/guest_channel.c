/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guest_channel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "guest-init/proto.h"
#include "harness/base/clock.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"

/* The first HELLOs may come before the guest listens, so they follow each other faster.
 */
enum { HELLO_EVERY_MS = 250, HELLO_FIRST_MS = 50 };

struct sync {
	int fd;
	char nonce[17];
	char window[64]; /* the last bytes read, up to the length of the READY line */
	size_t window_len;
};

static int send_line(const struct sync *s, const char *word, struct kb_error *err)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s%s\n", word, s->nonce);

	if (send(s->fd, line, (size_t)len, MSG_NOSIGNAL) != len)
		return kb_error_errno(err, KB_EGUEST, errno, "the guest's channel");
	return 0;
}

/* One byte at a time: what follows the READY line belongs to the session. */
static int read_ready(struct sync *s, const char *ready, size_t ready_len, bool *ret_done,
		      struct kb_error *err)
{
	char byte;

	for (;;) {
		ssize_t n = recv(s->fd, &byte, 1, MSG_DONTWAIT);

		if (n == 0)
			return kb_error_set(err, KB_EGUEST,
					    "the guest's channel was closed");
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return kb_error_errno(err, KB_EGUEST, errno,
					      "the guest's channel");
		if (s->window_len == ready_len)
			memmove(s->window, s->window + 1, --s->window_len);
		s->window[s->window_len++] = byte;
		if (s->window_len == ready_len && !memcmp(s->window, ready, ready_len)) {
			*ret_done = true;
			return 0;
		}
	}
}

/*
 * A HELLO that was sent twice may be answered twice. The server speaks first, so its
 * first byte shows that no further READY is under way.
 * @ret_done the session's first byte is there
 */
static int drop_duplicates(struct sync *s, const char *ready, size_t ready_len,
			   bool *ret_done, struct kb_error *err)
{
	char peek[sizeof(s->window)];
	ssize_t n = recv(s->fd, peek, ready_len, MSG_PEEK | MSG_DONTWAIT);

	if (n == 0)
		return kb_error_set(err, KB_EGUEST, "the guest's channel was closed");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return kb_error_errno(err, KB_EGUEST, errno, "the guest's channel");
	if (n < 0)
		return 0;
	if (memcmp(peek, ready, (size_t)n) != 0)
		*ret_done = true;
	else if ((size_t)n == ready_len)
		recv(s->fd, peek, ready_len, 0);
	else
		kb_sleep_ms(5); /* poll() would not wait for the rest of the line */
	return 0;
}

int kb_guest_channel_sync(int fd, uint64_t timeout_ms, struct kb_error *err)
{
	uint64_t start = kb_now_ms(), next_hello = 0, random = 0;
	struct sync s = {.fd = fd};
	bool ready_seen = false, done = false;
	int r = 0;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return kb_error_errno(err, KB_EINTERNAL, errno, "getrandom");
	(void)snprintf(s.nonce, sizeof(s.nonce), "%016" PRIx64, random);
	KB_AUTO_FREE char *ready = kb_asprintf(KB_PROTO_READY "%s\n", s.nonce);
	while (!r && !done) {
		uint64_t now = kb_now_ms();
		struct pollfd pfd = {.fd = fd, .events = POLLIN};

		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
		if (now - start >= timeout_ms)
			return kb_error_set(
				err, KB_ETIMEOUT,
				"the guest did not answer on its channel for %" PRIu64
				" ms",
				timeout_ms);
		if (!ready_seen && now >= next_hello) {
			r = send_line(&s, KB_PROTO_HELLO, err);
			next_hello =
				now + (now - start < HELLO_EVERY_MS ? HELLO_FIRST_MS
								    : HELLO_EVERY_MS);
		}
		if (r || poll(&pfd, 1, 20) <= 0)
			continue;
		if (ready_seen) {
			r = drop_duplicates(&s, ready, strlen(ready), &done, err);
			continue;
		}
		r = read_ready(&s, ready, strlen(ready), &ready_seen, err);
		if (!r && ready_seen)
			r = send_line(&s, KB_PROTO_GO, err);
	}
	return r;
}
