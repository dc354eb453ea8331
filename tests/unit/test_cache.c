/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/cache.h"
#include "tests/tap.h"

static char root[] = "/tmp/kb-test-cache-XXXXXX";

#define ENTRY_BYTES (256u * 1024)

static void fill(const char *dir)
{
	KB_AUTO_FREE char *path = kb_path_join(dir, "data");
	KB_AUTO_FREE char *data = kb_calloc(ENTRY_BYTES, 1);

	memset(data, 'x', ENTRY_BYTES);
	kb_write_file_atomic(path, data, ENTRY_BYTES, NULL);
}

static void set_time(const char *path, time_t second)
{
	struct timespec times[2] = { { .tv_sec = second }, { .tv_sec = second } };

	utimensat(AT_FDCWD, path, times, 0);
}

/* An entry last used at `second`. */
static char *make_entry(const char *kind, const char *key, time_t second)
{
	char *path = kb_cache_path(root, kind, key);

	kb_mkdirs(path, NULL);
	fill(path);
	set_time(path, second);
	return path;
}

/* Boots are files, spread over folders. */
static char *make_boot(const char *shard, time_t second)
{
	KB_AUTO_FREE char *dir = kb_cache_path(root, KB_CACHE_BOOTS, shard);
	char *path = kb_path_join(dir, "data");

	kb_mkdirs(dir, NULL);
	fill(dir);
	set_time(path, second);
	return path;
}

static void note(void *ctx, const char *kind, const char *key, uint64_t bytes)
{
	ok(bytes >= ENTRY_BYTES, "%s/%s has a size", kind, key);
	kb_str_appendf(ctx, "%s/%s ", kind, key);
}

static void least_recently_used_go_first(void)
{
	KB_AUTO_FREE char *a = make_entry(KB_CACHE_BUILDS, "a", 1000);
	KB_AUTO_FREE char *b = make_boot("b", 500);
	KB_AUTO_FREE char *c = make_entry(KB_CACHE_BUILDS, "c", 3000);
	KB_AUTO_FREE char *d = make_entry(KB_CACHE_BUILDS, "d", 2000);
	KB_AUTO(kb_str_free) struct kb_str gone = { 0 };
	struct kb_cache_totals t;
	struct kb_cache_trim how = {
		.max_bytes = 2 * kb_tree_bytes(a), .dry_run = true, .removed = note, .ctx = &gone
	};

	is_int(kb_cache_trim(root, &how, &t, NULL), 0, "dry run");
	is_str(kb_str_get(&gone), "boots/b/data builds/a ", "names the oldest, across kinds");
	ok(kb_path_exists(a) && kb_path_exists(b), "but removes nothing");
	is_int(t.entries_removed, 2, "counts them");
	kb_str_free(&gone);
	how.dry_run = false;
	is_int(kb_cache_trim(root, &how, &t, NULL), 0, "trim");
	is_str(kb_str_get(&gone), "boots/b/data builds/a ", "removes the same");
	ok(!kb_path_exists(a) && !kb_path_exists(b), "they are gone");
	ok(kb_path_exists(c) && kb_path_exists(d), "the others stay");
	is_int(t.entries_before, 4, "entries before");
	ok(t.bytes_before - t.bytes_freed <= how.max_bytes, "the rest fits");
	is_int(kb_cache_trim(root, &how, &t, NULL), 0, "again");
	is_int(t.entries_removed, 0, "nothing to do");
	KB_AUTO_FREE char *old = make_boot("e", 400);
	KB_AUTO_FREE char *older = make_boot("f", 300);
	kb_cache_touch(older);
	how.max_bytes = t.bytes_before + ENTRY_BYTES + 4096;
	kb_cache_trim(root, &how, &t, NULL);
	ok(!kb_path_exists(old) && kb_path_exists(older), "touching a file counts as use");
	how.max_bytes = 0;
	how.removed = NULL;
	kb_cache_trim(root, &how, &t, NULL);
	ok(!kb_path_exists(older), "size 0 removes files");
	ok(!kb_path_exists(c) && !kb_path_exists(d), "size 0 removes all");
}

