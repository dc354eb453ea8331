/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's bridge with a socket pair for the port and small programs for dropbear. */
#include "guest-init/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-init/proto.h"
#include "guest-init/util.h"
#include "tests/tap.h"

enum { PATIENCE_MS = 20000 };

static char folder[] = "/tmp/kb-bridge-XXXXXX";
static char bye_path[64];

struct server {
	int host; /* our end of the port */
	pid_t pid;
};

static struct server start(struct kb_bridge b)
{
	struct server s;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		abort();
	b.port = ends[1];
	b.bye_path = bye_path;
	fflush(NULL);
	s.pid = fork();
	if (s.pid == 0) {
		close(ends[0]);
		_exit(10 + (int)kb_bridge_serve(&b));
	}
	close(ends[1]);
	s.host = ends[0];
	return s;
}

/* Waits with the port still open and quiet: nothing but its own clock ends the bridge.
 * @return the exit status, or -1 when it does not end */
static int finish(struct server *s)
{
	int status = -1, result = -1;
	pid_t got = 0;

	for (int i = 0; i < PATIENCE_MS / 10 && got != s->pid; i++) {
		got = waitpid(s->pid, &status, WNOHANG);
		if (got != s->pid)
			kb_util_sleep_ms(10);
	}
	if (got == s->pid) {
		result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	} else {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, 0);
	}
	if (s->host >= 0)
		close(s->host);
	return result;
}

static void send_text(int fd, const char *text)
{
	kb_util_write_all(fd, text, strlen(text));
}

/* Reads until `want` has come; what came before it is dropped. */
static bool expect(int fd, const char *want)
{
	char got[4096];
	size_t len = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (len + 1 < sizeof(got) && poll(&p, 1, PATIENCE_MS) == 1) {
		if (read(fd, got + len, 1) != 1)
			return false;
		got[++len] = '\0';
		if (len >= strlen(want) && !strcmp(got + len - strlen(want), want))
			return true;
	}
	return false;
}

static bool greet(int fd, const char *nonce)
{
	char line[200];

	snprintf(line, sizeof(line), "%s%s\n", KB_PROTO_HELLO, nonce);
	send_text(fd, line);
	snprintf(line, sizeof(line), "%s%s\n", KB_PROTO_READY, nonce);
	if (!expect(fd, line))
		return false;
	snprintf(line, sizeof(line), "%s%s\n", KB_PROTO_GO, nonce);
	send_text(fd, line);
	return true;
}

static const char *const cat[] = {"cat", NULL};
static const char *const once[] = {"sh", "-c", "read x; echo \"got $x\"", NULL};
static const char *const pids[] = {"sh", "-c", "echo pid $$.; exec sleep 1000", NULL};

static void sessions(struct kb_bridge b, const char *what)
{
	b.argv = cat;
	struct server s = start(b);

	ok(greet(s.host, "aaaaaaaa"), "%s: READY carries the nonce", what);
	send_text(s.host, "one\n");
	ok(expect(s.host, "one\n"), "%s: bytes go there and back", what);
	send_text(s.host, "half a line");
	ok(greet(s.host, "bbbbbbbb"), "%s: HELLO in a running session starts another",
	   what);
	send_text(s.host, "two\n");
	ok(expect(s.host, "two\n"), "%s: which works", what);
	send_text(s.host, "KB-GO aaaaaaaa\n");
	ok(expect(s.host, "KB-GO aaaaaaaa\n"), "%s: GO in a session is just bytes", what);
	close(open(bye_path, O_CREAT | O_WRONLY, 0600));
	is_int(finish(&s), 10 + KB_BRIDGE_BYE, "%s: the bye file ends it, session or not",
	       what);
	unlink(bye_path);
}

static void rest_after_go(struct kb_bridge b, const char *what)
{
	b.argv = cat;
	struct server s = start(b);

	send_text(s.host, "KB-HELLO aaaaaaaa\nKB-GO aaaaaaaa\nearly bird\n");
	ok(expect(s.host, KB_PROTO_READY "aaaaaaaa\nearly bird\n"),
	   "%s: what follows GO in one write is the session's", what);
	kill(s.pid, SIGKILL);
	finish(&s);
}

