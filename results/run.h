/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stored run: the folder RUNS/<id>/ with run.json (what was asked), journal.jsonl, builds/,
 * boots/, and report.json once it is done.
 */
#ifndef KB_RESULTS_RUN_H
#define KB_RESULTS_RUN_H

#include <stdint.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

struct kb_run_info { /* run.json, format name "kbisect-run" */
	char *id;            /* owned, as all; "20260102-030405-bisect-ab12" */
	char *command;       /* "bisect" | "measure" | "judge" | "compare" */
	char *repo_path;
	struct kb_strv goods; /* full commit ids */
	char *bad;
	struct kb_strv skips;
	struct kb_strv paths;
	int first_parent;    /* bool */
	char *job_text;      /* the effective job as JSON text; embedded as an object */
	char *image_path, *image_sha256;
	char *mode, *accel;  /* as resolved on this host */
	char *unit_command;  /* NULL: our own binary */
	struct kb_strv argv;
	char *version;       /* of kbisect */
	uint64_t created_us;
};

void kb_run_info_free(struct kb_run_info *info);
int kb_run_info_write(const char *run_dir, const struct kb_run_info *info, struct kb_error *err);
int kb_run_info_read(const char *run_dir, struct kb_run_info *ret_info, struct kb_error *err);

/** State and cache roots (owned): $KBISECT_HOME or XDG state, $KBISECT_CACHE or XDG cache. */
char *kb_state_dir(void);
char *kb_cache_dir(void);

/** Makes a new run folder with a fresh id below STATE/runs. @ret_dir, @ret_id owned */
int kb_run_create(const char *state_dir, const char *command, char **ret_dir, char **ret_id,
		  struct kb_error *err);

/**
 * Finds a run: by id, by unique prefix, by path, or (name NULL) the latest one.
 * @param command only runs of this command, or NULL for any
 * Errors: KB_EUSAGE naming what exists.
 */
int kb_run_find(const char *state_dir, const char *name, const char *command, char **ret_dir,
		struct kb_error *err);

#endif
