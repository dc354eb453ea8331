/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parameter file of a boot (docs/guest-protocol.md, 1). Pure: text in, struct out. */
#ifndef KB_GUEST_PARAMS_H
#define KB_GUEST_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-init/proto.h"

#define KB_PARAMS_WL_MAX 64 /* param.NAME lines */

enum kb_guest_mode { KB_GUEST_EXACT, KB_GUEST_TIME, KB_GUEST_SHELL };
enum kb_guest_end { KB_GUEST_REBOOT, KB_GUEST_POWEROFF };

struct kb_wl_param {
	const char *name;  /* borrowed, without "param." */
	const char *value; /* borrowed */
};

struct kb_params {
	char nonce[KB_PROTO_NONCE_MAX + 1];
	enum kb_guest_mode mode;
	enum kb_guest_end end;
	const char *scratch_device;	   /* borrowed; NULL: no scratch file system */
	const char *scratch_mkfs;	   /* borrowed, never NULL */
	const char *scratch_mount_options; /* borrowed, never NULL */
	const char *workload;		   /* borrowed, never NULL */
	bool ssh;
	uint64_t keep_ms, timeout_ms;
	struct kb_wl_param wl[KB_PARAMS_WL_MAX];
	size_t wl_count;
};

/**
 * Parses `text`, which must be NUL-terminated at text[len]; it is cut up, and the
 * struct's strings point into it.
 * @return 0, or -1 with one line in `reason` that names the line, *ret_params untouched
 */
int kb_params_parse(char *text, size_t len, struct kb_params *ret_params, char *reason,
		    size_t reason_size);

#endif