static void program_ends(struct kb_bridge b, const char *what)
{
	b.argv = once;
	struct server s = start(b);

	for (int i = 0; i < 3; i++) {
		char nonce[24];

		snprintf(nonce, sizeof(nonce), "abcdef%02d", i);
		ok(greet(s.host, nonce), "%s: session %d", what, i);
		send_text(s.host, "x\n");
		ok(expect(s.host, "got x\n"), "%s: its last words arrive", what);
	}
	close(open(bye_path, O_CREAT | O_WRONLY, 0600));
	is_int(finish(&s), 10 + KB_BRIDGE_BYE, "%s: bye", what);
	unlink(bye_path);
}

static void hang_up(struct kb_bridge b, const char *what)
{
	char text[64] = "";
	pid_t pid;

	b.argv = pids;
	b.deadline_ns = kb_util_mono_ns() + UINT64_C(3000000000);
	struct server s = start(b);
	ok(greet(s.host, "cccccccc") && expect(s.host, "pid "), "%s: a session", what);
	for (size_t i = 0; i + 1 < sizeof(text) && read(s.host, text + i, 1) == 1; i++)
		if (text[i] == '.') {
			text[i] = '\0';
			break;
		}
	pid = atoi(text);
	ok(pid > 1 && kill(pid, 0) == 0, "%s: its program runs", what);
	close(s.host);
	s.host = -1;
	int tries = 0;
	while (kill(pid, 0) == 0 && tries++ < PATIENCE_MS / 10)
		kb_util_sleep_ms(10);
	ok(kill(pid, 0) == -1 && errno == ESRCH, "%s: gone and reaped after the hang-up",
	   what);
	is_int(finish(&s), 10 + KB_BRIDGE_DEADLINE, "%s: the deadline ends the rest",
	       what);
}

static void quiet_port(struct kb_bridge b, const char *what)
{
	b.argv = cat;
	b.deadline_ns = kb_util_mono_ns() + UINT64_C(200000000);
	struct server s = start(b);

	is_int(finish(&s), 10 + KB_BRIDGE_DEADLINE,
	       "%s: the deadline passes on a quiet port", what);
}

/* More than any buffer on the way holds, in both directions at once. */
static void bulk(struct kb_bridge b, const char *what)
{
	enum { BYTES = 3 << 20 };
	unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
	size_t sent = 0, got = 0;
	uint32_t state = 1;

	for (size_t i = 0; i < BYTES; i++) {
		state = state * 1664525 + 1013904223;
		out[i] = (unsigned char)(state >> 24);
	}
	b.argv = cat;
	struct server s = start(b);
	ok(greet(s.host, "dddddddd"), "%s: a session for bulk", what);
	while (got < BYTES) {
		struct pollfd p = {
			.fd = s.host,
			.events = (short)(POLLIN | (sent < BYTES ? POLLOUT : 0))};
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			break;
		if (p.revents & POLLOUT) {
			n = send(s.host, out + sent, BYTES - sent, MSG_DONTWAIT);
			sent += n > 0 ? (size_t)n : 0;
		}
		if (p.revents & POLLIN) {
			n = read(s.host, in + got, BYTES - got);
			if (n <= 0)
				break;
			got += (size_t)n;
		}
	}
	ok(got == BYTES && !memcmp(in, out, BYTES), "%s: 3 MiB come back whole (%zu)",
	   what, got);
	kill(s.pid, SIGKILL);
	finish(&s);
	free(out);
	free(in);
}

int main(void)
{
	static const struct {
		struct kb_bridge b;
		const char *what;
	} kinds[] = {
		{{.busy = false}, "sleeping, socket pair"},
		{{.busy = true}, "busy, socket pair"},
		{{.use_pipes = true}, "sleeping, pipes"},
		{{.use_pipes = true, .busy = true}, "busy, pipes"},
	};

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder))
		abort();
	snprintf(bye_path, sizeof(bye_path), "%s/bye", folder);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		sessions(kinds[i].b, kinds[i].what);
		rest_after_go(kinds[i].b, kinds[i].what);
		program_ends(kinds[i].b, kinds[i].what);
		hang_up(kinds[i].b, kinds[i].what);
		quiet_port(kinds[i].b, kinds[i].what);
		bulk(kinds[i].b, kinds[i].what);
	}
	is_int(kb_bridge_open_port("org.kbisect.no-such-port"), -1,
	       "a missing port is an error");
	rmdir(folder);
	return tap_done();
}
