/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result document and its end marker (docs/guest-protocol.md, 2 and 3). */
#ifndef KB_GUEST_RESULT_H
#define KB_GUEST_RESULT_H

#include <stddef.h>

#include "guest-init/proto.h"

struct kb_result {
	char *data; /* owned */
	size_t len;
};

/**
 * Puts the document together: head, the lines of init, the lines of the workload, end.
 * @param kernel made clean here
 * @return 0, or -1 with errno (EFBIG: over the protocol's limit)
 */
int kb_result_build(const char *nonce, const char *kernel, const char *workload,
		    const char *init_lines, const char *workload_lines,
		    struct kb_result *ret_result);

void kb_result_free(struct kb_result *r);

/** "@kb result ..." with its newline, for a document; `line` has room for 256 bytes. */
void kb_result_marker(const char *nonce, const void *data, size_t len, char *line);

#endif
