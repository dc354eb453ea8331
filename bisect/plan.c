/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

#define NONE UINT32_MAX
#define SIZES 16
/* Sizes of a batch of boots that are weighed against each other. */
static const uint32_t sizes[SIZES] = {1,  2,  3,  4,  6,  8,   12,  16,
				      24, 32, 48, 64, 96, 128, 192, 256};
/* p is only needed to choose by. */
#define BAD_TOLERANCE 1e-7
#define SKIP_REACH 8.0 /* hops over which the risk of a known skip halves */
#define SKIP_RISK 0.9  /* right beside one */

uint32_t kb_plan_boots_cap(double d)
{
	return (uint32_t)fmax(4, fmin(ceil(40 / (d * d)), 1e6));
}

/* --- risk ----------------------------------------------------------------------------
 */

static void append_children(const struct kb_dag *dag, uint32_t **ret_start,
			    uint32_t **ret_children)
{
	uint32_t count = dag->node_count, edges = dag->parent_start[count];
	uint32_t *start = kb_calloc((size_t)count + 2, sizeof(*start));
	uint32_t *children = kb_calloc((size_t)edges + 1, sizeof(*children));

	/* Shifted by one, so that filling moves each start to its place. */
	for (uint32_t i = 0; i < edges; i++)
		start[dag->parents[i] + 2]++;
	for (uint32_t n = 0; n < count; n++)
		start[n + 2] += start[n + 1];
	for (uint32_t n = 0; n < count; n++) {
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			children[start[dag->parents[i] + 1]++] = n;
	}
	*ret_start = start;
	*ret_children = children;
}

static uint32_t reach_one(uint32_t *distance, uint32_t *queue, uint32_t tail, uint32_t n,
			  uint32_t hops)
{
	if (distance[n] != NONE)
		return tail;
	distance[n] = hops;
	queue[tail] = n;
	return tail + 1;
}

static uint32_t *hops_to_skipped(const struct kb_dag *dag, const uint8_t *skipped)
{
	KB_AUTO_FREE uint32_t *start = NULL;
	KB_AUTO_FREE uint32_t *children = NULL;
	KB_AUTO_FREE uint32_t *queue = kb_calloc(dag->node_count, sizeof(*queue));
	uint32_t *distance = kb_calloc(dag->node_count, sizeof(*distance));
	uint32_t head = 0, tail = 0;

	append_children(dag, &start, &children);
	memset(distance, 0xff, dag->node_count * sizeof(*distance));
	for (uint32_t n = 0; n < dag->node_count; n++) {
		if (skipped[n])
			tail = reach_one(distance, queue, tail, n, 0);
	}
	while (head < tail) {
		uint32_t n = queue[head++], hops = distance[n] + 1;

		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			tail = reach_one(distance, queue, tail, dag->parents[i], hops);
		for (uint32_t i = start[n]; i < start[n + 1]; i++)
			tail = reach_one(distance, queue, tail, children[i], hops);
	}
	return distance;
}

void kb_plan_failure(const struct kb_dag *dag, const uint8_t *skipped, uint32_t tested,
		     double *ret_failure)
{
	KB_AUTO_FREE uint32_t *distance = NULL;
	uint32_t count = 0;
	double base;

	for (uint32_t n = 0; n < dag->node_count; n++)
		count += skipped && skipped[n];
	if (count == 0) {
		memset(ret_failure, 0, dag->node_count * sizeof(*ret_failure));
		return;
	}
	distance = hops_to_skipped(dag, skipped);
	/* Clusters count once at least; most of their members were never tried. */
	base = fmin(0.5, count / (count + tested + 1.0)) / 2;
	for (uint32_t n = 0; n < dag->node_count; n++) {
		double near =
			distance[n] == NONE
				? 0
				: SKIP_RISK * exp2(-(distance[n] - 1.0) / SKIP_REACH);

		ret_failure[n] = skipped[n] ? 1 : base + (1 - base) * near;
	}
}

