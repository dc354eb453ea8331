/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the "newc" cpio archive that the kernel unpacks as initramfs. Pure.
 *
 * The kernel accepts several archives one after the other; later files replace earlier
 * ones. That is how a boot's parameters and keys reach the guest without rebuilding its
 * image. Source: Documentation/driver-api/early-userspace/buffer-format.rst of the
 * kernel.
 */
#ifndef KB_HARNESS_CPIO_H
#define KB_HARNESS_CPIO_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/str.h"

struct kb_cpio {
	struct kb_str out; /* the archive so far; free with kb_cpio_free() */
	uint32_t next_ino;
};

void kb_cpio_free(struct kb_cpio *c);

/** A folder; `path` without leading '/'. Parents must be added (or exist) before. */
void kb_cpio_add_dir(struct kb_cpio *c, const char *path, unsigned mode);

/** A regular file; `path` without leading '/', `len` below 4 GiB. */
void kb_cpio_add_file(struct kb_cpio *c, const char *path, unsigned mode,
		      const void *data, size_t len);

/** The trailer. The result's length is a multiple of 4; nothing may be added after it. */
void kb_cpio_finish(struct kb_cpio *c);

#endif
