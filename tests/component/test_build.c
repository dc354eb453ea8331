/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The build unit on a small stand-in for a kernel tree (fake-kernel.sh). */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bisect/repo.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/build.h"
#include "harness/cache.h"
#include "tests/tap.h"

static char root[] = "/tmp/kb-test-build-XXXXXX";
static char *repo_path, *fragment;

static void make_repo(const char *script)
{
	repo_path = kb_path_join(root, "repo");
	fragment = kb_path_join(root, "fragment.config");
	kb_mkdirs(repo_path, NULL);
	const char *const argv[] = { "bash", script, repo_path, NULL };
	struct kb_proc_spec spec = { .argv = argv, .timeout_ms = 60000 };
	struct kb_proc_result res = { 0 };

	if (kb_proc_run(&spec, &res, NULL) || res.exit_code != 0) {
		printf("Bail out! %s failed\n", script);
		exit(1);
	}
	kb_write_file_atomic(fragment, "CONFIG_FS=y", 11, NULL);
}

static void make_request(const char *branch, const char *cache, const char *slot,
			 struct kb_build_request *req)
{
	struct kb_repo *repo = NULL;
	struct kb_oid commit = { 0 }, tree = { 0 };

	kb_repo_open(repo_path, &repo, NULL);
	kb_repo_resolve(repo, branch, &commit, NULL);
	kb_repo_tree(repo, &commit, &tree, NULL);
	kb_repo_free(repo);
	req->repo_path = kb_strdup(repo_path);
	req->commit = kb_strdup(commit.hex);
	req->tree = kb_strdup(tree.hex);
	kb_strv_add(&req->fragments, fragment);
	req->cache_dir = kb_path_join(root, cache);
	req->slot_dir = kb_asprintf("%s/slots/%s", root, slot);
	req->jobs = 2;
	req->timeout_ms = 120000;
}

static unsigned compilations(const struct kb_build_request *req)
{
	KB_AUTO_FREE char *path = kb_path_join(req->slot_dir, "compiled");
	KB_AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (kb_read_file(path, 65536, &text, &len, NULL))
		return 0;
	return (unsigned)(len / strlen("compiled\n"));
}

static bool has_artifact(const struct kb_build_record *rec, const char *name)
{
	KB_AUTO_FREE char *path = rec->artifact_dir ? kb_path_join(rec->artifact_dir, name) :
						      NULL;

	return path && kb_path_exists(path);
}

static int build(struct kb_build_request *req, struct kb_build_record *rec)
{
	struct kb_error err = { 0 };

	kb_build_record_free(rec);
	*rec = (struct kb_build_record){ 0 };
	int r = kb_build_run(req, rec, &err);
	if (r)
		fprintf(stderr, "# build: %s\n", err.message);
	return r;
}

#define REQUEST(name, branch, cache, slot)                                         \
	KB_AUTO(kb_build_request_free) struct kb_build_request name = { 0 };        \
	make_request(branch, cache, slot, &name)
#define RECORD(name) KB_AUTO(kb_build_record_free) struct kb_build_record name = { 0 }

