/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"

/* Unfinished or half-removed folders; keys never begin with a dot. */
#define WORK_PREFIX ".work-"

char *kb_cache_path(const char *cache_dir, const char *kind, const char *key)
{
	return kb_asprintf("%s/%s/%s", cache_dir, kind, key);
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Does the path still lead to what fd has open? It may have been trimmed in between. */
static bool is_still_there(const char *path, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int flock_retry(int fd, int how)
{
	int r;

	do
		r = flock(fd, how);
	while (r && errno == EINTR && !kb_interrupted());
	return r;
}

int kb_cache_hold(const char *entry_dir, int *ret_fd, struct kb_error *err)
{
	KB_AUTO(kb_close) int fd = open_dir(entry_dir);

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot open %s", entry_dir);
	/* only a trim that is just removing it holds it exclusively, and not for long */
	if (flock_retry(fd, LOCK_SH))
		return kb_error_errno(err, errno == EINTR ? KB_EINTERRUPTED : KB_EIO, errno,
				      "cannot lock %s", entry_dir);
	if (!is_still_there(entry_dir, fd))
		return 1;
	if (futimens(fd, NULL))
		return kb_error_errno(err, KB_EIO, errno, "cannot mark %s as used", entry_dir);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

void kb_cache_touch(const char *entry_path)
{
	(void)utimensat(AT_FDCWD, entry_path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* A fresh name .work-PID-N in the kind's folder. */
static char *work_name(const char *kind_dir, unsigned n)
{
	return kb_asprintf("%s/" WORK_PREFIX "%ld-%u", kind_dir, (long)getpid(), n);
}

static char *parent_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? kb_strndup(path, (size_t)(slash - path)) : kb_strdup(".");
}

int kb_cache_begin(const char *cache_dir, const char *kind, char **ret_dir, int *ret_fd,
		   struct kb_error *err)
{
	KB_AUTO_FREE char *kind_dir = kb_path_join(cache_dir, kind);
	int r = kb_mkdirs(kind_dir, err);

	for (unsigned n = 0; !r && n < 1000; n++) {
		KB_AUTO_FREE char *dir = work_name(kind_dir, n);

		if (mkdir(dir, 0777)) {
			if (errno == EEXIST)
				continue;
			return kb_error_errno(err, KB_EIO, errno, "cannot make %s", dir);
		}
		KB_AUTO(kb_close) int fd = open_dir(dir);
		/* a trim may have taken it before the lock: then the next name */
		if (fd < 0 || flock_retry(fd, LOCK_SH) || !is_still_there(dir, fd))
			continue;
		*ret_fd = fd;
		fd = -1;
		*ret_dir = KB_STEAL(dir);
		return 0;
	}
	return r ? r : kb_error_set(err, KB_EIO, "cannot make a folder in %s", kind_dir);
}

int kb_cache_commit(const char *filled_dir, const char *entry_dir, int *fd,
		    struct kb_error *err)
{
	for (int tries = 0; tries < 10; tries++) {
		if (rename(filled_dir, entry_dir) == 0)
			return futimens(*fd, NULL) ?
				       kb_error_errno(err, KB_EIO, errno, "cannot mark %s",
						      entry_dir) :
				       0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return kb_error_errno(err, KB_EIO, errno, "cannot put %s in place",
					      entry_dir);
		int theirs = -1;
		int r = kb_cache_hold(entry_dir, &theirs, err);
		if (r < 0)
			return r;
		if (r == 1)
			continue; /* trimmed just now */
		kb_close(fd);
		*fd = theirs;
		return kb_remove_tree(filled_dir, err);
	}
	return kb_error_set(err, KB_EIO, "cannot put %s in place", entry_dir);
}

/* Out of the way by one rename, so that nobody sees half an entry; then removed. */
static int take_away(const char *path, struct kb_error *err)
{
	KB_AUTO_FREE char *kind_dir = parent_dir(path);

	for (unsigned n = 0; n < 1000; n++) {
		KB_AUTO_FREE char *trash = work_name(kind_dir, n);

		if (rename(path, trash) == 0)
			return kb_remove_tree(trash, err);
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			break;
	}
	return kb_error_errno(err, KB_EIO, errno, "cannot remove %s", path);
}

int kb_cache_discard(const char *entry_dir, struct kb_error *err)
{
	return take_away(entry_dir, err);
}

int kb_cache_lock_slot(const char *slot_dir, int *ret_fd, struct kb_error *err)
{
	KB_AUTO_FREE char *lock = kb_asprintf("%s.lock", slot_dir);
	KB_AUTO_FREE char *above = parent_dir(slot_dir);
	int r = kb_mkdirs(above, err);

	/* beside the folder: trimming the folder does not take the lock away from waiters */
	return r ? r : kb_lock_file(lock, true, ret_fd, err);
}

/* ---- trimming ---- */

struct entry {
	const char *kind;
	char *key, *path; /* owned */
	uint64_t bytes;
	struct timespec used;
};

struct scan {
	const char *kind;
	const char *dir;    /* what is listed now */
	const char *prefix; /* of keys: "" or "XX/" within a shard */
	bool dry_run;
	struct entry *items;
	size_t count, cap;
};

static void scan_free(struct scan *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->items[i].key);
		free(s->items[i].path);
	}
	free(s->items);
}

/* Leftovers of a killed process; a living one holds its folder. */
static void remove_if_abandoned(const char *path)
{
	KB_AUTO(kb_close) int fd = open_dir(path);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)kb_remove_tree(path, NULL);
}

static int add_entry(const char *name, void *ctx)
{
	struct scan *s = ctx;
	KB_AUTO_FREE char *path = kb_path_join(s->dir, name);
	bool files = kb_streq(s->kind, KB_CACHE_BOOTS);
	struct stat st;

	if (kb_starts_with(name, WORK_PREFIX) && !s->dry_run)
		remove_if_abandoned(path);
	if (name[0] == '.' || lstat(path, &st))
		return 0;
	if (files && S_ISDIR(st.st_mode) && *s->prefix == '\0') {
		KB_AUTO_FREE char *prefix = kb_asprintf("%s/", name);
		const char *dir = s->dir;

		s->dir = path;
		s->prefix = prefix;
		int r = kb_list_dir(path, add_entry, s, NULL);
		s->dir = dir;
		s->prefix = "";
		return r;
	}
	if (files ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))
		return 0;
	KB_GROW(s->items, s->count, s->cap);
	s->items[s->count++] = (struct entry){ .kind = s->kind,
					       .key = kb_asprintf("%s%s", s->prefix, name),
					       .bytes = kb_tree_bytes(path),
					       .used = st.st_mtim,
					       .path = kb_strdup(path) };
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* @return 0 removed (or would be), 1 in use, negative on error */
static int remove_entry(const struct entry *e, bool dry_run, struct kb_error *err)
{
	KB_AUTO(kb_close) int slot = -1;
	KB_AUTO(kb_close) int fd = -1;

	if (kb_streq(e->kind, KB_CACHE_BOOTS)) { /* a file: who has it open keeps it */
		if (!dry_run && unlink(e->path) && errno != ENOENT)
			return kb_error_errno(err, KB_EIO, errno, "cannot remove %s", e->path);
		return 0;
	}
	fd = open_dir(e->path);
	if (fd < 0)
		return errno == ENOENT ? 0 :
					 kb_error_errno(err, KB_EIO, errno, "cannot open %s",
							e->path);
	if (flock(fd, LOCK_EX | LOCK_NB))
		return 1;
	if (kb_streq(e->kind, KB_CACHE_SLOTS)) {
		KB_AUTO_FREE char *lock = kb_asprintf("%s.lock", e->path);
		int r = kb_lock_file(lock, false, &slot, err);

		if (r)
			return r;
	}
	return dry_run ? 0 : take_away(e->path, err);
}

int kb_cache_trim(const char *cache_dir, const struct kb_cache_trim *how,
		  struct kb_cache_totals *ret_totals, struct kb_error *err)
{
	static const char *const kinds[] = { KB_CACHE_BUILDS, KB_CACHE_BOOTS, KB_CACHE_SLOTS };
	KB_AUTO(scan_free) struct scan s = { .prefix = "", .dry_run = how->dry_run };
	struct kb_cache_totals totals = { 0 };
	int r;

	for (size_t i = 0; i < KB_COUNT_OF(kinds) - !how->slots; i++) {
		KB_AUTO_FREE char *dir = kb_path_join(cache_dir, kinds[i]);

		s.kind = kinds[i];
		s.dir = dir;
		r = kb_list_dir(dir, add_entry, &s, err);
		if (r)
			return r;
	}
	if (s.count)
		qsort(s.items, s.count, sizeof(*s.items), by_use);
	for (size_t i = 0; i < s.count; i++)
		totals.bytes_before += s.items[i].bytes;
	totals.entries_before = (uint32_t)s.count;
	for (size_t i = 0; i < s.count; i++) {
		const struct entry *e = &s.items[i];

		if (totals.bytes_before - totals.bytes_freed <= how->max_bytes)
			break;
		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
		r = remove_entry(e, how->dry_run, err);
		if (r < 0)
			return r;
		if (r == 1) {
			totals.entries_in_use++;
			continue;
		}
		totals.bytes_freed += e->bytes;
		totals.entries_removed++;
		if (how->removed)
			how->removed(how->ctx, e->kind, e->key, e->bytes);
	}
	*ret_totals = totals;
	return 0;
}
