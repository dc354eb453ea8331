/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect unit: one build or one boot, a JSON request in and a JSON record out. */
#include <stdio.h>

#include "harness/base/mem.h"
#include "harness/boot.h"
#include "harness/build.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "results/record.h"

static int unit_build(const char *request, const char *record, struct kb_error *err)
{
	KB_AUTO(kb_build_request_free) struct kb_build_request req = { 0 };
	KB_AUTO(kb_build_record_free) struct kb_build_record rec = { 0 };
	int r = kb_build_request_read(request, &req, err);

	if (!r)
		r = kb_build_run(&req, &rec, err);
	return r ? r : kb_build_record_write(record, &rec, err);
}

static int unit_boot(const char *request, const char *record, struct kb_error *err)
{
	KB_AUTO(kb_boot_request_free) struct kb_boot_request req = { 0 };
	KB_AUTO(kb_boot_record_free) struct kb_boot_record rec = { 0 };
	int r = kb_boot_request_read(request, &req, err);

	if (!r)
		r = kb_boot_run(&req, &rec, err);
	return r ? r : kb_boot_record_write(record, &rec, err);
}

int kb_cmd_unit(int argc, char **argv)
{
	KB_AUTO(kb_strv_free) struct kb_strv args = { 0 };
	struct kb_error err;
	const struct kb_command cmd = {
		.name = "unit",
		.summary = "run one unit of work: a build or a boot (plumbing)",
		.usage = "build|boot REQUEST.json RECORD.json",
		.description =
			"Reads the request, does the work and writes the record. Exit code 0 means "
			"that there is a record, whatever it says (a kernel that does not compile or "
			"panics is a record too); any other means that the work could not be "
			"attempted. docs/results-format.md describes the documents.",
		.args_min = 3,
		.args_max = 3,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &args, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r) {
		if (kb_streq(args.items[0], "build"))
			r = unit_build(args.items[1], args.items[2], &err);
		else if (kb_streq(args.items[0], "boot"))
			r = unit_boot(args.items[1], args.items[2], &err);
		else
			r = kb_error_set(&err, KB_EUSAGE, "unknown unit '%s': build or boot",
					 args.items[0]);
	}
	return r ? kb_cmd_fail("unit", &err) : KB_EXIT_OK;
}