static void builds_and_caches(void)
{
	REQUEST(req, "base", "cache", "a");
	REQUEST(docs, "docs", "cache", "a");
	REQUEST(elsewhere, "base", "cache2", "another-slot");
	RECORD(rec);
	RECORD(again);
	char hex[KB_HASH_HEX_LEN + 1] = "";

	setenv("EXTRA", "-DLEAKED", 1); /* the user's environment must not get in */
	is_int(build(&req, &rec), 0, "a build");
	is_int(rec.outcome, KB_BUILD_OK, "it compiles");
	ok(!rec.from_cache && rec.files_changed > 0 && !rec.reason, "freshly");
	ok(has_artifact(&rec, "bzImage") && has_artifact(&rec, "System.map") &&
		   has_artifact(&rec, "vmlinux") && has_artifact(&rec, "config") &&
		   has_artifact(&rec, "build.json"),
	   "all artifacts are there");
	KB_AUTO_FREE char *image = kb_path_join(rec.artifact_dir, "bzImage");
	kb_hash_file(image, hex, NULL);
	is_str(rec.kernel_sha256, hex, "the record has the image's checksum");
	is_int(rec.missing_symbols.count, 0, "every symbol survived");
	is_int(compilations(&req), 1, "one compilation");

	is_int(build(&req, &again), 0, "the same build");
	ok(again.from_cache, "comes from the cache");
	is_str(again.kernel_sha256, rec.kernel_sha256, "with the same kernel");
	is_int(compilations(&req), 1, "nothing was compiled");

	is_int(build(&docs, &again), 0, "a commit that changes only a document");
	ok(!again.from_cache, "is another tree");
	is_str(again.kernel_sha256, rec.kernel_sha256, "with the same kernel");
	is_int(again.files_changed, 1, "one file was written");
	is_int(compilations(&docs), 1, "and nothing compiled: the build is incremental");

	unsetenv("EXTRA");
	is_int(build(&elsewhere, &again), 0, "another slot, cache and environment");
	ok(!again.from_cache, "builds again");
	is_str(again.key, rec.key, "under the same key");
	is_str(again.kernel_sha256, rec.kernel_sha256, "the same bytes");
}

static void failures_are_records(void)
{
	REQUEST(req, "broken", "cache", "a");
	RECORD(rec);

	is_int(build(&req, &rec), 0, "a commit that does not compile is a record");
	is_int(rec.outcome, KB_BUILD_FAILED, "it says so");
	ok(rec.reason && kb_starts_with(rec.reason, "main.c:") && strstr(rec.reason, "error"),
	   "the reason is the compiler's, without our folders: %s", rec.reason);
	ok(rec.log_excerpt && strstr(rec.log_excerpt, "frob") && !strstr(rec.log_excerpt, root),
	   "the excerpt shows the line");
	ok(!has_artifact(&rec, "bzImage") && has_artifact(&rec, "build.log"),
	   "no kernel of an earlier commit, but the log");
	unsigned before = compilations(&req);
	is_int(build(&req, &rec), 0, "again");
	ok(rec.from_cache && rec.outcome == KB_BUILD_FAILED && rec.reason != NULL,
	   "the failure comes from the cache");
	is_int(compilations(&req), before, "without a compiler");
}

static void symbols(void)
{
	REQUEST(req, "base", "cache", "a");
	REQUEST(needs, "base", "cache", "a");
	RECORD(rec);
	KB_AUTO_FREE char *more = kb_path_join(root, "more.config");

	kb_write_file_atomic(more, "CONFIG_GONE=y\nCONFIG_NR=4\n", 26, NULL);
	kb_strv_add(&req.fragments, more);
	is_int(build(&req, &rec), 0, "a requested symbol that the tree does not have");
	is_int(rec.outcome, KB_BUILD_OK, "is not fatal");
	is_int(rec.missing_symbols.count, 1, "one is missing");
	is_str(rec.missing_symbols.count ? rec.missing_symbols.items[0] : NULL, "GONE",
	       "and named");
	kb_strv_add(&needs.fragments, more);
	kb_strv_add(&needs.required, "GONE");
	kb_strv_add(&needs.required, "FS");
	is_int(build(&needs, &rec), 0, "unless the job needs it");
	is_int(rec.outcome, KB_BUILD_CONFIG_MISSING, "then it is untestable");
	ok(rec.reason && strstr(rec.reason, "CONFIG_GONE") && !strstr(rec.reason, "FS"),
	   "the reason names it: %s", rec.reason);
}

static void make_arguments_count(void)
{
	REQUEST(req, "base", "cache-args", "args");
	REQUEST(plain, "base", "cache-args", "args");
	RECORD(rec);
	RECORD(first);

	build(&plain, &first);
	kb_strv_add(&req.make_args, "KCFLAGS=-DLEAKED");
	is_int(build(&req, &rec), 0, "other make arguments");
	ok(!kb_streq(rec.key, first.key), "give another key");
	ok(rec.outcome == KB_BUILD_OK && !kb_streq(rec.kernel_sha256, first.kernel_sha256),
	   "and reach the compiler");
}

