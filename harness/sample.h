/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a boot record to the one number that the decision sees. Pure. */
#ifndef KB_HARNESS_SAMPLE_H
#define KB_HARNESS_SAMPLE_H

#include <stdbool.h>

#include "harness/job.h"
#include "results/record.h"

struct kb_sample {
	bool valid;
	char reason[256];      /* why not, one line */
	double mean;           /* of the metric over the repetitions after warm-up */
	double y;              /* ln(mean), sign turned so that larger is worse */
	bool higher_is_better;
	char unit[32];
};

/**
 * Judges one record by its job: outcome, every precondition of the job, the deciding
 * metric's presence, finite and positive values, number of repetitions. Whatever is not in
 * order makes the sample invalid with the reason; it never becomes a number.
 */
void kb_sample_from_record(const struct kb_boot_record *record, const struct kb_job *job,
			   struct kb_sample *ret_sample);

#endif
