/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect sim: decision rules against simulated truth. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bisect/sim.h"
#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"

#define JOBS_MAX 256

struct sim_opts {
	uint64_t trials, candidates, seed, jobs;
	struct kb_strv cells, rules;
	bool json;
};

static void sim_opts_free(struct sim_opts *o)
{
	kb_strv_free(&o->cells);
	kb_strv_free(&o->rules);
}

static bool is_listed(const struct kb_strv *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (kb_streq(list->items[i], name))
			return true;
	}
	return list->count == 0;
}

static int check_cells(const struct sim_opts *o, struct kb_error *err)
{
	size_t count;
	const struct kb_sim_cell *cells = kb_sim_cells(&count);

	for (size_t i = 0; i < o->cells.count; i++) {
		size_t c = 0;

		while (c < count && !kb_streq(cells[c].name, o->cells.items[i]))
			c++;
		if (c == count)
			return kb_error_set(err, KB_EUSAGE, "no scenario is called '%s'",
					    o->cells.items[i]);
	}
	for (size_t i = 0; i < o->rules.count; i++) {
		unsigned r = 0;

		while (r < KB_SIM_RULES &&
		       !kb_streq(kb_sim_rule_name((enum kb_sim_rule)r),
				 o->rules.items[i]))
			r++;
		if (r == KB_SIM_RULES)
			return kb_error_set(err, KB_EUSAGE, "no rule is called '%s'",
					    o->rules.items[i]);
	}
	return 0;
}

/* Every job takes every jobs-th trial, so that the sum does not depend on their number
 * (but for the rounding of means). */
static void run_share(const struct sim_opts *o, const struct kb_sim_cell *cell,
		      enum kb_sim_rule rule, uint64_t job,
		      const struct kb_plan_table *table, struct kb_sim_tally *tally)
{
	for (uint64_t t = job; t < o->trials; t += o->jobs)
		kb_sim_trial(cell, rule, (uint32_t)o->candidates, o->seed, (uint32_t)t,
			     table, tally);
}

static _Noreturn void child(const struct sim_opts *o, const struct kb_sim_cell *cell,
			    enum kb_sim_rule rule, uint64_t job,
			    const struct kb_plan_table *table, int fd)
{
	struct kb_sim_tally tally = {0};

	run_share(o, cell, rule, job, table, &tally);
	/* Less than PIPE_BUF: all or nothing. */
	_exit(write(fd, &tally, sizeof(tally)) == (ssize_t)sizeof(tally) ? 0 : 1);
}