/* A zombie that nobody has reaped yet counts as gone. */
static bool goes_away(long pid)
{
	KB_AUTO_FREE char *path = kb_asprintf("/proc/%ld/stat", pid);

	for (int i = 0; i < 1000; i++) {
		KB_AUTO_FREE char *text = NULL;

		if (kb_read_file(path, 4096, &text, NULL, NULL))
			return true;
		const char *after_name = strrchr(text, ')');
		if (!after_name || after_name[2] == 'Z')
			return true;
		kb_sleep_ms(10);
	}
	return false;
}

static void time_limit(void)
{
	REQUEST(req, "hangs", "cache", "a");
	RECORD(rec);

	req.timeout_ms = 3000;
	is_int(build(&req, &rec), 0, "a make that never ends is a record");
	is_int(rec.outcome, KB_BUILD_TIMEOUT, "it says time-out");
	ok(rec.reason && strstr(rec.reason, "3s"), "with the limit: %s", rec.reason);
	KB_AUTO_FREE char *pid_path = kb_path_join(req.slot_dir, "grandchild");
	KB_AUTO_FREE char *pid = NULL;
	is_int(kb_read_file(pid_path, 64, &pid, NULL, NULL), 0, "the grandchild had started");
	ok(pid && goes_away(strtol(pid, NULL, 10)), "and is gone");
	KB_AUTO_FREE char *entry = kb_cache_path(req.cache_dir, KB_CACHE_BUILDS, rec.key);
	ok(!kb_path_exists(entry), "a time-out is not cached");
}

static void the_hosts_fault(void)
{
	REQUEST(req, "needs-host", "cache", "a");
	RECORD(rec);
	struct kb_error err = { 0 };

	is_int(kb_build_run(&req, &rec, &err), KB_EBUILD, "a missing tool is no verdict");
	ok(strstr(err.message, "apt install flex"), "the package is named: %s", err.message);
}

static void stale_objects(void)
{
	REQUEST(base, "base", "cache-stale", "stale");
	REQUEST(moved, "moved", "cache-stale", "stale");
	RECORD(rec);

	build(&base, &rec);
	is_int(build(&moved, &rec), 0, "an incremental build that does not fit together");
	is_int(rec.outcome, KB_BUILD_OK, "is made again from scratch");
	ok(!rec.reason && !rec.log_excerpt, "and leaves no reason behind");
}

