/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Progress on stderr: one live line on a terminal, plain lines elsewhere. */
#ifndef KB_HARNESS_PROGRESS_H
#define KB_HARNESS_PROGRESS_H

#include <stdbool.h>

#include "harness/session.h"

struct kb_progress {
	bool terminal, quiet;
	unsigned columns;
	unsigned long drawn_ms;
};

/** @param quiet nothing is shown at all */
void kb_progress_init(struct kb_progress *p, bool quiet);
/** The observer callback; ctx is the struct kb_progress. */
void kb_progress_status(void *ctx, const struct kb_session_status *status);
/** Clears the live line. */
void kb_progress_end(struct kb_progress *p);

#endif
