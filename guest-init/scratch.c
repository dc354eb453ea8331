/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-init/util.h"

enum { DEVICE_WAIT_MS = 3000, MKFS_MS = 120000, MAX_WORDS = 64, MAX_NOTES = 20 };

#define MKFS_LOG "/tmp/mkfs.log"

static int fail(struct kb_scratch_error *e, const char *step, int errno_value,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int fail(struct kb_scratch_error *e, const char *step, int errno_value,
		const char *fmt, ...)
{
	va_list ap;

	e->step = step;
	e->errno_value = errno_value;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

int kb_scratch_wait(const char *device, struct kb_scratch_error *ret_error)
{
	for (int ms = 0; access(device, F_OK); ms += 10) {
		if (ms >= DEVICE_WAIT_MS)
			return fail(ret_error, "scratch", errno, "no scratch device %s",
				    device);
		kb_util_sleep_ms(10);
	}
	return 0;
}

int kb_scratch_split(char *text, const char **words, int max)
{
	char *rest = NULL;
	int n = 0;

	for (char *w = strtok_r(text, " \t", &rest); w;
	     w = strtok_r(NULL, " \t", &rest)) {
		if (n == max)
			return -1;
		words[n++] = w;
	}
	return n;
}

static _Noreturn void exec_mkfs(const char *const *argv)
{
	int fd = open(MKFS_LOG, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	kb_util_poke("/proc/self/oom_score_adj", "0"); /* not exempt, as init is */
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
	execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* @return the wait status; -1 with errno, ETIMEDOUT when it had to be killed */
static int run_mkfs(const char *const *argv)
{
	uint64_t deadline = kb_util_mono_ns() + MKFS_MS * UINT64_C(1000000);
	pid_t pid = fork(), got;
	int status = 0;

	if (pid == 0)
		exec_mkfs(argv);
	if (pid < 0)
		return -1;
	/* Fine grained: the guest's clock stands in the results. */
	while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
		if (kb_util_mono_ns() > deadline) {
			kill(pid, SIGKILL);
			errno = ETIMEDOUT;
			return -1;
		}
		kb_util_sleep_ms(1);
	}
	return got == pid ? status : -1;
}

/* The lines of the log as notes; the first one that is no table into `why`. */
static void note_log(FILE *notes, char *why, size_t size)
{
	char log[8192], *rest = NULL;
	int n = 0;

	if (kb_util_read_file(MKFS_LOG, log, sizeof(log)) <= 0)
		return;
	for (char *line = strtok_r(log, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char clean[200];

		kb_util_clean(clean, sizeof(clean), line);
		/* Complaints come before the usage text, tables have runs of blanks. */
		if (!*why && !strstr(clean, "  "))
			snprintf(why, size, "%s", clean);
		if (n++ < MAX_NOTES)
			fprintf(notes, "note mkfs: %s\n", clean);
	}
}

int kb_scratch_mkfs(const char *device, const char *options, FILE *notes,
		    struct kb_scratch_error *ret_error)
{
	const char *argv[MAX_WORDS + 4] = {"mkfs.xfs", "-f"};
	char why[200] = "";
	char *copy = strdup(options);

	if (!copy)
		return fail(ret_error, "mkfs", ENOMEM, "options");
	int n = kb_scratch_split(copy, argv + 2, MAX_WORDS);
	if (n < 0) {
		free(copy);
		return fail(ret_error, "mkfs", E2BIG, "more than %d options", MAX_WORDS);
	}
	argv[2 + n] = device;
	int status = run_mkfs(argv), error = errno;
	free(copy);
	note_log(notes, why, sizeof(why));
	if (status < 0)
		return fail(ret_error, "mkfs", error, "mkfs.xfs");
	if (WIFSIGNALED(status))
		return fail(ret_error, "mkfs", 0, "mkfs.xfs was ended by signal %d",
			    WTERMSIG(status));
	if (WEXITSTATUS(status) == 127)
		return fail(ret_error, "mkfs", ENOENT, "mkfs.xfs");
	if (WEXITSTATUS(status))
		return fail(ret_error, "mkfs", 0, "mkfs.xfs exited with %d: %s",
			    WEXITSTATUS(status), *why ? why : "it said nothing");
	return 0;
}

int kb_scratch_mount(const char *device, const char *options,
		     struct kb_scratch_error *ret_error)
{
	unsigned long flags = 0;
	char *copy = strdup(options), *rest = NULL, left[512] = "";

	if (!copy)
		return fail(ret_error, "mount", ENOMEM, "options");
	/* mount(2) wants the options that all file systems share as bits. */
	for (char *o = strtok_r(copy, ",", &rest); o; o = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(o, "noatime")) {
			flags |= MS_NOATIME;
		} else if (!strcmp(o, "relatime")) {
			flags |= MS_RELATIME;
		} else if (!strcmp(o, "strictatime")) {
			flags |= MS_STRICTATIME;
		} else if (!strcmp(o, "nodiratime")) {
			flags |= MS_NODIRATIME;
		} else if (!strcmp(o, "sync")) {
			flags |= MS_SYNCHRONOUS;
		} else if (strcmp(o, "rw") && strcmp(o, "defaults")) {
			size_t len = strlen(left);

			snprintf(left + len, sizeof(left) - len, "%s%s", len ? "," : "",
				 o);
		}
	}
	free(copy);
	if (mount(device, KB_SCRATCH_DIR, "xfs", flags, left))
		return fail(ret_error, "mount", errno, "xfs %s at " KB_SCRATCH_DIR,
			    device);
	return 0;
}
