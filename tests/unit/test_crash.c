/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/crash.h"

#include <string.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

struct row {
	const char *line;
	enum kb_crash_kind kind;
};

/* Lines as kernels from 4.14 on print them. */
static const struct row rows[] = {
	{"[    2.014] Kernel panic - not syncing: Attempted to kill init! "
	 "exitcode=0x0000000b",
	 KB_CRASH_PANIC},
	{"[    0.912345] Kernel panic - not syncing: VFS: Unable to mount root fs on "
	 "unknown-block(0,0)",
	 KB_CRASH_PANIC},
	{"Kernel panic - not syncing: No working init found.  Try passing init= option "
	 "to "
	 "kernel.",
	 KB_CRASH_PANIC},
	{"[    3.1] Kernel panic - not syncing: System is deadlocked on memory",
	 KB_CRASH_OOM},
	{"[   10.5] Out of memory: Killed process 77 (trunc) total-vm:1234kB, "
	 "anon-rss:99kB",
	 KB_CRASH_OOM},
	{"[   10.5] Out of memory: Kill process 77 (trunc) score 911 or sacrifice child",
	 KB_CRASH_OOM},
	{"[   10.4] init invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), "
	 "order=0",
	 KB_CRASH_OOM},
	{"[    1.5] BUG: kernel NULL pointer dereference, address: 0000000000000008",
	 KB_CRASH_OOPS},
	{"[    1.5] BUG: unable to handle kernel paging request at ffffc90000200000",
	 KB_CRASH_OOPS},
	{"[    1.5] BUG: unable to handle page fault for address: ffffc90000200000",
	 KB_CRASH_OOPS},
	{"[    1.5][    T1] BUG: KASAN: slab-out-of-bounds in xas_store+0x5f/0x770",
	 KB_CRASH_OOPS},
	{"[    1.5] Oops: 0000 [#1] PREEMPT SMP NOPTI", KB_CRASH_OOPS},
	{"[    1.5] general protection fault, probably for non-canonical address 0xdead: "
	 "0000 "
	 "[#1] SMP",
	 KB_CRASH_OOPS},
	{"[    1.5] kernel BUG at mm/filemap.c:123!", KB_CRASH_OOPS},
	{"[    1.5] ------------[ cut here ]------------", KB_CRASH_NONE},
	{"[    1.5] UBSAN: array-index-out-of-bounds in fs/xfs/xfs_attr.c:11:2",
	 KB_CRASH_OOPS},
	{"[  242.1] INFO: task xfsaild/pmem0:99 blocked for more than 120 seconds.",
	 KB_CRASH_OOPS},
	{"[   48.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [trunc:77]",
	 KB_CRASH_OOPS},
	{"[   48.0] NMI watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [trunc:77]",
	 KB_CRASH_OOPS},
	{"[   60.0] rcu: INFO: rcu_sched self-detected stall on CPU", KB_CRASH_OOPS},
	{"[   60.0] INFO: rcu_sched detected stalls on CPUs/tasks:", KB_CRASH_OOPS},
	{"[    1.5] WARNING: CPU: 0 PID: 1 at mm/truncate.c:450 "
	 "truncate_inode_pages+0x1/0x2",
	 KB_CRASH_WARNING},
	{"[    1.5] XFS (pmem0): Corruption of in-memory data (0x8) detected at foo",
	 KB_CRASH_OOPS},
	/* What must not count. */
	{"[    0.0] Command line: console=ttyS0 oops=panic panic=-1", KB_CRASH_NONE},
	{"[    0.1] x86/fpu: x87 FPU will use FXSAVE", KB_CRASH_NONE},
	{"[    0.1] DEBUG: a note", KB_CRASH_NONE},
	{"[    0.2] NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
	 KB_CRASH_NONE},
	{"[    0.0] rcu: Hierarchical RCU implementation.", KB_CRASH_NONE},
	{"note: no BUG: here, it is in the middle", KB_CRASH_NONE},
	{"", KB_CRASH_NONE},
	{"[", KB_CRASH_NONE},
};

static void each_line_is_recognised(void)
{
	for (size_t i = 0; i < KB_COUNT_OF(rows); i++)
		is_int(kb_crash_match(rows[i].line, strlen(rows[i].line)), rows[i].kind,
		       "%s", rows[i].line);
}

static void feed(struct kb_crash *c, const char *line)
{
	kb_crash_feed(c, line, strlen(line));
}

static void panic_wins_over_its_oops(void)
{
	struct kb_crash c = {0};
	const char *line;

	is_int(kb_crash_result(&c, &line), KB_CRASH_NONE, "nothing yet");
	feed(&c, "[    1.0] WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2");
	is_int(kb_crash_result(&c, &line), KB_CRASH_WARNING, "a warning");
	feed(&c, "[    1.5] BUG: kernel NULL pointer dereference, address: 08");
	feed(&c, "[    1.5] Oops: 0000 [#1] SMP");
	is_int(kb_crash_result(&c, &line), KB_CRASH_OOPS, "an oops");
	is_str(line, "BUG: kernel NULL pointer dereference, address: 08",
	       "its first line, without time stamp");
	feed(&c, "[    1.6] Kernel panic - not syncing: Fatal exception");
	is_int(kb_crash_result(&c, &line), KB_CRASH_PANIC, "a panic");
	is_str(line, "Kernel panic - not syncing: Fatal exception", "the panic's line");
}

static void panic_after_oom_is_oom(void)
{
	struct kb_crash c = {0};
	const char *line;

	feed(&c, "[    5.0] Out of memory: Killed process 1 (init) total-vm:1kB");
	feed(&c, "[    5.1] Kernel panic - not syncing: Attempted to kill init!");
	is_int(kb_crash_result(&c, &line), KB_CRASH_OOM, "memory was the cause");
	struct kb_crash d = {0};
	feed(&d, "[    5.1] Kernel panic - not syncing: Fatal exception");
	feed(&d, "[    5.2] Out of memory: Killed process 1 (init) total-vm:1kB");
	is_int(kb_crash_result(&d, &line), KB_CRASH_PANIC,
	       "not when the panic came first");
}

static void long_and_binary_lines_are_kept_clean(void)
{
	struct kb_crash c = {0};
	char text[2000];
	const char *line;

	memset(text, '\x01', sizeof(text));
	memcpy(text, "BUG: ", 5);
	kb_crash_feed(&c, text, sizeof(text));
	is_int(kb_crash_result(&c, &line), KB_CRASH_OOPS, "recognised");
	is_int(strlen(line), KB_CRASH_LINE_MAX - 1, "cut");
	ok(line[10] == '?', "cleaned");
}

static void patterns_are_plain_strings(void)
{
	ok(kb_crash_line_has("a clocksource b", 15, "clocksource"), "inside");
	ok(!kb_crash_line_has("clock", 5, "clocksource"), "longer than the line");
	ok(!kb_crash_line_has("abc", 3, ""), "the empty pattern never matches");
}

int main(void)
{
	each_line_is_recognised();
	panic_wins_over_its_oops();
	panic_after_oom_is_oom();
	long_and_binary_lines_are_kept_clean();
	patterns_are_plain_strings();
	return tap_done();
}
