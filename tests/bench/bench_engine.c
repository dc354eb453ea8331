/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-engine: how long the Bayesian engine takes to choose the next action among many
 * candidates, a quarter of them merges. usage: bench_engine [CANDIDATES [BRANCHES]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bisect/plan.h"
#include "bisect/rng.h"
#include "harness/base/mem.h"

/* Branches that grow side by side; every fourth commit merges two of them. */
static void branchy_dag(struct kb_dag *dag, uint32_t count, uint32_t width,
			struct kb_rng *rng)
{
	KB_AUTO_FREE uint32_t *heads = kb_calloc(width, sizeof(*heads));
	uint32_t open = 1;

	kb_dag_init(dag);
	kb_dag_add(dag, NULL, 0);
	while (dag->node_count < count) {
		uint32_t left = count - dag->node_count, i = kb_rng_below(rng, open);

		if (open > 1 && (open > left || kb_rng_below(rng, 4) == 0)) {
			uint32_t j = (i + 1 + kb_rng_below(rng, open - 1)) % open;

			heads[i] = kb_dag_add(dag, (uint32_t[]){heads[i], heads[j]}, 2);
			heads[j] = heads[--open];
		} else if (open < width && kb_rng_below(rng, 3) == 0) {
			heads[open++] = kb_dag_add(dag, &heads[i], 1);
		} else {
			heads[i] = kb_dag_add(dag, &heads[i], 1);
		}
	}
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
	uint32_t width = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 64;
	struct kb_noise noise = {.low = -3, .high = 8, .bad = 5, .delta = 5, .scale = 1};
	struct kb_plan_table *table = kb_plan_table_new();
	struct kb_rng rng = {5};
	struct kb_dag dag;
	uint32_t merges = 0, steps = 0, culprit;
	double slowest = 0;
	struct rusage usage;

	branchy_dag(&dag, count, width, &rng);
	culprit = count / 3 * 2;
	for (uint32_t n = 0; n < count; n++)
		merges += kb_dag_parent_count(&dag, n) > 1;

	KB_AUTO_FREE uint8_t *testable = kb_calloc(count, 1);
	struct kb_posterior *p = kb_posterior_new(&dag, count - 1, NULL, &noise);
	struct kb_plan_costs costs = {.boot = 1, .build = 10};
	struct kb_plan_limits limits = {
		.testable = testable, .boots_min = 1, .layouts_max = 1, .least = 0.001};

	for (uint32_t n = 0; n + 1 < count; n++)
		testable[n] = 1;
	for (int i = 0; i < 20; i++) {
		kb_posterior_add(p, KB_POSTERIOR_GOOD, 0, i % 2 ? 1 : -1);
		kb_posterior_add(p, count - 1, 0, i % 2 ? 6 : 4);
	}
	for (; steps < 200; steps++) {
		KB_AUTO_FREE uint8_t *marks = kb_calloc(count, 1);
		double start = cpu_s();
		struct kb_plan_choice c;

		kb_posterior_update(p);
		c = kb_plan_next(table, p, &costs, &limits);
		start = cpu_s() - start;
		slowest = start > slowest ? start : slowest;
		if (c.node == UINT32_MAX ||
		    kb_posterior_all(p)[kb_posterior_top(p)] >= 0.95)
			break;
		kb_dag_mark_ancestors(&dag, c.node, marks);
		for (uint32_t b = 0; b < c.boots; b++)
			kb_posterior_add(p, c.node, 0,
					 (marks[culprit] ? 5 : 0) +
						 2 * kb_rng_unit(&rng) - 1);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%" PRIu32 " candidates, %" PRIu32 " merges: %" PRIu32
	       " actions, the slowest choice took %.3f s of CPU; peak %ld MiB; %s\n",
	       count, merges, steps, slowest, usage.ru_maxrss / 1024,
	       kb_posterior_top(p) == culprit ? "found" : "not found");
	kb_posterior_free(p);
	kb_plan_table_free(table);
	kb_dag_free(&dag);
	return 0;
}
