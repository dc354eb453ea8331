/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measuring commits: turns (commit, boot numbers) into units of work, reuses what is already
 * known (artifact cache; in exact mode every boot ever made), and hands out records.
 */
#ifndef KB_HARNESS_MEASURE_H
#define KB_HARNESS_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "bisect/repo.h"
#include "harness/job.h"
#include "harness/unit.h"
#include "results/record.h"
#include "results/run.h"

struct kb_measure {
	const struct kb_job *job;        /* borrowed, all of them */
	const struct kb_run_info *info;
	struct kb_repo *repo;
	const char *run_dir;
	char *cache_dir;                 /* owned */
	char *mkfs_options;              /* owned; the same for every commit of the run */
	char *qemu_version;              /* owned; part of the identity of an exact boot */
	struct kb_strv fragments;        /* owned; absolute paths */
	struct kb_pairs workload_params; /* owned; resolved */
	unsigned parallel;
	int *held;                       /* owned; locks on artifacts in use */
	size_t held_count, held_cap;
	bool fresh;                      /* do not reuse cached boots */
	kb_unit_tick tick;
	void *tick_ctx;
};

/**
 * Resolves what all measurements of a run share. The mkfs feature set follows the oldest of
 * `endpoints` (count of them).
 * Errors: KB_ECONFIG, KB_EREPO, KB_EVM (no QEMU).
 */
int kb_measure_init(struct kb_measure *m, const struct kb_job *job,
		    const struct kb_run_info *info, struct kb_repo *repo, const char *run_dir,
		    const struct kb_oid *endpoints, size_t count, struct kb_error *err);
void kb_measure_free(struct kb_measure *m);

/**
 * Builds one commit. The record is kept as builds/<commit>.json.
 * @ret_record_rel owned; that path relative to the run folder
 */
int kb_measure_build(struct kb_measure *m, const struct kb_oid *commit,
		     struct kb_build_record *ret_record, char **ret_record_rel,
		     struct kb_error *err);

/** The request for one boot of a build; *ret_request must be zeroed, caller frees it. */
void kb_measure_boot_request(const struct kb_measure *m, const struct kb_build_record *build,
			     uint32_t perturbation, const char *work_dir,
			     struct kb_boot_request *ret_request);

struct kb_boot_wish {
	uint32_t perturbation; /* also the boot's number in time mode */
	uint32_t slot;         /* the caller's own order, handed back */
};

/** @param record_rel the record's path relative to the run folder; @return 0 to go on */
typedef int (*kb_measure_done)(void *ctx, const struct kb_boot_wish *wish,
			       const struct kb_boot_record *record, const char *record_rel,
			       bool from_cache, struct kb_error *err);

/** Boots one built commit once per wish; `done` is called as each finishes. */
int kb_measure_boots(struct kb_measure *m, const struct kb_oid *commit,
		     const struct kb_build_record *build, const struct kb_boot_wish *wishes,
		     size_t count, kb_measure_done done, void *ctx, struct kb_error *err);

#endif
