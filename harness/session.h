/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bisection from end to end: pick -> build -> boot -> judge -> record, driven by the pure
 * decision rule and written down in the run's journal, so that it can be resumed after a kill
 * at any moment. This is policy only; it prints nothing.
 */
#ifndef KB_HARNESS_SESSION_H
#define KB_HARNESS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "bisect/decide.h"
#include "harness/base/error.h"
#include "harness/base/str.h"
#include "harness/job.h"
#include "results/report.h"

struct kb_session_args {
	const char *command;         /* "bisect", "judge", "measure"; names the run */
	const char *repo_path;       /* borrowed, as all of them */
	const struct kb_strv *goods; /* revision specs; at least one; for measure: all of them */
	const char *bad;             /* revision spec; NULL for measure */
	const struct kb_strv *skips; /* revision specs; may be NULL */
	const struct kb_strv *paths; /* may be NULL */
	bool first_parent;
	const struct kb_job *job;    /* effective; its mode may be "auto" */
	const char *unit_command;    /* NULL: our own */
	const struct kb_strv *argv;  /* recorded; may be NULL */
};

/**
 * Checks everything that can be checked without building (revisions, range, job, image,
 * host mode) and makes the run folder with run.json.
 * @ret_run_dir owned by the caller
 * Errors: KB_EREPO, KB_ECONFIG, KB_EIO.
 */
int kb_session_create(const struct kb_session_args *args, char **ret_run_dir,
		      struct kb_error *err);

enum kb_step { KB_STEP_BUILD, KB_STEP_BOOT, KB_STEP_DECIDED, KB_STEP_REPLAYED };

/* What the observer is told; borrowed for the call. */
struct kb_session_status {
	enum kb_step step;
	enum kb_phase phase;
	const char *commit, *subject; /* of the commit at work; NULL when there is none */
	const char *why;              /* of the action at work; NULL when there is none */
	const char *text;             /* what just ended, one line; NULL while at work */
	uint32_t boots_done, boots_wanted; /* of the action at work */
	uint32_t builds, boots;       /* so far, this run */
	uint32_t candidates_left, steps_left, boots_left;
	uint64_t elapsed_ms, left_ms; /* left_ms 0: not known yet */
	const char *top_commit;       /* NULL before there is one */
	double top_probability;
};

struct kb_session_observer {
	void (*status)(void *ctx, const struct kb_session_status *status);
	void *ctx;
};

/**
 * Runs (or goes on with) the run in `run_dir` until it is decided.
 * @param fresh do not reuse cached exact boots
 * @ret_report filled on success; caller frees. Also written to RUN/report.json.
 * Errors: KB_EINTERRUPTED and everything that means "infrastructure"; the run can be resumed.
 */
int kb_session_run(const char *run_dir, bool fresh, const struct kb_session_observer *observer,
		   struct kb_report *ret_report, struct kb_error *err);

/**
 * Judges one commit against the endpoints of a run made with command "judge"; the endpoints
 * are measured at the first call and remembered.
 * @ret_verdict GOOD, BAD, UNCLEAR (boots used up) or UNTESTABLE; ret_why one line about it
 * Errors: whatever means that no verdict can be given: git must stop.
 */
int kb_session_judge(const char *run_dir, const char *commit_hex,
		     const struct kb_session_observer *observer, enum kb_verdict *ret_verdict,
		     char *ret_why, size_t why_size, struct kb_error *err);

/** The report of a run as far as its journal goes, without measuring anything. */
int kb_session_report(const char *run_dir, struct kb_report *ret_report, struct kb_error *err);

/** `git bisect log` lines of a run; owned by the caller. */
int kb_session_git_log(const char *run_dir, char **ret_text, struct kb_error *err);

/** The decision parameters of a job. */
void kb_session_decide_params(const struct kb_job *job, struct kb_decide_params *ret_params);

#endif
