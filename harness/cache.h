/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caches below one folder: CACHE/builds/KEY (folders) and CACHE/boots/XX/KEY.json (files)
 * hold finished, read-only entries, CACHE/slots/ID the source and object trees of builds. An
 * entry appears by a rename, so it is complete or absent; its mtime is the time of its last
 * use. Whoever uses a folder holds a shared flock() on it; a file is read in one go. Safe for
 * several processes.
 */
#ifndef KB_HARNESS_CACHE_H
#define KB_HARNESS_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/error.h"

#define KB_CACHE_BUILDS "builds"
#define KB_CACHE_BOOTS "boots"
#define KB_CACHE_SLOTS "slots"

/** CACHE/KIND/KEY; owned by the caller. */
char *kb_cache_path(const char *cache_dir, const char *kind, const char *key);

/**
 * Takes an entry into use: marks it as used now and keeps it from being trimmed until
 * *ret_fd is closed (or the process dies).
 * @return 0; 1 when there is no such entry (*ret_fd left alone)
 */
int kb_cache_hold(const char *entry_dir, int *ret_fd, struct kb_error *err);

/** Marks an entry that is a file as used now; one that is gone is nothing to complain of. */
void kb_cache_touch(const char *entry_path);

/** A new, held, empty folder on the same file system, to be filled and put in place. */
int kb_cache_begin(const char *cache_dir, const char *kind, char **ret_dir, int *ret_fd,
		   struct kb_error *err);

/**
 * Puts a filled folder of kb_cache_begin() in place. If another process was first, theirs
 * stays and ours is removed: both are the same by key. The hold on *fd goes over to the
 * entry that is in place.
 */
int kb_cache_commit(const char *filled_dir, const char *entry_dir, int *fd,
		    struct kb_error *err);

/** Takes an entry away at once (a damaged one); whoever still has it open keeps that. */
int kb_cache_discard(const char *entry_dir, struct kb_error *err);

/** Locks a slot for a build; waits. The lock is a file beside the folder. */
int kb_cache_lock_slot(const char *slot_dir, int *ret_fd, struct kb_error *err);

struct kb_cache_trim {
	uint64_t max_bytes;   /* trim until no more than this is left */
	bool slots;           /* slots count and may be removed too */
	bool dry_run;
	/* Called for each entry that is (or would be) removed; NULL is fine. */
	void (*removed)(void *ctx, const char *kind, const char *key, uint64_t bytes);
	void *ctx;
};

struct kb_cache_totals {
	uint64_t bytes_before, bytes_freed;
	uint32_t entries_before, entries_removed, entries_in_use;
};

/**
 * Removes the least recently used entries, never one in use, until the rest fits; leftovers
 * of killed processes always go. Errors: KB_EIO, KB_EINTERRUPTED.
 */
int kb_cache_trim(const char *cache_dir, const struct kb_cache_trim *how,
		  struct kb_cache_totals *ret_totals, struct kb_error *err);

#endif
