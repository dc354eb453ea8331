/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/decide.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/decide_internal.h"
#include "bisect/stats.h"
#include "harness/base/mem.h"

static void check_params(struct kb_decide_params *p)
{
	assert(p->alpha > 0 && p->alpha < 1);
	assert(p->min_effect >= 0);
	if (p->commit_boots_min == 0)
		p->commit_boots_min = 1;
	if (p->commit_boots_max < p->commit_boots_min)
		p->commit_boots_max = p->commit_boots_min;
}

struct kb_decide *kb_decide_new(const struct kb_decide_params *params,
				const struct kb_dag *dag, uint32_t bad,
				const uint8_t *interesting,
				const uint8_t *parents_outside)
{
	struct kb_decide *d = kb_calloc(1, sizeof(*d));
	uint32_t steps = 0;

	assert(bad < dag->node_count);
	d->params = *params;
	check_params(&d->params);
	d->dag = dag;
	d->interesting = interesting;
	d->parents_outside = parents_outside;
	d->bad = d->bad_end = bad;
	d->nodes = kb_calloc((size_t)dag->node_count + 1, sizeof(*d->nodes));
	d->excluded = kb_calloc(dag->node_count, 1);
	d->skipped = kb_calloc(dag->node_count, 1);
	d->left_over = kb_calloc(dag->node_count, sizeof(*d->left_over));
	d->is_left = kb_calloc(dag->node_count, 1);
	d->testing = d->culprit = KB_NODE_NONE;
	d->endpoint_p = d->detectable = NAN;
	d->result.effect = d->result.effect_low = d->result.effect_high = NAN;
	d->result.confirm_p = NAN;
	kb_looks_plan(&d->params, &d->looks);
	decide_refresh_candidates(d);
	while (steps < 31 && (UINT32_C(1) << steps) < d->left_over_count)
		steps++;
	d->threshold = kb_model_threshold(d->params.alpha, steps);
	decide_advance(d);
	return d;
}

void kb_decide_free(struct kb_decide *d)
{
	if (!d)
		return;
	for (uint32_t n = 0; n <= d->dag->node_count; n++)
		free(d->nodes[n].y);
	free(d->nodes);
	free(d->excluded);
	free(d->skipped);
	free(d->left_over);
	free(d->is_left);
	free(d->subjects);
	free(d->order);
	free(d);
}

void decide_refresh_candidates(struct kb_decide *d)
{
	memset(d->is_left, 0, d->dag->node_count);
	kb_dag_mark_ancestors(d->dag, d->bad, d->is_left);
	d->left_over_count = 0;
	for (uint32_t n = d->bad + 1; n-- > 0;) {
		d->is_left[n] &=
			!d->excluded[n] && (!d->interesting || d->interesting[n]);
		if (d->is_left[n])
			d->left_over[d->left_over_count++] = n;
	}
	if (d->left_over_count > 0)
		return;
	/* With path limiting, nothing may be left that touches the paths. */
	d->left_over[d->left_over_count++] = d->bad;
	d->is_left[d->bad] = 1;
}

void kb_decide_next(struct kb_decide *d, struct kb_action *ret_action)
{
	*ret_action = d->current;
	ret_action->count = d->left;
}

static void one_boot_less(struct kb_decide *d, uint32_t node)
{
	if (d->current.phase == KB_PHASE_DONE || node != d->current.node)
		return;
	if (--d->left == 0 || decide_is_exhausted(d, decide_node(d, node)))
		decide_advance(d);
}

void kb_decide_feed_boot(struct kb_decide *d, uint32_t node, double y)
{
	struct decide_node *n = decide_node(d, node);

	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	assert(isfinite(y));
	KB_GROW(n->y, n->count, n->cap);
	n->y[n->count++] = y;
	one_boot_less(d, node);
}

void kb_decide_feed_failed_boot(struct kb_decide *d, uint32_t node)
{
	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	decide_node(d, node)->failed++;
	one_boot_less(d, node);
}

void kb_decide_feed_untestable(struct kb_decide *d, uint32_t node)
{
	struct decide_node *n = decide_node(d, node);

	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	n->untestable = true;
	if (n->verdict == KB_VERDICT_NONE)
		n->verdict = KB_VERDICT_UNTESTABLE;
	if (node != KB_NODE_GOOD)
		d->skipped[node] = 1;
	/* A batch that has begun is finished first, unless it is this commit's. */
	if (d->current.phase != KB_PHASE_DONE &&
	    (node == d->current.node || d->left == d->current.count))
		decide_advance(d);
}

/*
 * Not a posterior: what is left shares alike what the decided commits' error allowance
 * does not take; the allowance is spread over the commits that were ruled out. An answer
 * that fresh boots did not confirm counts half.
 */