static int reap(pid_t *pids, uint64_t count)
{
	int failed = 0, status;

	for (uint64_t j = 0; j < count; j++) {
		while (waitpid(pids[j], &status, 0) < 0 && errno == EINTR)
			;
		failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	return failed;
}

static int run_cell(const struct sim_opts *o, const struct kb_sim_cell *cell,
		    enum kb_sim_rule rule, const struct kb_plan_table *table,
		    struct kb_sim_tally *tally, struct kb_error *err)
{
	pid_t pids[JOBS_MAX];
	int fds[2], failed;
	uint64_t started = 0;
	struct kb_sim_tally one;

	if (o->jobs == 1) {
		run_share(o, cell, rule, 0, table, tally);
		return 0;
	}
	if (pipe(fds))
		return kb_error_errno(err, KB_EIO, errno, "pipe");
	fflush(NULL);
	for (; started < o->jobs; started++) {
		pids[started] = fork();
		if (pids[started] == 0)
			child(o, cell, rule, started, table, fds[1]);
		if (pids[started] < 0)
			break;
	}
	close(fds[1]);
	failed = reap(pids, started) || started < o->jobs;
	while (!failed && read(fds[0], &one, sizeof(one)) == (ssize_t)sizeof(one))
		kb_sim_tally_add(tally, &one);
	close(fds[0]);
	if (failed || tally->trials != o->trials)
		return kb_error_set(err, KB_EINTERNAL, "a simulation process failed");
	return 0;
}

static void print_json(const struct kb_sim_cell *cell, enum kb_sim_rule rule,
		       const struct kb_sim_tally *t, bool first)
{
	double n = t->trials;

	printf("%s\n    {\"scenario\": \"%s\", \"rule\": \"%s\", \"trials\": %u, "
	       "\"wrong\": %u, \"unresolved\": %u, \"refused\": %u, \"multi\": %u, "
	       "\"multi_right\": %u, \"coverage\": ",
	       first ? "" : ",", cell->name, kb_sim_rule_name(rule), t->trials, t->wrong,
	       t->unresolved, t->refused, t->multi, t->both);
	if (t->posed)
		printf("%.4f, \"set_size\": %.2f, ", t->covered / (double)t->posed,
		       t->set_size / t->posed);
	else
		printf("null, \"set_size\": null, ");
	printf("\"builds\": %.2f, \"boots\": %.1f}", t->builds / n, t->boots / n);
}

static void print_row(const struct kb_sim_cell *cell, enum kb_sim_rule rule,
		      const struct kb_sim_tally *t)
{
	double n = t->trials;

	printf("%-15s %-9s %6.1f %6.1f %6.1f %6.1f ", cell->name, kb_sim_rule_name(rule),
	       100 * t->wrong / n, 100 * t->unresolved / n, 100 * t->refused / n,
	       100 * t->multi / n);
	if (t->posed)
		printf("%6.1f ", 100.0 * t->covered / t->posed);
	else
		printf("%6s ", "-");
	printf("%7.1f %8.1f %8.1f\n", t->builds / n, t->boots / n,
	       (10 * t->builds + t->boots) / n);
}

static int sim(const struct sim_opts *o, struct kb_error *err)
{
	size_t count;
	const struct kb_sim_cell *cells = kb_sim_cells(&count);
	struct kb_plan_table *table = kb_plan_table_new();
	bool first = true;
	int r = 0;

	if (o->json)
		printf("{\n  \"format\": {\"name\": \"kbisect-sim\", \"major\": 1, "
		       "\"minor\": 0},\n  \"candidates\": %llu,\n  \"seed\": %llu,\n"
		       "  \"cells\": [",
		       (unsigned long long)o->candidates, (unsigned long long)o->seed);
	else
		printf("%-15s %-9s %6s %6s %6s %6s %6s %7s %8s %8s\n", "scenario", "rule",
		       "wrong%", "open%", "refus%", "multi%", "cover%", "builds", "boots",
		       "cost");
	for (size_t c = 0; c < count && !r; c++) {
		for (unsigned k = 0; k < KB_SIM_RULES && !r; k++) {
			enum kb_sim_rule rule = (enum kb_sim_rule)k;
			struct kb_sim_tally tally = {0};

			if (!is_listed(&o->cells, cells[c].name) ||
			    !is_listed(&o->rules, kb_sim_rule_name(rule)) ||
			    !kb_sim_can(rule, &cells[c]))
				continue;
			r = run_cell(o, &cells[c], rule, table, &tally, err);
			if (r)
				break;
			if (o->json)
				print_json(&cells[c], rule, &tally, first);
			else
				print_row(&cells[c], rule, &tally);
			first = false;
			fflush(stdout);
		}
	}
	if (o->json && !r)
		printf("\n  ]\n}\n");
	kb_plan_table_free(table);
	return r;
}

static int parse(struct sim_opts *o, int argc, char **argv, struct kb_error *err)
{
	const struct kb_opt opts[] = {
		{.name = "trials",
		 .short_name = 'n',
		 .type = KB_OPT_U64,
		 .target = &o->trials,
		 .arg_name = "N",
		 .help = "trials per scenario and rule (default: 500)",
		 .min = 1,
		 .max = 10000000},
		{.name = "candidates",
		 .type = KB_OPT_U64,
		 .target = &o->candidates,
		 .arg_name = "N",
		 .help = "commits of each history (default: 1000)",
		 .min = 50,
		 .max = 1000000},
		{.name = "seed",
		 .type = KB_OPT_U64,
		 .target = &o->seed,
		 .arg_name = "N",
		 .help = "the same seed gives the same numbers (default: 1)"},
		{.name = "jobs",
		 .short_name = 'j',
		 .type = KB_OPT_U64,
		 .target = &o->jobs,
		 .arg_name = "N",
		 .help = "processes (default: one per core)",
		 .min = 1,
		 .max = JOBS_MAX},
		{.name = "scenario",
		 .type = KB_OPT_LIST,
		 .target = &o->cells,
		 .arg_name = "NAME",
		 .help = "only this scenario; may be repeated"},
		{.name = "rule",
		 .type = KB_OPT_LIST,
		 .target = &o->rules,
		 .arg_name = "NAME",
		 .help = "only this rule (engine, first, plain-1, plain-3, plain-10, "
			 "plain-30, bayesect, bbchop); may be repeated"},
		{.name = "json",
		 .type = KB_OPT_FLAG,
		 .target = &o->json,
		 .help = "print JSON"},
		{0},
	};
	const struct kb_command cmd = {
		.name = "sim",
		.summary = "decision rules against simulated truth",
		.usage = "[--scenario NAME]... [--rule NAME]... [--trials N]",
		.description =
			"Runs decision rules on simulated histories with a known culprit: \"first\", the "
			"rule that `kbisect bisect` uses; \"engine\", the Bayesian engine that is to "
			"replace it; and the rules of other tools. Per scenario and rule: wrong "
			"answers, answers left open, refusals, reports of two changes, how often the "
			"credible set holds the culprit, builds and boots (endpoints and calibration "
			"included), and the cost in boots when a build costs ten.",
		.opts = opts,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, err);

	return r ? r : check_cells(o, err);
}

int kb_cmd_sim(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	KB_AUTO(sim_opts_free)
	struct sim_opts o = {
		.trials = 500,
		.candidates = 1000,
		.seed = 1,
		.jobs = cores > 0 && cores < JOBS_MAX ? (uint64_t)cores : 1,
	};
	struct kb_error err;
	int r = parse(&o, argc, argv, &err);

	if (r == 1)
		return KB_EXIT_OK;
	if (!r)
		r = sim(&o, &err);
	return r ? kb_cmd_fail("sim", &err) : KB_EXIT_OK;
}
