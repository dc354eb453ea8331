/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that misbehaves on request, so that anybody can check on their own machine that
 * the controller tells a broken guest from a slow kernel (docs/guest-protocol.md).
 * Outside a virtual machine only the harmless kinds do anything: see is_guest().
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "guest-init/util.h"
#include "guest-init/workload.h"

enum { FLOOD_BYTES = 1 << 30, GARBAGE_BYTES = 20000, OOM_STEP = 1 << 20 };

/* The tests run this code on the host as well, where rebooting would be a poor joke.
 * Init's children have PID 1 for a parent and the parameter file in place. */
static int is_guest(struct kb_wl_ctx *ctx)
{
	if (getppid() == 1 && !access(KB_PROTO_PARAMS_PATH, F_OK))
		return 1;
	kb_wl_fail(ctx, 0, "this kind of fault is only for guests");
	return 0;
}

static int fault_panic(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	if (!is_guest(ctx))
		return -1;
	kb_util_poke("/proc/sysrq-trigger", "c");
	kb_wl_set_order(ctx, KB_ORDER_PANIC); /* a kernel without sysrq */
	return 0;
}

/* The controller reads the console; where the text comes from is the same to it. */
static int fault_oops(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	static const char *const lines[] = {
		"<1>BUG: kernel NULL pointer dereference, address: 0000000000000008\n",
		"<1>#PF: supervisor write access in kernel mode\n",
		"<4>Oops: 0002 [#1] SMP\n",
		"<4>RIP: 0010:kbisect_fault_workload+0x0/0x10\n",
		"<4>---[ end trace 0000000000000000 ]---\n",
	};

	(void)bytes;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (kb_util_poke("/dev/kmsg", lines[i]))
			return kb_wl_fail(ctx, errno, "cannot write to /dev/kmsg");
	kb_wl_metric(ctx, "fault_ns", "ns", KB_LOWER, 1);
	return 0;
}

static int fault_hang(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_set_order(ctx, KB_ORDER_HANG);
	return 0;
}

static int fault_spin(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_set_order(ctx, KB_ORDER_SPIN);
	return 0;
}

static int fault_stall(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)ctx;
	(void)bytes;
	while (pause())
		;
	return -1;
}

/* No marker, no goodbye. */
static int fault_die(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	if (!is_guest(ctx))
		return -1;
	reboot(RB_AUTOBOOT);
	return kb_wl_fail(ctx, errno, "reboot");
}

/* Console: the child has inherited it as its standard output. */
static int fault_garbage(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	static const char broken[] =
		"\n@kb\n@kb result\n@kb result nonce=zz bytes=-1 sha256=0\n@kb phase\n"
		"@kb start nonce= version=99999999999999999999\n@kb nonsense \x1b[2J\n"
		"@kb result nonce=0123456789abcdef bytes=12 sha256=";
	uint32_t state = 12345; /* fixed: the same garbage each time */

	if (!is_guest(ctx))
		return -1;
	for (uint64_t i = 0; i < (bytes ? bytes : GARBAGE_BYTES); i++) {
		state = state * 1664525 + 1013904223;
		unsigned char c = (unsigned char)(state >> 24);

		if (kb_util_write_all(STDOUT_FILENO, &c, 1))
			return kb_wl_fail(ctx, errno, "cannot write to the console");
	}
	kb_util_write_all(STDOUT_FILENO, broken, sizeof(broken)); /* with its NUL */
	kb_util_sleep_ms(500); /* let the UART send it */
	return fault_die(ctx, 0);
}

static int fault_flood(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	char block[4096];
	uint64_t left = bytes ? bytes : FLOOD_BYTES;

	if (!is_guest(ctx))
		return -1;
	memset(block, 'x', sizeof(block));
	for (size_t i = 79; i < sizeof(block); i += 80)
		block[i] = '\n';
	while (left) {
		size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);

		if (kb_util_write_all(STDOUT_FILENO, block, n))
			return kb_wl_fail(ctx, errno, "cannot write to the console");
		left -= n;
	}
	return fault_die(ctx, 0);
}

static int fault_lie_checksum(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_metric(ctx, "fault_ns", "ns", KB_LOWER, 1);
	kb_wl_set_order(ctx, KB_ORDER_LIE_CHECKSUM);
	return 0;
}

static int fault_lie_nonce(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_metric(ctx, "fault_ns", "ns", KB_LOWER, 1);
	kb_wl_set_order(ctx, KB_ORDER_LIE_NONCE);
	return 0;
}

static int fault_lie_truncated(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_metric(ctx, "fault_ns", "ns", KB_LOWER, 1);
	kb_wl_set_order(ctx, KB_ORDER_LIE_TRUNCATED);
	return 0;
}

static int fault_oom(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	if (!is_guest(ctx))
		return -1;
	for (;;) {
		char *p = mmap(NULL, OOM_STEP, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) /* strict overcommit: no OOM killer will come */
			return kb_wl_fail(ctx, ENOMEM,
					  "out of memory before the OOM killer");
		memset(p, 1, OOM_STEP);
	}
}

static int fault_segv(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return kb_wl_fail(ctx, 0, "SIGSEGV did not end the process");
}

static int fault_fail(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	return kb_wl_fail(ctx, EIO, "failing on request");
}

static int fault_invalid(struct kb_wl_ctx *ctx, uint64_t bytes)
{
	(void)bytes;
	kb_wl_metric(ctx, "fault_ns", "ns", KB_LOWER, 1);
	kb_wl_invalid(ctx, "invalid on request");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct kb_wl_ctx *ctx, uint64_t bytes);
} kinds[] = {
	{"hang", fault_hang},
	{"panic", fault_panic},
	{"oops", fault_oops},
	{"stall", fault_stall},
	{"spin", fault_spin},
	{"garbage", fault_garbage},
	{"lie-checksum", fault_lie_checksum},
	{"lie-nonce", fault_lie_nonce},
	{"lie-truncated", fault_lie_truncated},
	{"flood", fault_flood},
	{"die", fault_die},
	{"oom", fault_oom},
	{"segv", fault_segv},
	{"fail", fault_fail},
	{"invalid", fault_invalid},
};

static int run_fault(struct kb_wl_ctx *ctx)
{
	const size_t count = sizeof(kinds) / sizeof(kinds[0]);
	const char *names[sizeof(kinds) / sizeof(kinds[0]) + 1] = {NULL};
	uint64_t bytes;
	unsigned kind;

	for (size_t i = 0; i < count; i++)
		names[i] = kinds[i].name;
	if (kb_wl_choice(ctx, "kind", names, &kind) ||
	    kb_wl_u64(ctx, "bytes", 0, INT64_MAX, 0, &bytes) || kb_wl_params_done(ctx))
		return -1;
	return kinds[kind].run(ctx, bytes);
}

const struct kb_workload kb_wl_fault = {.name = "fault", .run = run_fault};
