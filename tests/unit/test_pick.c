/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kb_pick_next() against counting by brute force on thousands of random graphs. */
#include "bisect/pick.h"

#include <stdlib.h>
#include <time.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

#define NONE UINT32_MAX

static uint64_t rng_state;

/* splitmix64: small, and the same numbers on every machine. */
static uint64_t rng(void)
{
	uint64_t z = (rng_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint32_t rng_below(uint32_t n)
{
	return (uint32_t)(rng() % n);
}

/* One random problem; `reach` 0 for what is no candidate. */
struct problem {
	struct kb_dag dag;
	uint32_t bad;
	uint8_t *excluded, *skipped, *interesting;
	uint32_t *reach;
	uint32_t total;
};

static void problem_free(struct problem *p)
{
	kb_dag_free(&p->dag);
	free(p->excluded);
	free(p->skipped);
	free(p->interesting);
	free(p->reach);
}

/* `reach_back` bounds how old parents are: small gives lines, large gives wide tangles.
 */
static void random_dag(struct kb_dag *dag, uint32_t count, uint32_t merge_percent,
		       uint32_t reach_back)
{
	kb_dag_init(dag);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t parents[4], used = 0, want = 1;

		if (rng_below(100) < merge_percent)
			want = rng_below(8) ? 2 : rng_below(3) ? 3 : 4;
		if (n == 0 || (n < 4 && rng_below(3) == 0))
			want = 0;
		for (uint32_t i = 0; i < want; i++) {
			uint32_t back = reach_back < n ? reach_back : n;
			uint32_t p = n - 1 - rng_below(back);
			bool seen = false;

			for (uint32_t j = 0; j < used; j++)
				seen |= parents[j] == p;
			if (!seen)
				parents[used++] = p;
		}
		kb_dag_add(dag, parents, used);
	}
}

static void line_dag(struct kb_dag *dag, uint32_t count)
{
	kb_dag_init(dag);
	for (uint32_t n = 0; n < count; n++)
		kb_dag_add(dag, &(uint32_t){n - 1}, n > 0);
}

/* As many branches as `width` grow side by side; a quarter of all commits merges two. */
static void branchy_dag(struct kb_dag *dag, uint32_t count, uint32_t width)
{
	KB_AUTO_FREE uint32_t *heads = kb_calloc(width, sizeof(*heads));
	uint32_t open = 1;

	kb_dag_init(dag);
	kb_dag_add(dag, NULL, 0);
	while (dag->node_count < count) {
		uint32_t left = count - dag->node_count, i = rng_below(open);

		if (open > 1 && (open > left || rng_below(4) == 0)) {
			uint32_t j = (i + 1 + rng_below(open - 1)) % open;

			heads[i] = kb_dag_add(dag, (uint32_t[]){heads[i], heads[j]}, 2);
			heads[j] = heads[--open];
		} else if (open < width && rng_below(3) == 0) {
			heads[open++] = kb_dag_add(dag, &heads[i], 1);
		} else {
			heads[i] = kb_dag_add(dag, &heads[i], 1);
		}
	}
}

static void brute_force_reach(struct problem *p)
{
	uint32_t count = p->dag.node_count;
	KB_AUTO_FREE uint8_t *candidate = kb_calloc(count, 1);

	kb_dag_mark_ancestors(&p->dag, p->bad, candidate);
	p->reach = kb_calloc(count, sizeof(*p->reach));
	p->total = 0;
	for (uint32_t n = 0; n < count; n++) {
		candidate[n] &= !p->excluded[n];
		p->total += candidate[n] && (!p->interesting || p->interesting[n]);
	}
	for (uint32_t n = 0; n < count; n++) {
		KB_AUTO_FREE uint8_t *marks = kb_calloc(count, 1);

		if (!candidate[n])
			continue;
		kb_dag_mark_ancestors(&p->dag, n, marks);
		for (uint32_t m = 0; m < count; m++)
			p->reach[n] += marks[m] && candidate[m] &&
				       (!p->interesting || p->interesting[m]);
	}
}

static void random_problem(struct problem *p, bool skips, bool paths)
{
	static const uint32_t backs[] = {1, 2, 3, 6, 20, 1000};
	static const uint32_t merges[] = {0, 10, 25, 60, 100};
	uint32_t count = 1 + rng_below(rng_below(4) == 0 ? 200 : 40);
	uint32_t skip_percent = rng_below(3) == 0 ? 95 : rng_below(60);
	uint32_t goods = rng_below(4);

	*p = (struct problem){0};
	random_dag(&p->dag, count, merges[rng_below(KB_COUNT_OF(merges))],
		   backs[rng_below(KB_COUNT_OF(backs))]);
	p->bad = rng_below(3) ? count - 1 : rng_below(count);
	p->excluded = kb_calloc(count, 1);
	for (uint32_t i = 0; i < goods; i++) {
		uint8_t *marks = kb_calloc(count, 1);
		uint32_t good = rng_below(count);

		kb_dag_mark_ancestors(&p->dag, good, marks);
		for (uint32_t n = 0; n < count && !marks[p->bad]; n++)
			p->excluded[n] |= marks[n];
		free(marks);
	}
	if (skips) {
		p->skipped = kb_calloc(count, 1);
		for (uint32_t n = 0; n < count; n++)
			p->skipped[n] = rng_below(100) < skip_percent;
	}
	if (paths) {
		p->interesting = kb_calloc(count, 1);
		for (uint32_t n = 0; n < count; n++)
			p->interesting[n] = rng_below(100) < 40;
	}
	brute_force_reach(p);
}

static uint32_t true_value(const struct problem *p, uint32_t n)
{
	uint32_t rest = p->total - p->reach[n];

	return p->reach[n] < rest ? p->reach[n] : rest;
}

static bool is_countable(const struct problem *p, uint32_t n)
{
	return p->reach[n] && n != p->bad && (!p->interesting || p->interesting[n]);
}

/* The largest value among nodes that may be tested; of skipped ones too when asked. */
static uint32_t true_best(const struct problem *p, bool with_skipped)
{
	uint32_t best = 0;

	for (uint32_t n = 0; n < p->dag.node_count; n++) {
		if (!is_countable(p, n) || (p->skipped && p->skipped[n] && !with_skipped))
			continue;
		if (true_value(p, n) > best)
			best = true_value(p, n);
	}
	return best;
}

/* @return NULL when the pick is right, else what is wrong with it */
static const char *judge(const struct problem *p, struct kb_pick pick)
{
	uint32_t best = true_best(p, false);

	if (pick.candidates != p->total)
		return "candidates";
	if (best == 0) {
		if (pick.node != NONE)
			return "a test that can't narrow";
		return pick.only_skipped != (p->total > 1) ? "only_skipped" : NULL;
	}
	if (pick.only_skipped)
		return "only_skipped though a test is left";
	if (pick.node == NONE || !is_countable(p, pick.node))
		return "not a candidate";
	if (p->skipped && p->skipped[pick.node])
		return "skipped";
	if (true_best(p, true) == best)
		return true_value(p, pick.node) == best ? NULL : "not the best";
	return true_value(p, pick.node) >= best - best / 8 ? NULL
							   : "too far from the best";
}

static void brute_force_agrees(const char *name, uint64_t seed, bool skips, bool paths)
{
	const char *fault = NULL;
	uint32_t rounds = 3000, narrowed = 0, ended = 0;

	rng_state = seed;
	for (uint32_t i = 0; i < rounds && !fault; i++) {
		KB_AUTO(problem_free) struct problem p;

		random_problem(&p, skips, paths);
		struct kb_pick pick =
			kb_pick_next(&p.dag, p.bad, p.excluded, p.skipped, p.interesting);
		fault = judge(&p, pick);
		narrowed += pick.node != NONE;
		ended += pick.node == NONE;
		if (fault)
			fprintf(stderr, "# round %u: %s\n", i, fault);
	}
	ok(!fault, "%s: %u random graphs agree with brute force", name, rounds);
	ok(narrowed > rounds / 20 && ended > rounds / 100,
	   "%s: the graphs cover both outcomes (%u choices, %u ends)", name, narrowed,
	   ended);
}

/* Walks one bisection for `culprit`; @return tests needed, NONE when it found another. */
static uint32_t tests_needed(const struct kb_dag *dag, uint32_t culprit)
{
	KB_AUTO_FREE uint8_t *excluded = kb_calloc(dag->node_count, 1);
	uint32_t bad = dag->node_count - 1, tests = 0;

	for (;;) {
		struct kb_pick pick = kb_pick_next(dag, bad, excluded, NULL, NULL);
		KB_AUTO_FREE uint8_t *below = kb_calloc(dag->node_count, 1);

		if (pick.node == NONE)
			return pick.candidates == 1 && bad == culprit ? tests : NONE;
		tests++;
		kb_dag_mark_ancestors(dag, pick.node, below);
		if (below[culprit])
			bad = pick.node;
		else
			kb_dag_mark_ancestors(dag, pick.node, excluded);
	}
}

static void line_is_halved(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	uint32_t worst = 0, lost = 0;

	line_dag(&dag, 1000);
	for (uint32_t culprit = 0; culprit < 1000; culprit++) {
		uint32_t tests = tests_needed(&dag, culprit);

		lost += tests == NONE;
		if (tests != NONE && tests > worst)
			worst = tests;
	}
	is_int(lost, 0, "every culprit on a line of 1000 is found");
	is_int(worst, 10, "with 10 tests at most");
}

static void merges_do_not_hide_culprits(void)
{
	uint32_t lost = 0;

	rng_state = 77;
	for (uint32_t i = 0; i < 30; i++) {
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO_FREE uint8_t *reachable = kb_calloc(60, 1);

		random_dag(&dag, 60, 35, 8);
		kb_dag_mark_ancestors(&dag, 59, reachable);
		for (uint32_t culprit = 0; culprit < 60; culprit++)
			lost += reachable[culprit] && tests_needed(&dag, culprit) == NONE;
	}
	is_int(lost, 0, "every culprit in 30 tangled graphs is found");
}

static void steps_follow_git(void)
{
	static const struct {
		uint32_t candidates, steps;
	} rows[] = {{1, 0},  {2, 0},  {3, 1},  {4, 1},	{5, 1},	   {6, 2},    {11, 3},
		    {12, 3}, {16, 3}, {21, 3}, {22, 4}, {1024, 9}, {1400, 10}};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO_FREE uint8_t *excluded = kb_calloc(rows[i].candidates, 1);

		line_dag(&dag, rows[i].candidates);
		struct kb_pick pick =
			kb_pick_next(&dag, rows[i].candidates - 1, excluded, NULL, NULL);
		is_int(pick.steps, rows[i].steps, "%u candidates", rows[i].candidates);
	}
}

