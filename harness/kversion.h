/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel versions, and what an XFS made for the oldest of them may contain. Pure. */
#ifndef KB_HARNESS_KVERSION_H
#define KB_HARNESS_KVERSION_H

#include <stddef.h>

struct kb_kversion {
	unsigned major, minor; /* 6, 1; both 0 when unknown */
};

/** Reads VERSION and PATCHLEVEL out of a kernel's top Makefile; {0, 0} when they are absent. */
struct kb_kversion kb_kversion_from_makefile(const char *text, size_t len);

/** Negative, 0 or positive as a is older than, equal to or newer than b. */
int kb_kversion_compare(struct kb_kversion a, struct kb_kversion b);

/**
 * mkfs.xfs options (besides size and device) whose on-disk features every kernel from
 * `oldest` on can mount. Never NULL; an unknown version gets the most conservative set.
 * Source: the kernel release in which each feature stopped being experimental or unknown
 * (docs/decisions/mkfs-features.md).
 */
const char *kb_kversion_mkfs_options(struct kb_kversion oldest);

#endif
