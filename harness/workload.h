/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the controller knows of each workload: its parameters, their defaults and how sizes
 * resolve, its metrics. Pure. Sizes given as "2.0x memory" are resolved here from the
 * *configured* memory, never from what the guest sees, so that every commit does equal work.
 */
#ifndef KB_HARNESS_WORKLOAD_H
#define KB_HARNESS_WORKLOAD_H

#include <stdint.h>
#include <stdio.h>

#include "harness/base/error.h"
#include "results/record.h"

/**
 * Parses "64MiB", "1GiB", "4096", "512KiB", "2.0x memory" into bytes. A multiple of memory
 * is rounded down to a page (4096 bytes); whatever else is not one is an error, as is zero
 * and what is larger than 1 PiB.
 * Errors: KB_ECONFIG naming `what`.
 */
int kb_size_parse(const char *text, uint64_t memory_bytes, const char *what,
		  uint64_t *ret_bytes, struct kb_error *err);

/**
 * Resolves a workload's parameters: checks names and values, fills defaults, turns sizes
 * into bytes. For trunc: files, total_bytes ("2.0x memory") or file_bytes, stages (mask 1|2
 * as in seed S1), pattern (random|sequential), hold_open (0|1), repetitions; what comes out
 * is always file_bytes.
 * @ret_params what goes into the guest's params file as "param.NAME"
 * Errors: KB_ECONFIG: unknown workload or parameter, with the list of known ones.
 */
int kb_workload_resolve(const char *name, const struct kb_pairs *given, uint32_t memory_mib,
			struct kb_pairs *ret_params, struct kb_error *err);

/** The part of docs/job-file.md about workloads and their parameters. */
void kb_workload_write_reference(FILE *out);

/** The default deciding metric of a workload, e.g. "trunc_ns"; NULL when unknown. */
const char *kb_workload_default_metric(const char *name);

#endif