/* --- choice --------------------------------------------------------------------------
 */

struct chooser {
	const struct kb_plan_table *table;
	const struct kb_posterior *posterior;
	const struct kb_plan_costs *costs;
	const struct kb_plan_limits *limits;
	double delta; /* in units of the boots' sd */
	double tau[KB_POSTERIOR_TAUS], weight[KB_POSTERIOR_TAUS];
	double *bad, *failure; /* owned; per node */
	uint8_t *built;	       /* owned; per node: number of layouts */
	struct kb_plan_choice best;
	double best_rate;
};

static void chooser_free(struct chooser *c)
{
	free(c->bad);
	free(c->failure);
	free(c->built);
}

/* How far apart good and bad lie, in sds, in the mean of n new boots after n0. */
static double contrast(const struct chooser *c, uint32_t which, double n0, double n)
{
	double tau2 = c->tau[which] * c->tau[which], e, w;

	if (!(n0 > 0))
		return c->delta / sqrt(tau2 + 1 / n);
	/* The boots so far have told part of what the build's own offset is. */
	e = 1 / n0;
	w = tau2 / (tau2 + e);
	return (1 - w) * c->delta / sqrt(w * e + 1 / n);
}

static double expected_information(const struct chooser *c, double bad, double n0,
				   double n)
{
	double sum = 0;

	for (uint32_t t = 0; t < KB_POSTERIOR_TAUS; t++)
		sum += c->weight[t] *
		       kb_plan_information(c->table, bad, contrast(c, t, n0, n));
	return sum;
}

static double build_cost(const struct chooser *c, uint32_t node, uint32_t layout)
{
	if (layout == 0 && c->costs->build_of)
		return c->costs->build_of[node];
	return c->costs->build;
}

/* Weighs all sizes of one kind of action; `n0` boots of that build are there already. */
static void weigh(struct chooser *c, uint32_t node, uint32_t layout, uint32_t n0,
		  uint32_t cap)
{
	double failure = n0 ? 0 : c->failure[node];
	double start = n0 ? 0 : build_cost(c, node, layout);
	uint32_t least = n0 ? 1 : c->limits->boots_min;

	for (uint32_t i = 0; i < SIZES; i++) {
		uint32_t n = sizes[i] > least ? sizes[i] : least;
		double information, cost, rate;

		if (n0 + n > cap && (i > 0 || n0 >= cap))
			break;
		information = expected_information(c, c->bad[node], n0, n);
		cost = start + n * c->costs->boot;
		rate = (1 - failure) * information / cost;
		/* Nearly equal is equal: rounding must not choose. */
		if (information < c->limits->least || rate <= c->best_rate * (1 + 1e-9))
			continue;
		c->best_rate = rate;
		c->best = (struct kb_plan_choice){
			.node = node,
			.layout = layout,
			.boots = n,
			.is_new = n0 == 0,
			.bad = c->bad[node],
			.information = information,
			.cost = cost,
			.failure = failure,
		};
	}
}

/*
 * New commits: for each size the information is a function of p alone, so that it is
 * tabulated over p once instead of being averaged over tau for each of the commits.
 */
#define GRID 256
struct best_size {
	double rate, information; /* before the cost of a build of its own */
	uint32_t boots;
};

static void best_sizes(const struct chooser *c, double start, uint32_t cap,
		       struct best_size ret[GRID + 1])
{
	for (uint32_t g = 0; g <= GRID; g++) {
		double u = (double)g / GRID, p = u * u / 2;

		ret[g] = (struct best_size){0};
		for (uint32_t i = 0; i < SIZES; i++) {
			uint32_t n = sizes[i] > c->limits->boots_min
					     ? sizes[i]
					     : c->limits->boots_min;
			double information, rate;

			if (n > cap && i > 0)
				break;
			information = expected_information(c, p, 0, n);
			rate = information / (start + n * c->costs->boot);
			if (information >= c->limits->least && rate > ret[g].rate)
				ret[g] = (struct best_size){rate, information, n};
		}
	}
}

