/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel source as plain files, for building. git_checkout_tree() is not used: it
 * wants an index, looks at attributes and filters, and trusts names less than it trusts
 * links.
 *
 * What the last call left is remembered as a tree id. Then only the difference between
 * two trees is written. The memory is taken back before the first change and given again
 * after the last one, and it does not outlive a reboot, after which files may be lost
 * that were written but never reached the disk. Without it every file is compared with
 * its hash.
 *
 * Names in trees come from other people. Each folder is opened from its parent's
 * descriptor without following links, so nothing outside of `dir` can be reached through
 * them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bisect/repo_internal.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"

#define DEPTH_MAX 256
#define STATE_MAX_BYTES 4096
#define COMPARE_MAX_BYTES (1 << 30) /* larger files are written anew, not compared */

struct checkout {
	struct kb_repo *repo;
	struct kb_str path; /* of the folder at work, "" or ending in '/', below dir; for
			       errors */
	const char *dir;
	uint64_t changed;
	struct kb_error *err;
};

static void free_tree(git_tree **tree)
{
	git_tree_free(*tree);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int failed(struct checkout *c, const char *what, const char *name)
{
	return kb_error_errno(c->err, KB_EIO, errno, "can't %s %s/%s%s", what, c->dir,
			      kb_str_get(&c->path), name);
}

static bool is_safe_name(const char *name)
{
	return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strcasecmp(name, ".git") != 0 && !strchr(name, '/');
}

/* @return what leave() needs */
static size_t enter(struct checkout *c, const char *name)
{
	size_t mark = c->path.len;

	kb_str_appendf(&c->path, "%s/", name);
	return mark;
}

static void leave(struct checkout *c, size_t mark)
{
	c->path.len = mark;
	c->path.data[mark] = '\0';
}

static int open_folder(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes whatever has that name, folders with all they hold. */
static int remove_entry(struct checkout *c, int parent, const char *name, int depth)
{
	KB_AUTO(close_dir) DIR *folder = NULL;
	const struct dirent *entry;
	int fd, r = 0;

	if (unlinkat(parent, name, 0) == 0) {
		c->changed++;
		return 0;
	}
	if (errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return failed(c, "remove", name);
	if (depth > DEPTH_MAX)
		return kb_error_set(c->err, KB_EIO, "folders nested too deeply in %s",
				    c->dir);
	fd = open_folder(parent, name);
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		r = failed(c, "open", name);
		kb_close(&fd);
		return r;
	}
	while (!r && (entry = readdir(folder))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_entry(c, dirfd(folder), entry->d_name, depth + 1);
	}
	if (!r && unlinkat(parent, name, AT_REMOVEDIR))
		r = failed(c, "remove", name);
	return r;
}

static int write_regular(struct checkout *c, int parent, const char *name, bool is_exec,
			 const void *data, size_t len)
{
	int fd =
		openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       is_exec ? 0777 : 0666);
	struct kb_error cause;

	if (fd < 0)
		return failed(c, "create", name);
	if (kb_write_all(fd, data, len, &cause)) {
		kb_close(&fd);
		return kb_error_set(c->err, KB_EIO, "can't write %s/%s%s: %s", c->dir,
				    kb_str_get(&c->path), name, cause.message);
	}
	/* Some file systems report a full disk only here. */
	if (close(fd))
		return failed(c, "write", name);
	return 0;
}

static int write_link(struct checkout *c, int parent, const char *name,
		      const char *target, size_t len)
{
	KB_AUTO_FREE char *text = kb_strndup(target ? target : "", len);

	if (len == 0 || strlen(text) != len || len >= PATH_MAX)
		return kb_error_set(c->err, KB_EREPO,
				    "link %s%s has an impossible target",
				    kb_str_get(&c->path), name);
	if (symlinkat(text, parent, name))
		return failed(c, "create", name);
	return 0;
}

static int write_blob(struct checkout *c, int parent, const git_tree_entry *entry)
{
	const char *name = git_tree_entry_name(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	uint64_t changed = c->changed;
	git_odb_object *object;
	int r = remove_entry(c, parent, name, 0);

	if (r)
		return r;
	if (git_odb_read(&object, c->repo->odb, git_tree_entry_id(entry)))
		return kb_repo_git_error(c->err, "can't read %s%s", kb_str_get(&c->path),
					 name);

	const void *data = git_odb_object_data(object);
	size_t len = git_odb_object_size(object);
	if (git_odb_object_type(object) != GIT_OBJECT_BLOB)
		r = kb_error_set(c->err, KB_EREPO, "%s%s is not a file in %s",
				 kb_str_get(&c->path), name, c->repo->name);
	else if (mode == GIT_FILEMODE_LINK)
		r = write_link(c, parent, name, data, len);
	else
		r = write_regular(c, parent, name, mode == GIT_FILEMODE_BLOB_EXECUTABLE,
				  data, len);
	git_odb_object_free(object);
	if (!r)
		c->changed = changed + 1; /* a file replaced is one change */
	return r;
}

/* The id that the file or link would have as a blob; false when it can't be read as one.
 */
static bool hash_of(int parent, const char *name, const struct stat *st, git_oid *ret_id)
{
	size_t len = (size_t)st->st_size, got = 0;
	KB_AUTO_FREE char *data = kb_malloc(len + 1);
	KB_AUTO(kb_close) int fd = -1;

	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlinkat(parent, name, data, len + 1);

		return n == st->st_size &&
		       !git_odb_hash(ret_id, data, len, GIT_OBJECT_BLOB);
	}
	fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	while (fd >= 0 && got <= len) {
		ssize_t n = read(fd, data + got, len + 1 - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return fd >= 0 && got == len && !git_odb_hash(ret_id, data, len, GIT_OBJECT_BLOB);
}

/* Compares what is there with the entry and writes it only where it differs. */
static int verify_blob(struct checkout *c, int parent, const git_tree_entry *entry)
{
	const char *name = git_tree_entry_name(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	struct stat st;
	git_oid id;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !(mode == GIT_FILEMODE_LINK ? S_ISLNK(st.st_mode) : S_ISREG(st.st_mode)) ||
	    st.st_size > COMPARE_MAX_BYTES || !hash_of(parent, name, &st, &id) ||
	    !git_oid_equal(&id, git_tree_entry_id(entry)))
		return write_blob(c, parent, entry);
	/* A file with several names would be written through the others, too. */
	if (S_ISREG(st.st_mode) &&
	    (((st.st_mode & S_IXUSR) != 0) != (mode == GIT_FILEMODE_BLOB_EXECUTABLE) ||
	     st.st_nlink != 1))
		return write_blob(c, parent, entry);
	return 0;
}

static int sync_tree(struct checkout *c, int fd, const git_oid *old_id,
		     const git_oid *new_id, int depth);

/* A submodule is an empty folder, as in a clone that has none of them. */
static int sync_folder(struct checkout *c, int parent, const git_tree_entry *entry,
		       const git_oid *old_id, int depth)
{
	const char *name = git_tree_entry_name(entry);
	bool is_submodule = git_tree_entry_type(entry) == GIT_OBJECT_COMMIT;
	KB_AUTO(kb_close) int fd = open_folder(parent, name);
	size_t mark;
	int r = 0;

	if (fd < 0) {
		old_id = NULL;
		if (errno == ENOTDIR || errno == ELOOP)
			r = remove_entry(c, parent, name, 0);
		else if (errno != ENOENT)
			r = failed(c, "open", name);
		if (!r && mkdirat(parent, name, 0777))
			r = failed(c, "create", name);
		if (r)
			return r;
		fd = open_folder(parent, name);
		if (fd < 0)
			return failed(c, "open", name);
	}
	mark = enter(c, name);
	r = sync_tree(c, fd, old_id, is_submodule ? NULL : git_tree_entry_id(entry),
		      depth + 1);
	leave(c, mark);
	return r;
}

static bool is_folder_type(const git_tree_entry *entry)
{
	git_object_t type = git_tree_entry_type(entry);

	return type == GIT_OBJECT_TREE || type == GIT_OBJECT_COMMIT;
}

static bool same_entry(const git_tree_entry *a, const git_tree_entry *b)
{
	return a && b && git_oid_equal(git_tree_entry_id(a), git_tree_entry_id(b)) &&
	       git_tree_entry_filemode(a) == git_tree_entry_filemode(b);
}

static int sync_entry(struct checkout *c, int fd, const git_tree *old, bool is_trusted,
		      const git_tree_entry *entry, int depth)
{
	const char *name = git_tree_entry_name(entry);
	const git_tree_entry *before = old ? git_tree_entry_byname(old, name) : NULL;
	const git_oid *old_id = NULL;

	if (!is_safe_name(name))
		return kb_error_set(c->err, KB_EREPO,
				    "refusing the file name '%s%s' in %s: it could reach "
				    "outside of the checkout",
				    kb_str_get(&c->path), name, c->repo->name);
	if (is_trusted && same_entry(before, entry))
		return 0;
	if (is_folder_type(entry)) {
		if (before && git_tree_entry_type(before) == GIT_OBJECT_TREE)
			old_id = git_tree_entry_id(before);
		return sync_folder(c, fd, entry, old_id, depth);
	}
	return is_trusted ? write_blob(c, fd, entry) : verify_blob(c, fd, entry);
}

/* Names that are in the old tree, or on disk when there is none to trust, but not wanted.
 */
static int remove_vanished(struct checkout *c, int fd, const git_tree *old,
			   const git_tree *wanted)
{
	KB_AUTO(close_dir) DIR *folder = NULL;
	const struct dirent *entry;
	int copy, r = 0;

	for (size_t i = 0; old && !r && i < git_tree_entrycount(old); i++) {
		const char *name = git_tree_entry_name(git_tree_entry_byindex(old, i));

		if (is_safe_name(name) &&
		    !(wanted && git_tree_entry_byname(wanted, name)))
			r = remove_entry(c, fd, name, 0);
	}
	if (old || r)
		return r;
	copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder = copy < 0 ? NULL : fdopendir(copy);
	if (!folder) {
		r = failed(c, "list", "");
		kb_close(&copy);
		return r;
	}
	while (!r && (entry = readdir(folder))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    !(wanted && git_tree_entry_byname(wanted, entry->d_name)))
			r = remove_entry(c, fd, entry->d_name, 0);
	}
	return r;
}

/**
 * @param old_id what the folder is known to hold; NULL: nothing is known
 * @param new_id what it shall hold; NULL: nothing
 */
static int sync_tree(struct checkout *c, int fd, const git_oid *old_id,
		     const git_oid *new_id, int depth)
{
	KB_AUTO(free_tree) git_tree *old = NULL;
	KB_AUTO(free_tree) git_tree *wanted = NULL;
	int r;

	if (depth > DEPTH_MAX)
		return kb_error_set(c->err, KB_EREPO, "folders nested too deeply in %s",
				    c->repo->name);
	if (kb_interrupted())
		return kb_error_set(c->err, KB_EINTERRUPTED,
				    "interrupted while writing %s", c->dir);
	/* An old tree that was pruned since only means that nothing is known. */
	if (old_id && git_tree_lookup(&old, c->repo->git, old_id))
		old = NULL;
	if (new_id && git_tree_lookup(&wanted, c->repo->git, new_id))
		return kb_repo_git_error(c->err, "can't read the tree of %s in %s",
					 kb_str_get(&c->path), c->repo->name);
	r = remove_vanished(c, fd, old, wanted);
	for (size_t i = 0; wanted && !r && i < git_tree_entrycount(wanted); i++)
		r = sync_entry(c, fd, old, old != NULL, git_tree_entry_byindex(wanted, i),
			       depth);
	return r;
}

/* What a remembered checkout must match to be believed; the caller frees it. */
static char *state_text(int fd, const git_oid *tree)
{
	KB_AUTO_FREE char *boot = NULL;
	struct stat st = {0};
	struct kb_oid hex;
	size_t len;

	if (kb_read_file("/proc/sys/kernel/random/boot_id", 256, &boot, &len, NULL))
		boot = NULL;
	fstat(fd, &st);
	kb_oid_from_git(tree, &hex);
	return kb_asprintf("kbisect checkout 1\nfolder %llu %llu\nboot %s\ntree %s\n",
			   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			   boot ? kb_str_rstrip(boot) : "unknown", hex.hex);
}

static bool read_state(int fd, const char *state_path, git_oid *ret_tree)
{
	KB_AUTO_FREE char *text = NULL;
	KB_AUTO_FREE char *expected = NULL;
	const char *line;
	size_t len;

	if (kb_read_file(state_path, STATE_MAX_BYTES, &text, &len, NULL))
		return false;
	line = strstr(text, "\ntree ");
	if (!line || strlen(line) != KB_OID_HEX_LEN + 7 ||
	    git_oid_fromstrn(ret_tree, line + 6, KB_OID_HEX_LEN))
		return false;
	expected = state_text(fd, ret_tree);
	return kb_streq(text, expected);
}

static int open_top(const char *dir, int *ret_fd, struct kb_error *err)
{
	KB_AUTO_FREE char *git = kb_path_join(dir, ".git");
	int r = kb_mkdirs(dir, err);

	if (r)
		return r;
	if (kb_path_exists(git))
		return kb_error_set(
			err, KB_EIO,
			"%s is a git work tree; its files will not be replaced", dir);
	*ret_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "can't open %s", dir);
	return 0;
}

int kb_repo_checkout(struct kb_repo *repo, const struct kb_oid *commit, const char *dir,
		     const char *state_path, uint64_t *ret_changed, struct kb_error *err)
{
	struct checkout c = {.repo = repo, .dir = dir, .err = err};
	KB_AUTO(kb_close) int fd = -1;
	KB_AUTO_FREE char *state = NULL;
	git_oid old_tree;
	uint32_t number;
	int r = kb_commits_get(repo, commit, &number, err);

	if (!r)
		r = open_top(dir, &fd, err);
	if (r)
		return r;
	git_oid tree = repo->commits.items[number].tree;
	bool is_known = read_state(fd, state_path, &old_tree);
	if (!is_known || !git_oid_equal(&old_tree, &tree)) {
		if (unlink(state_path) && errno != ENOENT)
			return kb_error_errno(err, KB_EIO, errno, "can't remove %s",
					      state_path);
		r = sync_tree(&c, fd, is_known ? &old_tree : NULL, &tree, 0);
		kb_str_free(&c.path);
		if (r)
			return r;
		state = state_text(fd, &tree);
		r = kb_write_file_atomic(state_path, state, strlen(state), err);
	}
	if (!r && ret_changed)
		*ret_changed = c.changed;
	return r;
}
