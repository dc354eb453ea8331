/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/posterior.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/posterior_internal.h"
#include "bisect/posterior_reach.h"
#include "harness/base/mem.h"

/* Grids, relative to the frozen scale and difference; s is uniform on its grid. */
static const double sd_grid[SDS] = {0.5, 0.63, 0.8, 1, 1.25, 1.6, 2};
static const double tau_grid[TAUS] = {0, 0.1, 0.2, 0.3, 0.45};
static const double tau_prior[2][TAUS] = {
	{0.35, 0.25, 0.2, 0.12, 0.08},
	{0.1, 0.2, 0.25, 0.25, 0.2}, /* layout noise is expected */
};

double posterior_log_sum(const double *x, size_t n)
{
	double largest = -INFINITY, sum = 0;

	for (size_t i = 0; i < n; i++)
		largest = fmax(largest, x[i]);
	if (isinf(largest))
		return largest;
	for (size_t i = 0; i < n; i++)
		sum += exp(x[i] - largest);
	return largest + log(sum);
}

double posterior_log_tau(const struct kb_posterior *p, uint32_t tau)
{
	return log(tau_prior[p->noise.layouts][tau]);
}

static void init_candidates(struct kb_posterior *p, const double *prior)
{
	uint32_t count = p->dag->node_count;
	KB_AUTO_FREE uint8_t *in = kb_calloc(count, 1);
	double sum = 0;

	kb_dag_mark_ancestors(p->dag, p->bad, in);
	KB_GROW(p->classes, p->class_count, p->class_cap);
	p->classes[0] = (struct posterior_class){0};
	p->class_count = 1;
	for (uint32_t n = 0; n < count; n++) {
		p->slot_of[n] = NO_SLOT;
		p->class_of[n] = in[n] ? 0 : NO_SLOT;
		p->prior[n] = in[n] ? prior ? prior[n] : 1 : 0;
		assert(p->prior[n] >= 0 && isfinite(p->prior[n]));
		sum += p->prior[n];
		p->classes[0].size += in[n];
	}
	assert(sum > 0);
	for (uint32_t n = 0; n < count; n++)
		p->prior[n] /= sum;
	p->classes[0].prior = 1;
}

struct kb_posterior *kb_posterior_new(const struct kb_dag *dag, uint32_t bad,
				      const double *prior, const struct kb_noise *noise)
{
	struct kb_posterior *p = kb_calloc(1, sizeof(*p));
	uint32_t count = dag->node_count;

	assert(bad < count && noise->scale > 0 && noise->delta > 0);
	p->dag = dag;
	p->bad = bad;
	p->noise = *noise;
	p->prior = kb_calloc(count, sizeof(*p->prior));
	p->weight = kb_calloc(count, sizeof(*p->weight));
	p->class_of = kb_calloc(count, sizeof(*p->class_of));
	p->slot_of = kb_calloc(count, sizeof(*p->slot_of));
	init_candidates(p, prior);
	kb_posterior_update(p);
	return p;
}

void kb_posterior_free(struct kb_posterior *p)
{
	if (!p)
		return;
	kb_reach_free(p->reach);
	free(p->prior);
	free(p->weight);
	free(p->class_of);
	free(p->slot_of);
	free(p->classes);
	free(p->bits);
	free(p->builds);
	free(p->pubs);
	free(p);
}

/* --- classes ------------------------------------------------------------------------ */

static void resize_bits(struct kb_posterior *p, size_t class_cap, size_t slot_cap)
{
	uint8_t *bits = kb_calloc(class_cap, slot_cap ? slot_cap : 1);

	for (size_t c = 0; c < p->class_count && p->slot_cap; c++)
		memcpy(bits + c * slot_cap, p->bits + c * p->slot_cap, p->slot_cap);
	free(p->bits);
	p->bits = bits;
	p->slot_cap = slot_cap;
}

static uint32_t split_class(struct kb_posterior *p, uint32_t from)
{
	size_t cap = p->class_cap, slots = p->slot_cap, to = p->class_count;

	KB_GROW(p->classes, p->class_count, p->class_cap);
	if (p->class_cap != cap)
		resize_bits(p, p->class_cap, slots);
	p->classes[to] = (struct posterior_class){0};
	memcpy(p->bits + to * slots, p->bits + from * slots, slots);
	p->class_count++;
	return (uint32_t)to;
}