static void damaged_entries(void)
{
	static const char *const names[] = { "bzImage", "build.json", "SHA256SUMS", "vmlinux" };
	REQUEST(req, "base", "cache-damaged", "a");
	RECORD(good);
	RECORD(rec);

	build(&req, &good);
	kb_log_set_level(KB_LOG_ERROR);
	for (size_t i = 0; i < KB_COUNT_OF(names); i++) {
		KB_AUTO_FREE char *path = kb_path_join(good.artifact_dir, names[i]);
		KB_AUTO(kb_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

		ok(fd >= 0 && pwrite(fd, "XXXXXXXX", 8, 16) == 8, "%s is damaged", names[i]);
		is_int(build(&req, &rec), 0, "build with that");
		ok(!rec.from_cache, "it was not trusted");
		is_str(rec.kernel_sha256, good.kernel_sha256, "and made again");
		build(&req, &rec);
		ok(rec.from_cache, "now it is in the cache");
	}
	kb_log_set_level(KB_LOG_INFO);
}

static bool appears(const char *path)
{
	for (int i = 0; i < 3000 && !kb_path_exists(path); i++)
		kb_sleep_ms(10);
	return kb_path_exists(path);
}

/*
 * SIGKILL while an object is being made: it is younger than its source already, but not yet
 * that source's, and its .cmd is that of the build before. make alone would take it as done.
 */
static void killed_in_the_middle(void)
{
	REQUEST(base, "base", "cache-kill", "kill");
	REQUEST(other, "other", "cache-kill", "kill");
	REQUEST(clean, "other", "cache-clean", "clean");
	KB_AUTO_FREE char *stall = kb_path_join(base.slot_dir, "stall");
	KB_AUTO_FREE char *stalled = kb_path_join(base.slot_dir, "stalled");
	RECORD(rec);
	RECORD(want);

	build(&clean, &want);
	build(&base, &rec);
	kb_write_file_atomic(stall, "", 0, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		kb_build_run(&other, &rec, NULL);
		_exit(0);
	}
	ok(appears(stalled), "the second build stalls in the middle");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(stall);
	is_int(build(&other, &rec), 0, "the next build");
	ok(!rec.from_cache, "nothing half was cached");
	is_int(rec.outcome, KB_BUILD_OK, "builds");
	is_str(rec.kernel_sha256, want.kernel_sha256, "what a clean build gives");
}

static void at_once(const char *slot_one, const char *slot_two, unsigned want)
{
	REQUEST(one, "other", "cache-two", slot_one);
	REQUEST(two, "other", "cache-two", slot_two);
	RECORD(rec);
	pid_t pids[2];
	int failed = 0, status;

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int r = build(i ? &two : &one, &rec);

			_exit(r || rec.outcome != KB_BUILD_OK || !has_artifact(&rec, "bzImage"));
		}
	}
	for (int i = 0; i < 2; i++) {
		waitpid(pids[i], &status, 0);
		failed += status != 0;
	}
	is_int(failed, 0, "two at once, slots %s and %s: both have a kernel", slot_one,
	       slot_two);
	ok(compilations(&one) <= want, "compiled no more than needed");
	is_int(build(&one, &rec), 0, "and after them");
	ok(rec.from_cache, "it comes from the cache");
	kb_remove_tree(one.cache_dir, NULL);
}

static void no_space(void)
{
	if (geteuid() != 0) {
		skip("a small file system can only be mounted by root");
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		REQUEST(req, "base", "small/cache", "x");
		RECORD(rec);
		struct kb_error err = { 0 };
		KB_AUTO_FREE char *small = kb_path_join(root, "small");

		kb_mkdirs(small, NULL);
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", small, "tmpfs", 0, "size=4m"))
			_exit(77);
		free(req.slot_dir);
		req.slot_dir = kb_path_join(small, "slot");
		int r = kb_build_run(&req, &rec, &err);
		_exit(r == KB_EBUILD && strstr(err.message, "MiB free") &&
				      strstr(err.message, "kbisect gc") ?
			      0 :
			      1);
	}
	int status;
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("no mount namespace here");
	else
		is_int(status, 0, "too little space is said before anything is written");
}

static void wrong_requests(void)
{
	REQUEST(req, "base", "cache-wrong", "wrong");
	RECORD(rec);
	struct kb_error err = { 0 };

	free(req.tree);
	req.tree = kb_strdup("0000000000000000000000000000000000000000");
	is_int(kb_build_run(&req, &rec, &err), KB_EREPO, "a tree that is not the commit's");
	kb_strv_add(&req.make_args, "CC=kb-no-such-compiler");
	is_int(kb_build_run(&req, &rec, &err), KB_EBUILD, "a compiler that is not there");
	ok(strstr(err.message, "kb-no-such-compiler"), "is named: %s", err.message);
	kb_strv_free(&req.make_args);
	kb_strv_add(&req.fragments, "/nonexistent.config");
	is_int(kb_build_run(&req, &rec, &err), KB_EIO, "a fragment that is not there");
}

int main(int argc, char **argv)
{
	const char *script = argc > 1 ? argv[1] : "tests/component/fake-kernel.sh";

	if (!mkdtemp(root))
		return 1;
	make_repo(script);
	builds_and_caches();
	failures_are_records();
	symbols();
	make_arguments_count();
	time_limit();
	the_hosts_fault();
	stale_objects();
	damaged_entries();
	killed_in_the_middle();
	at_once("same", "same", 1);
	at_once("left", "right", 1);
	no_space();
	wrong_requests();
	kb_remove_tree(root, NULL);
	free(repo_path);
	free(fragment);
	return tap_done();
}