static void entries_in_use_stay(void)
{
	KB_AUTO_FREE char *a = make_entry(KB_CACHE_BUILDS, "a", 1000);
	KB_AUTO_FREE char *b = make_entry(KB_CACHE_BUILDS, "b", 2000);
	KB_AUTO_FREE char *none = kb_cache_path(root, KB_CACHE_BUILDS, "none");
	struct kb_cache_trim how = { .max_bytes = 0 };
	struct kb_cache_totals t;
	struct stat st = { 0 };
	int one = -1, two = -1, no = -7;

	is_int(kb_cache_hold(a, &one, NULL), 0, "hold");
	is_int(kb_cache_hold(a, &two, NULL), 0, "a second user");
	stat(a, &st);
	ok(st.st_mtime > 1000, "holding counts as use");
	kb_close(&one);
	kb_cache_trim(root, &how, &t, NULL);
	ok(kb_path_exists(a), "the held one stays");
	ok(!kb_path_exists(b), "the other goes");
	is_int(t.entries_in_use, 1, "in use is counted");
	kb_close(&two);
	kb_cache_trim(root, &how, &t, NULL);
	ok(!kb_path_exists(a), "gone after release");
	is_int(kb_cache_hold(none, &no, NULL), 1, "no such entry");
	is_int(no, -7, "the fd is left alone");
}

static void commit_and_race(void)
{
	KB_AUTO_FREE char *entry = kb_cache_path(root, KB_CACHE_BUILDS, "key");
	KB_AUTO_FREE char *first = NULL, *second = NULL;
	struct kb_cache_trim how = { .max_bytes = 0 };
	struct kb_cache_totals t;
	struct kb_error err = { 0 };
	int fd1 = -1, fd2 = -1;

	is_int(kb_cache_begin(root, KB_CACHE_BUILDS, &first, &fd1, &err), 0, "begin");
	is_int(kb_cache_begin(root, KB_CACHE_BUILDS, &second, &fd2, &err), 0, "begin two");
	ok(!kb_streq(first, second), "two folders");
	fill(first);
	fill(second);
	kb_cache_trim(root, &how, &t, NULL);
	ok(kb_path_exists(first) && kb_path_exists(second), "unfinished ones in use stay");
	is_int(kb_cache_commit(first, entry, &fd1, &err), 0, "the first is in place");
	is_int(kb_cache_commit(second, entry, &fd2, &err), 0, "the second gives way");
	ok(!kb_path_exists(second) && kb_path_exists(entry), "one entry is left");
	kb_close(&fd1);
	kb_cache_trim(root, &how, &t, NULL);
	ok(kb_path_exists(entry), "the loser holds the winner's entry");
	kb_close(&fd2);
	is_int(kb_cache_discard(entry, &err), 0, "discard");
	is_int(kb_cache_discard(entry, &err), 0, "discard what is gone");
	ok(!kb_path_exists(entry), "discarded");
}

static int count(const char *name, void *ctx)
{
	(void)name;
	++*(int *)ctx;
	return 0;
}

static void leftovers_of_the_killed_go(void)
{
	KB_AUTO_FREE char *dir = kb_path_join(root, KB_CACHE_BUILDS);
	struct kb_cache_trim how = { .max_bytes = UINT64_MAX };
	struct kb_cache_totals t;
	int left = 0, after = 0;
	pid_t pid = fork();

	if (pid == 0) {
		char *work = NULL;
		int fd = -1;

		if (!kb_cache_begin(root, KB_CACHE_BUILDS, &work, &fd, NULL))
			fill(work);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	kb_list_dir(dir, count, &left, NULL);
	is_int(left, 1, "a killed process leaves a folder");
	kb_cache_trim(root, &how, &t, NULL);
	kb_list_dir(dir, count, &after, NULL);
	is_int(after, 0, "the next trim removes it, whatever the size");
}

static void slots_only_when_asked(void)
{
	KB_AUTO_FREE char *slot = make_entry(KB_CACHE_SLOTS, "s", 1000);
	struct kb_cache_trim how = { .max_bytes = 0 };
	struct kb_cache_totals t;
	int fd = -1;

	kb_cache_trim(root, &how, &t, NULL);
	ok(kb_path_exists(slot), "slots are left alone by default");
	how.slots = true;
	is_int(kb_cache_lock_slot(slot, &fd, NULL), 0, "lock the slot");
	kb_cache_trim(root, &how, &t, NULL);
	ok(kb_path_exists(slot), "a locked slot stays");
	kb_close(&fd);
	kb_cache_trim(root, &how, &t, NULL);
	ok(!kb_path_exists(slot), "an idle one goes when asked");
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	least_recently_used_go_first();
	entries_in_use_stay();
	commit_and_race();
	leftovers_of_the_killed_go();
	slots_only_when_asked();
	kb_remove_tree(root, NULL);
	return tap_done();
}
