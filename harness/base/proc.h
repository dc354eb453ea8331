/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes: own process group, time limit, output to a file, no shell. */
#ifndef KB_BASE_PROC_H
#define KB_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/base/error.h"

struct kb_proc_spec {
	const char *const *argv; /* borrowed; NULL-terminated; argv[0] looked up in PATH */
	const char *cwd;         /* borrowed; NULL: inherit */
	const char *const *env;  /* borrowed; NULL: inherit, else NAME=VALUE set on top of it */
	const char *output_path; /* borrowed; stdout+stderr appended there; NULL: inherit */
	int stdin_fd;            /* 0 with inherit_stdin false means /dev/null */
	bool inherit_stdin;
	int nice;                /* added to our own niceness */
	uint64_t timeout_ms;     /* 0: none */
	bool only_env;           /* the child gets `env` alone, nothing is inherited */
};

struct kb_proc_result {
	bool timed_out;     /* the group was killed for its time limit */
	bool interrupted;   /* the group was killed because kb_interrupted() became true */
	int exit_code;      /* -1 when a signal ended it */
	int term_signal;    /* 0 when it exited */
	uint64_t wall_ms;
	uint64_t cpu_ms;    /* user + system of the reaped tree */
};

struct kb_proc; /* a running child */

/**
 * Starts a child in a process group of its own; the whole group gets SIGKILL when this
 * process (precisely: the thread that called this) dies.
 * Errors: KB_EIO when it can't be started (a missing program names itself).
 */
int kb_proc_start(const struct kb_proc_spec *spec, struct kb_proc **ret_proc,
		  struct kb_error *err);

/**
 * Looks without blocking for longer than wait_ms. @return 1 when it has ended (*ret_result
 * filled, its whole group is gone), 0 when it still runs, negative on error. A child past
 * its time limit gets SIGTERM with its group here, and SIGKILL from a call 2 s later: keep
 * polling.
 */
int kb_proc_poll(struct kb_proc *proc, uint64_t wait_ms, struct kb_proc_result *ret_result,
		 struct kb_error *err);

/** Kills the group if it still runs, reaps, frees. NULL is fine. */
void kb_proc_free(struct kb_proc *proc);

/** Start + poll to the end. A child that fails is not an error: look at *ret_result. */
int kb_proc_run(const struct kb_proc_spec *spec, struct kb_proc_result *ret_result,
		struct kb_error *err);

/**
 * Runs and captures at most max_bytes of stdout (stderr dropped).
 * @ret_output owned, NUL-terminated, trailing white space stripped
 */
int kb_proc_capture(const char *const *argv, uint64_t timeout_ms, size_t max_bytes,
		    char **ret_output, struct kb_proc_result *ret_result,
		    struct kb_error *err);

/** Full path of a program as exec would find it, owned; NULL when there is none. */
char *kb_proc_find(const char *program);

/** Installs SIGINT/SIGTERM/SIGHUP handlers that only set the flag below. */
void kb_interrupt_setup(void);
/** True once one of those signals came. The one piece of global state beside the log level. */
bool kb_interrupted(void);

#endif
