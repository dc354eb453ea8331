/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A job: everything about *how* to measure (not what revisions). Strict JSON; one option
 * table (job_options.c) gives the parser, `--set key=value`, and docs/job-file.md.
 */
#ifndef KB_HARNESS_JOB_H
#define KB_HARNESS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/error.h"
#include "harness/base/str.h"
#include "results/record.h"

struct kb_expect { /* a precondition on a counter, checked for each repetition */
	char *counter;  /* e.g. "workingset_nodes" */
	char *point;    /* "start" or "stop" (each repetition), "before", "after" (once) */
	int64_t min, max;
};

struct kb_job {
	char *name;
	char *description;
	char *mode;                 /* "auto" | "exact" | "time" */
	/* vm */
	char *vm_uri;
	char *vm_accel;             /* "auto" | "tcg" | "kvm" */
	char *vm_machine;           /* "microvm" | "q35" | "pc" */
	char *vm_scratch;           /* "auto" | "pmem" | "virtio-blk" | "none" */
	char *vm_extra_cmdline;     /* "" when there is none */
	uint32_t vm_memory_mib, vm_vcpus, vm_scratch_mib;
	uint32_t vm_parallel;       /* boots side by side; 0: exact: cores, time: 1 */
	uint64_t vm_boot_timeout_ms, vm_timeout_ms, vm_console_max_bytes;
	/* kernel */
	struct kb_strv kernel_fragments; /* names below configs/kernel/ or absolute paths */
	struct kb_strv kernel_required;
	struct kb_strv kernel_make_args;
	uint32_t kernel_jobs;       /* 0: cores */
	uint64_t kernel_timeout_ms;
	/* fs */
	char *fs_mkfs_options;      /* NULL: from the oldest kernel of the range */
	char *fs_mount_options;
	/* workload */
	char *workload_name;        /* "trunc" */
	struct kb_pairs workload_params; /* as written; sizes may be "2.0x memory" */
	uint32_t workload_warmup;   /* repetitions dropped from the mean */
	char *metric;               /* which metric decides; NULL: the workload's default */
	struct kb_expect *expects;  /* owned */
	size_t expect_count;
	/* decision */
	double alpha, min_effect_percent;
	uint32_t calibration_boots, calibration_boots_max, commit_boots_min, commit_boots_max,
		confirm_boots, retries;
	uint64_t seed;
	bool force;                 /* go on although underpowered */
};

#define KB_JOB_MAX_BYTES (1u << 20) /* of a job file */

void kb_job_init(struct kb_job *job); /* every default of the table */
void kb_job_free(struct kb_job *job); /* leaves an empty job: init it before using it again */

/**
 * Reads a job file over what `job` holds (kb_job_init() gives the defaults); a key that is
 * there replaces the whole old value, lists and workload.params too.
 * Errors: KB_ECONFIG with file:line:column (syntax) or the key path (meaning); unknown and
 * duplicate keys are errors. After an error the job may have changed in part.
 */
int kb_job_load(const char *path, struct kb_job *job, struct kb_error *err);
/** The same from memory (the fuzzer's door). `name` stands for the file in messages. */
int kb_job_parse(const char *text, size_t len, const char *name, struct kb_job *job,
		 struct kb_error *err);
/**
 * "vm.memory_mib" = "256". Lists are separated by commas; "workload.params.NAME" sets one
 * parameter; "expect" takes its JSON array; "null" unsets what may be null.
 * Errors: KB_ECONFIG with the key path.
 */
int kb_job_set(struct kb_job *job, const char *key, const char *value, struct kb_error *err);
/** Cross-checks after loading and setting (exact mode: one vCPU, pmem scratch, ...).
 * Errors: KB_ECONFIG naming the keys and what to do. */
int kb_job_check(const struct kb_job *job, struct kb_error *err);
/** The effective job as JSON text that kb_job_parse() accepts; owned by the caller. */
char *kb_job_format(const struct kb_job *job);
/** SHA-256 over what changes a measurement or how it is read: not names, time limits, the
 * decision. Equal work gives equal hashes however the sizes are spelled. */
void kb_job_measurement_hash(const struct kb_job *job, char hex[65]);
/** docs/job-file.md from the table. */
void kb_job_write_reference(FILE *out);

#endif
