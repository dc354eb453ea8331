/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"

char *kb_path_join(const char *a, const char *b)
{
	if (*b == '/' || *a == '\0')
		return kb_strdup(b);
	return kb_asprintf("%s%s%s", a, kb_ends_with(a, "/") ? "" : "/", b);
}

bool kb_path_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

bool kb_path_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int kb_mkdirs(const char *path, struct kb_error *err)
{
	KB_AUTO_FREE char *part = kb_strdup(path);
	size_t len = strlen(part);

	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		char kept = part[i];

		part[i] = '\0';
		/* some file systems say EROFS or EACCES for a folder that is there */
		if (mkdir(part, 0777)) {
			int saved = errno;

			if (!kb_path_is_dir(part))
				return kb_error_errno(err, KB_EIO, saved,
						      "cannot make the folder %s", part);
		}
		part[i] = kept;
	}
	return 0;
}

/* ---- walking ---- */

/* Removes everything below an open folder; closes it. @return 0 or an errno value */
static int remove_below(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = errno;
		close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (kb_streq(name, ".") || kb_streq(name, ".."))
			continue;
		if (unlinkat(dirfd(dir), name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			r = errno;
			break;
		}
		int sub = openat(dirfd(dir), name,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = sub < 0 ? errno : remove_below(sub);
		if (r == 0 && unlinkat(dirfd(dir), name, AT_REMOVEDIR) && errno != ENOENT)
			r = errno;
	}
	closedir(dir);
	return r;
}

int kb_remove_tree(const char *path, struct kb_error *err)
{
	int r = 0;

	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		r = errno;
	else
		r = remove_below(fd);
	if (r == 0 && rmdir(path) && errno != ENOENT)
		r = errno;
	return r ? kb_error_errno(err, KB_EIO, r, "cannot remove %s", path) : 0;
}

static uint64_t bytes_below(int parent, const char *name)
{
	struct stat st;
	uint64_t sum;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	sum = (uint64_t)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode))
		return sum;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return sum;
	}
	struct dirent *entry;
	while ((entry = readdir(dir)))
		if (!kb_streq(entry->d_name, ".") && !kb_streq(entry->d_name, ".."))
			sum += bytes_below(dirfd(dir), entry->d_name);
	closedir(dir);
	return sum;
}

uint64_t kb_tree_bytes(const char *path)
{
	return bytes_below(AT_FDCWD, path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int kb_list_dir(const char *path, int (*fn)(const char *name, void *ctx), void *ctx,
		struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv names = { 0 };
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return kb_error_errno(err, KB_EIO, errno, "cannot read the folder %s", path);
	errno = 0;
	while ((entry = readdir(dir)))
		if (!kb_streq(entry->d_name, ".") && !kb_streq(entry->d_name, ".."))
			kb_strv_add(&names, entry->d_name);
	int saved = errno;
	closedir(dir);
	if (saved)
		return kb_error_errno(err, KB_EIO, saved, "cannot read the folder %s", path);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_name);
	for (size_t i = 0; i < names.count; i++) {
		int r = fn(names.items[i], ctx);

		if (r)
			return r;
	}
	return 0;
}

/* ---- reading and writing ---- */

int kb_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len,
		 struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	KB_AUTO(kb_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[16384];

	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot open %s", path);
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kb_error_errno(err, KB_EIO, errno, "cannot read %s", path);
		if (n == 0)
			break;
		if ((size_t)n > max_bytes - text.len)
			return kb_error_set(err, KB_EIO, "%s is larger than %zu bytes", path,
					    max_bytes);
		kb_str_append_bytes(&text, buf, (size_t)n);
	}
	if (ret_len)
		*ret_len = text.len;
	*ret_data = kb_str_steal(&text);
	return 0;
}

int kb_write_all(int fd, const void *data, size_t len, struct kb_error *err)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kb_error_errno(err, KB_EIO, errno, "cannot write");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A new file beside `path`, mode 0666 less umask. @ret_tmp owned; untouched on failure */
static int open_beside(const char *path, char **ret_tmp, int *ret_fd, struct kb_error *err)
{
	for (unsigned i = 0; i < 10000; i++) {
		char *tmp = kb_asprintf("%s.tmp.%ld.%u", path, (long)getpid(), i);
		int fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

		if (fd >= 0) {
			*ret_tmp = tmp;
			*ret_fd = fd;
			return 0;
		}
		int saved = errno;
		free(tmp);
		if (saved != EEXIST)
			return kb_error_errno(err, KB_EIO, saved, "cannot write %s", path);
	}
	return kb_error_set(err, KB_EIO, "cannot write %s: too many old temporary files", path);
}

