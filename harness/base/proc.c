/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every child has a guard: a fork of us that leads the child's process group and waits for
 * it. PR_SET_PDEATHSIG reaches direct children only; the guard, told of our death, kills the
 * whole group, so that no compiler or shell of a killed kbisect goes on writing.
 */
#include "harness/base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"

#define KILL_GRACE_MS 2000
#define POLL_SLICE_MS 200 /* a signal that comes just before poll() is seen after this */
#define DEATH_SIGNAL SIGUSR1

extern char **environ;

struct kb_proc {
	pid_t guard; /* also the group's id */
	int pidfd;
	uint64_t started_ms, deadline_ms; /* deadline 0: none */
	uint64_t kill_at_ms;              /* 0: SIGTERM was not sent yet */
	bool timed_out, interrupted, ended;
};

/* ---- in the children: only async-signal-safe calls ---- */

struct launch {
	const struct kb_proc_spec *spec;
	char *const *envp;
	int stdout_fd, stderr_fd; /* -1: inherit */
	int error_fd;             /* a close-on-exec pipe: step and errno of a failure */
	pid_t parent;
};

enum launch_step { STEP_FORK, STEP_SETUP, STEP_STDIN, STEP_CWD, STEP_EXEC };

struct launch_failure {
	int step;
	int errno_value;
};

__attribute__((noreturn)) static void fail_launch(const struct launch *l, int step)
{
	struct launch_failure f = { step, errno };
	ssize_t ignored = write(l->error_fd, &f, sizeof(f));

	(void)ignored;
	_exit(127);
}

static void default_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &sa, NULL); /* fails for KILL and STOP, which is fine */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A descriptor that the standard ones cannot overwrite before it is used. */
static int above_stdio(int fd)
{
	return fd >= 0 && fd <= 2 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : fd;
}

__attribute__((noreturn)) static void run_child(const struct launch *l, pid_t guard)
{
	const struct kb_proc_spec *spec = l->spec;
	int out = above_stdio(l->stdout_fd), err = above_stdio(l->stderr_fd);
	int in = -1;

	default_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != guard)
		fail_launch(l, STEP_SETUP);
	if (spec->nice)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + spec->nice);
	if (!spec->inherit_stdin) {
		in = spec->stdin_fd > 0 ? spec->stdin_fd :
					  open("/dev/null", O_RDONLY | O_CLOEXEC);
		/* with stdin closed open() gives 0 itself: only the flag is in the way then */
		if (in < 0 || (in ? dup2(in, 0) : fcntl(0, F_SETFD, 0)) < 0)
			fail_launch(l, STEP_STDIN);
	}
	if ((out >= 0 && dup2(out, 1) < 0) || (err >= 0 && dup2(err, 2) < 0))
		fail_launch(l, STEP_SETUP);
	if (spec->cwd && chdir(spec->cwd))
		fail_launch(l, STEP_CWD);
	execvpe(spec->argv[0], (char *const *)spec->argv, l->envp);
	fail_launch(l, STEP_EXEC);
}

static void kill_own_group(int sig)
{
	(void)sig;
	kill(0, SIGKILL); /* the guard itself included */
}

/* Ends as the child ended, so that the controller sees the child's own status. */
__attribute__((noreturn)) static void end_like(int status)
{
	struct rlimit no_core = { 0, 0 };
	struct sigaction sa = { .sa_handler = SIG_DFL };

	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &no_core);
		sigaction(WTERMSIG(status), &sa, NULL);
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

__attribute__((noreturn)) static void run_guard(const struct launch *l)
{
	struct sigaction on_death = { .sa_handler = kill_own_group };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	static const int polite[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	int status;

	setpgid(0, 0);
	default_signals();
	sigaction(DEATH_SIGNAL, &on_death, NULL);
	/* the child may take its time after these: the guard must outlive it */
	for (size_t i = 0; i < KB_COUNT_OF(polite); i++)
		sigaction(polite[i], &ignore, NULL);
	if (prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL) || getppid() != l->parent)
		fail_launch(l, STEP_SETUP);
	pid_t guard = getpid();
	pid_t child = fork();
	if (child < 0)
		fail_launch(l, STEP_FORK);
	if (child == 0)
		run_child(l, guard);
	/* locks and pipes of the controller must not live on in the guard */
	close_range(0, ~0u, 0);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			_exit(127);
	end_like(status);
}

/* ---- in the controller ---- */

/* NAME=VALUE entries on top of the inherited ones; items are borrowed, the array is owned. */
static char **make_env(const char *const *extra, bool inherit)
{
	size_t n = 0, cap = 0, inherited;
	char **out = NULL;

	for (char **e = environ; inherit && e && *e; e++) {
		KB_GROW(out, n, cap);
		out[n++] = *e;
	}
	inherited = n;
	for (; extra && *extra; extra++) {
		size_t name = strcspn(*extra, "=") + 1, at = 0;

		while (at < inherited && strncmp(out[at], *extra, name) != 0)
			at++;
		if (at == inherited) {
			KB_GROW(out, n, cap);
			at = n++;
		}
		memcpy(&out[at], extra, sizeof(char *)); /* exec never writes through it */
	}
	KB_GROW(out, n, cap);
	out[n] = NULL;
	return out;
}

