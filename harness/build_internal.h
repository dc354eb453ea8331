/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by harness/build*.c only. */
#ifndef KB_HARNESS_BUILD_INTERNAL_H
#define KB_HARNESS_BUILD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/error.h"
#include "harness/base/str.h"
#include "results/record.h"

/* Changes when the same inputs would give other artifacts than before: part of every key. */
#define KB_BUILD_RECIPE 1

/* One build in progress. All strings are owned. */
struct kb_build {
	const struct kb_build_request *req; /* borrowed */
	struct kb_build_record *rec;        /* borrowed; filled step by step */
	char *slot;      /* resolved: the kernel's make does not like symbolic links */
	char *src, *obj, *conf; /* source tree, O= of the kernel, O= of the configuration */
	char *log;
	char *marker;    /* is there while make runs: see kb_build_slot_prepare() */
	char *stamp;     /* what obj was made with */
	char *requested; /* the fragments' text, concatenated */
	char *entry;     /* CACHE/builds/KEY */
	int entry_fd;    /* holds the entry once there is one */
	uint64_t deadline_ms;
	bool fresh;      /* obj began empty */
	bool configured; /* obj/.config is this commit's */
};

/**
 * Makes the object tree fit for an incremental build: thrown away when it was made with
 * another toolchain or other arguments, cleaned of half-written files when the last make
 * did not end by itself.
 */
int kb_build_slot_prepare(struct kb_build *b, struct kb_error *err);

/** make begins / has ended by itself (so that its files are whole). */
int kb_build_slot_begin_make(struct kb_build *b, struct kb_error *err);
void kb_build_slot_end_make(struct kb_build *b);

/** Throws the object trees away. */
int kb_build_slot_wipe(struct kb_build *b, struct kb_error *err);

/** Is there room for what is going to be written? Errors: KB_EBUILD, naming the size. */
int kb_build_slot_check_space(const struct kb_build *b, struct kb_error *err);

/**
 * Takes the record out of the cache. @return 0 found, 1 not there; a damaged entry is
 * reported, thrown away and not there.
 */
int kb_build_store_find(struct kb_build *b, struct kb_error *err);

/** Puts artifacts (when it was built) and record into the cache. */
int kb_build_store_put(struct kb_build *b, struct kb_error *err);

#endif
