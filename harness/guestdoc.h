/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what the guest says: "@kb" console lines and the result document
 * (guest-init/proto.h, docs/guest-protocol.md). Pure and strict: the guest may be broken
 * in any way, and what is not exactly right must never become a number.
 */
#ifndef KB_HARNESS_GUESTDOC_H
#define KB_HARNESS_GUESTDOC_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "results/record.h"

#define KB_NONCE_MAX 64

enum kb_marker_kind {
	KB_MARKER_NONE = 0, /* not a marker line */
	KB_MARKER_START,
	KB_MARKER_PHASE,
	KB_MARKER_FAIL,
	KB_MARKER_RESULT,
	KB_MARKER_BROKEN, /* begins like a marker, but is not one */
};

struct kb_marker {
	enum kb_marker_kind kind;
	char nonce[KB_NONCE_MAX + 1];	  /* START, RESULT */
	unsigned version;		  /* START */
	char name[64];			  /* PHASE, FAIL: phase or step */
	int errno_value;		  /* FAIL */
	char text[256];			  /* FAIL: sanitized */
	uint64_t bytes;			  /* RESULT */
	char sha256[KB_HASH_HEX_LEN + 1]; /* RESULT */
};

/**
 * Parses one console line (no newline; any bytes). A kernel time stamp in front is
 * skipped, so that markers may come through /dev/kmsg.
 */
enum kb_marker_kind kb_marker_parse(const char *line, size_t len,
				    struct kb_marker *ret_marker);

/**
 * Checks a collected result against the marker that announced it and fills
 * kernel_version, workload, params, metrics, counters and notes of *ret_record, which
 * must hold none yet, and outcome and reason when the workload itself says "invalid"; on
 * failure they are left empty.
 * @param nonce what this boot was given
 * Errors: KB_EGUEST, with a one-line reason fit for the record.
 */
int kb_guestdoc_parse(const char *data, size_t len, const struct kb_marker *marker,
		      const char *nonce, struct kb_boot_record *ret_record,
		      struct kb_error *err);

/** The same without the marker's length and checksum (the fuzzer's door). */
int kb_guestdoc_parse_text(const char *data, size_t len, const char *nonce,
			   struct kb_boot_record *ret_record, struct kb_error *err);

#endif
