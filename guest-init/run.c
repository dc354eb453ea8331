/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The child keeps its lines in memory and sends them through a pipe once the workload is
 * over, so that the parent sleeps undisturbed during measured parts. The last line, which
 * begins with '!', proves that the lines are all there and carries the verdict:
 *   !FAILED ERRNO ORDER TEXT
 */
#include "guest-init/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-init/counters.h"
#include "guest-init/proto.h"
#include "guest-init/util.h"

enum { REAP_MS = 5000 };

/* Header lines, vmstat before and after: they need some of the document's limit as well.
 */
#define MAX_BODY_BYTES (KB_PROTO_RESULT_MAX_BYTES - (128u << 10))

struct stream {
	char *data; /* owned */
	size_t len, cap;
};

static _Noreturn void child_main(const struct kb_workload *w,
				 const struct kb_wl_param *params, size_t param_count,
				 const char *dir, int fd)
{
	struct kb_wl_verdict v;
	char *body = NULL;
	size_t len = 0;

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	/* When memory runs out, the workload goes, not init. */
	kb_util_poke("/proc/self/oom_score_adj", "1000");
	FILE *out = open_memstream(&body, &len);
	if (!out)
		_exit(1);
	kb_wl_execute(w, params, param_count, dir, out, &v);
	fprintf(out, "!%d %d %d %s\n", v.failed, v.errno_value, (int)v.order,
		*v.text ? v.text : "-");
	if (fclose(out) || kb_util_write_all(fd, body, len))
		_exit(1);
	_exit(0);
}

static void fail(struct kb_run_result *r, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(struct kb_run_result *r, int errno_value, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->verdict.text, sizeof(r->verdict.text), fmt, ap);
	va_end(ap);
	r->verdict.failed = true;
	r->verdict.errno_value = errno_value;
}

static uint64_t ms_left(uint64_t deadline_ns)
{
	uint64_t now = kb_util_mono_ns();

	return now >= deadline_ns ? 0 : (deadline_ns - now + 999999) / 1000000;
}

/* @return 1 more may come, 0 end of file, -1 failed (said so) */
static int receive_some(struct kb_run_result *r, int fd, struct stream *s)
{
	if (s->cap - s->len < 65536) {
		size_t cap = s->cap ? s->cap * 2 : 131072;
		char *data = realloc(s->data, cap);

		if (!data) {
			fail(r, ENOMEM, "no memory for the workload's report");
			return -1;
		}
		s->data = data;
		s->cap = cap;
	}
	ssize_t n = read(fd, s->data + s->len, s->cap - s->len - 1);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (n < 0) {
		fail(r, errno, "cannot read the workload's report");
		return -1;
	}
	s->len += (size_t)n;
	s->data[s->len] = '\0';
	if (s->len > MAX_BODY_BYTES) {
		fail(r, EFBIG, "the workload reports too much");
		return -1;
	}
	return n > 0;
}

static void receive(struct kb_run_result *r, int fd, uint64_t timeout_ms,
		    struct stream *s)
{
	uint64_t deadline = kb_util_mono_ns() + timeout_ms * 1000000u;
	int more = 1;

	while (more == 1) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t left = ms_left(deadline);

		if (!left) {
			fail(r, ETIMEDOUT, "the workload exceeded its limit of %llu ms",
			     (unsigned long long)timeout_ms);
			return;
		}
		if (poll(&p, 1, left > 3600000 ? 3600000 : (int)left) > 0)
			more = receive_some(r, fd, s);
	}
}

/* Kills what is left of the group and waits for the child, but not for ever.
 * @return its wait status, or -1 */
static int reap(pid_t pid, struct rusage *ret_usage)
{
	int status;

	for (int i = 0; i < REAP_MS; i++) {
		/* Too late to change how the child ends: it has closed the pipe by
		 * exiting. */
		kill(-pid, SIGKILL);
		pid_t got = wait4(pid, &status, WNOHANG, ret_usage);

		if (got == pid)
			return status;
		if (got < 0 && errno != EINTR)
			return -1;
		kb_util_sleep_ms(1);
	}
	return -1;
}

/* Takes the verdict line off the stream. False when there is none. */
static bool take_verdict(struct kb_run_result *r, struct stream *s)
{
	int failed, errno_value, order, text_at = 0;

	if (s->len < 2 || s->data[s->len - 1] != '\n')
		return false;
	s->data[s->len - 1] = '\0';
	char *last = strrchr(s->data, '\n');
	last = last ? last + 1 : s->data;
	if (strlen(last) != (size_t)(s->data + s->len - 1 - last) ||
	    sscanf(last, "!%d %d %d %n", &failed, &errno_value, &order, &text_at) != 3 ||
	    !text_at)
		return false;
	r->verdict.failed = failed;
	r->verdict.errno_value = errno_value;
	r->verdict.order = (enum kb_wl_order)order;
	kb_util_clean(r->verdict.text, sizeof(r->verdict.text), last + text_at);
	s->len = (size_t)(last - s->data);
	*last = '\0';
	return true;
}

static void blame(struct kb_run_result *r, int status, int64_t oom_kills)
{
	if (kb_counters_vmstat("oom_kill") > oom_kills)
		fail(r, ENOMEM, "the kernel's OOM killer ended the workload");
	else if (status >= 0 && WIFSIGNALED(status))
		fail(r, 0, "the workload was ended by signal %d", WTERMSIG(status));
	else
		fail(r, 0, "the workload ended without a report (status %d)", status);
}

void kb_run_workload(const struct kb_workload *w, const struct kb_wl_param *params,
		     size_t param_count, const char *dir, uint64_t timeout_ms,
		     struct kb_run_result *ret_result)
{
	int64_t oom_kills =
		kb_counters_vmstat("oom_kill"); /* -1 before 4.13: then always 0 */
	struct stream s = {0};
	int fds[2];

	*ret_result = (struct kb_run_result){0};
	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC)) {
		fail(ret_result, errno, "pipe");
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		child_main(w, params, param_count, dir, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		fail(ret_result, errno, "fork");
		close(fds[0]);
		return;
	}
	setpgid(pid, pid); /* whoever comes first */
	receive(ret_result, fds[0], timeout_ms, &s);
	close(fds[0]);
	int status = reap(pid, &ret_result->usage);
	if (!ret_result->verdict.failed && !take_verdict(ret_result, &s))
		blame(ret_result, status, oom_kills);
	if (ret_result->verdict.failed) {
		free(s.data);
		return;
	}
	ret_result->body = s.data;
	ret_result->body_len = s.len;
}

void kb_run_result_free(struct kb_run_result *r)
{
	free(r->body);
	*r = (struct kb_run_result){0};
}
