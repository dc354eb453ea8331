/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/job-file.md, written from the option table so that it cannot go stale unnoticed. */
#include <inttypes.h>
#include <string.h>

#include "harness/job_internal.h"
#include "harness/workload.h"

static const char intro[] =
	"<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
	"<!-- Generated from the table in harness/job_options.c by `make docs`: edit that. -->\n"
	"# Job files\n\n"
	"A job says *how* to measure; which revisions is said on the command line. It is strict\n"
	"JSON: an unknown or duplicate key is an error, and so is a comment (use `description`).\n"
	"Every key has a default, so `{}` is a job. A key that is there replaces the whole default,\n"
	"lists and objects too. `section.name` below stands for `{\"section\": {\"name\": ...}}`.\n\n"
	"On the command line, `--set section.name=VALUE` overrides a key; lists are separated by\n"
	"commas (`--set kernel.required=XFS_FS,FSDAX`), `--set workload.params.files=32` sets one\n"
	"parameter, and `null` unsets what may be null. Samples are in configs/jobs.\n";

static const char sizes[] =
	"\n## Sizes\n\n"
	"A size is a number of bytes (`4194304`), a number with `KiB`, `MiB`, `GiB` or `TiB`\n"
	"(`64MiB`), or a multiple of the guest's memory (`2.0x memory`). The last one is worked out\n"
	"by the controller from `vm.memory_mib`, never from what the guest sees, so that every\n"
	"commit does the same work. Sizes are multiples of 4096 bytes.\n";

static const char expects[] =
	"\n## Preconditions: `expect`\n\n"
	"An array of objects, such as\n"
	"`{\"counter\": \"workingset_nodes\", \"at\": \"start\", \"min\": 300, \"max\": 900}`.\n"
	"A boot in which a counter is missing or out of its range is invalid: it is never taken for\n"
	"a measurement. Counters are listed in guest-protocol.md.\n\n"
	"| key | meaning |\n|---|---|\n"
	"| `counter` | name of the counter |\n"
	"| `at` | `start` (default) or `stop` of the measured part, checked in every repetition; "
	"`before` or `after` the whole workload, checked once |\n"
	"| `min`, `max` | the range, both ends included; at least one of them |\n";

static void write_type(FILE *out, const struct job_option *o)
{
	switch (o->type) {
	case JOB_TEXT:
		fputs(o->nullable ? "string or null" : "string", out);
		break;
	case JOB_CHOICE:
		for (const char *c = o->choices; *c; c++) {
			if (*c == '|')
				fputs(", ", out);
			else
				fputc(*c, out);
		}
		break;
	case JOB_U32:
	case JOB_U64:
		if (o->max == INT64_MAX)
			fprintf(out, "integer from %" PRIu64, o->min);
		else
			fprintf(out, "%" PRIu64 "..%" PRIu64, o->min, o->max);
		break;
	case JOB_DOUBLE:
		fprintf(out, "number, %g..%g", o->low, o->high);
		break;
	case JOB_BOOL:
		fputs("true, false", out);
		break;
	case JOB_LIST:
		fputs("array of strings", out);
		break;
	case JOB_PARAMS:
		fputs("object", out);
		break;
	case JOB_EXPECTS:
		fputs("array of objects", out);
		break;
	}
	if (o->unit)
		fprintf(out, " %s", o->unit);
}

static void write_default(FILE *out, const struct job_option *o)
{
	if (!o->fallback)
		fputs("null", out);
	else if (o->type == JOB_PARAMS)
		fputs("`{}`", out);
	else if (*o->fallback)
		fprintf(out, "`%s`", o->fallback);
	else
		fputs(o->type == JOB_LIST ? "`[]`" : "empty", out);
}

static void write_rows(FILE *out, const char *section)
{
	size_t len = strlen(section);

	fputs("| key | values | default | meaning |\n|---|---|---|---|\n", out);
	for (size_t i = 0; i < job_option_count; i++) {
		const struct job_option *o = &job_options[i];
		const char *dot = strchr(o->key, '.');
		size_t own = dot ? (size_t)(dot - o->key) : 0;

		if (own != len || !kb_starts_with(o->key, section))
			continue;
		fprintf(out, "| `%s` | ", o->key);
		write_type(out, o);
		fputs(" | ", out);
		write_default(out, o);
		fprintf(out, " | %s |\n", o->help);
	}
}

void kb_job_write_reference(FILE *out)
{
	static const struct {
		const char *section, *title;
	} sections[] = {
		{ "", "What is measured" },
		{ "vm", "Virtual machine: `vm`" },
		{ "kernel", "Kernel build: `kernel`" },
		{ "fs", "Scratch file system: `fs`" },
		{ "workload", "Workload: `workload`" },
		{ "decision", "Decision: `decision`" },
	};

	fputs(intro, out);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		fprintf(out, "\n## %s\n\n", sections[i].title);
		write_rows(out, sections[i].section);
	}
	fputs(sizes, out);
	fputs(expects, out);
	fputs("\n## Workloads\n", out);
	kb_workload_write_reference(out);
}