static void sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	KB_AUTO_FREE char *dir = !slash	       ? kb_strdup(".") :
				 slash == path ? kb_strdup("/") :
						 kb_strndup(path, (size_t)(slash - path));
	KB_AUTO(kb_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* not every file system can sync a folder; the rename itself has happened */
	if (fd >= 0)
		(void)fsync(fd);
}

/* fsync, close, rename, fsync the folder; the temporary is gone afterwards either way. */
static int commit_file(int *fd, const char *tmp, const char *path, struct kb_error *err)
{
	int saved = 0;

	if (fsync(*fd))
		saved = errno;
	if (close(*fd) && !saved)
		saved = errno;
	*fd = -1;
	if (!saved && rename(tmp, path))
		saved = errno;
	if (saved) {
		unlink(tmp);
		return kb_error_errno(err, KB_EIO, saved, "cannot write %s", path);
	}
	sync_parent(path);
	return 0;
}

int kb_write_file_atomic(const char *path, const void *data, size_t len,
			 struct kb_error *err)
{
	KB_AUTO_FREE char *tmp = NULL;
	KB_AUTO(kb_close) int fd = -1;
	int r = open_beside(path, &tmp, &fd, err);

	if (r)
		return r;
	r = kb_write_all(fd, data, len, err);
	if (r) {
		unlink(tmp);
		kb_error_prefix(err, "%s", path);
		return r;
	}
	return commit_file(&fd, tmp, path, err);
}

/* Copies [from, to) of a file. @return 0 or an errno value */
static int copy_bytes(int in, int out, off_t from, off_t to, char *buf, size_t buf_size)
{
	while (from < to) {
		size_t want = (size_t)(to - from) < buf_size ? (size_t)(to - from) : buf_size;
		ssize_t n = pread(in, buf, want, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO; /* it shrank under us */
		for (ssize_t done = 0; done < n;) {
			ssize_t w = pwrite(out, buf + done, (size_t)(n - done), from + done);

			if (w < 0 && errno != EINTR)
				return errno;
			done += w < 0 ? 0 : w;
		}
		from += n;
	}
	return 0;
}

static int copy_sparse(int in, int out, off_t size)
{
	KB_AUTO_FREE char *buf = kb_malloc(1 << 17);
	off_t pos = 0;

	while (pos < size) {
		off_t data = lseek(in, pos, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (data < 0)
			data = pos; /* no SEEK_DATA here: all of it is data */
		off_t hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0 || hole > size)
			hole = size;
		int r = copy_bytes(in, out, data, hole, buf, 1 << 17);
		if (r)
			return r;
		pos = hole;
	}
	return ftruncate(out, size) ? errno : 0;
}

int kb_copy_file(const char *from, const char *to, struct kb_error *err)
{
	KB_AUTO(kb_close) int in = open(from, O_RDONLY | O_CLOEXEC);
	KB_AUTO(kb_close) int out = -1;
	KB_AUTO_FREE char *tmp = NULL;
	struct stat st;

	if (in < 0 || fstat(in, &st))
		return kb_error_errno(err, KB_EIO, errno, "cannot open %s", from);
	if (!S_ISREG(st.st_mode))
		return kb_error_set(err, KB_EIO, "%s is not a regular file", from);
	int r = open_beside(to, &tmp, &out, err);
	if (r)
		return r;
	int saved = copy_sparse(in, out, st.st_size);
	if (!saved && fchmod(out, st.st_mode & 07777))
		saved = errno;
	if (saved) {
		unlink(tmp);
		return kb_error_errno(err, KB_EIO, saved, "cannot copy %s to %s", from, to);
	}
	return commit_file(&out, tmp, to, err);
}

int kb_free_space(const char *path, uint64_t *ret_bytes, struct kb_error *err)
{
	struct statvfs vfs;

	if (statvfs(path, &vfs))
		return kb_error_errno(err, KB_EIO, errno, "cannot ask for free space at %s",
				      path);
	*ret_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return 0;
}

int kb_lock_file(const char *path, bool wait, int *ret_fd, struct kb_error *err)
{
	KB_AUTO(kb_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot open the lock %s", path);
	while (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB))) {
		if (errno == EWOULDBLOCK)
			return 1;
		if (errno != EINTR)
			return kb_error_errno(err, KB_EIO, errno, "cannot lock %s", path);
		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED,
					    "interrupted while waiting for %s", path);
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

void kb_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
