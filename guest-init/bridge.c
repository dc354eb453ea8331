/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why this program sometimes burns CPU instead of sleeping: in exact mode QEMU runs with
 * -icount sleep=off, where an idle virtual CPU is sent forward to its next timer at once.
 * A guest that waits for the host would see hours pass in seconds, and every limit in it
 * (ours, dropbear's) would fire while the host has hardly begun to think. So with `busy`
 * set the loop polls without waiting and yields the CPU to dropbear: there is always
 * something to execute, and virtual time stays the number of instructions executed.
 */
#include "guest-init/bridge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-init/handshake.h"
#include "guest-init/util.h"

enum {
	WAIT_MS = 50,	    /* how soon bye_path and the deadline are noticed */
	HANG_UP_MS = 20,    /* poll() can't wait for a port to be opened again */
	BYE_GRACE_MS = 500, /* for a session to end by itself once bye was said */
};

struct buffer {
	char data[8192];
	size_t from, to; /* what is in it */
};

struct serving {
	const struct kb_bridge *b;
	struct kb_handshake hs;
	pid_t pid;		  /* 0: no session */
	int to_child, from_child; /* equal for a socket pair */
	struct buffer up, down;	  /* host to child, child to host */
	bool child_closed;
	uint64_t bye_ns; /* when bye was seen, or 0 */
};

/* ---- the session's program ---- */

static _Noreturn void child_main(const struct kb_bridge *b, int in, int out)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	setsid();
	signal(SIGPIPE, SIG_DFL);
	kb_util_poke("/proc/self/oom_score_adj", "0"); /* not exempt, as init is */
	/* dup2() onto itself would leave close-on-exec set; pipes of PID 1 may well be 0
	 * or 1 */
	in = fcntl(in, F_DUPFD_CLOEXEC, 3);
	out = fcntl(out, F_DUPFD_CLOEXEC, 3);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	execvp(b->argv[0], (char *const *)b->argv);
	_exit(127);
}

/* ours[0] to read from, ours[1] to write to; the same for the child's side. */
static int make_ends(bool use_pipes, int ours[2], int childs[2])
{
	int up[2], down[2];

	if (!use_pipes && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up)) {
		ours[0] = ours[1] = up[0];
		childs[0] = childs[1] = up[1];
		return 0;
	}
	if (pipe2(up, O_CLOEXEC))
		return -1;
	if (pipe2(down, O_CLOEXEC)) {
		close(up[0]);
		close(up[1]);
		return -1;
	}
	childs[0] = up[0];
	ours[1] = up[1];
	ours[0] = down[0];
	childs[1] = down[1];
	return 0;
}

