/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command layer: one cmd_*.c per sub-command. Only these files, main.c and opts.c write to
 * stdout, and only here do errors become exit codes.
 */
#ifndef KB_HARNESS_CMD_H
#define KB_HARNESS_CMD_H

#include <stdbool.h>

#include "harness/base/error.h"
#include "harness/base/str.h"
#include "harness/job.h"
#include "results/report.h"

/* Exit codes of the program (`kbisect bisect --help` has the list). */
enum kb_exit {
	KB_EXIT_OK = 0,
	KB_EXIT_FAILURE = 1,
	KB_EXIT_USAGE = 2,
	KB_EXIT_SET = 3,
	KB_EXIT_INFRASTRUCTURE = 4,
	KB_EXIT_NOT_REPRODUCIBLE = 5,
	KB_EXIT_MULTI = 6,
	KB_EXIT_SKIP = 125,           /* judge only */
	KB_EXIT_JUDGE_BROKEN = 129,   /* judge only: makes `git bisect run` stop */
	KB_EXIT_INTERRUPTED = 130,
};

int kb_cmd_bisect(int argc, char **argv);
int kb_cmd_doctor(int argc, char **argv);
int kb_cmd_gc(int argc, char **argv);
int kb_cmd_job(int argc, char **argv);
int kb_cmd_judge(int argc, char **argv);
int kb_cmd_log(int argc, char **argv);
int kb_cmd_measure(int argc, char **argv);
int kb_cmd_next(int argc, char **argv);
int kb_cmd_report(int argc, char **argv);
int kb_cmd_resume(int argc, char **argv);
int kb_cmd_shell(int argc, char **argv);
int kb_cmd_sim(int argc, char **argv);
int kb_cmd_unit(int argc, char **argv);

/** Prints "kbisect NAME: message" on stderr; returns the exit code of the error's kind. */
int kb_cmd_fail(const char *name, const struct kb_error *err);

/** The exit code that a verdict word of a report stands for. */
int kb_cmd_report_exit(const struct kb_report *report);

/** Prints a report on stdout, as JSON or as text. */
void kb_cmd_print_report(const struct kb_report *report, bool json);

/* Options that say how to measure, shared by several commands. */
struct kb_cmd_job_opts {
	const char *job;      /* --job */
	struct kb_strv sets;  /* --set KEY=VALUE */
	const char *mode;     /* --mode */
};

#define KB_CMD_JOB_OPTIONS(o)                                                                  \
	{ .name = "job", .short_name = 'j', .type = KB_OPT_STRING, .target = &(o).job,         \
	  .arg_name = "FILE",                                                                  \
	  .help = "job file, or the name of one in configs/jobs; says how to measure" },       \
	{ .name = "set", .short_name = 's', .type = KB_OPT_LIST, .target = &(o).sets,          \
	  .arg_name = "KEY=VALUE",                                                             \
	  .help = "override one key of the job, e.g. vm.memory_mib=256; may be repeated" },    \
	{ .name = "mode", .type = KB_OPT_STRING, .target = &(o).mode, .arg_name = "MODE",      \
	  .help = "exact (instruction counting, no KVM needed), time (wall clock) or auto" }

/** Loads the job that the options describe, checked as far as possible without the host. */
int kb_cmd_load_job(const struct kb_cmd_job_opts *opts, struct kb_job *ret_job,
		    struct kb_error *err);

#endif