static double node_probability(const struct kb_decide *d, uint32_t node)
{
	double spent = d->tested / (1 + exp(d->threshold));
	uint32_t others = d->dag->node_count - d->left_over_count;

	if (node == KB_NODE_GOOD)
		return 0;
	if (d->result.outcome == KB_OUTCOME_CULPRIT && !d->result.confirmed)
		spent = (1 + spent) / 2;
	if (others == 0)
		spent = 0;
	return d->is_left[node] ? (1 - spent) / d->left_over_count : spent / others;
}

void kb_decide_node_state(const struct kb_decide *d, uint32_t node,
			  struct kb_decide_node *ret_state)
{
	const struct decide_node *n = decide_node(d, node);
	struct kb_decide_node state = {
		.verdict = n->verdict,
		.boots = (uint32_t)n->count,
		.failed = n->failed,
		.mean = kb_stats_mean(n->y, n->count),
		.sd = kb_stats_sd(n->y, n->count),
		.level = NAN,
		.probability = node_probability(d, node),
	};

	if (n->count && d->model_ready)
		state.level = (state.mean - d->model.good) / d->model.delta;
	*ret_state = state;
}

void kb_decide_result(const struct kb_decide *d, struct kb_decide_result *ret_result)
{
	const struct decide_node *good = decide_node(d, KB_NODE_GOOD);
	const struct decide_node *bad = decide_node(d, d->bad_end);
	struct kb_decide_result r = d->result;
	size_t g = good->fresh_from ? good->fresh_from : good->count;
	size_t b = bad->fresh_from ? bad->fresh_from : bad->count;

	r.endpoint_effect = NAN;
	if (g && b)
		r.endpoint_effect = kb_stats_mean(bad->y, b) - kb_stats_mean(good->y, g);
	r.endpoint_p = d->endpoint_p;
	r.detectable = d->detectable;
	if (r.outcome != KB_OUTCOME_NOT_REPRODUCIBLE &&
	    r.outcome != KB_OUTCOME_INFRASTRUCTURE) {
		r.candidate_count = d->left_over_count;
		r.candidates = kb_calloc(r.candidate_count, sizeof(*r.candidates));
		memcpy(r.candidates, d->left_over,
		       r.candidate_count * sizeof(*r.candidates));
	}
	*ret_result = r;
}

void kb_decide_result_free(struct kb_decide_result *result)
{
	if (!result)
		return;
	free(result->candidates);
	result->candidates = NULL;
	result->candidate_count = 0;
}

static uint32_t calibration_left(const struct kb_decide *d)
{
	size_t have =
		decide_node(d, KB_NODE_GOOD)->count + decide_node(d, d->bad_end)->count;
	size_t want = 2 * (size_t)d->looks.boots[d->look];

	return d->current.phase == KB_PHASE_CALIBRATE && want > have
		       ? (uint32_t)(want - have)
		       : 0;
}

static uint32_t confirmation_left(const struct kb_decide *d)
{
	uint32_t left = 0;

	if (d->current.phase != KB_PHASE_CONFIRM)
		return 2 * d->params.confirm_boots;
	for (uint32_t i = 0; i < d->subject_count; i++) {
		const struct decide_node *n = decide_node(d, d->subjects[i]);
		size_t have = n->count - n->fresh_from;

		left += d->confirm_target > have ? d->confirm_target - (uint32_t)have : 0;
	}
	return left;
}

void kb_decide_progress(const struct kb_decide *d, struct kb_decide_progress *ret)
{
	struct kb_decide_progress p = {
		.phase = d->current.phase,
		.candidates_left = d->left_over_count,
		.top_node = KB_NODE_NONE,
	};
	double each = d->params.commit_boots_min;

	if (d->model_ready) {
		double s = fmin(d->model.separation, 8);

		/* The drift of the test is about s^2 / 2 a boot. */
		each = fmin(fmax(each, 2 * d->threshold / (s * s)),
			    d->params.commit_boots_max);
	}
	if (p.phase == KB_PHASE_CALIBRATE || p.phase == KB_PHASE_SEARCH) {
		while (p.steps_left < 31 &&
		       (UINT32_C(1) << p.steps_left) < p.candidates_left)
			p.steps_left++;
	}
	if (p.phase != KB_PHASE_DONE)
		p.boots_left = calibration_left(d) + confirmation_left(d) +
			       (uint32_t)ceil(each * p.steps_left);
	if (p.candidates_left == 1 && d->current.phase != KB_PHASE_CALIBRATE) {
		p.top_node = d->left_over[0];
		p.top_probability = node_probability(d, p.top_node);
	}
	*ret = p;
}