static void close_pair(const int ends[2])
{
	close(ends[0]);
	if (ends[1] != ends[0])
		close(ends[1]);
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void start_session(struct serving *s)
{
	int ours[2], childs[2];

	if (make_ends(s->b->use_pipes, ours, childs))
		return; /* the host's time limit will tell */
	pid_t pid = fork();
	if (pid == 0)
		child_main(s->b, childs[0], childs[1]);
	close_pair(childs);
	if (pid < 0) {
		close_pair(ours);
		return;
	}
	set_nonblocking(ours[0]);
	set_nonblocking(ours[1]);
	s->pid = pid;
	s->from_child = ours[0];
	s->to_child = ours[1];
	s->up.from = s->up.to = s->down.from = s->down.to = 0;
	s->child_closed = false;
}

static void end_session(struct serving *s)
{
	int ends[2] = {s->from_child, s->to_child};

	if (!s->pid)
		return;
	close_pair(ends);
	kill(-s->pid, SIGKILL);
	kill(s->pid, SIGKILL); /* it may not have reached setsid() yet */
	s->pid = 0;	       /* reap_all() takes it */
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* ---- moving bytes ---- */

/* @return false when the other side is gone */
static bool flush_buffer(int fd, struct buffer *buf)
{
	while (buf->from < buf->to) {
		ssize_t n = write(fd, buf->data + buf->from, buf->to - buf->from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		buf->from += (size_t)n;
	}
	buf->from = buf->to = 0;
	return true;
}

static void answer_hello(struct serving *s)
{
	char line[sizeof(KB_PROTO_READY) + KB_PROTO_NONCE_MAX + 2];
	int len = snprintf(line, sizeof(line), KB_PROTO_READY "%s\n", s->hs.nonce);

	/* If it does not fit now, the host asks again. */
	ssize_t n = write(s->b->port, line, (size_t)len);
	(void)n;
}

/* Looks at what the host sent, which stands in s->up. A HELLO in the middle of a session
 * is a host that has come back before we saw it go; SSH's own bytes are encrypted and
 * don't look like one. */
static void digest(struct serving *s)
{
	struct buffer *up = &s->up;
	size_t used;

	for (size_t at = up->from; at < up->to; at += used) {
		enum kb_handshake_event event =
			kb_handshake_feed(&s->hs, up->data + at, up->to - at, &used);

		if (event == KB_HANDSHAKE_HELLO) {
			end_session(s);
			answer_hello(s);
		} else if (event == KB_HANDSHAKE_GO && !s->pid) {
			/* start_session() empties the buffer; the rest is the session's.
			 */
			size_t rest = up->to - (at + used);

			memmove(up->data, up->data + at + used, rest);
			start_session(s);
			up->to = s->pid ? rest : 0;
			return;
		}
	}
	if (!s->pid)
		up->from = up->to = 0;
}

/* @return false when nothing came */
static bool from_port(struct serving *s)
{
	struct buffer *up = &s->up;

	if (up->to)
		return false; /* the child is slow: let the host wait */
	ssize_t n = read(s->b->port, up->data, sizeof(up->data));
	if (n <= 0)
		return false;
	up->from = 0;
	up->to = (size_t)n;
	digest(s);
	return true;
}

static bool from_child(struct serving *s)
{
	struct buffer *down = &s->down;

	if (down->to)
		return false;
	ssize_t n = read(s->from_child, down->data, sizeof(down->data));
	if (n > 0) {
		down->from = 0;
		down->to = (size_t)n;
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		s->child_closed = true;
	return false;
}

/* One round over whatever is possible now. @return true when something moved */
static bool pump(struct serving *s)
{
	bool moved = from_port(s);

	if (!s->pid)
		return moved;
	if (s->up.to && !flush_buffer(s->to_child, &s->up))
		s->child_closed = true;
	moved |= from_child(s);
	if (s->down.to && !flush_buffer(s->b->port, &s->down))
		s->down.from = s->down.to = 0;
	if (s->child_closed && !s->down.to)
		end_session(s);
	return moved;
}

/* @return the port's events */
static short wait_for_events(struct serving *s)
{
	struct pollfd p[3] = {{.fd = s->b->port, .events = s->up.to ? 0 : POLLIN}};
	nfds_t n = 1;

	if (s->down.to)
		p[0].events |= POLLOUT;
	if (s->pid && !s->child_closed && !s->down.to)
		p[n++] = (struct pollfd){.fd = s->from_child, .events = POLLIN};
	if (s->pid && s->up.to)
		p[n++] = (struct pollfd){.fd = s->to_child, .events = POLLOUT};
	if (poll(p, n, s->b->busy ? 0 : WAIT_MS) < 0)
		return 0;
	return p[0].revents;
}

static bool is_over(struct serving *s, enum kb_bridge_end *ret_end)
{
	uint64_t now = kb_util_mono_ns();

	if (!s->bye_ns && !access(s->b->bye_path, F_OK))
		s->bye_ns = now;
	*ret_end = KB_BRIDGE_BYE;
	if (s->bye_ns && (!s->pid || now - s->bye_ns > BYE_GRACE_MS * 1000000u))
		return true;
	*ret_end = KB_BRIDGE_DEADLINE;
	return s->b->deadline_ns && now >= s->b->deadline_ns;
}

enum kb_bridge_end kb_bridge_serve(const struct kb_bridge *b)
{
	static struct serving s; /* large, and PID 1 has but one */
	enum kb_bridge_end end;

	s = (struct serving){.b = b};
	signal(SIGPIPE, SIG_IGN);
	set_nonblocking(b->port);
	while (!is_over(&s, &end)) {
		short events = wait_for_events(&s);
		bool moved = pump(&s);

		/* The port stays usable: its next host only has to open it. */
		if (!moved && (events & (POLLHUP | POLLERR))) {
			end_session(&s);
			if (!b->busy)
				kb_util_sleep_ms(HANG_UP_MS);
		}
		if (b->busy)
			sched_yield();
		reap_all();
	}
	end_session(&s);
	reap_all();
	return end;
}

/* ---- the port ---- */

int kb_bridge_open_port(const char *name)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	int fd = -1, error = ENODEV;

	if (!dir) {
		errno = ENODEV;
		return -1;
	}
	while (fd < 0 && (entry = readdir(dir))) {
		char path[512], found[256];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 entry->d_name);
		if (kb_util_read_file(path, found, sizeof(found)) <= 0)
			continue; /* a port without a name */
		found[strcspn(found, "\n")] = '\0';
		if (strcmp(found, name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		error = errno;
	}
	closedir(dir);
	errno = error;
	return fd;
}
