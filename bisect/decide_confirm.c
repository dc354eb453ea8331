/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last phase of the first decision rule: the culprit against its parents, fresh
 * boots. */
#include "bisect/decide_internal.h"

#include <math.h>

#include "bisect/stats.h"
#include "harness/base/mem.h"

#define CONFIRM_LEVEL 0.005 /* at each of two rounds: 0.01 together */
#define CONFIRM_LEAST 5	    /* 5 + 5 boots can reach p = 1/252 */

static void add_subject(struct kb_decide *d, uint32_t node)
{
	for (uint32_t i = 0; i < d->subject_count; i++) {
		if (d->subjects[i] == node)
			return;
	}
	d->subjects[d->subject_count++] = node;
}

enum decide_step decide_start_confirm(struct kb_decide *d)
{
	uint32_t parents = kb_dag_parent_count(d->dag, d->culprit);
	double s = fmin(d->model.separation, 8);
	/* 2 (z.995 + z.9)^2 / d^2 boots on each side: the first round passes 9 times
	 * of 10. */
	double target =
		fmax(fmax(d->params.confirm_boots, CONFIRM_LEAST), ceil(30 / (s * s)));

	d->subjects = kb_calloc((size_t)parents + 2, sizeof(*d->subjects));
	add_subject(d, d->culprit);
	for (uint32_t i = 0; i < parents; i++)
		add_subject(d, kb_dag_parent(d->dag, d->culprit, i));
	if (parents == 0 || (d->parents_outside && d->parents_outside[d->culprit]))
		add_subject(d, KB_NODE_GOOD);
	for (uint32_t n = 0; n <= d->dag->node_count; n++)
		d->nodes[n].fresh_from = d->nodes[n].count;
	d->confirm_target = (uint32_t)fmin(target, 200);
	d->current.phase = KB_PHASE_CONFIRM;
	return STEP_AGAIN;
}

/* The oldest commit measured good that contains `node`; KB_NODE_NONE if there is none. */
static uint32_t good_descendant(const struct kb_decide *d, uint32_t node)
{
	KB_AUTO_FREE uint8_t *marks = kb_calloc(d->dag->node_count, 1);

	for (uint32_t n = node + 1; n < d->dag->node_count; n++) {
		if (d->nodes[n].verdict != KB_VERDICT_GOOD || d->nodes[n].untestable)
			continue;
		kb_dag_mark_ancestors(d->dag, n, marks);
		if (marks[node])
			return n;
	}
	return KB_NODE_NONE;
}

/*
 * A parent that cannot be booted was inferred good, from a good commit that contains it:
 * that one stands in. If there is none, parent and culprit cannot be told apart.
 * @return false when the confirmation has ended that way
 */
static bool replace_lost_parent(struct kb_decide *d, uint32_t which)
{
	uint32_t lost = d->subjects[which], instead = good_descendant(d, lost);

	if (instead == KB_NODE_NONE) {
		d->left_over[0] = d->culprit;
		d->left_over[1] = lost;
		d->left_over_count = 2;
		d->is_left[lost] = 1;
		decide_remark(d, "a parent of the likely culprit cannot be tested");
		decide_finish(d, KB_OUTCOME_SET);
		return false;
	}
	d->parents_replaced++;
	d->subjects[which] = d->subjects[--d->subject_count];
	add_subject(d, instead);
	return true;
}

/*
 * The permutation test is exact for any statistic chosen beforehand: here the mean of
 * boots clipped to bounds that were frozen in calibration, so that a wild boot does not
 * drown the difference.
 */
static double clipped_permutation_p(const struct kb_model *model, const double *a,
				    size_t an, const double *b, size_t bn)
{
	KB_AUTO_FREE double *x = kb_calloc(an + bn, sizeof(*x));

	for (size_t i = 0; i < an + bn; i++)
		x[i] = kb_model_clip(model, i < an ? a[i] : b[i - an]);
	return kb_stats_permutation_p(x, an, x + an, bn);
}

/* Holds the culprit against the parent it differs least from. @return that one's p */
static double worst_parent(struct kb_decide *d)
{
	const struct decide_node *c = decide_node(d, d->culprit);
	const double *cy = c->y + c->fresh_from;
	size_t cn = c->count - c->fresh_from;
	struct kb_decide_result *r = &d->result;

	r->confirm_p = -1;
	for (uint32_t i = 1; i < d->subject_count; i++) {
		const struct decide_node *p = decide_node(d, d->subjects[i]);
		const double *py = p->y + p->fresh_from;
		size_t pn = p->count - p->fresh_from;
		double effect = kb_stats_mean(cy, cn) - kb_stats_mean(py, pn);
		double value = clipped_permutation_p(&d->model, py, pn, cy, cn);

		if (value < r->confirm_p ||
		    (!(value > r->confirm_p) && effect >= r->effect))
			continue;
		r->confirm_p = value;
		r->effect = effect;
		kb_stats_welch_ci(py, pn, cy, cn, 0.95, &r->effect_low, &r->effect_high);
	}
	return r->confirm_p;
}

static enum decide_step judge_confirm(struct kb_decide *d)
{
	double p = worst_parent(d), share = d->result.effect / d->model.delta;

	d->result.confirmed = p <= CONFIRM_LEVEL && d->result.effect > 0;
	if (!d->result.confirmed && d->confirm_round == 0) {
		d->confirm_round = 1;
		d->confirm_target *= 2;
		return STEP_AGAIN;
	}
	decide_remark(d, "%s: %+.2f %% against its parent, p = %.2g, %u fresh boots each",
		      d->result.confirmed ? "confirmed" : "not confirmed",
		      decide_percent(d->result.effect), p, d->confirm_target);
	if (d->result.confirmed && share < 0.5)
		decide_remark(d, "; explains only %.0f %% of the endpoint difference",
			      100 * share);
	if (d->parents_replaced)
		decide_remark(d, "; a parent could not be booted, a good commit that "
				 "contains it could");
	decide_remark_odd_levels(d);
	return decide_finish(d, KB_OUTCOME_CULPRIT);
}

enum decide_step decide_step_confirm(struct kb_decide *d)
{
	uint32_t node, boots;

	if (decide_is_exhausted(d, decide_node(d, d->culprit))) {
		decide_remark(
			d, "not confirmed: the likely culprit could not be booted again");
		return decide_finish(d, KB_OUTCOME_CULPRIT);
	}
	for (uint32_t i = 1; i < d->subject_count; i++) {
		if (!decide_is_exhausted(d, decide_node(d, d->subjects[i])))
			continue;
		if (d->subjects[i] == KB_NODE_GOOD) {
			decide_remark(d, "the good endpoint could not be booted again");
			return decide_finish(d, KB_OUTCOME_INFRASTRUCTURE);
		}
		return replace_lost_parent(d, i) ? STEP_AGAIN : STEP_ACT;
	}
	if (!decide_whose_turn(d, d->subjects, d->subject_count, d->confirm_target, &node,
			       &boots))
		return judge_confirm(d);
	return decide_act(d, node, boots, "confirmation: fresh boots of %s, %u wanted",
			  node == d->culprit ? "the likely culprit" : "its parent",
			  d->confirm_target);
}
