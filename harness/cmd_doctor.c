/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect doctor: what this host has and lacks. */
#include <stdio.h>

#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/doctor.h"
#include "harness/opts.h"
#include "results/run.h"

static void print_report(const struct kb_doctor_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct kb_doctor_check *c = &report->checks[i];

		printf("%-8s %-20s %s\n", kb_doctor_status_name(c->status), c->name, c->fact);
		if (c->fix)
			printf("%-8s %-20s   -> %s\n", "", "", c->fix);
	}
	puts(kb_doctor_is_missing(report) ? "\nSomething that kbisect needs is missing."
					  : "\nThis host can build and boot kernels.");
}

int kb_cmd_doctor(int argc, char **argv)
{
	KB_AUTO(kb_doctor_report_free) struct kb_doctor_report report = { 0 };
	KB_AUTO_FREE char *cache = kb_cache_dir();
	bool json = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "json", .type = KB_OPT_FLAG, .target = &json,
		  .help = "print one JSON document" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "doctor",
		.summary = "check what this host has and lacks",
		.usage = "[--json]",
		.description =
			"Looks for KVM, QEMU, libvirt, the programs and headers that kernel builds "
			"and the guest image need, disk space and memory; tries what can be tried "
			"rather than trusting that it is there. Each line is ok, warn (kbisect "
			"works, but slower or with less) or missing, and names the Debian package "
			"that helps. Exit code 4: something needed is missing.",
		.opts = opts,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (r)
		return kb_cmd_fail("doctor", &err);
	kb_doctor_run(cache, &report);
	if (json) {
		KB_AUTO_FREE char *text = kb_doctor_json(&report);
		fputs(text, stdout);
	} else {
		print_report(&report);
	}
	return kb_doctor_is_missing(&report) ? KB_EXIT_INFRASTRUCTURE : KB_EXIT_OK;
}
