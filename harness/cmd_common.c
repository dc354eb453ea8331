/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/paths.h"

static int exit_code_of(enum kb_errno code)
{
	switch (code) {
	case KB_OK:
		return KB_EXIT_OK;
	case KB_EUSAGE:
	case KB_ECONFIG:
	case KB_EREPO:
		return KB_EXIT_USAGE;
	case KB_EBUILD:
	case KB_EVM:
	case KB_EGUEST:
	case KB_ETIMEOUT:
	case KB_EIO:
		return KB_EXIT_INFRASTRUCTURE;
	case KB_EINTERRUPTED:
		return KB_EXIT_INTERRUPTED;
	case KB_EINTERNAL:
		break;
	}
	return KB_EXIT_FAILURE;
}

int kb_cmd_fail(const char *name, const struct kb_error *err)
{
	fprintf(stderr, "kbisect %s: %s\n", name, err->message);
	return exit_code_of(err->code);
}

int kb_cmd_report_exit(const struct kb_report *report)
{
	static const struct {
		const char *verdict;
		int code;
	} table[] = {
		{ "culprit", KB_EXIT_OK },
		{ "measured", KB_EXIT_OK },
		{ "set", KB_EXIT_SET },
		{ "infrastructure", KB_EXIT_INFRASTRUCTURE },
		{ "not-reproducible", KB_EXIT_NOT_REPRODUCIBLE },
		{ "multi", KB_EXIT_MULTI },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		if (!kb_streq(report->verdict, table[i].verdict))
			continue;
		/* Named but not confirmed is not what exit 0 promises. */
		if (kb_streq(report->verdict, "culprit") && !report->confirmed)
			return KB_EXIT_SET;
		return table[i].code;
	}
	return KB_EXIT_FAILURE;
}

void kb_cmd_print_report(const struct kb_report *report, bool json)
{
	if (json) {
		KB_AUTO_FREE char *text = kb_report_json(report);

		fputs(text, stdout);
		if (!kb_ends_with(text, "\n"))
			putchar('\n');
	} else {
		kb_report_text(report, stdout);
	}
	fflush(stdout);
}

static int apply_set(struct kb_job *job, const char *assignment, struct kb_error *err)
{
	const char *eq = strchr(assignment, '=');

	if (!eq || eq == assignment)
		return kb_error_set(err, KB_EUSAGE,
				    "--set wants KEY=VALUE, e.g. vm.memory_mib=256, not '%s'",
				    assignment);
	KB_AUTO_FREE char *key = kb_strndup(assignment, (size_t)(eq - assignment));
	return kb_job_set(job, key, eq + 1, err);
}

int kb_cmd_load_job(const struct kb_cmd_job_opts *opts, struct kb_job *ret_job,
		    struct kb_error *err)
{
	int r = 0;

	kb_job_init(ret_job);
	if (opts->job) {
		KB_AUTO_FREE char *path = NULL;

		r = kb_path_job(opts->job, &path, err);
		if (!r)
			r = kb_job_load(path, ret_job, err);
	}
	for (size_t i = 0; i < opts->sets.count && !r; i++)
		r = apply_set(ret_job, opts->sets.items[i], err);
	if (!r && opts->mode)
		r = kb_job_set(ret_job, "mode", opts->mode, err);
	if (r)
		kb_job_free(ret_job);
	return r;
}