/* The candidates that `node` contains part from those that it does not. */
static void add_slot(struct kb_posterior *p, uint32_t node)
{
	size_t slot = p->slot_count++, old_count = p->class_count;
	KB_AUTO_FREE uint8_t *marks = kb_calloc(p->dag->node_count, 1);
	KB_AUTO_FREE uint32_t *marked = kb_calloc(old_count, sizeof(*marked));
	KB_AUTO_FREE uint32_t *target = kb_calloc(old_count, sizeof(*target));

	p->slot_of[node] = (uint32_t)slot;
	if (slot >= p->slot_cap)
		resize_bits(p, p->class_cap, p->slot_cap ? 2 * p->slot_cap : 16);
	kb_dag_mark_ancestors(p->dag, node, marks);
	for (uint32_t n = 0; n <= node; n++) {
		if (marks[n] && p->class_of[n] != NO_SLOT)
			marked[p->class_of[n]]++;
	}
	for (uint32_t c = 0; c < old_count; c++) {
		target[c] = c;
		if (marked[c] && marked[c] < p->classes[c].size)
			target[c] = split_class(p, c);
		if (marked[c])
			p->bits[target[c] * p->slot_cap + slot] = 1;
	}
	for (uint32_t n = 0; n <= node; n++) {
		uint32_t c = p->class_of[n];

		if (!marks[n] || c == NO_SLOT || target[c] == c)
			continue;
		p->class_of[n] = target[c];
		p->classes[c].size--;
		p->classes[target[c]].size++;
		p->classes[target[c]].prior += p->prior[n];
	}
	/* What is left is summed anew: a difference would carry rounding. */
	for (uint32_t c = 0; c < old_count; c++) {
		if (target[c] != c)
			p->classes[c].prior = 0;
	}
	for (uint32_t n = 0; n <= p->bad; n++) {
		uint32_t c = p->class_of[n];

		if (c != NO_SLOT && c < old_count && target[c] != c)
			p->classes[c].prior += p->prior[n];
	}
}

/* --- builds ------------------------------------------------------------------------- */

static struct posterior_build *find_build(struct kb_posterior *p, uint32_t node,
					  uint32_t layout)
{
	struct posterior_build *b;

	for (size_t i = 0; i < p->build_count; i++) {
		b = &p->builds[i];
		if (b->pub.node == node && b->pub.layout == layout)
			return b;
	}
	if (node != KB_POSTERIOR_GOOD && p->class_of[node] != NO_SLOT &&
	    p->slot_of[node] == NO_SLOT)
		add_slot(p, node);
	if (p->build_count == p->build_cap) {
		size_t cap = p->build_cap;

		KB_GROW(p->builds, p->build_count, p->build_cap);
		p->pubs = kb_realloc(p->pubs, p->build_cap, sizeof(*p->pubs));
		assert(p->build_cap > cap);
	}
	b = &p->builds[p->build_count++];
	*b = (struct posterior_build){.pub = {.node = node, .layout = layout},
				      .slot = NO_SLOT};
	if (node != KB_POSTERIOR_GOOD) {
		b->slot = p->slot_of[node];
		b->always_bad = b->slot == NO_SLOT;
	}
	return b;
}

void kb_posterior_add(struct kb_posterior *p, uint32_t node, uint32_t layout, double y)
{
	struct posterior_build *b;
	double x, before;

	assert(isfinite(y));
	assert(node == KB_POSTERIOR_GOOD || node < p->dag->node_count);
	b = find_build(p, node, layout);
	x = (kb_noise_clip(&p->noise, y) - p->noise.good) / p->noise.scale;
	before = b->pub.mean;
	b->pub.boots++;
	b->pub.mean += (x - before) / b->pub.boots;
	b->pub.squares += (x - before) * (x - b->pub.mean);
	b->stale = true;
}

double kb_posterior_tau(const struct kb_posterior *p, uint32_t which)
{
	return tau_grid[which] * p->noise.delta / p->noise.scale;
}

static void refresh_terms(const struct kb_posterior *p, struct posterior_build *b)
{
	double n = b->pub.boots, y = b->pub.mean;

	for (uint32_t t = 0; t < TAUS; t++) {
		double tau = kb_posterior_tau(p, t);

		for (uint32_t s = 0; s < SDS; s++) {
			double s2 = sd_grid[s] * sd_grid[s], v = tau * tau + s2 / n;

			b->terms[t * SDS + s] = (struct posterior_term){
				.constant = -(n - 1) / 2 * log(s2) - log(n) / 2 -
					    b->pub.squares / (2 * s2) - log(v) / 2,
				.w = 1 / v,
				.wy = y / v,
				.wyy = y * y / v,
			};
		}
	}
	b->stale = false;
}

/* --- likelihood --------------------------------------------------------------------- */

void posterior_group_add(struct posterior_group *g, const struct posterior_build *b)
{
	g->builds++;
	for (uint32_t i = 0; i < CELLS; i++) {
		g->sums[i].constant += b->terms[i].constant;
		g->sums[i].w += b->terms[i].w;
		g->sums[i].wy += b->terms[i].wy;
		g->sums[i].wyy += b->terms[i].wyy;
	}
}

