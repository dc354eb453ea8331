/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/posterior_reach.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

#define NONE UINT32_MAX
#define BATCH 64
#define BYTES 8

/* A segment is a line of history: inside it everyone is the only child of an only parent.
 * Numbers are topological, as nodes' are. */
struct kb_reach {
	const struct kb_dag *dag; /* borrowed */
	uint32_t head, count;
	uint32_t *segment_of; /* owned; head + 1 entries; NONE: not an ancestor */
	uint32_t *start;      /* owned; parents of s: parents[start[s] .. start[s + 1]) */
	uint32_t *parents;    /* owned; segments */
};

static uint32_t *count_children(const struct kb_dag *dag, uint32_t head, uint8_t *in)
{
	uint32_t *children = kb_calloc((size_t)head + 1, sizeof(*children));

	in[head] = 1;
	for (uint32_t n = head + 1; n-- > 0;) {
		if (!in[n])
			continue;
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1];
		     i++) {
			in[dag->parents[i]] = 1;
			children[dag->parents[i]]++;
		}
	}
	return children;
}

struct kb_reach *kb_reach_new(const struct kb_dag *dag, uint32_t head)
{
	struct kb_reach *r = kb_calloc(1, sizeof(*r));
	KB_AUTO_FREE uint8_t *in = kb_calloc((size_t)head + 1, 1);
	KB_AUTO_FREE uint32_t *children = count_children(dag, head, in);
	uint32_t used = 0;

	r->dag = dag;
	r->head = head;
	r->segment_of = kb_calloc((size_t)head + 1, sizeof(*r->segment_of));
	r->start = kb_calloc((size_t)head + 2, sizeof(*r->start));
	r->parents =
		kb_calloc((size_t)dag->parent_start[head + 1] + 1, sizeof(*r->parents));
	for (uint32_t n = 0; n <= head; n++) {
		uint32_t from = dag->parent_start[n], to = dag->parent_start[n + 1];

		r->segment_of[n] = NONE;
		if (!in[n])
			continue;
		if (to - from == 1 && children[dag->parents[from]] == 1) {
			r->segment_of[n] = r->segment_of[dag->parents[from]];
			continue;
		}
		r->segment_of[n] = r->count;
		for (uint32_t i = from; i < to; i++)
			r->parents[used++] = r->segment_of[dag->parents[i]];
		r->start[++r->count] = used;
	}
	return r;
}

void kb_reach_free(struct kb_reach *r)
{
	if (!r)
		return;
	free(r->segment_of);
	free(r->start);
	free(r->parents);
	free(r);
}

struct sums {
	const struct kb_reach *reach;
	double total;
	double *own;	    /* owned; weight of a segment */
	double *low, *high; /* owned; bounds of what lies below a segment */
	uint8_t *known;	    /* owned; a merge that was summed */
	uint64_t *bits;	    /* owned; scratch of a sweep */
};

static void sums_free(struct sums *s)
{
	free(s->own);
	free(s->low);
	free(s->high);
	free(s->known);
	free(s->bits);
}

/*
 * Sums what lies below up to 64 segments. A weight is added once per byte of the mask,
 * into a table with a place for each value of that byte: 8 additions instead of 64.
 */
static void sweep(struct sums *s, const uint32_t *query, uint32_t query_count)
{
	const struct kb_reach *r = s->reach;
	double table[BYTES][256] = {{0}};
	uint32_t from = query[query_count - 1]; /* ascending */

	memset(s->bits, 0, ((size_t)from + 1) * sizeof(*s->bits));
	for (uint32_t q = 0; q < query_count; q++) {
		for (uint32_t i = r->start[query[q]]; i < r->start[query[q] + 1]; i++)
			s->bits[r->parents[i]] |= UINT64_C(1) << q;
	}
	for (uint32_t n = from; n-- > 0;) {
		uint64_t mask = s->bits[n];

		if (!mask)
			continue;
		for (uint32_t i = r->start[n]; i < r->start[n + 1]; i++)
			s->bits[r->parents[i]] |= mask;
		for (uint32_t byte = 0; byte < BYTES; byte++)
			table[byte][(mask >> (8 * byte)) & 0xff] += s->own[n];
	}
	for (uint32_t q = 0; q < query_count; q++) {
		double sum = 0;

		for (uint32_t value = 0; value < 256; value++) {
			if (value >> (q % 8) & 1)
				sum += table[q / 8][value];
		}
		s->low[query[q]] = s->high[query[q]] = sum;
		s->known[query[q]] = 1;
	}
}

/* Below a merge lies at least the larger of its parents' sides, at most all of them. */
static void bound(struct sums *s, uint32_t n)
{
	const struct kb_reach *r = s->reach;
	double low = 0, high = 0;

	if (s->known[n])
		return;
	for (uint32_t i = r->start[n]; i < r->start[n + 1]; i++) {
		uint32_t p = r->parents[i];

		low = fmax(low, s->low[p] + s->own[p]);
		high += s->high[p] + s->own[p];
	}
	s->low[n] = low;
	s->high[n] = fmin(high, s->total);
}

static void sum_segments(struct sums *s, double tolerance)
{
	const struct kb_reach *r = s->reach;
	uint32_t query[BATCH], count = 0;

	for (uint32_t n = 0; n < r->count; n++) {
		bool is_merge = r->start[n + 1] - r->start[n] > 1;

		bound(s, n);
		if (is_merge && s->high[n] - s->low[n] > tolerance)
			query[count++] = n;
		if (count < BATCH && (n + 1 < r->count || count == 0))
			continue;
		sweep(s, query, count);
		for (uint32_t k = query[0] + 1; k <= n; k++)
			bound(s, k);
		count = 0;
	}
}

void kb_reach_sums(const struct kb_reach *r, const double *weight, double tolerance,
		   double *ret_sums)
{
	KB_AUTO(sums_free)
	struct sums s = {
		.reach = r,
		.own = kb_calloc(r->count, sizeof(double)),
		.low = kb_calloc(r->count, sizeof(double)),
		.high = kb_calloc(r->count, sizeof(double)),
		.known = kb_calloc(r->count, 1),
		.bits = kb_calloc(r->count, sizeof(uint64_t)),
	};

	for (uint32_t n = 0; n <= r->head; n++) {
		if (r->segment_of[n] == NONE)
			continue;
		s.own[r->segment_of[n]] += weight[n];
		s.total += weight[n];
	}
	sum_segments(&s, tolerance);
	/* From here on, low is what lies below the next node of the segment. */
	for (uint32_t n = 0; n <= r->head; n++) {
		uint32_t segment = r->segment_of[n];

		if (segment == NONE)
			continue;
		s.low[segment] += weight[n];
		ret_sums[n] = s.low[segment];
	}
}
