/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect measure: samples of one or more revisions. */
#include <stdio.h>

#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/progress.h"
#include "harness/survey.h"

struct measure_opts {
	const char *repo, *unit_command;
	struct kb_cmd_job_opts job;
	uint64_t boots;
	bool json, quiet, fresh;
};

static int measure(struct measure_opts *o, const struct kb_strv *revs,
		   struct kb_report *ret_report, struct kb_error *err)
{
	KB_AUTO(kb_job_free) struct kb_job job = { 0 };
	KB_AUTO_FREE char *dir = NULL;
	struct kb_progress progress;
	struct kb_session_observer observer = { kb_progress_status, &progress };
	struct kb_session_args args = { .command = "measure", .repo_path = o->repo,
					.goods = revs, .unit_command = o->unit_command };
	int r = kb_cmd_load_job(&o->job, &job, err);

	if (r)
		return r;
	args.job = &job;
	r = kb_session_create(&args, &dir, err);
	if (r)
		return r;
	kb_progress_init(&progress, o->quiet);
	r = kb_survey_run(dir, (uint32_t)o->boots, o->fresh, &observer, ret_report, err);
	kb_progress_end(&progress);
	return r;
}

int kb_cmd_measure(int argc, char **argv)
{
	struct measure_opts o = { .repo = ".", .boots = 5 };
	KB_AUTO(kb_strv_free) struct kb_strv revs = { 0 };
	KB_AUTO(kb_report_free) struct kb_report report = { 0 };
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "repo", .short_name = 'C', .type = KB_OPT_STRING, .target = &o.repo,
		  .arg_name = "DIR", .help = "the kernel's git repository (default: .); only read" },
		{ .name = "boots", .short_name = 'n', .type = KB_OPT_U64, .target = &o.boots,
		  .arg_name = "N", .help = "boots of each revision (default 5)", .min = 1,
		  .max = 100000 },
		KB_CMD_JOB_OPTIONS(o.job),
		{ .name = "fresh", .type = KB_OPT_FLAG, .target = &o.fresh,
		  .help = "measure again what the cache of exact boots already knows" },
		{ .name = "unit-command", .type = KB_OPT_STRING, .target = &o.unit_command,
		  .arg_name = "CMD", .help = "as in `kbisect bisect`" },
		{ .name = "json", .type = KB_OPT_FLAG, .target = &o.json,
		  .help = "print the report as JSON" },
		{ .name = "quiet", .short_name = 'q', .type = KB_OPT_FLAG, .target = &o.quiet,
		  .help = "no progress on stderr" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "measure",
		.summary = "build and boot revisions a fixed number of times",
		.usage = "--repo DIR [--boots N] [--job FILE] REV...",
		.description = "Prints mean, standard deviation and number of boots per revision. In "
			       "time mode several revisions take turns boot by boot.",
		.opts = opts,
		.args_min = 1,
		.args_max = KB_OPTS_ANY_NUMBER,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &revs, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	for (size_t i = 0; i < revs.count && !r; i++)
		for (size_t j = 0; j < i && !r; j++)
			if (kb_streq(revs.items[i], revs.items[j]))
				r = kb_error_set(&err, KB_EUSAGE,
						 "%s is named twice: raise --boots instead",
						 revs.items[i]);
	if (!r)
		r = measure(&o, &revs, &report, &err);
	kb_strv_free(&o.job.sets);
	if (r)
		return kb_cmd_fail("measure", &err);
	kb_cmd_print_report(&report, o.json);
	for (size_t i = 0; i < report.tested_count; i++)
		if (!report.tested[i].boots)
			return KB_EXIT_FAILURE;
	return KB_EXIT_OK;
}
