/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect job: shows the effective job, or the reference of all keys. */
#include <stdio.h>

#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/workload.h"

/* What the guest will be told, so that a size such as "2.0x memory" can be checked. */
static int check_workload(const struct kb_job *job, struct kb_error *err)
{
	KB_AUTO(kb_pairs_free) struct kb_pairs params = { 0 };
	int r = kb_workload_resolve(job->workload_name, &job->workload_params, job->vm_memory_mib,
				    &params, err);

	for (size_t i = 0; i < params.count && !r; i++)
		fprintf(stderr, "resolved: %s = %s\n", params.items[i].name, params.items[i].value);
	return r;
}

int kb_cmd_job(int argc, char **argv)
{
	struct kb_cmd_job_opts o = { 0 };
	KB_AUTO(kb_job_free) struct kb_job job = { 0 };
	bool reference = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		KB_CMD_JOB_OPTIONS(o),
		{ .name = "reference", .type = KB_OPT_FLAG, .target = &reference,
		  .help = "print the reference of all job keys (docs/job-file.md)" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "job",
		.summary = "check a job and print it with every default filled in",
		.usage = "[--job FILE] [--set KEY=VALUE]...",
		.description = "Prints the effective job as JSON on stdout, and on stderr what its "
			       "workload parameters resolve to.",
		.opts = opts,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r && reference) {
		kb_job_write_reference(stdout);
		kb_strv_free(&o.sets);
		return KB_EXIT_OK;
	}
	if (!r)
		r = kb_cmd_load_job(&o, &job, &err);
	if (!r)
		r = check_workload(&job, &err);
	kb_strv_free(&o.sets);
	if (r)
		return kb_cmd_fail("job", &err);
	KB_AUTO_FREE char *text = kb_job_format(&job);
	printf("%s\n", text);
	return KB_EXIT_OK;
}
