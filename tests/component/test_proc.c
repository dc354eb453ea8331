/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes. Waits are bounded by polling; no duration is asserted. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"
#include "tests/tap.h"

static char root[] = "/tmp/kb-test-proc-XXXXXX";

#define SH(script) ((const char *const[]){ "sh", "-c", (script), NULL })

static long read_pid(const char *name)
{
	KB_AUTO_FREE char *path = kb_path_join(root, name);

	for (int i = 0; i < 1000; i++) {
		KB_AUTO_FREE char *text = NULL;
		size_t len = 0;

		/* the line is complete once its newline is there */
		if (!kb_read_file(path, 64, &text, &len, NULL) && len && text[len - 1] == '\n')
			return strtol(text, NULL, 10);
		kb_sleep_ms(10);
	}
	return -1;
}

/* Not running any more; a zombie that nobody has reaped yet counts as gone. */
static bool is_gone(long pid)
{
	KB_AUTO_FREE char *path = kb_asprintf("/proc/%ld/stat", pid);
	KB_AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (pid <= 0 || kb_read_file(path, 4096, &text, &len, NULL))
		return pid > 0;
	const char *after_name = strrchr(text, ')');
	return !after_name || after_name[2] == 'Z' || after_name[2] == 'X';
}

static bool goes_away(long pid)
{
	for (int i = 0; i < 1000 && !is_gone(pid); i++)
		kb_sleep_ms(10);
	return is_gone(pid);
}

