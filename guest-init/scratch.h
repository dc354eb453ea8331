/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The XFS scratch file system: made fresh at each boot, with the controller's options. */
#ifndef KB_GUEST_SCRATCH_H
#define KB_GUEST_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KB_SCRATCH_DIR "/scratch"

struct kb_scratch_error {
	const char *step; /* "scratch", "mkfs", "mount" */
	int errno_value;
	char text[240];
};

/** Waits until the device node is there, but not for ever. */
int kb_scratch_wait(const char *device, struct kb_scratch_error *ret_error);

/**
 * Runs mkfs.xfs -f OPTIONS DEVICE; what it printed goes to `notes` as "note mkfs: "
 * lines, so that the format is part of every result.
 */
int kb_scratch_mkfs(const char *device, const char *options, FILE *notes,
		    struct kb_scratch_error *ret_error);

int kb_scratch_mount(const char *device, const char *options,
		     struct kb_scratch_error *ret_error);

/** Splits at blanks, in place. @return number of words, at most max, or -1 when more */
int kb_scratch_split(char *text, const char **words, int max);

#endif
