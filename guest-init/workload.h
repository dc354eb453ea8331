/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a workload in the guest is. To add one: write wl_NAME.c with a
 * `const struct kb_workload kb_wl_NAME`, add it to the table in wl_table.c, and tell the
 * controller its parameters (harness/workload.h).
 *
 * run() is called once per boot, in a child process of init with its own process group:
 * it may crash, hang or run out of memory and only the boot suffers. It
 *   1. reads its parameters, then calls kb_wl_params_done();
 *   2. for each repetition prepares, kb_wl_start(), does the measured work, kb_wl_stop(),
 *      kb_wl_metric() for each figure, and cleans up, so that the next one finds the same
 *      start;
 *   3. returns 0, or what kb_wl_fail() returned.
 * Everything reported is kept in memory until run() is over: nothing between start and
 * stop goes to the console, a pipe or a disk that is not the workload's own doing.
 */
#ifndef KB_GUEST_WORKLOAD_H
#define KB_GUEST_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-init/proto.h"

struct kb_wl_ctx;

struct kb_workload {
	const char *name;
	int (*run)(struct kb_wl_ctx *ctx); /* 0, or -1 after kb_wl_fail() */
};

enum kb_better { KB_LOWER, KB_HIGHER };

/* ---- parameters; each one used is echoed into the result ---- */

/**
 * A number without unit; sizes arrive in bytes, resolved by the controller.
 * @return 0, or -1 (reported) when it is malformed or out of [min, max]
 */
int kb_wl_u64(struct kb_wl_ctx *ctx, const char *name, uint64_t min, uint64_t max,
	      uint64_t fallback, uint64_t *ret_value);

/** Borrowed; `fallback` when not given. */
const char *kb_wl_str(struct kb_wl_ctx *ctx, const char *name, const char *fallback);

/**
 * One of the words of a NULL-terminated list; *ret_index is its place, the first is the
 * default. @return 0, or -1 (reported)
 */
int kb_wl_choice(struct kb_wl_ctx *ctx, const char *name, const char *const *words,
		 unsigned *ret_index);

/** After the last parameter: -1 (reported) when one was given that nobody asked for. */
int kb_wl_params_done(struct kb_wl_ctx *ctx);

/** The folder to work in: the scratch file system, empty, and the current directory. */
const char *kb_wl_dir(const struct kb_wl_ctx *ctx);

/* ---- measuring ---- */

/** Begins the measured part of the next repetition: counters, times, then the marker. */
void kb_wl_start(struct kb_wl_ctx *ctx);

/**
 * Ends it. Besides counters it records, as metrics of the repetition, what the process
 * used: user_ns, sys_ns, cpu_ns (the sum, of finer grain), minor_faults, major_faults,
 * voluntary_switches, involuntary_switches.
 * @return elapsed nanoseconds of CLOCK_MONOTONIC
 */
uint64_t kb_wl_stop(struct kb_wl_ctx *ctx);

/**
 * One more value of a metric. Call it once per repetition, or once per operation for a
 * metric that is a list of latencies. Unit and direction are those of the first call.
 */
void kb_wl_metric(struct kb_wl_ctx *ctx, const char *name, const char *unit,
		  enum kb_better better, double value);

/* ---- saying things ---- */

void kb_wl_note(struct kb_wl_ctx *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** A precondition failed: the values stay in the record, but count for nothing. */
void kb_wl_invalid(struct kb_wl_ctx *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** Gives up; the boot has failed. @param errno_value its text is added when the failure
 * is printed; 0 when no call is to blame. @return -1 */
int kb_wl_fail(struct kb_wl_ctx *ctx, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** What only the fault workload asks of init, once run() is over. */
enum kb_wl_order {
	KB_ORDER_NONE,
	KB_ORDER_PANIC, /* PID 1 exits */
	KB_ORDER_HANG,
	KB_ORDER_SPIN,
	KB_ORDER_LIE_CHECKSUM,
	KB_ORDER_LIE_NONCE,
	KB_ORDER_LIE_TRUNCATED,
};
void kb_wl_set_order(struct kb_wl_ctx *ctx, enum kb_wl_order order);

/**
 * The marker that a QEMU plugin looks for. kb_wl_start() and kb_wl_stop() execute it; it
 * is here for measured parts that they can't enclose.
 */
static inline void kb_wl_marker(void)
{
#ifdef __x86_64__
	__asm__ volatile(KB_PROTO_MARKER_ASM ::: "memory");
#endif
}

extern const struct kb_workload kb_wl_none, kb_wl_trunc, kb_wl_fault;

/** NULL when there is none of that name. */
const struct kb_workload *kb_workload_find(const char *name);

#endif
