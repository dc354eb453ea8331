/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PID 1 of a kbisect guest: parameters in, one workload, result out, SSH if wanted, power
 * off (docs/guest-protocol.md). It must never exit, since that panics the kernel, and
 * never wait for ever, since only the host's time limit would end it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-init/bridge.h"
#include "guest-init/console.h"
#include "guest-init/counters.h"
#include "guest-init/params.h"
#include "guest-init/result.h"
#include "guest-init/run.h"
#include "guest-init/scratch.h"
#include "guest-init/util.h"

enum { SYNC_MS = 15000, PORT_WAIT_MS = 3000 };

struct guest {
	struct kb_params params;
	uint64_t begin_ns, phase_ns;
	const char *phase; /* NULL: none yet */
	FILE *lines;	   /* init's own lines of the result */
	char *lines_text;  /* owned; valid after a flush */
	size_t lines_len;
	bool mounted;
};

/* ---- the end ---- */

static void sync_and_unmount(const struct guest *g)
{
	pid_t pid = fork();

	/* In a child: on a broken kernel either may never return. */
	if (pid == 0) {
		sync();
		if (g->mounted && chdir("/") == 0)
			umount(KB_SCRATCH_DIR);
		_exit(0);
	}
	for (int ms = 0; pid > 0 && ms < SYNC_MS; ms += 5) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		kb_util_sleep_ms(5);
	}
}

static _Noreturn void power_off(const struct guest *g)
{
	/* RB_POWER_OFF on a machine that can't would only halt the CPU, so a reset comes
	 * first unless told otherwise; QEMU runs with -no-reboot. */
	bool off_first = g->params.end == KB_GUEST_POWEROFF;

	kb_console_say("phase bye");
	kill(-1, SIGKILL); /* all but us: they would keep the file system busy */
	sync_and_unmount(g);
	reboot(off_first ? RB_POWER_OFF : RB_AUTOBOOT);
	reboot(off_first ? RB_AUTOBOOT : RB_POWER_OFF);
	for (;;)
		pause();
}

/* ---- phases: a line on the console, and how long each took ---- */

static void end_phase(struct guest *g)
{
	if (g->phase)
		fprintf(g->lines, "counter after 0 phase.%s_ns %llu\n", g->phase,
			(unsigned long long)(kb_util_mono_ns() - g->phase_ns));
	g->phase = NULL;
}

static void begin_phase(struct guest *g, const char *name)
{
	end_phase(g);
	kb_console_say("phase %s", name);
	g->phase = name;
	g->phase_ns = kb_util_mono_ns();
}

/* ---- mounts ---- */

static void mount_all(struct guest *g)
{
	static const struct {
		const char *type, *dir, *options;
		bool required;
	} mounts[] = {
		{"proc", "/proc", "", true},
		{"sysfs", "/sys", "", true},
		{"devtmpfs", "/dev", "mode=0755", true},
		{"tmpfs", "/tmp", "mode=1777", false},
		{"devpts", "/dev/pts", "mode=0620", false}, /* for an interactive shell */
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].dir, 0755);
		if (!mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0,
			   mounts[i].options) ||
		    errno == EBUSY)
			continue;
		if (mounts[i].required) {
			kb_console_open();
			kb_console_fail("mounts", errno, "%s at %s", mounts[i].type,
					mounts[i].dir);
			power_off(g);
		}
		fprintf(g->lines, "note mount %s at %s: %s\n", mounts[i].type,
			mounts[i].dir, strerror(errno));
	}
	kb_console_open();
}

static void read_params(struct guest *g)
{
	static char text[KB_PROTO_PARAMS_MAX_BYTES + 2];
	char reason[200];
	ssize_t len = kb_util_read_file(KB_PROTO_PARAMS_PATH, text, sizeof(text));

	if (len < 0) {
		kb_console_fail("params", errno, "cannot read " KB_PROTO_PARAMS_PATH);
		power_off(g);
	}
	if (kb_params_parse(text, (size_t)len, &g->params, reason, sizeof(reason))) {
		kb_console_fail("params", 0, "%s", reason);
		power_off(g);
	}
	kb_console_say("start nonce=%s version=%d", g->params.nonce, KB_PROTO_VERSION);
}

static void make_scratch(struct guest *g)
{
	const struct kb_params *p = &g->params;
	struct kb_scratch_error e;

	mkdir(KB_SCRATCH_DIR, 0755);
	if (!p->scratch_device)
		return;
	begin_phase(g, "mkfs");
	int r = kb_scratch_wait(p->scratch_device, &e);
	if (!r)
		r = kb_scratch_mkfs(p->scratch_device, p->scratch_mkfs, g->lines, &e);
	if (!r) {
		begin_phase(g, "mount");
		r = kb_scratch_mount(p->scratch_device, p->scratch_mount_options, &e);
	}
	if (r) {
		kb_console_fail(e.step, e.errno_value, "%s", e.text);
		power_off(g);
	}
	g->mounted = true;
}

/* ---- the workload and its result ---- */