static int launch_error(const struct kb_proc_spec *spec, const struct launch_failure *f,
			struct kb_error *err)
{
	if (f->step == STEP_CWD)
		return kb_error_errno(err, KB_EIO, f->errno_value, "cannot enter %s to run %s",
				      spec->cwd, spec->argv[0]);
	if (f->step == STEP_EXEC && f->errno_value == ENOENT)
		return kb_error_set(err, KB_EIO,
				    "the program %s is not installed (or not in PATH)",
				    spec->argv[0]);
	return kb_error_errno(err, KB_EIO, f->errno_value, "cannot run %s", spec->argv[0]);
}

static int start(const struct kb_proc_spec *spec, int stdout_fd, int stderr_fd,
		 struct kb_proc **ret_proc, struct kb_error *err)
{
	KB_AUTO_FREE char **envp = make_env(spec->env, !spec->only_env);
	KB_AUTO(kb_close) int error_read = -1;
	KB_AUTO(kb_close) int error_write = -1;
	struct launch_failure failure = { 0 };
	int pipe_fds[2];

	if (pipe2(pipe_fds, O_CLOEXEC))
		return kb_error_errno(err, KB_EIO, errno, "cannot run %s", spec->argv[0]);
	error_read = pipe_fds[0];
	/* above 2, or the child's redirections would close it */
	error_write = above_stdio(pipe_fds[1]);
	if (error_write != pipe_fds[1])
		close(pipe_fds[1]);
	struct launch l = { spec, envp, stdout_fd, stderr_fd, error_write, getpid() };
	pid_t guard = fork();
	if (guard < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot run %s", spec->argv[0]);
	if (guard == 0)
		run_guard(&l);
	setpgid(guard, guard); /* also by the guard: whoever comes first */
	kb_close(&error_write);
	ssize_t n;
	do
		n = read(error_read, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	int pidfd = n == 0 ? pidfd_open(guard, 0) : -1;
	if (n != 0 || pidfd < 0) {
		if (n == 0)
			failure = (struct launch_failure){ STEP_FORK, errno };
		kill(-guard, SIGKILL);
		while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
			;
		return launch_error(spec, &failure, err);
	}
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	struct kb_proc *proc = kb_calloc(1, sizeof(*proc));
	proc->guard = guard;
	proc->pidfd = pidfd;
	proc->started_ms = kb_now_ms();
	proc->deadline_ms = spec->timeout_ms ? proc->started_ms + spec->timeout_ms : 0;
	*ret_proc = proc;
	return 0;
}

int kb_proc_start(const struct kb_proc_spec *spec, struct kb_proc **ret_proc,
		  struct kb_error *err)
{
	KB_AUTO(kb_close) int out = -1;

	if (spec->output_path) {
		out = open(spec->output_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (out < 0)
			return kb_error_errno(err, KB_EIO, errno, "cannot write %s",
					      spec->output_path);
	}
	return start(spec, out, out, ret_proc, err);
}

static uint64_t tv_ms(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000;
}

/* The guard has ended: nothing of its group may be left once we return. */
static int finish(struct kb_proc *proc, struct kb_proc_result *ret, struct kb_error *err)
{
	struct rusage usage = { 0 };
	int status = 0;

	/* before reaping: until then nobody else can get this group id */
	kill(-proc->guard, SIGKILL);
	while (wait4(proc->guard, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return kb_error_errno(err, KB_EINTERNAL, errno, "cannot wait");
	/* killed processes need a moment to go; a slow reaper may keep them as zombies */
	for (int i = 0; i < 100 && kill(-proc->guard, 0) == 0; i++)
		kb_sleep_ms(1);
	proc->ended = true;
	ret->timed_out = proc->timed_out;
	ret->interrupted = proc->interrupted;
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	ret->term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->wall_ms = kb_now_ms() - proc->started_ms;
	ret->cpu_ms = tv_ms(usage.ru_utime) + tv_ms(usage.ru_stime);
	return 1;
}

static void ask_to_end(struct kb_proc *proc, uint64_t now)
{
	if (proc->kill_at_ms)
		return;
	proc->kill_at_ms = now + KILL_GRACE_MS;
	kill(-proc->guard, SIGTERM);
	kill(-proc->guard, SIGCONT); /* a stopped process cannot act on it */
}

int kb_proc_poll(struct kb_proc *proc, uint64_t wait_ms, struct kb_proc_result *ret_result,
		 struct kb_error *err)
{
	uint64_t until = kb_now_ms() + wait_ms;

	for (;;) {
		uint64_t now = kb_now_ms(), wake = until;

		if (proc->deadline_ms && now >= proc->deadline_ms && !proc->kill_at_ms) {
			proc->timed_out = true;
			ask_to_end(proc, now);
		} else if (kb_interrupted() && !proc->kill_at_ms) {
			proc->interrupted = true;
			ask_to_end(proc, now);
		}
		if (proc->kill_at_ms && now >= proc->kill_at_ms)
			kill(-proc->guard, SIGKILL);
		else if (proc->kill_at_ms && proc->kill_at_ms < wake)
			wake = proc->kill_at_ms;
		if (!proc->kill_at_ms && proc->deadline_ms && proc->deadline_ms < wake)
			wake = proc->deadline_ms;
		uint64_t left = wake > now ? wake - now : 0;
		struct pollfd p = { .fd = proc->pidfd, .events = POLLIN };
		int n = poll(&p, 1, (int)(left < POLL_SLICE_MS ? left : POLL_SLICE_MS));
		if (n > 0)
			return finish(proc, ret_result, err);
		if (n < 0 && errno != EINTR)
			return kb_error_errno(err, KB_EINTERNAL, errno, "cannot poll");
		if (kb_now_ms() >= until)
			return 0;
	}
}

void kb_proc_free(struct kb_proc *proc)
{
	struct kb_proc_result unused;

	if (!proc)
		return;
	if (!proc->ended) {
		ask_to_end(proc, kb_now_ms());
		while (kb_proc_poll(proc, 1000, &unused, NULL) == 0)
			;
	}
	kb_close(&proc->pidfd);
	free(proc);
}

int kb_proc_run(const struct kb_proc_spec *spec, struct kb_proc_result *ret_result,
		struct kb_error *err)
{
	struct kb_proc *proc = NULL;
	int r = kb_proc_start(spec, &proc, err);

	if (r)
		return r;
	while ((r = kb_proc_poll(proc, 60000, ret_result, err)) == 0)
		;
	kb_proc_free(proc);
	return r < 0 ? r : 0;
}

/*
 * Takes some of what is in the pipe (bounded: a child that never stops writing must not keep
 * us here past its time limit); beyond max_bytes it is read and dropped.
 * @return false at EOF
 */
static bool drain(int fd, struct kb_str *text, size_t max_bytes)
{
	char buf[4096];

	for (int i = 0; i < 64; i++) { /* more than a default pipe holds */
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		size_t room = max_bytes - text->len;
		kb_str_append_bytes(text, buf, (size_t)n < room ? (size_t)n : room);
	}
	return true;
}

int kb_proc_capture(const char *const *argv, uint64_t timeout_ms, size_t max_bytes,
		    char **ret_output, struct kb_proc_result *ret_result,
		    struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	KB_AUTO(kb_close) int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	KB_AUTO(kb_close) int in = -1;
	struct kb_proc_spec spec = { .argv = argv, .timeout_ms = timeout_ms };
	struct kb_proc *proc = NULL;
	bool open_end = true;
	int fds[2], r;

	if (sink < 0 || pipe2(fds, O_CLOEXEC))
		return kb_error_errno(err, KB_EIO, errno, "cannot run %s", argv[0]);
	in = fds[0];
	fcntl(in, F_SETFL, O_NONBLOCK);
	r = start(&spec, fds[1], sink, &proc, err);
	close(fds[1]);
	if (r)
		return r;
	do {
		struct pollfd p = { .fd = in, .events = POLLIN };

		if (open_end && poll(&p, 1, 50) > 0)
			open_end = drain(in, &text, max_bytes);
		r = kb_proc_poll(proc, open_end ? 0 : 1000, ret_result, err);
	} while (r == 0);
	drain(in, &text, max_bytes);
	kb_proc_free(proc);
	if (r < 0)
		return r;
	*ret_output = kb_str_rstrip(kb_str_steal(&text));
	return 0;
}

char *kb_proc_find(const char *program)
{
	KB_AUTO(kb_strv_free) struct kb_strv dirs = { 0 };
	const char *path = getenv("PATH");

	if (strchr(program, '/'))
		return access(program, X_OK) == 0 ? kb_strdup(program) : NULL;
	kb_strv_split(&dirs, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.count; i++) {
		char *full = kb_path_join(dirs.items[i], program);

		if (access(full, X_OK) == 0 && !kb_path_is_dir(full))
			return full;
		free(full);
	}
	return NULL;
}

/* ---- the interrupt flag ---- */

static volatile sig_atomic_t interrupt_flag;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupt_flag = 1;
}

void kb_interrupt_setup(void)
{
	/* no SA_RESTART: waiting calls must come back and look at the flag */
	struct sigaction sa = { .sa_handler = on_interrupt };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

bool kb_interrupted(void)
{
	return interrupt_flag != 0;
}