static void skipped_neighbours_avoided(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	uint8_t excluded[400] = {0}, skipped[400] = {0};

	line_dag(&dag, 400);
	for (uint32_t n = 195; n < 205; n++)
		skipped[n] = 1;
	struct kb_pick pick = kb_pick_next(&dag, 399, excluded, skipped, NULL);
	uint32_t off = pick.node < 200 ? 200 - pick.node : pick.node - 199;
	ok(off > 15, "not right beside the skipped middle (%u away)", off);
	ok(off <= 200 / 8 + 6, "and not far off half either");
}

static double seconds_of_pick(const struct kb_dag *dag)
{
	KB_AUTO_FREE uint8_t *excluded = kb_calloc(dag->node_count, 1);
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	struct kb_pick pick =
		kb_pick_next(dag, dag->node_count - 1, excluded, NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ok(pick.node != NONE && pick.candidates > 2, "%u candidates: node %u",
	   pick.candidates, pick.node);
	return (double)(to.tv_sec - from.tv_sec) +
	       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Times are shown, not judged: the machine that runs this is anybody's. */
static void large_graphs_reported(void)
{
	static const uint32_t widths[] = {1, 2, 8, 64, 512, 4096};

	rng_state = 5;
	for (size_t i = 0; i < KB_COUNT_OF(widths); i++) {
		KB_AUTO(kb_dag_free) struct kb_dag dag;

		branchy_dag(&dag, 100000, widths[i]);
		printf("# up to %u branches: %.3f s\n", widths[i], seconds_of_pick(&dag));
	}
}

int main(void)
{
	brute_force_agrees("plain", 11, false, false);
	brute_force_agrees("skips", 12, true, false);
	brute_force_agrees("paths", 13, false, true);
	brute_force_agrees("skips and paths", 14, true, true);
	line_is_halved();
	merges_do_not_hide_culprits();
	steps_follow_git();
	skipped_neighbours_avoided();
	large_graphs_reported();
	return tap_done();
}
