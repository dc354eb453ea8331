/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A commit's value as a test is min(reach, rest): reach candidates are its ancestors or
 * itself, rest = all - reach are left when it proves good. Counting reach exactly for
 * every merge is what makes `git bisect` slow (candidates x merges). Here reach is only
 * bracketed, low <= reach <= high, by what a node shares with its neighbours; then the
 * nodes that could still beat the best known value are counted exactly, 64 at a time, in
 * one sweep over the graph, each result tightening the brackets of all its ancestors and
 * descendants.
 */
#include "bisect/pick.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

#define NONE UINT32_MAX
#define BATCH 64 /* nodes counted in one sweep: the bits of a word */
/* git is content with an approximate half above this; up to it we can agree commit by
 * commit */
#define TIES_MATTER_MAX 1024

/* The candidates renumbered 0..count - 1, still in topological order. */
struct graph {
	uint32_t count;
	uint32_t total;	 /* candidates that count: the sum of weight */
	uint32_t *nodes; /* owned; number in the caller's DAG */
	uint32_t *start; /* owned; as in struct kb_dag */
	uint32_t *parents;
	uint8_t *weight; /* owned; 1 when the node counts (touches the paths) */
	uint8_t *testable;
	uint32_t *low, *high; /* owned; brackets of reach */
	uint64_t *bits;	      /* owned; scratch of a sweep */
};

static void graph_free(struct graph *g)
{
	free(g->nodes);
	free(g->start);
	free(g->parents);
	free(g->weight);
	free(g->testable);
	free(g->low);
	free(g->high);
	free(g->bits);
}

static void graph_alloc(struct graph *g, uint32_t count, size_t edges)
{
	g->count = count;
	g->nodes = kb_calloc(count, sizeof(*g->nodes));
	g->start = kb_calloc((size_t)count + 1, sizeof(*g->start));
	g->parents = kb_calloc(edges, sizeof(*g->parents));
	g->weight = kb_calloc(count, 1);
	g->testable = kb_calloc(count, 1);
	g->low = kb_calloc(count, sizeof(*g->low));
	g->high = kb_calloc(count, sizeof(*g->high));
	g->bits = kb_calloc(count, sizeof(*g->bits));
}

static void graph_build(struct graph *g, const struct kb_dag *dag, uint32_t bad,
			const uint8_t *excluded, const uint8_t *skipped,
			const uint8_t *interesting)
{
	KB_AUTO_FREE uint8_t *in = kb_calloc((size_t)bad + 1, 1);
	KB_AUTO_FREE uint32_t *local = kb_calloc((size_t)bad + 1, sizeof(*local));
	uint32_t count = 0, used = 0;
	size_t edges = 0;

	in[bad] = 1;
	for (uint32_t n = bad + 1; n-- > 0;) {
		if (excluded[n])
			in[n] = 0;
		if (!in[n])
			continue;
		count++;
		edges += kb_dag_parent_count(dag, n);
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			in[dag->parents[i]] = 1;
	}

	graph_alloc(g, count, edges);
	count = 0;
	for (uint32_t n = 0; n <= bad; n++) {
		if (!in[n])
			continue;
		local[n] = count;
		g->nodes[count] = n;
		g->weight[count] = !interesting || interesting[n];
		g->testable[count] =
			g->weight[count] && n != bad && !(skipped && skipped[n]);
		g->total += g->weight[count];
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1];
		     i++) {
			if (in[dag->parents[i]])
				g->parents[used++] = local[dag->parents[i]];
		}
		g->start[++count] = used;
	}
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* From parents to children: reach is at least the largest parent's, at most their sum. */
static void tighten_up(struct graph *g)
{
	for (uint32_t n = 0; n < g->count; n++) {
		uint64_t sum = g->weight[n];
		uint32_t largest = 0;

		for (uint32_t i = g->start[n]; i < g->start[n + 1]; i++) {
			sum += g->high[g->parents[i]];
			largest = max_u32(largest, g->low[g->parents[i]]);
		}
		g->low[n] = max_u32(g->low[n], largest + g->weight[n]);
		if (sum < g->high[n])
			g->high[n] = (uint32_t)sum;
	}
}

/*
 * From children to parents: a parent has less than its child, and an only parent exactly
 * the child's count less the child.
 */
static void tighten_down(struct graph *g)
{
	for (uint32_t n = g->count; n-- > 0;) {
		uint32_t parents = g->start[n + 1] - g->start[n];

		for (uint32_t i = g->start[n]; i < g->start[n + 1]; i++) {
			uint32_t p = g->parents[i];

			g->high[p] = min_u32(g->high[p], g->high[n] - g->weight[n]);
			if (parents == 1)
				g->low[p] = max_u32(g->low[p], g->low[n] - g->weight[n]);
		}
	}
}

