/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect report and kbisect log: what a stored run says. */
#include <stdio.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/session.h"
#include "results/run.h"

/* A finished run has its report; of an unfinished one the journal is replayed. */
static int load_report(const char *dir, struct kb_report *ret_report, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(dir, "report.json");

	if (kb_path_exists(path))
		return kb_report_read(path, ret_report, err);
	return kb_session_report(dir, ret_report, err);
}

int kb_cmd_report(int argc, char **argv)
{
	KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
	KB_AUTO(kb_report_free) struct kb_report report = { 0 };
	KB_AUTO_FREE char *state = kb_state_dir();
	KB_AUTO_FREE char *dir = NULL;
	const char *format = "text";
	bool json = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "format", .short_name = 'f', .type = KB_OPT_STRING, .target = &format,
		  .arg_name = "FORMAT", .help = "text (default) or json" },
		{ .name = "json", .type = KB_OPT_FLAG, .target = &json,
		  .help = "the same as --format json" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "report",
		.summary = "report a stored run",
		.usage = "[RUN] [--format text|json]",
		.description = "RUN is a run's id, a unique beginning of it, or its folder; without "
			       "it the latest run is taken. A run that is not finished is reported "
			       "as far as it went.",
		.opts = opts,
		.args_max = 1,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &args, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r && !json && !kb_streq(format, "text") && !kb_streq(format, "json"))
		r = kb_error_set(&err, KB_EUSAGE, "unknown format '%s': text or json", format);
	if (!r)
		r = kb_run_find(state, args.count ? args.items[0] : NULL, NULL, &dir, &err);
	if (!r)
		r = load_report(dir, &report, &err);
	if (r)
		return kb_cmd_fail("report", &err);
	kb_cmd_print_report(&report, json || kb_streq(format, "json"));
	return KB_EXIT_OK;
}

int kb_cmd_log(int argc, char **argv)
{
	KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
	KB_AUTO_FREE char *state = kb_state_dir();
	KB_AUTO_FREE char *dir = NULL;
	KB_AUTO_FREE char *text = NULL;
	struct kb_error err;
	const struct kb_command cmd = {
		.name = "log",
		.summary = "print a run as a log that `git bisect replay` accepts",
		.usage = "[RUN]",
		.description = "RUN is a run's id, a unique beginning of it, or its folder; without "
			       "it the latest bisection is taken.",
		.args_max = 1,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &args, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = kb_run_find(state, args.count ? args.items[0] : NULL, "bisect", &dir, &err);
	if (!r)
		r = kb_session_git_log(dir, &text, &err);
	if (r)
		return kb_cmd_fail("log", &err);
	fputs(text, stdout);
	return KB_EXIT_OK;
}
