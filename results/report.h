/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run found, as one document: text for people, JSON for scripts. */
#ifndef KB_RESULTS_REPORT_H
#define KB_RESULTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

struct kb_report_commit {
	char *commit, *subject; /* owned */
	char *verdict;          /* good | bad | unclear | untestable | candidate */
	char *reason;           /* for untestable; else NULL */
	double probability;     /* of being the first bad commit */
	uint32_t boots, failed;
	double mean, sd;        /* of the metric in its own unit, over boot means; NAN if none */
	bool endpoint;
	double *values;         /* owned; boot means, in order; `boots` of them */
};

struct kb_report { /* format name "kbisect-report" */
	char *run_id, *command;
	char *verdict;          /* culprit | set | not-reproducible | multi | infrastructure |
				   measured | interrupted | fixed-on-good-side */
	char *reason;
	struct kb_report_commit *candidates; /* owned; ranked */
	size_t candidate_count;
	struct kb_report_commit *tested;     /* owned; in the order first tested */
	size_t tested_count;
	char *metric, *unit;
	bool higher_is_better;
	bool has_effect;
	double effect_ratio, effect_low, effect_high; /* culprit : parent, 1.0 = same */
	double endpoint_ratio;                        /* bad : good; NAN if unknown */
	double confirm_p;
	bool confirmed;
	uint32_t builds, builds_cached, boots, boots_cached, pruned;
	uint32_t range_size;    /* candidates at the start */
	uint64_t wall_ms;
	char *repo_path, *good, *bad, *mode, *job_name, *image_sha256, *kernel_config;
	struct kb_strv argv;    /* the command's arguments as given, its name first; may be empty */
};

void kb_report_free(struct kb_report *r);
/** For an answer that makes the candidates meaningless. */
void kb_report_drop_candidates(struct kb_report *r);
int kb_report_write(const char *path, const struct kb_report *r, struct kb_error *err);
int kb_report_read(const char *path, struct kb_report *ret, struct kb_error *err);
char *kb_report_json(const struct kb_report *r); /* owned; the same document, indented */
/**
 * A text to paste into a mail, at most 76 columns where ids and numbers allow: the answer in
 * one line, a table COMMIT AVG STDDEV N VERDICT (nanoseconds are shown as microseconds), the
 * answer in words, the evidence, how to reproduce it.
 * Source of the table: Jan Kara's report "Truncate regression due to commit 69b6c1319b6".
 */
void kb_report_text(const struct kb_report *r, FILE *out);

#endif
