/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guest_channel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "tests/tap.h"

/* A guest's end of the channel, in a thread. */
struct guest {
	int fd;
	int skip;	  /* HELLOs that are not answered */
	int answers;	  /* how often each is answered */
	const char *junk; /* sent before the answer */
	char nonce[64], go[64];
};

static int read_line(int fd, char *line, size_t size)
{
	size_t len = 0;

	while (len + 1 < size && read(fd, line + len, 1) == 1)
		if (line[len++] == '\n')
			break;
	line[len] = '\0';
	return (int)len;
}

static void say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return; /* the other side has given up: its test says so */
}

static void *guest_main(void *opaque)
{
	struct guest *g = opaque;
	char line[64];

	while (read_line(g->fd, line, sizeof(line)) > 0) {
		if (!strncmp(line, "KB-GO ", 6)) {
			strcpy(g->go, line + 6);
			say(g->fd, "SSH-2.0-test\r\n");
			break;
		}
		if (strncmp(line, "KB-HELLO ", 9) || g->skip-- > 0)
			continue;
		strcpy(g->nonce, line + 9);
		if (g->junk)
			say(g->fd, g->junk);
		KB_AUTO_FREE char *ready = kb_asprintf("KB-READY %s", g->nonce);
		for (int i = 0; i < g->answers; i++)
			say(g->fd, ready);
	}
	return NULL;
}

static int talk(struct guest *g, uint64_t timeout_ms, char *first, struct kb_error *err)
{
	pthread_t thread;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		abort();
	g->fd = fds[1];
	if (pthread_create(&thread, NULL, guest_main, g))
		abort();
	int r = kb_guest_channel_sync(fds[0], timeout_ms, err);
	first[0] = '\0';
	if (!r)
		read_line(fds[0], first, 64);
	shutdown(fds[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fds[0]);
	close(fds[1]);
	return r;
}

static void sessions_begin_at_the_right_byte(void)
{
	static const struct {
		const char *what, *junk;
		int skip, answers;
	} rows[] = {
		{"a plain guest", NULL, 0, 1},
		{"one that listens late", NULL, 3, 1},
		{"one that answers twice", NULL, 0, 2},
		{"one that answers thrice", NULL, 1, 3},
		{"one with bytes of a dead session",
		 "\x01\x02garbage KB-READY 0000\nKB-READY ", 0, 1},
		{"one with a line before it", "SSH-2.0-old\r\n", 0, 2},
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		struct guest g = {.skip = rows[i].skip,
				  .answers = rows[i].answers,
				  .junk = rows[i].junk};
		struct kb_error err = {0};
		char first[64];

		is_int(talk(&g, 10000, first, &err), 0, "%s: in step %s", rows[i].what,
		       err.message);
		is_str(first, "SSH-2.0-test\r\n", "%s: its first line", rows[i].what);
		is_str(g.go, g.nonce, "%s: GO carries the nonce", rows[i].what);
	}
}

static void silence_is_a_timeout(void)
{
	struct guest g = {.skip = 1000};
	struct kb_error err = {0};
	char first[64];

	is_int(talk(&g, 120, first, &err), KB_ETIMEOUT, "%s", "no answer");
	ok(strstr(err.message, "did not answer") != NULL, "%s", err.message);
}

static void closed_channel_is_the_guests_fault(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		abort();
	close(fds[1]);
	is_int(kb_guest_channel_sync(fds[0], 1000, NULL), KB_EGUEST, "closed");
	close(fds[0]);
}

int main(void)
{
	sessions_begin_at_the_right_byte();
	silence_is_a_timeout();
	closed_channel_is_the_guests_fault();
	return tap_done();
}
