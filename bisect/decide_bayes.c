/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State and reports; the decisions are in decide_bayes_{calibrate,search,final}.c. */
#include "bisect/decide_bayes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/decide_bayes_internal.h"
#include "bisect/stats.h"
#include "harness/base/mem.h"

#define BUILD_IN_BOOTS 10

static void check_params(struct kb_decide_params *p)
{
	assert(p->alpha > 0 && p->alpha < 1);
	assert(p->min_effect >= 0);
	if (p->commit_boots_min == 0)
		p->commit_boots_min = 1;
	if (p->commit_boots_max < p->commit_boots_min)
		p->commit_boots_max = p->commit_boots_min;
}

struct kb_decide_bayes *kb_decide_bayes_new(const struct kb_decide_params *params,
					    const struct kb_dag *dag, uint32_t bad,
					    const uint8_t *interesting,
					    const uint8_t *parents_outside,
					    const struct kb_decide_bayes_options *options)
{
	struct kb_decide_bayes *d = kb_calloc(1, sizeof(*d));
	uint32_t count = dag->node_count;

	assert(bad < count);
	d->params = *params;
	check_params(&d->params);
	if (options)
		d->options = *options;
	if (!(d->options.costs.boot > 0))
		d->options.costs =
			(struct kb_plan_costs){.boot = 1, .build = BUILD_IN_BOOTS};
	if (!d->options.table)
		d->options.table = d->own_table = kb_plan_table_new();
	d->dag = dag;
	d->interesting = interesting;
	d->parents_outside = parents_outside;
	d->bad_end = bad;
	d->nodes = kb_calloc((size_t)count + 1, sizeof(*d->nodes));
	d->prior = kb_calloc(count, sizeof(*d->prior));
	d->member = kb_calloc(count, 1);
	d->testable = kb_calloc(count, 1);
	d->skipped = kb_calloc(count, 1);
	d->bad_chance = kb_calloc(count, sizeof(*d->bad_chance));
	d->subjects = kb_calloc((size_t)count + 2, sizeof(*d->subjects));
	d->order = kb_calloc((size_t)count + 2, sizeof(*d->order));
	d->culprit = KB_NODE_NONE;
	d->endpoint_effect = d->endpoint_p = d->detectable = NAN;
	d->result.effect = d->result.effect_low = d->result.effect_high = NAN;
	d->result.confirm_p = NAN;
	bayes_plan_looks(&d->params, &d->looks);
	bayes_add_part(d, KB_NODE_GOOD, bad, 1);
	bayes_advance(d);
	return d;
}

void kb_decide_bayes_free(struct kb_decide_bayes *d)
{
	if (!d)
		return;
	for (uint32_t n = 0; n <= d->dag->node_count; n++)
		free(d->nodes[n].y);
	kb_posterior_free(d->posterior);
	kb_plan_table_free(d->own_table);
	free(d->nodes);
	free(d->prior);
	free(d->member);
	free(d->testable);
	free(d->skipped);
	free(d->bad_chance);
	free(d->subjects);
	free(d->order);
	free(d->reported);
	free(d->set);
	free(d);
}

void kb_decide_bayes_next(struct kb_decide_bayes *d, struct kb_action *ret_action)
{
	*ret_action = d->current;
	ret_action->count = d->left;
}

static void one_boot_less(struct kb_decide_bayes *d, uint32_t node)
{
	if (d->current.phase == KB_PHASE_DONE || node != d->current.node)
		return;
	if (--d->left == 0 || bayes_is_exhausted(d, node))
		bayes_advance(d);
}

void kb_decide_bayes_feed_boot(struct kb_decide_bayes *d, uint32_t node, double y)
{
	struct bayes_node *n = bayes_node(d, node);

	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	assert(isfinite(y));
	KB_GROW(n->y, n->count, n->cap);
	n->y[n->count++] = y;
	if (d->posterior)
		bayes_take_boot(d, node, n->count - 1);
	one_boot_less(d, node);
}

static void mark_skipped(struct kb_decide_bayes *d, uint32_t node)
{
	if (node != KB_NODE_GOOD) {
		d->skipped[node] = 1;
		d->any_skipped = true;
	}
}

void kb_decide_bayes_feed_failed_boot(struct kb_decide_bayes *d, uint32_t node)
{
	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	bayes_node(d, node)->failed++;
	if (bayes_is_exhausted(d, node))
		mark_skipped(d, node);
	one_boot_less(d, node);
}

void kb_decide_bayes_feed_untestable(struct kb_decide_bayes *d, uint32_t node)
{
	assert(node == KB_NODE_GOOD || node < d->dag->node_count);
	bayes_node(d, node)->untestable = true;
	mark_skipped(d, node);
	/* A batch that has begun is finished first, unless it is this commit's. */
	if (d->current.phase != KB_PHASE_DONE &&
	    (node == d->current.node || d->left == d->current.count))
		bayes_advance(d);
}

