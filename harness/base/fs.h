/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files and folders: atomic writes, bounded reads, locks. */
#ifndef KB_BASE_FS_H
#define KB_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"

/** Joins with '/'; the caller owns the result. Absolute `b` replaces `a`. */
char *kb_path_join(const char *a, const char *b);

bool kb_path_exists(const char *path);
bool kb_path_is_dir(const char *path);

/** mkdir -p, mode 0777 less umask. Errors: KB_EIO. */
int kb_mkdirs(const char *path, struct kb_error *err);

/** rm -rf; a path that does not exist is success; never follows symbolic links. */
int kb_remove_tree(const char *path, struct kb_error *err);

/**
 * Reads a whole file. `max_bytes` bounds it: a longer file is an error.
 * @ret_data owned by the caller, NUL-terminated (the NUL is not counted in *ret_len)
 */
int kb_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len,
		 struct kb_error *err);

/** Writes to a temporary beside it, fsyncs, renames, fsyncs the folder. */
int kb_write_file_atomic(const char *path, const void *data, size_t len,
			 struct kb_error *err);

/** Copies bytes and mode through a temporary and a rename. Sparse areas stay sparse. */
int kb_copy_file(const char *from, const char *to, struct kb_error *err);

/** Writes all of it to fd, restarting on EINTR and short writes. */
int kb_write_all(int fd, const void *data, size_t len, struct kb_error *err);

/** Bytes that an unprivileged write below `path` may still use. */
int kb_free_space(const char *path, uint64_t *ret_bytes, struct kb_error *err);

/** Sum of allocated bytes below `path`; unreadable parts count as nothing. */
uint64_t kb_tree_bytes(const char *path);

/**
 * Takes an exclusive flock() on `path` (made if missing). With `wait` false a lock held
 * elsewhere returns 1 and leaves *ret_fd alone. Closing the fd (or dying) gives it back.
 */
int kb_lock_file(const char *path, bool wait, int *ret_fd, struct kb_error *err);

void kb_close(int *fd); /* closes when >= 0 and sets -1; for KB_AUTO(kb_close) int fd */

/** Calls fn(name, ctx) for each entry except . and .., sorted by name; stops when it returns
 * non-zero and returns that. A missing folder is an empty one. */
int kb_list_dir(const char *path, int (*fn)(const char *name, void *ctx), void *ctx,
		struct kb_error *err);

#endif
