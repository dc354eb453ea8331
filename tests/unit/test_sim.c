/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/sim.h"

#include <math.h>

#include "bisect/sim_internal.h"
#include "harness/base/mem.h"
#include "tests/tap.h"

static const struct kb_sim_cell *cell(const char *name)
{
	size_t count;
	const struct kb_sim_cell *cells = kb_sim_cells(&count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(cells[i].name, name))
			return &cells[i];
	}
	return NULL;
}

static struct kb_sim_tally tally(const char *name, enum kb_sim_rule rule, uint32_t from,
				 uint32_t to, const struct kb_plan_table *table)
{
	struct kb_sim_tally t = {0};

	for (uint32_t i = from; i < to; i++)
		kb_sim_trial(cell(name), rule, 120, 7, i, table, &t);
	return t;
}

static void noise_is_of_unit_size(void)
{
	const enum kb_sim_noise kinds[] = {KB_SIM_GAUSSIAN, KB_SIM_T3, KB_SIM_BIMODAL};

	for (size_t k = 0; k < KB_COUNT_OF(kinds); k++) {
		struct kb_sim_cell c = {
			.name = "x", .effect = 0.1, .cv = 1, .noise = kinds[k]};
		KB_AUTO(sim_world_free) struct sim_world w;
		double sum = 0, squares = 0;
		const int n = 40000;

		sim_world_init(&w, &c, 10, 1, 0);
		for (int i = 0; i < n; i++) {
			double y = sim_boot(&w, KB_NODE_GOOD);

			sum += y / n;
			squares += y * y / n;
		}
		is_double(sum, 0, 0.03, "noise %zu has no level of its own", k);
		is_double(sqrt(squares - sum * sum), 1, 0.08, "and is of size one");
		is_int(w.boots, n, "all boots are counted");
		is_int(w.builds, 1, "and one build");
	}
}

static void levels_follow_the_changes(void)
{
	struct kb_sim_cell c = {.name = "x", .effect = 0.1, .cv = 1e-9, .middle = 0.5};
	KB_AUTO(sim_world_free) struct sim_world w;
	double full = log1p(0.1);

	sim_world_init(&w, &c, 100, 3, 1);
	ok(w.first < w.second && w.second < 100, "two changes");
	is_double(sim_boot(&w, w.first), full / 2, 1e-6, "half from the first on");
	is_double(sim_boot(&w, w.second - 1), full / 2, 1e-6, "up to the second");
	is_double(sim_boot(&w, w.second), full, 1e-6, "then all");
	is_double(sim_boot(&w, KB_NODE_GOOD), 0, 1e-6, "nothing before");
}

static void rules_do_what_they_should(const struct kb_plan_table *table)
{
	struct kb_sim_tally t = tally("d5", KB_SIM_ENGINE, 0, 20, table), u, v;

	is_int(t.trials, 20, "all trials");
	ok(t.wrong == 0 && t.unresolved + t.refused <= 1, "the engine where it is easy");
	ok(t.covered + 1 >= t.posed && t.posed >= 19, "credible sets hold the culprit");
	t = tally("null", KB_SIM_ENGINE, 0, 10, table);
	is_int(t.refused, 10, "no difference is refused");
	t = tally("d5", KB_SIM_PLAIN_10, 0, 20, table);
	is_int(t.wrong, 0, "plain bisection with ten boots");
	ok(t.builds / 20 > 8 && t.builds / 20 < 10, "takes %.1f builds", t.builds / 20);
	t = tally("d1", KB_SIM_PLAIN_1, 0, 20, table);
	ok(t.wrong > 10, "with one boot and much noise it is mostly wrong (%u)", t.wrong);
	t = tally("d5", KB_SIM_BAYESECT, 0, 20, table);
	ok(t.wrong <= 2, "pass and fail with unknown rates (%u wrong)", t.wrong);
	t = tally("d5", KB_SIM_BBCHOP, 0, 20, table);
	ok(t.wrong <= 5, "good never fails (%u wrong)", t.wrong);
	t = tally("merges-d5", KB_SIM_FIRST, 0, 10, table);
	ok(t.wrong == 0, "the first engine on merges");
	ok(!kb_sim_can(KB_SIM_BAYESECT, cell("merges-d5")),
	   "not every rule knows merges");

	/* Trials may be shared out in any way. */
	t = tally("skips-d2", KB_SIM_ENGINE, 0, 6, table);
	u = tally("skips-d2", KB_SIM_ENGINE, 0, 2, table);
	v = tally("skips-d2", KB_SIM_ENGINE, 2, 6, table);
	kb_sim_tally_add(&u, &v);
	ok(u.wrong == t.wrong && u.unresolved == t.unresolved && u.trials == t.trials,
	   "the same seed gives the same answers");
	is_double(u.boots, t.boots, 1e-6, "and the same boots");
}

int main(void)
{
	struct kb_plan_table *table = kb_plan_table_new();

	noise_is_of_unit_size();
	levels_follow_the_changes();
	rules_do_what_they_should(table);
	kb_plan_table_free(table);
	return tap_done();
}