static void bracket(struct graph *g)
{
	uint32_t before = 0;

	for (uint32_t n = 0; n < g->count; n++) {
		/* No more than everything up to it in topological order. */
		before += g->weight[n];
		g->low[n] = g->weight[n];
		g->high[n] = before;
	}
	tighten_up(g);
	tighten_down(g);
	tighten_up(g);
}

static uint32_t value_of(const struct graph *g, uint32_t reach)
{
	return min_u32(reach, g->total - reach);
}

/* The value is concave in reach: its least is at an end of the bracket. */
static uint32_t value_surely(const struct graph *g, uint32_t n)
{
	return min_u32(value_of(g, g->low[n]), value_of(g, g->high[n]));
}

static uint32_t value_at_most(const struct graph *g, uint32_t n)
{
	uint32_t half = g->total / 2;

	if (g->low[n] <= half && half <= g->high[n])
		return half;
	return max_u32(value_of(g, g->low[n]), value_of(g, g->high[n]));
}

/* Counts the reach of up to 64 nodes exactly, in one sweep from children to parents. */
static void count_batch(struct graph *g, const uint32_t *query, uint32_t query_count)
{
	/* Bit-sliced counters: digit d of all 64 counts lives in the word digit[d]. */
	uint64_t digit[32] = {0};
	uint32_t from =
		query[query_count - 1]; /* ascending: nothing above can be reached */

	memset(g->bits, 0, ((size_t)from + 1) * sizeof(*g->bits));
	for (uint32_t q = 0; q < query_count; q++)
		g->bits[query[q]] |= UINT64_C(1) << q;
	for (uint32_t n = from + 1; n-- > 0;) {
		uint64_t reached_by = g->bits[n];

		if (!reached_by)
			continue;
		for (uint32_t i = g->start[n]; i < g->start[n + 1]; i++)
			g->bits[g->parents[i]] |= reached_by;
		if (!g->weight[n])
			continue;
		for (uint32_t d = 0; reached_by; d++) {
			uint64_t carry = digit[d] & reached_by;

			digit[d] ^= reached_by;
			reached_by = carry;
		}
	}
	for (uint32_t q = 0; q < query_count; q++) {
		uint32_t reach = 0;

		for (uint32_t d = 0; d < 32; d++)
			reach |= (uint32_t)((digit[d] >> q) & 1) << d;
		assert(g->low[query[q]] <= reach && reach <= g->high[query[q]]);
		g->low[query[q]] = g->high[query[q]] = reach;
	}
	tighten_up(g);
	tighten_down(g);
}

static uint32_t best_sure_value(const struct graph *g, const uint8_t *testable)
{
	uint32_t best = 0;

	for (uint32_t n = 0; n < g->count; n++) {
		if (testable[n])
			best = max_u32(best, value_surely(g, n));
	}
	return best;
}

/* Whether counting the node could change the choice. */
static bool is_open(const struct graph *g, uint32_t n, uint32_t best)
{
	uint32_t at_most = value_at_most(g, n);

	return at_most > best || (at_most == best && g->total <= TIES_MATTER_MAX &&
				  value_surely(g, n) < best);
}

/*
 * The largest value among the testable nodes. Each round counts a sample, evenly spread
 * in topological order, of the nodes that could beat the best: along a line of history
 * reach only grows, so that a sample of 64 leaves about a 64th of the line in doubt.
 */
static uint32_t best_value(struct graph *g, const uint8_t *testable)
{
	KB_AUTO_FREE uint32_t *open = kb_calloc(g->count, sizeof(*open));

	for (;;) {
		uint32_t best = best_sure_value(g, testable);
		uint32_t open_count = 0, query_count;
		uint32_t query[BATCH];

		for (uint32_t n = 0; n < g->count; n++) {
			if (testable[n] && is_open(g, n, best))
				open[open_count++] = n;
		}
		if (open_count == 0)
			return best;
		query_count = min_u32(open_count, BATCH);
		for (uint32_t q = 0; q < query_count; q++)
			query[q] = open[(uint64_t)open_count * (2 * q + 1) /
					(2 * query_count)];
		count_batch(g, query, query_count);
	}
}