static enum kb_verdict verdict_of(const struct kb_decide_bayes *d, uint32_t node)
{
	const struct bayes_node *n = bayes_node(d, node);

	if (n->count == 0)
		return bayes_is_exhausted(d, node) ? KB_VERDICT_UNTESTABLE
						   : KB_VERDICT_NONE;
	if (!d->calibrated)
		return KB_VERDICT_NONE;
	if (node == KB_NODE_GOOD)
		return KB_VERDICT_GOOD;
	if (d->bad_chance[node] >= 1 - d->params.alpha)
		return KB_VERDICT_BAD;
	return d->bad_chance[node] <= d->params.alpha ? KB_VERDICT_GOOD
						      : KB_VERDICT_UNCLEAR;
}

static double probability_of(const struct kb_decide_bayes *d, uint32_t node)
{
	if (node == KB_NODE_GOOD)
		return 0;
	for (uint32_t i = 0; i < d->found_count; i++) {
		if (d->found[i].node == node)
			return d->found[i].probability;
	}
	if (d->current.phase == KB_PHASE_DONE && d->reported)
		return d->reported[node];
	return d->posterior ? kb_posterior_all(d->posterior)[node] : 0;
}

void kb_decide_bayes_node_state(const struct kb_decide_bayes *d, uint32_t node,
				struct kb_decide_node *ret_state)
{
	const struct bayes_node *n = bayes_node(d, node);
	const struct bayes_node *good = bayes_node(d, KB_NODE_GOOD);
	struct kb_decide_node state = {
		.verdict = verdict_of(d, node),
		.boots = (uint32_t)n->count,
		.failed = n->failed,
		.mean = kb_stats_mean(n->y, n->count),
		.sd = kb_stats_sd(n->y, n->count),
		.level = NAN,
		.probability = probability_of(d, node),
	};

	if (n->count && d->calibrated)
		state.level = (state.mean - kb_stats_mean(good->y, good->count)) /
			      d->endpoint_effect;
	*ret_state = state;
}

void kb_decide_bayes_result(const struct kb_decide_bayes *d,
			    struct kb_decide_result *ret_result)
{
	struct kb_decide_result r = d->result;
	size_t count = d->found_count ? d->found_count : d->set_count;

	r.endpoint_effect = d->endpoint_effect;
	r.endpoint_p = d->endpoint_p;
	r.detectable = d->detectable;
	if (r.outcome != KB_OUTCOME_NOT_REPRODUCIBLE &&
	    r.outcome != KB_OUTCOME_INFRASTRUCTURE && count) {
		r.candidates = kb_calloc(count, sizeof(*r.candidates));
		r.candidate_count = count;
		for (size_t i = 0; i < count; i++)
			r.candidates[i] = d->found_count ? d->found[i].node : d->set[i];
	}
	*ret_result = r;
}

void kb_decide_bayes_progress(const struct kb_decide_bayes *d,
			      struct kb_decide_progress *ret)
{
	struct kb_decide_progress p = {.phase = d->current.phase,
				       .top_node = KB_NODE_NONE};
	double entropy = 0, boots = 0;

	if (d->posterior) {
		const double *w = kb_posterior_all(d->posterior);

		p.top_node = kb_posterior_top(d->posterior);
		p.top_probability = w[p.top_node];
		for (uint32_t n = 0; n < d->dag->node_count; n++) {
			/* What cannot be excluded yet. */
			p.candidates_left += w[n] > d->params.alpha / d->candidate_count;
			entropy -= w[n] > 0 ? w[n] * log2(w[n]) : 0;
		}
	} else {
		p.candidates_left = d->dag->node_count;
		entropy = log2(d->dag->node_count);
	}
	if (p.phase == KB_PHASE_CALIBRATE)
		boots += fmax(0, 2.0 * d->looks.boots[d->look] -
					 (double)(bayes_node(d, KB_NODE_GOOD)->count +
						  bayes_node(d, d->bad_end)->count));
	if (p.phase == KB_PHASE_CALIBRATE || p.phase == KB_PHASE_SEARCH) {
		p.steps_left = (uint32_t)ceil(entropy);
		boots += entropy * (d->calibrated ? d->forecast.boots / d->forecast.builds
						  : d->params.commit_boots_min);
		boots += 2.0 * d->params.confirm_boots;
	}
	for (uint32_t i = 0; i < d->subject_count && p.phase == KB_PHASE_CONFIRM; i++)
		boots += fmax(0,
			      (double)d->target - (double)bayes_fresh(d, d->subjects[i]));
	if (p.phase != KB_PHASE_DONE)
		p.boots_left = (uint32_t)fmin(ceil(boots), 1e9);
	*ret = p;
}

bool kb_decide_bayes_forecast(const struct kb_decide_bayes *d,
			      struct kb_plan_forecast *ret_forecast)
{
	if (d->calibrated)
		*ret_forecast = d->forecast;
	return d->calibrated;
}