double posterior_group_flat(const struct posterior_group *g, uint32_t tau)
{
	double x[SDS];

	if (g->builds == 0)
		return 0;
	for (uint32_t s = 0; s < SDS; s++) {
		const struct posterior_term *t = &g->sums[tau * SDS + s];

		x[s] = t->constant - (t->wyy - t->wy * t->wy / t->w) / 2 - log(t->w) / 2;
	}
	return posterior_log_sum(x, SDS) - log(SDS);
}

double posterior_group_known(const struct posterior_group *g, uint32_t tau, double centre,
			     double sd)
{
	double x[SDS], precision = 1 / (sd * sd);

	if (g->builds == 0)
		return 0;
	for (uint32_t s = 0; s < SDS; s++) {
		const struct posterior_term *t = &g->sums[tau * SDS + s];
		double wd = t->wy - t->w * centre;
		double wdd = t->wyy - 2 * centre * t->wy + centre * centre * t->w;

		x[s] = t->constant - (wdd - wd * wd / (t->w + precision)) / 2 -
		       log1p(t->w / precision) / 2;
	}
	return posterior_log_sum(x, SDS) - log(SDS);
}

static void judge_class(struct kb_posterior *p, size_t cls)
{
	struct posterior_class *c = &p->classes[cls];
	struct posterior_group group[2] = {{0}};

	for (size_t i = 0; i < p->build_count; i++)
		posterior_group_add(&group[posterior_is_bad(p, cls, &p->builds[i])],
				    &p->builds[i]);
	for (uint32_t t = 0; t < TAUS; t++)
		c->log_like_tau[t] = posterior_log_tau(p, t) +
				     posterior_group_flat(&group[0], t) +
				     posterior_group_flat(&group[1], t);
	c->log_like = posterior_log_sum(c->log_like_tau, TAUS);
}

void kb_posterior_update(struct kb_posterior *p)
{
	KB_AUTO_FREE double *x = kb_calloc(p->class_count, sizeof(*x));

	for (size_t i = 0; i < p->build_count; i++) {
		if (p->builds[i].stale)
			refresh_terms(p, &p->builds[i]);
		p->pubs[i] = p->builds[i].pub;
	}
	for (size_t c = 0; c < p->class_count; c++) {
		judge_class(p, c);
		x[c] = log(p->classes[c].prior) + p->classes[c].log_like;
	}
	p->log_evidence = posterior_log_sum(x, p->class_count);
	for (uint32_t t = 0; t < TAUS; t++) {
		p->tau_weight[t] = 0;
		for (size_t c = 0; c < p->class_count; c++)
			p->tau_weight[t] +=
				p->classes[c].prior *
				exp(p->classes[c].log_like_tau[t] - p->log_evidence);
	}
	for (size_t c = 0; c < p->class_count; c++)
		x[c] = exp(p->classes[c].log_like - p->log_evidence);
	for (uint32_t n = 0; n <= p->bad; n++)
		p->weight[n] =
			p->class_of[n] == NO_SLOT ? 0 : p->prior[n] * x[p->class_of[n]];
}

const double *kb_posterior_all(const struct kb_posterior *p)
{
	return p->weight;
}

uint32_t kb_posterior_top(const struct kb_posterior *p)
{
	uint32_t top = 0;

	for (uint32_t n = 1; n <= p->bad; n++) {
		if (p->weight[n] > p->weight[top])
			top = n;
	}
	return top;
}

void kb_posterior_bad(const struct kb_posterior *p, double tolerance, double *ret_bad)
{
	/* Made on first use; what it holds depends on the graph alone. */
	struct kb_posterior *lazy = (struct kb_posterior *)p;

	if (!p->reach)
		lazy->reach = kb_reach_new(p->dag, p->bad);
	for (uint32_t n = 0; n < p->dag->node_count; n++)
		ret_bad[n] = 1;
	kb_reach_sums(p->reach, p->weight, tolerance, ret_bad);
}

const double *kb_posterior_tau_weights(const struct kb_posterior *p)
{
	return p->tau_weight;
}

const struct kb_noise *kb_posterior_noise(const struct kb_posterior *p)
{
	return &p->noise;
}

const struct kb_posterior_build *kb_posterior_builds(const struct kb_posterior *p,
						     size_t *ret_count)
{
	*ret_count = p->build_count;
	return p->pubs;
}

const struct kb_dag *kb_posterior_dag(const struct kb_posterior *p)
{
	return p->dag;
}

uint32_t kb_posterior_tested(const struct kb_posterior *p)
{
	return (uint32_t)p->slot_count;
}

uint32_t kb_posterior_class_count(const struct kb_posterior *p)
{
	return (uint32_t)p->class_count;
}