/* Hops to the nearest skipped candidate, along edges in either direction. */
static uint32_t *distances(const struct graph *g, const uint8_t *skipped)
{
	KB_AUTO_FREE uint32_t *child_start =
		kb_calloc((size_t)g->count + 2, sizeof(*child_start));
	KB_AUTO_FREE uint32_t *children =
		kb_calloc(g->start[g->count], sizeof(*children));
	KB_AUTO_FREE uint32_t *queue = kb_calloc(g->count, sizeof(*queue));
	uint32_t *distance = kb_calloc(g->count, sizeof(*distance));
	uint32_t head = 0, tail = 0;

	/* Shifted by one, so that filling moves each start to its final place. */
	for (uint32_t i = 0; i < g->start[g->count]; i++)
		child_start[g->parents[i] + 2]++;
	for (uint32_t n = 0; n < g->count; n++)
		child_start[n + 2] += child_start[n + 1];
	for (uint32_t n = 0; n < g->count; n++) {
		for (uint32_t i = g->start[n]; i < g->start[n + 1]; i++)
			children[child_start[g->parents[i] + 1]++] = n;
		distance[n] = skipped[g->nodes[n]] ? 0 : NONE;
		if (distance[n] == 0)
			queue[tail++] = n;
	}
	while (head < tail) {
		uint32_t n = queue[head++];

		for (uint32_t i = g->start[n]; i < g->start[n + 1]; i++) {
			if (distance[g->parents[i]] != NONE)
				continue;
			distance[g->parents[i]] = distance[n] + 1;
			queue[tail++] = g->parents[i];
		}
		for (uint32_t i = child_start[n]; i < child_start[n + 1]; i++) {
			if (distance[children[i]] != NONE)
				continue;
			distance[children[i]] = distance[n] + 1;
			queue[tail++] = children[i];
		}
	}
	return distance;
}

/*
 * Among equals the order is git's, so that both ask for the same commit wherever git
 * looks for the best at all: of clean halves the first merge, else the first commit with
 * a parent among the candidates; otherwise the first.
 */
static uint32_t first_of_value(const struct graph *g, uint32_t value)
{
	uint32_t found[3] = {NONE, NONE, NONE}; /* without parents, with one, with more */

	for (uint32_t n = 0; n < g->count; n++) {
		uint32_t parents = min_u32(g->start[n + 1] - g->start[n], 2);

		if (!g->testable[n] || value_surely(g, n) < value)
			continue;
		if (value != g->total / 2)
			return n;
		if (found[parents] == NONE)
			found[parents] = n;
	}
	if (found[2] != NONE)
		return found[2];
	return found[1] != NONE ? found[1] : found[0];
}

/*
 * The best commit is skipped. What makes commits untestable mostly makes their neighbours
 * untestable too, so up to an eighth of the value is given for distance.
 */
static uint32_t away_from_skipped(const struct graph *g, uint32_t value,
				  const uint8_t *skipped)
{
	KB_AUTO_FREE uint32_t *distance = distances(g, skipped);
	uint32_t chosen = NONE;

	for (uint32_t n = 0; n < g->count; n++) {
		uint32_t sure = value_surely(g, n);

		if (!g->testable[n] || sure < value - value / 8)
			continue;
		if (chosen == NONE || distance[n] > distance[chosen] ||
		    (distance[n] == distance[chosen] && sure > value_surely(g, chosen)))
			chosen = n;
	}
	return chosen;
}

/* git's estimate: the tests still to come after this one, were every test a clean half.
 */
static uint32_t estimate_steps(uint32_t candidates)
{
	uint32_t log = 0;

	if (candidates < 3)
		return 0;
	while (candidates >> (log + 1))
		log++;

	uint64_t power = UINT64_C(1) << log;
	return power < 3 * (candidates - power) ? log : log - 1;
}

/* A skipped node may be the best of all; only then is it worth keeping away from. */
static uint32_t best_value_with_skipped(struct graph *g, const uint8_t *skipped)
{
	KB_AUTO_FREE uint8_t *any = kb_calloc(g->count, 1);

	for (uint32_t n = 0; n < g->count; n++)
		any[n] = g->testable[n] || (g->weight[n] && skipped[g->nodes[n]]);
	return best_value(g, any);
}

struct kb_pick kb_pick_next(const struct kb_dag *dag, uint32_t bad,
			    const uint8_t *excluded, const uint8_t *skipped,
			    const uint8_t *interesting)
{
	KB_AUTO(graph_free) struct graph g = {0};
	struct kb_pick pick = {.node = NONE};
	uint32_t value, chosen;

	assert(bad < dag->node_count);
	graph_build(&g, dag, bad, excluded, skipped, interesting);
	pick.candidates = g.total;
	pick.steps = estimate_steps(g.total);
	if (g.total < 2)
		return pick;

	bracket(&g);
	value = best_value(&g, g.testable);
	if (value == 0) {
		/* With two candidates, the older one would tell: it must have been
		 * skipped. */
		pick.only_skipped = true;
		return pick;
	}
	if (skipped && best_value_with_skipped(&g, skipped) > value)
		chosen = away_from_skipped(&g, value, skipped);
	else
		chosen = first_of_value(&g, value);
	assert(chosen != NONE);
	pick.node = g.nodes[chosen];
	return pick;
}
