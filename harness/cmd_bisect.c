/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect bisect, and kbisect resume: the same from a journal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/progress.h"
#include "harness/session.h"
#include "results/run.h"

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int run(const char *name, const char *run_dir, bool fresh, bool json, bool quiet)
{
	KB_AUTO(kb_report_free) struct kb_report report = { 0 };
	struct kb_progress progress;
	struct kb_session_observer observer = { kb_progress_status, &progress };
	struct kb_error err;
	int r;

	kb_progress_init(&progress, quiet);
	r = kb_session_run(run_dir, fresh, &observer, &report, &err);
	kb_progress_end(&progress);
	if (r) {
		int code = kb_cmd_fail(name, &err);

		if (code == KB_EXIT_INFRASTRUCTURE || code == KB_EXIT_INTERRUPTED)
			fprintf(stderr, "kbisect %s: nothing finished is lost; go on with: "
					"kbisect resume %s\n",
				name, last_component(run_dir));
		return code;
	}
	kb_cmd_print_report(&report, json);
	return kb_cmd_report_exit(&report);
}

struct bisect_opts {
	const char *repo, *bad, *unit_command;
	struct kb_strv goods, skips;
	struct kb_cmd_job_opts job;
	bool first_parent, json, quiet, fresh, force;
};

static void bisect_opts_free(struct bisect_opts *o)
{
	kb_strv_free(&o->goods);
	kb_strv_free(&o->skips);
	kb_strv_free(&o->job.sets);
}

static int start(struct bisect_opts *o, struct kb_strv *paths, int argc, char **argv,
		 char **ret_dir, struct kb_error *err)
{
	KB_AUTO(kb_job_free) struct kb_job job = { 0 };
	KB_AUTO(kb_strv_free) struct kb_strv words = { 0 };
	struct kb_session_args args = { .command = "bisect",
					.repo_path = o->repo,
					.goods = &o->goods,
					.bad = o->bad,
					.skips = &o->skips,
					.paths = paths,
					.first_parent = o->first_parent,
					.unit_command = o->unit_command,
					.argv = &words };
	int r;

	if (!o->goods.count || !o->bad)
		return kb_error_set(err, KB_EUSAGE,
				    "name both endpoints: --good REV --bad REV (see --help)");
	r = kb_cmd_load_job(&o->job, &job, err);
	if (r)
		return r;
	if (o->force)
		r = kb_job_set(&job, "decision.force", "true", err);
	if (r)
		return r;
	args.job = &job;
	for (int i = 0; i < argc; i++)
		kb_strv_add(&words, argv[i]);
	return kb_session_create(&args, ret_dir, err);
}

int kb_cmd_bisect(int argc, char **argv)
{
	KB_AUTO(bisect_opts_free) struct bisect_opts o = { .repo = "." };
	KB_AUTO(kb_strv_free) struct kb_strv paths = { 0 };
	KB_AUTO_FREE char *dir = NULL;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "repo", .short_name = 'C', .type = KB_OPT_STRING, .target = &o.repo,
		  .arg_name = "DIR", .help = "the kernel's git repository (default: .); only read" },
		{ .name = "good", .short_name = 'g', .type = KB_OPT_LIST, .target = &o.goods,
		  .arg_name = "REV",
		  .help = "a revision without the regression; the first one is measured" },
		{ .name = "bad", .short_name = 'b', .type = KB_OPT_STRING, .target = &o.bad,
		  .arg_name = "REV", .help = "a revision with it" },
		{ .name = "skip", .type = KB_OPT_LIST, .target = &o.skips, .arg_name = "REV",
		  .help = "do not test this commit; it stays a candidate" },
		KB_CMD_JOB_OPTIONS(o.job),
		{ .name = "first-parent", .type = KB_OPT_FLAG, .target = &o.first_parent,
		  .help = "follow only first parents: find the merge, not the commit in it" },
		{ .name = "force", .type = KB_OPT_FLAG, .target = &o.force,
		  .help = "go on although the endpoints are too close for the boots allowed" },
		{ .name = "fresh", .type = KB_OPT_FLAG, .target = &o.fresh,
		  .help = "measure again what the cache of exact boots already knows" },
		{ .name = "unit-command", .type = KB_OPT_STRING, .target = &o.unit_command,
		  .arg_name = "CMD",
		  .help = "run each build and boot as `CMD build|boot REQUEST RECORD` instead of "
			  "by this program, e.g. to send it to another host" },
		{ .name = "json", .type = KB_OPT_FLAG, .target = &o.json,
		  .help = "print the report as JSON" },
		{ .name = "quiet", .short_name = 'q', .type = KB_OPT_FLAG, .target = &o.quiet,
		  .help = "no progress on stderr" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "bisect",
		.summary = "find the first bad commit of a performance regression, unattended",
		.usage = "--repo DIR --good REV --bad REV [--job FILE] [-- PATH...]",
		.description =
			"Measures both endpoints until it is sure that they differ, then builds and "
			"boots commits in between, as many boots as each decision needs, and confirms "
			"the commit it found against its parents with fresh boots.\n\n"
			"Exit code: 0 culprit found and confirmed; 2 usage or configuration; 3 only "
			"narrowed down to a set (or not confirmed); 4 infrastructure broken "
			"(resumable); 5 the endpoints do not differ; 6 more than one change; 130 "
			"interrupted (resumable); 1 any other failure.",
		.opts = opts,
		.takes_paths = true,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, &paths, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = start(&o, &paths, argc, argv, &dir, &err);
	if (r)
		return kb_cmd_fail("bisect", &err);
	if (!o.quiet)
		kb_info("run %s", last_component(dir));
	return run("bisect", dir, o.fresh, o.json, o.quiet);
}

int kb_cmd_resume(int argc, char **argv)
{
	KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
	KB_AUTO_FREE char *state = kb_state_dir();
	KB_AUTO_FREE char *dir = NULL;
	bool json = false, quiet = false, fresh = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "json", .type = KB_OPT_FLAG, .target = &json,
		  .help = "print the report as JSON" },
		{ .name = "fresh", .type = KB_OPT_FLAG, .target = &fresh,
		  .help = "measure again what the cache of exact boots already knows" },
		{ .name = "quiet", .short_name = 'q', .type = KB_OPT_FLAG, .target = &quiet,
		  .help = "no progress on stderr" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "resume",
		.summary = "go on with a bisection after a kill, a crash or a reboot",
		.usage = "[RUN]",
		.description = "RUN is a run's id, a unique beginning of it, or its folder; without "
			       "it the latest bisection is taken. Finished builds and boots are not "
			       "repeated. A finished run is reported again.",
		.opts = opts,
		.args_max = 1,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &args, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = kb_run_find(state, args.count ? args.items[0] : NULL, "bisect", &dir, &err);
	if (r)
		return kb_cmd_fail("resume", &err);
	return run("resume", dir, fresh, json, quiet);
}
