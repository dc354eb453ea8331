/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job files: any bytes; what is accepted must survive being written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct kb_job *job)
{
	KB_AUTO_FREE char *text = kb_job_format(job);
	KB_AUTO(kb_job_free) struct kb_job again;
	struct kb_error err;
	char before[65], after[65];

	kb_job_init(&again);
	if (kb_job_parse(text, strlen(text), "again", &again, &err))
		abort(); /* wrote what it does not read */
	KB_AUTO_FREE char *twice = kb_job_format(&again);
	if (strcmp(text, twice))
		abort();
	kb_job_measurement_hash(job, before);
	kb_job_measurement_hash(&again, after);
	if (strcmp(before, after))
		abort();
	if ((kb_job_check(job, &err) == 0) != (kb_job_check(&again, NULL) == 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err;

	kb_job_init(&job);
	if (!kb_job_parse((const char *)data, size, "fuzz", &job, &err))
		check_accepted(&job);
	/* the same bytes as KEY=VALUE */
	KB_AUTO_FREE char *line = kb_strndup((const char *)data, size);
	char *eq = strchr(line, '=');
	if (eq) {
		*eq = '\0';
		if (!kb_job_set(&job, line, eq + 1, &err))
			check_accepted(&job);
	}
	return 0;
}
