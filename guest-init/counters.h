/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's own counters as "counter" lines of the result document. */
#ifndef KB_GUEST_COUNTERS_H
#define KB_GUEST_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum kb_counters_source { KB_COUNTERS_VMSTAT, KB_COUNTERS_MEMINFO, KB_COUNTERS_SLABINFO };

/**
 * Formats what a /proc file said. Pure.
 * @param text NUL-terminated; lines that are not understood are left out
 * @param all  false: only the names that explain a page cache measurement
 */
void kb_counters_format(FILE *out, const char *point, unsigned repetition,
			enum kb_counters_source source, const char *text, bool all);

/** Reads all three files, those that the kernel has, and formats them. */
void kb_counters_write(FILE *out, const char *point, unsigned repetition, bool all);

/** One number of /proc/vmstat, or -1. */
int64_t kb_counters_vmstat(const char *name);

#endif
