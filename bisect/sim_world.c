/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scenarios, and the truth of one trial. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/rng.h"
#include "bisect/sim_internal.h"
#include "harness/base/mem.h"

#define PERCENT(x) (0.01 * (x))

static const struct kb_sim_cell cells[] = {
	{.name = "d5", .effect = PERCENT(5), .cv = PERCENT(1)},
	{.name = "d3.3", .effect = PERCENT(10), .cv = PERCENT(3)},
	{.name = "d2", .effect = PERCENT(2), .cv = PERCENT(1)},
	{.name = "d1.7", .effect = PERCENT(5), .cv = PERCENT(3)},
	{.name = "d1", .effect = PERCENT(10), .cv = PERCENT(10)},
	{.name = "d0.67", .effect = PERCENT(2), .cv = PERCENT(3)},
	{.name = "d0.5", .effect = PERCENT(5), .cv = PERCENT(10)},
	{.name = "t3-d3.3", .effect = PERCENT(10), .cv = PERCENT(3), .noise = KB_SIM_T3},
	{.name = "t3-d1", .effect = PERCENT(10), .cv = PERCENT(10), .noise = KB_SIM_T3},
	{.name = "bimodal-d3.3",
	 .effect = PERCENT(10),
	 .cv = PERCENT(3),
	 .noise = KB_SIM_BIMODAL},
	{.name = "bimodal-d1",
	 .effect = PERCENT(10),
	 .cv = PERCENT(10),
	 .noise = KB_SIM_BIMODAL},
	{.name = "layout-d5", .effect = PERCENT(5), .cv = PERCENT(1), .layout = 0.25},
	{.name = "layout-d2", .effect = PERCENT(2), .cv = PERCENT(1), .layout = 0.25},
	{.name = "null", .effect = 0, .cv = PERCENT(3)},
	{.name = "unequal-d2", .effect = PERCENT(2), .cv = PERCENT(1), .bad_noise = 2},
	{.name = "drift-d2", .effect = PERCENT(2), .cv = PERCENT(1), .drift = 0.5},
	{.name = "skips-d2", .effect = PERCENT(2), .cv = PERCENT(1), .untestable = 0.15},
	{.name = "skip-runs-d2",
	 .effect = PERCENT(2),
	 .cv = PERCENT(1),
	 .untestable = 0.15,
	 .untestable_run = 30},
	{.name = "two-d5", .effect = PERCENT(5), .cv = PERCENT(1), .middle = 0.5},
	{.name = "two-d2", .effect = PERCENT(2), .cv = PERCENT(1), .middle = 0.5},
	{.name = "partial-fix-d2", .effect = PERCENT(2), .cv = PERCENT(1), .middle = 1.6},
	{.name = "merges-d5",
	 .effect = PERCENT(5),
	 .cv = PERCENT(1),
	 .shape = KB_SIM_MERGES},
	{.name = "merges-d1",
	 .effect = PERCENT(10),
	 .cv = PERCENT(10),
	 .shape = KB_SIM_MERGES},
};

const struct kb_sim_cell *kb_sim_cells(size_t *ret_count)
{
	*ret_count = KB_COUNT_OF(cells);
	return cells;
}

/*
 * A history as projects with topic branches have it: a main line onto which branches of a
 * few commits, forked somewhat earlier, are merged; every fourth commit is a merge.
 */
static void grow_merges(struct kb_dag *dag, uint32_t count, struct kb_rng *rng)
{
	KB_AUTO_FREE uint32_t *line = kb_calloc(count, sizeof(*line));
	uint32_t length = 1;

	line[0] = kb_dag_add(dag, NULL, 0);
	while (dag->node_count < count) {
		uint32_t back = 1 + kb_rng_below(rng, length < 30 ? length : 30);
		uint32_t tip = line[length - back], commits = 1 + kb_rng_below(rng, 5);

		while (commits-- > 0 && dag->node_count + 1 < count)
			tip = kb_dag_add(dag, &tip, 1);
		kb_dag_add(dag, (uint32_t[]){line[length - 1], tip},
			   tip == line[length - 1] ? 1 : 2);
		line[length++] = dag->node_count - 1;
	}
}

static uint8_t *descendants(const struct kb_dag *dag, uint32_t of)
{
	uint8_t *marks = kb_calloc(dag->node_count, 1);

	marks[of] = 1;
	for (uint32_t n = of + 1; n < dag->node_count; n++) {
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			marks[n] |= marks[dag->parents[i]];
	}
	return marks;
}

