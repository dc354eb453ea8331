/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/version.h"

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "doctor", "check what this host has and lacks", kb_cmd_doctor },
	{ "bisect", "find the first bad commit, unattended", kb_cmd_bisect },
	{ "measure", "build and boot revisions a fixed number of times", kb_cmd_measure },
	{ "judge", "test program for `git bisect run`", kb_cmd_judge },
	{ "report", "report a stored run", kb_cmd_report },
	{ "resume", "go on with a bisection after a kill or a crash", kb_cmd_resume },
	{ "log", "print a run as a `git bisect replay` log", kb_cmd_log },
	{ "shell", "boot a revision and open a shell in it", kb_cmd_shell },
	{ "job", "check a job and print it in full", kb_cmd_job },
	{ "sim", "decision rules against simulated truth", kb_cmd_sim },
	{ "next", "print the commit to test next (plumbing)", kb_cmd_next },
	{ "unit", "run one build or one boot (plumbing)", kb_cmd_unit },
	{ "gc", "trim the caches", kb_cmd_gc },
};

static void usage(FILE *out)
{
	fputs("usage: kbisect [-v|--verbose] COMMAND [OPTIONS]\n\n"
	      "Finds the commit that made a Linux kernel slower: builds it, boots it in virtual\n"
	      "machines, measures, and decides by statistics.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < KB_COUNT_OF(commands); i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`kbisect COMMAND --help` explains a command. State is kept in $KBISECT_HOME\n"
	      "(default ~/.local/state/kbisect), caches in $KBISECT_CACHE (~/.cache/kbisect).\n",
	      out);
}

static int unknown(const char *name)
{
	const char *names[KB_COUNT_OF(commands)];

	for (size_t i = 0; i < KB_COUNT_OF(commands); i++)
		names[i] = commands[i].name;
	const char *near = kb_opts_nearest(name, names, KB_COUNT_OF(commands));
	fprintf(stderr, "kbisect: unknown command '%s'", name);
	if (near)
		fprintf(stderr, "; did you mean '%s'?", near);
	fputs(" (see kbisect --help)\n", stderr);
	return KB_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	int at = 1;

	kb_interrupt_setup();
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h")) {
			usage(stdout);
			return KB_EXIT_OK;
		}
		if (!strcmp(argv[at], "--version")) {
			puts("kbisect " KB_VERSION);
			return KB_EXIT_OK;
		}
		if (!strcmp(argv[at], "--verbose") || !strcmp(argv[at], "-v")) {
			kb_log_set_level(KB_LOG_DEBUG);
			continue;
		}
		fprintf(stderr, "kbisect: unknown option '%s' (see kbisect --help)\n", argv[at]);
		return KB_EXIT_USAGE;
	}
	if (at == argc) {
		usage(stderr);
		return KB_EXIT_USAGE;
	}
	for (size_t i = 0; i < KB_COUNT_OF(commands); i++)
		if (!strcmp(argv[at], commands[i].name))
			return commands[i].run(argc - at, argv + at);
	return unknown(argv[at]);
}
