/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fixed number of boots of one or more revisions, without any decision. */
#ifndef KB_HARNESS_SURVEY_H
#define KB_HARNESS_SURVEY_H

#include "harness/session.h"
#include "results/report.h"

/**
 * Measures every revision of a run made by kb_session_create() with `goods` = the revisions
 * and no `bad`. In time mode the revisions take turns boot by boot; in exact mode the order
 * cannot matter.
 * @ret_report verdict "measured", one row per revision; also RUN/report.json. Caller frees.
 * Errors: as kb_session_run().
 */
int kb_survey_run(const char *run_dir, uint32_t boots, bool fresh,
		  const struct kb_session_observer *observer, struct kb_report *ret_report,
		  struct kb_error *err);

#endif
