/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/crash.h"

#include <string.h>

#include "harness/base/mem.h"

struct pattern {
	const char *text;
	bool at_start; /* only at the start of the message, after time stamp and caller */
	enum kb_crash_kind kind;
};

/* The first row that matches decides, so exceptions stand before the rule. */
static const struct pattern patterns[] = {
	/* Panics whose cause is memory. */
	{"Kernel panic - not syncing: System is deadlocked on memory", false,
	 KB_CRASH_OOM},
	{"Kernel panic - not syncing: Out of memory", false, KB_CRASH_OOM},
	{"Kernel panic - not syncing", false, KB_CRASH_PANIC},
	{"Kernel panic", true, KB_CRASH_PANIC},
	{"VFS: Unable to mount root fs", true, KB_CRASH_PANIC},
	{"No working init found", true, KB_CRASH_PANIC},
	{"No init found", true, KB_CRASH_PANIC},

	{"Out of memory: Kill", true,
	 KB_CRASH_OOM}, /* "Kill process", "Killed process" */
	{"Out of memory and no killable processes", true, KB_CRASH_OOM},
	{"Memory cgroup out of memory: Kill", true, KB_CRASH_OOM},
	{"oom-kill:constraint=", true, KB_CRASH_OOM},
	{" invoked oom-killer: ", false, KB_CRASH_OOM},

	{"BUG: ", true, KB_CRASH_OOPS}, /* paging, soft lockup, KASAN, KCSAN, locking */
	{"kernel BUG at ", false, KB_CRASH_OOPS},
	{"Oops: ", true, KB_CRASH_OOPS},
	{"general protection fault", true, KB_CRASH_OOPS},
	{"Unable to handle kernel ", true, KB_CRASH_OOPS},
	{"double fault: ", true, KB_CRASH_OOPS},
	{"divide error: ", true, KB_CRASH_OOPS},
	{"invalid opcode: ", true, KB_CRASH_OOPS},
	{"stack segment: ", true, KB_CRASH_OOPS},
	{"int3: ", true, KB_CRASH_OOPS},
	{"traps: PANIC: ", true, KB_CRASH_PANIC},
	{"PANIC: double fault", true, KB_CRASH_PANIC},
	{"PANIC: early exception", true, KB_CRASH_PANIC},
	{"UBSAN: ", true, KB_CRASH_OOPS},
	{"watchdog: BUG: ", true, KB_CRASH_OOPS},
	{"NMI watchdog: BUG: ", true, KB_CRASH_OOPS},
	{"NMI watchdog: Watchdog detected hard LOCKUP", true, KB_CRASH_OOPS},
	{"watchdog: Watchdog detected hard LOCKUP", true, KB_CRASH_OOPS},
	{"Watchdog detected hard LOCKUP", true, KB_CRASH_OOPS},
	{"rcu: INFO: ", true, KB_CRASH_OOPS}, /* detected stalls, self-detected stall */
	{"INFO: rcu_", true, KB_CRASH_OOPS},
	{"INFO: task ", true, KB_CRASH_OOPS}, /* blocked for more than N seconds */
	{"INFO: lockdep is turned off", true, KB_CRASH_NONE},
	{"INFO: possible recursive locking", true, KB_CRASH_OOPS},
	{"Internal error: ", true, KB_CRASH_OOPS},
	{"list_add corruption", true, KB_CRASH_OOPS},
	{"list_del corruption", true, KB_CRASH_OOPS},
	{"Bad page state in process", false, KB_CRASH_OOPS},
	{"Bad page map in process", false, KB_CRASH_OOPS},
	{"Corruption of in-memory data", false, KB_CRASH_OOPS}, /* XFS shuts down */

	{"WARNING: CPU: ", true, KB_CRASH_WARNING},
	{"WARNING: ", true, KB_CRASH_WARNING},
};

/* Skips "<4>", "[    1.234567]" and "[    T42]"/"[      C0]" in front of a message. */
static const char *message_of(const char *line, size_t len, size_t *ret_len)
{
	const char *p = line, *end = line + len;

	if (p < end && *p == '<') {
		const char *q =
			memchr(p, '>', (size_t)(end - p) < 6 ? (size_t)(end - p) : 6);

		if (q)
			p = q + 1;
	}
	for (int i = 0; i < 2 && p < end && *p == '['; i++) {
		size_t room = (size_t)(end - p);
		const char *q = memchr(p, ']', room < 24 ? room : 24);

		if (!q)
			break;
		p = q + 1;
		if (p < end && *p == ' ')
			p++;
	}
	*ret_len = (size_t)(end - p);
	return p;
}

bool kb_crash_line_has(const char *line, size_t len, const char *pattern)
{
	size_t n = strlen(pattern);

	return n > 0 && len >= n && memmem(line, len, pattern, n);
}

enum kb_crash_kind kb_crash_match(const char *line, size_t len)
{
	size_t msg_len;
	const char *msg = message_of(line, len, &msg_len);

	for (size_t i = 0; i < KB_COUNT_OF(patterns); i++) {
		const struct pattern *p = &patterns[i];
		size_t n = strlen(p->text);

		if (p->at_start ? (msg_len >= n && !memcmp(msg, p->text, n))
				: kb_crash_line_has(msg, msg_len, p->text))
			return p->kind;
	}
	return KB_CRASH_NONE;
}

static void keep(bool *seen, char dest[KB_CRASH_LINE_MAX], const char *line, size_t len)
{
	size_t msg_len;
	const char *msg = message_of(line, len, &msg_len);

	if (*seen)
		return;
	*seen = true;
	if (msg_len >= KB_CRASH_LINE_MAX)
		msg_len = KB_CRASH_LINE_MAX - 1;
	for (size_t i = 0; i < msg_len; i++)
		dest[i] = msg[i] >= ' ' && msg[i] <= '~' ? msg[i] : '?';
	dest[msg_len] = '\0';
}

void kb_crash_feed(struct kb_crash *c, const char *line, size_t len)
{
	switch (kb_crash_match(line, len)) {
	case KB_CRASH_NONE:
		break;
	case KB_CRASH_WARNING:
		keep(&c->warned, c->warning_line, line, len);
		break;
	case KB_CRASH_OOM:
		if (!c->oom && !c->panic && !c->oops)
			c->oom_was_first = true;
		keep(&c->oom, c->oom_line, line, len);
		break;
	case KB_CRASH_OOPS:
		keep(&c->oops, c->oops_line, line, len);
		break;
	case KB_CRASH_PANIC:
		keep(&c->panic, c->panic_line, line, len);
		break;
	}
}

enum kb_crash_kind kb_crash_result(const struct kb_crash *c, const char **ret_line)
{
	/* "Attempted to kill init" is how running out of memory ends. */
	if (c->oom_was_first && !c->oops) {
		*ret_line = c->oom_line;
		return KB_CRASH_OOM;
	}
	if (c->panic) {
		*ret_line = c->panic_line;
		return KB_CRASH_PANIC;
	}
	if (c->oops) {
		*ret_line = c->oops_line;
		return KB_CRASH_OOPS;
	}
	if (c->oom) {
		*ret_line = c->oom_line;
		return KB_CRASH_OOM;
	}
	*ret_line = c->warned ? c->warning_line : "";
	return c->warned ? KB_CRASH_WARNING : KB_CRASH_NONE;
}