static void weigh_new_commits(struct chooser *c, uint32_t count, uint32_t cap)
{
	struct best_size common[GRID + 1];
	uint32_t best = NONE;
	double best_rate = c->best_rate;

	best_sizes(c, c->costs->build, cap, common);
	for (uint32_t n = 0; n < count; n++) {
		double p = fmin(c->bad[n], 1 - c->bad[n]), at, rate;
		uint32_t g;

		if (!c->limits->testable[n] || c->built[n] || !(p > 1e-6))
			continue;
		if (c->costs->build_of &&
		    fabs(c->costs->build_of[n] - c->costs->build) > 0) {
			weigh(c, n, 0, 0, cap);
			continue;
		}
		at = sqrt(2 * fmin(p, 0.5)) * GRID;
		g = at < GRID ? (uint32_t)at : GRID - 1;
		rate = (1 - c->failure[n]) *
		       (common[g].rate +
			(at - g) * (common[g + 1].rate - common[g].rate));
		if (rate > best_rate * (1 + 1e-9)) {
			best_rate = rate;
			best = n;
		}
	}
	if (best != NONE)
		weigh(c, best, 0, 0, cap);
}

static void weigh_builds(struct chooser *c, uint32_t cap)
{
	size_t count;
	const struct kb_posterior_build *builds =
		kb_posterior_builds(c->posterior, &count);
	uint32_t layouts_max = c->limits->layouts_max;

	for (size_t i = 0; i < count; i++) {
		uint32_t node = builds[i].node;

		if (node == KB_POSTERIOR_GOOD)
			continue;
		/* A later layout of the same commit is never a better start. */
		if (c->built[node] <= builds[i].layout && builds[i].layout < UINT8_MAX)
			c->built[node] = (uint8_t)(builds[i].layout + 1);
		if (!c->limits->testable[node] || builds[i].boots == 0)
			continue;
		weigh(c, node, builds[i].layout, builds[i].boots, cap);
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t node = builds[i].node;

		if (node != KB_POSTERIOR_GOOD && c->limits->testable[node] &&
		    builds[i].layout + 1 == c->built[node] &&
		    c->built[node] < layouts_max)
			weigh(c, node, c->built[node], 0, cap);
	}
}

struct kb_plan_choice kb_plan_next(const struct kb_plan_table *table,
				   const struct kb_posterior *posterior,
				   const struct kb_plan_costs *costs,
				   const struct kb_plan_limits *limits)
{
	const struct kb_noise *noise = kb_posterior_noise(posterior);
	const struct kb_dag *dag = kb_posterior_dag(posterior);
	uint32_t cap, tested = kb_posterior_tested(posterior);
	KB_AUTO(chooser_free)
	struct chooser c = {
		.table = table,
		.posterior = posterior,
		.costs = costs,
		.limits = limits,
		.delta = noise->delta / noise->scale,
		.bad = kb_calloc(dag->node_count, sizeof(double)),
		.failure = kb_calloc(dag->node_count, sizeof(double)),
		.built = kb_calloc(dag->node_count, 1),
		.best = {.node = NONE},
	};

	assert(costs->boot > 0);
	for (uint32_t t = 0; t < KB_POSTERIOR_TAUS; t++) {
		c.tau[t] = kb_posterior_tau(posterior, t);
		c.weight[t] = kb_posterior_tau_weights(posterior)[t];
	}
	kb_posterior_bad(posterior, BAD_TOLERANCE, c.bad);
	kb_plan_failure(dag, limits->skipped, tested, c.failure);
	cap = limits->boots_max ? limits->boots_max : UINT32_MAX / 2;
	weigh_builds(&c, cap);
	weigh_new_commits(&c, dag->node_count, cap);
	return c.best;
}