static void break_some(struct sim_world *w, struct kb_rng *rng)
{
	uint32_t run = w->cell->untestable_run ? w->cell->untestable_run : 1;
	uint32_t count = w->dag.node_count;

	for (uint32_t n = 0; n < count; n++) {
		uint32_t end = n + 1 + kb_rng_below(rng, 2 * run - 1);

		if (kb_rng_unit(rng) * run >= w->cell->untestable)
			continue;
		for (; n < end && n + 1 < count; n++)
			w->untestable[n] = 1;
	}
	w->untestable[count - 1] = 0;
}

void sim_world_init(struct sim_world *w, const struct kb_sim_cell *cell,
		    uint32_t candidates, uint64_t seed, uint32_t trial)
{
	struct kb_rng rng = kb_rng_at(seed, 1, trial);

	*w = (struct sim_world){.cell = cell};
	kb_dag_init(&w->dag);
	w->seed = kb_rng_next(&rng);
	if (cell->shape == KB_SIM_MERGES)
		grow_merges(&w->dag, candidates, &rng);
	else
		for (uint32_t n = 0; n < candidates; n++)
			kb_dag_add(&w->dag, &(uint32_t){n - 1}, n > 0);
	candidates = w->dag.node_count;
	w->outside = kb_calloc(candidates, 1);
	w->outside[0] = 1;
	w->untestable = kb_calloc(candidates, 1);
	w->boots_of = kb_calloc((size_t)candidates + 1, sizeof(*w->boots_of));
	w->first = w->second = kb_rng_below(&rng, candidates);
	if (cell->middle > 0) {
		/* The second lies some way after the first, on a line. */
		w->first = kb_rng_below(&rng, candidates * 3 / 4);
		w->second =
			w->first + candidates / 20 + kb_rng_below(&rng, candidates / 5);
	}
	w->has_first = descendants(&w->dag, w->first);
	w->has_second = descendants(&w->dag, w->second);
	if (cell->untestable > 0)
		break_some(w, &rng);
}

void sim_world_free(struct sim_world *w)
{
	kb_dag_free(&w->dag);
	free(w->outside);
	free(w->untestable);
	free(w->boots_of);
	free(w->has_first);
	free(w->has_second);
}

static double gaussian(struct kb_rng *rng)
{
	double u = 1 - kb_rng_unit(rng), v = kb_rng_unit(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* All with mean 0 and sd 1. */
static double noise(enum kb_sim_noise kind, struct kb_rng *rng)
{
	double x = gaussian(rng);

	if (kind == KB_SIM_T3) {
		double squares = 0;

		for (int i = 0; i < 3; i++) {
			double g = gaussian(rng);

			squares += g * g;
		}
		return x / sqrt(squares / 3) / sqrt(3);
	}
	if (kind == KB_SIM_BIMODAL) {
		/* Three boots of ten in a slow mode, three widths away. */
		double slow = kb_rng_unit(rng) < 0.3 ? 1 : 0;

		return (x + 3 * (slow - 0.3)) / sqrt(1 + 9 * 0.21);
	}
	return x;
}

double sim_boot(struct sim_world *w, uint32_t node)
{
	const struct kb_sim_cell *cell = w->cell;
	uint32_t at = node == KB_NODE_GOOD ? w->dag.node_count : node;
	struct kb_rng rng = kb_rng_at(w->seed, at, w->boots_of[at]);
	struct kb_rng build = kb_rng_at(w->seed, at, UINT64_C(1) << 40);
	bool first = node != KB_NODE_GOOD && w->has_first[node];
	bool second = node != KB_NODE_GOOD && w->has_second[node];
	double effect = log1p(cell->effect), sd = cell->cv, level = 0;

	if (second)
		level = effect;
	else if (first)
		level = cell->middle * effect;
	if (first && cell->bad_noise > 0)
		sd *= cell->bad_noise;
	w->builds += w->boots_of[at]++ == 0;
	w->boots++;
	return level + cell->layout * effect * gaussian(&build) +
	       cell->drift * cell->cv * w->boots / 100 + sd * noise(cell->noise, &rng);
}

uint32_t sim_calibration(const struct kb_sim_cell *cell)
{
	double d = log1p(cell->effect) / cell->cv;

	return (uint32_t)fmin(fmax(20, ceil(40 / (d * d))), 1000);
}