static void results(void)
{
	struct kb_proc_result res = { 0 };
	struct kb_error err = { 0 };
	struct kb_proc_spec spec = { .argv = SH("exit 7") };

	is_int(kb_proc_run(&spec, &res, &err), 0, "a failing child is not an error");
	is_int(res.exit_code, 7, "its exit code");
	spec.argv = SH("kill -SEGV $$");
	is_int(kb_proc_run(&spec, &res, &err), 0, "a crashing child is not an error");
	is_int(res.term_signal, SIGSEGV, "its signal");
	is_int(res.exit_code, -1, "no exit code then");
	spec.argv = SH("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
	kb_proc_run(&spec, &res, &err);
	ok(res.cpu_ms > 0, "processor time is counted");
}

/* What the caller of the test left open for everybody is not ours to judge. */
static int inheritable_descriptors(void)
{
	int count = 0;

	for (int fd = 3; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		count += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return count;
}

static void environment(void)
{
	KB_AUTO_FREE char *log = kb_path_join(root, "env.log");
	KB_AUTO_FREE char *text = NULL;
	struct kb_proc_result res = { 0 };
	struct kb_proc_spec spec = {
		.argv = SH("echo $KB_A $KB_B; pwd; cat; echo err >&2; ls /proc/self/fd | wc -l"),
		.env = (const char *const[]){ "KB_A=new", "KB_AB=no", NULL },
		.cwd = root,
		.output_path = log,
	};
	size_t len;
	int leak = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setenv("KB_A", "old", 1);
	setenv("KB_B", "kept", 1);
	is_int(kb_proc_run(&spec, &res, NULL), 0, "run");
	kb_read_file(log, 4096, &text, &len, NULL);
	/* stdin, stdout, stderr, and the folder that ls reads */
	KB_AUTO_FREE char *want = kb_asprintf("new kept\n%s\nerr\n%d\n", root,
					      4 + inheritable_descriptors());
	is_str(text, want, "environment, folder, empty stdin, stderr, no leaked descriptors");
	kb_close(&leak);

	KB_AUTO_FREE char *alone = kb_path_join(root, "alone.log");
	KB_AUTO_FREE char *seen = NULL;
	spec = (struct kb_proc_spec){ .argv = (const char *const[]){ "env", NULL },
				      .env = (const char *const[]){ "KB_ONLY=1", NULL },
				      .only_env = true,
				      .output_path = alone };
	kb_proc_run(&spec, &res, NULL);
	kb_read_file(alone, 4096, &seen, &len, NULL);
	is_str(seen, "KB_ONLY=1\n", "nothing is inherited with only_env");
}

static void failures_to_start(void)
{
	struct kb_proc_result res = { 0 };
	struct kb_error err = { 0 };
	struct kb_proc_spec spec = {
		.argv = (const char *const[]){ "kb-no-such-program", "x", NULL }
	};

	is_int(kb_proc_run(&spec, &res, &err), KB_EIO, "a missing program");
	ok(strstr(err.message, "kb-no-such-program") != NULL, "is named: %s", err.message);
	KB_AUTO_FREE char *sh = kb_proc_find("sh");
	ok(sh && kb_ends_with(sh, "/sh"), "a program is found: %s", sh ? sh : "no");
	ok(!kb_proc_find("kb-no-such-program") && !kb_proc_find("/etc/passwd"), "or not found");
	spec.argv = SH("true");
	spec.cwd = "/nonexistent-folder";
	is_int(kb_proc_run(&spec, &res, &err), KB_EIO, "a missing folder");
	ok(strstr(err.message, "/nonexistent-folder") != NULL, "is named: %s", err.message);
	spec.cwd = NULL;
	spec.output_path = "/nonexistent-folder/log";
	is_int(kb_proc_run(&spec, &res, &err), KB_EIO, "an output that cannot be written");
}

/* Stubborn children and grandchildren: they ignore SIGTERM. */
static void time_limit_kills_the_whole_group(void)
{
	struct kb_proc_result res = { 0 };
	KB_AUTO_FREE char *script = kb_asprintf(
		"trap '' TERM; cd %s; (sh -c 'echo $$ >deep; exec sleep 1000' & "
		"echo $! >mid; wait) & echo $$ >top; wait; sleep 1000",
		root);
	struct kb_proc_spec spec = { .argv = SH(script), .timeout_ms = 500 };

	is_int(kb_proc_run(&spec, &res, NULL), 0, "run past the limit");
	ok(res.timed_out && !res.interrupted, "it says timed out");
	is_int(res.term_signal, SIGKILL, "SIGKILL after the grace");
	ok(goes_away(read_pid("top")), "the child is gone");
	ok(goes_away(read_pid("mid")), "its child is gone");
	ok(goes_away(read_pid("deep")), "the grandchild is gone");
}

static void polite_children_end_by_sigterm(void)
{
	struct kb_proc_result res = { 0 };
	struct kb_proc_spec spec = { .argv = SH("trap 'exit 3' TERM; sleep 1000 & wait"),
				     .timeout_ms = 300 };

	kb_proc_run(&spec, &res, NULL);
	ok(res.timed_out, "timed out");
	is_int(res.exit_code, 3, "SIGTERM came first and was handled");
}

static void leftovers_do_not_survive_the_end(void)
{
	struct kb_proc_result res = { 0 };
	KB_AUTO_FREE char *script =
		kb_asprintf("sleep 1000 & echo $! >%s/left; exit 0", root);
	struct kb_proc_spec spec = { .argv = SH(script) };

	kb_proc_run(&spec, &res, NULL);
	is_int(res.exit_code, 0, "the child ended by itself");
	ok(goes_away(read_pid("left")), "what it left behind is killed");
}

static void free_kills(void)
{
	struct kb_proc *proc = NULL;
	struct kb_proc_result res = { 0 };
	KB_AUTO_FREE char *script = kb_asprintf("echo $$ >%s/freed; exec sleep 1000", root);
	struct kb_proc_spec spec = { .argv = SH(script) };

	is_int(kb_proc_start(&spec, &proc, NULL), 0, "start");
	is_int(kb_proc_poll(proc, 0, &res, NULL), 0, "still running");
	long pid = read_pid("freed");
	kb_proc_free(proc);
	ok(goes_away(pid), "free ends it");
	kb_proc_free(NULL);
}

static void capture_is_bounded(void)
{
	struct kb_proc_result res = { 0 };
	char *out = NULL;
	int r = kb_proc_capture(SH("echo hello; echo no >&2; echo"), 10000, 100, &out, &res,
				NULL);

	is_int(r, 0, "capture");
	is_str(out, "hello", "stdout only, stripped");
	free(out);
	out = NULL;
	kb_proc_capture(SH("yes 0123456789 | head -c 3000000"), 60000, 1000, &out, &res, NULL);
	is_int(strlen(out ? out : ""), 1000, "1000 bytes are kept");
	is_int(res.exit_code, 0, "the writer was not stuck");
	free(out);
	out = NULL;
	r = kb_proc_capture((const char *const[]){ "yes", NULL }, 500, 10, &out, &res, NULL);
	is_int(r, 0, "an endless writer");
	ok(res.timed_out, "ends at its time limit");
	free(out);
}

/* A controller that is SIGKILLed takes child and grandchildren with it. */
static void death_of_the_parent_kills(void)
{
	KB_AUTO_FREE char *script = kb_asprintf(
		"cd %s; echo $$ >pd1; sh -c 'trap \"\" TERM; echo $$ >pd2; sleep 1000; :' & wait",
		root);
	struct kb_proc_spec spec = { .argv = SH(script) };
	pid_t controller = fork();

	if (controller == 0) {
		struct kb_proc *proc = NULL;

		if (kb_proc_start(&spec, &proc, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	long child = read_pid("pd1"), grandchild = read_pid("pd2");
	ok(child > 0 && grandchild > 0 && !is_gone(child) && !is_gone(grandchild),
	   "both run before");
	kill(controller, SIGKILL);
	waitpid(controller, NULL, 0);
	ok(goes_away(child), "the child died with its controller");
	ok(goes_away(grandchild), "the grandchild too");
}

/* Last: the flag stays set. */
static void interruption(void)
{
	struct kb_proc_result res = { 0 };
	KB_AUTO_FREE char *script =
		kb_asprintf("kill -INT %ld; exec sleep 1000", (long)getpid());
	struct kb_proc_spec spec = { .argv = SH(script) };
	int fd = -1, other = -1;

	kb_interrupt_setup();
	ok(!kb_interrupted(), "not interrupted yet");
	is_int(kb_proc_run(&spec, &res, NULL), 0, "run");
	ok(kb_interrupted() && res.interrupted && !res.timed_out, "SIGINT ends the wait");
	is_int(res.term_signal, SIGTERM, "the child got SIGTERM");
	/* a lock wait with the flag already set must still be woken by a signal */
	KB_AUTO_FREE char *lock = kb_path_join(root, "lock");
	kb_lock_file(lock, true, &fd, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		for (;;) { /* repeated: the first may come before the wait begins */
			kb_sleep_ms(50);
			kill(getppid(), SIGTERM);
		}
	}
	is_int(kb_lock_file(lock, true, &other, NULL), KB_EINTERRUPTED,
	       "a lock wait is interruptible");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	kb_close(&fd);
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	results();
	environment();
	failures_to_start();
	time_limit_kills_the_whole_group();
	polite_children_end_by_sigterm();
	leftovers_do_not_survive_the_end();
	free_kills();
	capture_is_bounded();
	death_of_the_parent_kills();
	interruption();
	kb_remove_tree(root, NULL);
	return tap_done();
}