static void write_usage(FILE *out, const struct rusage *u)
{
	const struct {
		const char *name;
		long long value;
	} rows[] = {
		{"user_us", u->ru_utime.tv_sec * 1000000LL + u->ru_utime.tv_usec},
		{"sys_us", u->ru_stime.tv_sec * 1000000LL + u->ru_stime.tv_usec},
		{"minor_faults", u->ru_minflt},
		{"major_faults", u->ru_majflt},
		{"voluntary_switches", u->ru_nvcsw},
		{"involuntary_switches", u->ru_nivcsw},
		{"max_rss_kb", u->ru_maxrss},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(out, "counter after 0 workload.%s %lld\n", rows[i].name,
			rows[i].value);
}

static void run_workload(struct guest *g, struct kb_run_result *ret_run)
{
	const struct kb_params *p = &g->params;
	const struct kb_workload *w = kb_workload_find(p->workload);

	if (!w) {
		kb_console_fail("workload", 0, "there is no workload \"%s\"",
				p->workload);
		power_off(g);
	}
	begin_phase(g, "workload");
	kb_counters_write(g->lines, "before", 0, true);
	kb_run_workload(w, p->wl, p->wl_count, KB_SCRATCH_DIR, p->timeout_ms, ret_run);
	if (ret_run->verdict.failed) {
		kb_console_fail("workload", ret_run->verdict.errno_value, "%s",
				ret_run->verdict.text);
		power_off(g);
	}
	kb_counters_write(g->lines, "after", 0, true);
	end_phase(g);
	write_usage(g->lines, &ret_run->usage);
	fprintf(g->lines, "counter after 0 guest.elapsed_ns %llu\n",
		(unsigned long long)(kb_util_mono_ns() - g->begin_ns));
}

/* What the fault workload wants of us. KB_ORDER_LIE_* are left to the caller. */
static void obey(enum kb_wl_order order)
{
	if (order == KB_ORDER_PANIC)
		_exit(1);
	while (order == KB_ORDER_HANG)
		pause();
	while (order == KB_ORDER_SPIN)
		__asm__ volatile("");
}

static void print_marker(const struct guest *g, const struct kb_result *doc,
			 enum kb_wl_order order)
{
	const char *nonce =
		order == KB_ORDER_LIE_NONCE ? "0000000000000000" : g->params.nonce;
	char line[256];

	kb_result_marker(nonce, doc->data, doc->len, line);
	if (order == KB_ORDER_LIE_CHECKSUM) {
		char *digit = line + strlen(line) - 2;

		*digit = *digit == '0' ? '1' : '0';
	}
	for (int i = 0; i < KB_PROTO_MARKER_COPIES; i++)
		kb_console_put(line);
}

static int save_file(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	int r = kb_util_write_all(fd, data, len);
	int saved = errno;
	close(fd);
	errno = saved;
	return r;
}

static void report(struct guest *g, const struct kb_run_result *run)
{
	enum kb_wl_order order = run->verdict.order;
	struct kb_result doc;
	struct utsname u;
	char kernel[512];

	uname(&u);
	snprintf(kernel, sizeof(kernel), "%s|%s", u.release, u.version);
	kb_console_say("phase collect");
	if (fflush(g->lines) ||
	    kb_result_build(g->params.nonce, kernel, g->params.workload, g->lines_text,
			    run->body, &doc) ||
	    save_file(KB_PROTO_RESULT_PATH, doc.data,
		      order == KB_ORDER_LIE_TRUNCATED ? doc.len / 2 : doc.len)) {
		kb_console_fail("collect", errno, "cannot write " KB_PROTO_RESULT_PATH);
		power_off(g);
	}
	print_marker(g, &doc, order);
	kb_result_free(&doc);
}

/* ---- SSH ---- */

static void serve_ssh(struct guest *g)
{
	static const char *const argv[] = {
		"dropbear", "-i", /* talk on stdin and stdout */
		"-s",	    "-j",
		"-k", /* no passwords, no forwarding */
		"-m", /* no message of the day */
		"-r",	    KB_PROTO_HOST_KEY,
		NULL,
	};
	struct kb_bridge b = {
		.argv = argv,
		.bye_path = KB_PROTO_BYE_PATH,
		.busy = g->params.mode == KB_GUEST_EXACT,
	};

	kb_console_say("phase ssh");
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	for (int ms = 0; (b.port = kb_bridge_open_port(KB_PROTO_CHANNEL_NAME)) < 0;
	     ms += 10) {
		if (ms >= PORT_WAIT_MS) {
			kb_console_fail("ssh", errno, "no port " KB_PROTO_CHANNEL_NAME);
			return;
		}
		kb_util_sleep_ms(10);
	}
	if (g->params.mode != KB_GUEST_SHELL)
		b.deadline_ns = kb_util_mono_ns() + g->params.keep_ms * 1000000u;
	kb_bridge_serve(&b);
	close(b.port);
}

int main(void)
{
	static struct guest g;

	if (getpid() != 1) {
		fputs("init: this is the init of a kbisect guest; it runs as PID 1 "
		      "only\n",
		      stderr);
		return 2;
	}
	g.begin_ns = kb_util_mono_ns();
	signal(SIGPIPE, SIG_IGN);
	/* The kernel starts us with little more than HOME and TERM. */
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	g.lines = open_memstream(&g.lines_text, &g.lines_len);
	if (!g.lines)
		power_off(&g);
	mount_all(&g);
	kb_util_poke("/proc/self/oom_score_adj", "-1000");
	read_params(&g);
	make_scratch(&g);
	if (g.params.mode != KB_GUEST_SHELL) {
		struct kb_run_result run;

		run_workload(&g, &run);
		obey(run.verdict.order);
		report(&g, &run);
		kb_run_result_free(&run);
	}
	if (g.params.ssh)
		serve_ssh(&g);
	power_off(&g);
}
