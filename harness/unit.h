/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs units of work (a build, a boot) as child processes: `COMMAND build|boot REQUEST RECORD`
 * with JSON files. COMMAND is this program's own `unit` command unless the user names another
 * one (a wrapper that runs the unit on another host, or a fake in tests).
 */
#ifndef KB_HARNESS_UNIT_H
#define KB_HARNESS_UNIT_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/error.h"
#include "results/record.h"

struct kb_unit_boot_job {
	const struct kb_boot_request *request; /* borrowed; work_dir must exist */
	const char *record_path;               /* borrowed; written by the unit */
};

/**
 * Called for each boot as it finishes, in any order. `record` is only valid during the call.
 * A non-zero return stops the batch with that code (*err filled by the callback).
 */
typedef int (*kb_unit_boot_done)(void *ctx, size_t index, const struct kb_boot_record *record,
				 struct kb_error *err);

/** Called about once a second while units run. NULL is fine. */
typedef void (*kb_unit_tick)(void *ctx);

/**
 * One build. `dir` gets request.json, record.json and unit.log.
 * Errors: KB_EBUILD with the unit's last log lines when the unit itself failed;
 * KB_EINTERRUPTED.
 */
int kb_unit_build(const char *command, const struct kb_build_request *request, const char *dir,
		  kb_unit_tick tick, void *ctx, struct kb_build_record *ret_record,
		  struct kb_error *err);

/**
 * Runs `count` boots, at most `parallel` at once. A unit that fails (not: a guest that
 * fails) is tried `retries` more times; then KB_EVM with the unit's last log lines.
 */
int kb_unit_boots(const char *command, const struct kb_unit_boot_job *jobs, size_t count,
		  unsigned parallel, unsigned retries, kb_unit_boot_done done,
		  kb_unit_tick tick, void *ctx, struct kb_error *err);

#endif
