/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first decision rule: calibrate the endpoints, halve the graph with a sequential
 * test of each commit, confirm with fresh boots (decide_confirm.c). Everything is a
 * function of what was fed.
 */
#include "bisect/decide_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/rng.h"
#include "bisect/stats.h"
#include "harness/base/mem.h"

#define BATCH_MAX 4
#define ODD_SCALES 2 /* this far beyond half the difference, a level is neither's */

double decide_percent(double ln_ratio)
{
	return 100 * expm1(ln_ratio);
}

enum decide_step decide_act(struct kb_decide *d, uint32_t node, uint32_t count,
			    const char *fmt, ...)
{
	enum kb_phase phase = d->current.phase;
	va_list ap;

	d->current = (struct kb_action){.phase = phase, .node = node, .count = count};
	va_start(ap, fmt);
	vsnprintf(d->current.why, sizeof(d->current.why), fmt, ap);
	va_end(ap);
	d->left = count;
	return STEP_ACT;
}

void decide_remark(struct kb_decide *d, const char *fmt, ...)
{
	size_t used = strlen(d->result.reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->result.reason + used, sizeof(d->result.reason) - used, fmt, ap);
	va_end(ap);
}

enum decide_step decide_finish(struct kb_decide *d, enum kb_outcome outcome)
{
	d->result.outcome = outcome;
	d->current = (struct kb_action){.phase = KB_PHASE_DONE, .node = KB_NODE_NONE};
	snprintf(d->current.why, sizeof(d->current.why), "%.*s",
		 (int)sizeof(d->current.why) - 1, d->result.reason);
	d->left = 0;
	return STEP_ACT;
}

bool decide_is_exhausted(const struct kb_decide *d, const struct decide_node *n)
{
	return n->untestable || n->failed > d->params.retries + n->count / 4;
}

/* --- random order ------------------------------------------------------------------- */

static void shuffle_round(struct kb_decide *d, uint32_t count, uint32_t round)
{
	uint64_t stream = (uint64_t)d->current.phase << 32 | d->confirm_round;
	struct kb_rng rng = kb_rng_at(d->params.seed, stream, round);

	if (d->order_cap < count) {
		d->order_cap = count;
		d->order = kb_realloc(d->order, count, sizeof(*d->order));
	}
	for (uint32_t i = 0; i < count; i++)
		d->order[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = kb_rng_below(&rng, i), swap = d->order[i - 1];

		d->order[i - 1] = d->order[j];
		d->order[j] = swap;
	}
}

bool decide_whose_turn(struct kb_decide *d, const uint32_t *subjects, uint32_t count,
		       uint32_t target, uint32_t *ret_node, uint32_t *ret_boots)
{
	uint32_t round = UINT32_MAX, last;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t have = decide_fresh_count(d, subjects[i]);

		if (d->params.exact && have < target) {
			*ret_node = subjects[i];
			*ret_boots = target - have;
			return true;
		}
		round = have < round ? have : round;
	}
	if (round >= target)
		return false;
	shuffle_round(d, count, round);
	for (uint32_t i = 0; i < count; i++) {
		*ret_node = subjects[d->order[i]];
		if (decide_fresh_count(d, *ret_node) == round)
			break;
	}
	*ret_boots = 1;
	last = subjects[d->order[count - 1]];
	if (*ret_node == last && round + 1 < target) {
		shuffle_round(d, count, round + 1);
		if (subjects[d->order[0]] == last)
			*ret_boots = 2; /* last of this round and first of the next */
	}
	return true;
}

/* --- calibration -------------------------------------------------------------------- */

static enum decide_step start_search(struct kb_decide *d)
{
	decide_node(d, d->bad_end)->verdict = KB_VERDICT_BAD;
	decide_node(d, KB_NODE_GOOD)->verdict = KB_VERDICT_GOOD;
	d->current.phase = KB_PHASE_SEARCH;
	return STEP_AGAIN;
}

/* The endpoints differ and enough so; can single commits be told apart, too? */
static bool is_powerful(const struct kb_decide *d, uint32_t boots,
			uint32_t *ret_calibration, uint32_t *ret_commit)
{
	double s = d->model.separation;
	double calibration = s > 0 ? ceil(40 / (s * s)) : INFINITY;

	/* The levels must be known several times better than what they are to decide. */
	*ret_calibration = (uint32_t)fmin(calibration, 1e9);
	*ret_commit = kb_model_boots_needed(s, d->threshold);
	return boots >= *ret_calibration && d->params.commit_boots_max >= *ret_commit;
}

static enum decide_step judge_last_look(struct kb_decide *d, bool significant,
					uint32_t calibration, uint32_t commit)
{
	if (!significant) {
		decide_remark(d,
			      "the endpoints do not differ: %+.2f %%, p = %.2g after %u "
			      "boots each; "
			      "a difference of %.2f %% would have been seen",
			      decide_percent(d->model.delta), d->endpoint_p,
			      d->looks.boots[d->look], decide_percent(d->detectable));
	} else if (d->model.delta < d->params.min_effect) {
		decide_remark(d,
			      "the endpoints differ by only %+.2f %%, less than the %.2f "
			      "%% asked for",
			      decide_percent(d->model.delta),
			      decide_percent(d->params.min_effect));
	} else if (d->params.force) {
		decide_remark(d, "underpowered, forced; ");
		return start_search(d);
	} else {
		decide_remark(d,
			      "the endpoints differ by %+.2f %% (p = %.2g) but too "
			      "little for the noise: "
			      "it takes %u calibration boots and %u per commit, %u and "
			      "%u are allowed",
			      decide_percent(d->model.delta), d->endpoint_p, calibration,
			      commit, d->looks.boots[d->look],
			      d->params.commit_boots_max);
	}
	return decide_finish(d, KB_OUTCOME_NOT_REPRODUCIBLE);
}

static enum decide_step judge_look(struct kb_decide *d)
{
	const struct decide_node *good = decide_node(d, KB_NODE_GOOD);
	const struct decide_node *bad = decide_node(d, d->bad_end);
	uint32_t boots = d->looks.boots[d->look], calibration, commit;
	double level = d->looks.level[d->look], reverse_p = 1;
	bool significant, powerful;

	kb_model_fit(good->y, good->count, bad->y, bad->count, &d->model);
	d->model_ready = d->model.delta > 0;
	d->endpoint_p = kb_stats_mwu_p(good->y, good->count, bad->y, bad->count);
	if (d->model.delta < 0)
		reverse_p = kb_stats_mwu_p(bad->y, bad->count, good->y, good->count);
	significant = d->endpoint_p <= level && d->model.delta > 0;
	powerful = is_powerful(d, boots, &calibration, &commit);
	d->detectable = fmax(kb_looks_detectable(d->model.boot_sd, boots, level),
			     d->params.min_effect);
	if (reverse_p <= level && -d->model.delta >= d->params.min_effect) {
		decide_remark(d,
			      "the bad endpoint is the faster one (%+.2f %%, p = %.2g): "
			      "are good and bad "
			      "swapped? To find an improvement, swap the terms",
			      decide_percent(d->model.delta), reverse_p);
		return decide_finish(d, KB_OUTCOME_NOT_REPRODUCIBLE);
	}
	if (significant && powerful && d->model.delta >= d->params.min_effect)
		return start_search(d);
	if (d->look + 1 == d->looks.count)
		return judge_last_look(d, significant, calibration, commit);
	d->look++;
	return STEP_AGAIN;
}

static enum decide_step step_calibrate(struct kb_decide *d)
{
	const uint32_t ends[2] = {KB_NODE_GOOD, d->bad_end};
	uint32_t node, boots;

	for (int i = 0; i < 2; i++) {
		const struct decide_node *n = decide_node(d, ends[i]);

		if (!decide_is_exhausted(d, n))
			continue;
		decide_remark(d, "the %s endpoint cannot be measured: ",
			      i == 0 ? "good" : "bad");
		if (n->untestable)
			decide_remark(d, "it does not build or is marked untestable");
		else
			decide_remark(d, "%u of %u boots failed", n->failed,
				      n->failed + (uint32_t)n->count);
		return decide_finish(d, KB_OUTCOME_INFRASTRUCTURE);
	}
	if (!decide_whose_turn(d, ends, 2, d->looks.boots[d->look], &node, &boots))
		return judge_look(d);
	return decide_act(d, node, boots,
			  "calibration look %u of at most %u: %u boots per endpoint",
			  d->look + 1, d->looks.count, d->looks.boots[d->look]);
}

/* --- search ------------------------------------------------------------------------- */

/* Boots until the sequential test may end, going by those so far. */
static uint32_t batch_size(const struct kb_decide *d, const struct decide_node *n,
			   double llr)
{
	double each = fmax(fabs(llr) / (double)n->count, 0.25);
	uint32_t room = d->params.commit_boots_max - (uint32_t)n->count;
	uint32_t least = d->params.exact ? 2 : 1;
	double want =
		fmin(fmax(ceil((d->threshold - fabs(llr)) / each), least), BATCH_MAX);

	return want < room ? (uint32_t)want : room;
}

static void settle(struct kb_decide *d, uint32_t node, enum kb_verdict verdict)
{
	decide_node(d, node)->verdict = verdict;
	d->testing = KB_NODE_NONE;
	if (verdict == KB_VERDICT_GOOD)
		kb_dag_mark_ancestors(d->dag, node, d->excluded);
	else if (verdict == KB_VERDICT_BAD)
		d->bad = node;
	else
		d->skipped[node] = 1;
	d->tested += verdict == KB_VERDICT_GOOD || verdict == KB_VERDICT_BAD;
	decide_refresh_candidates(d);
}

static enum decide_step test_commit(struct kb_decide *d)
{
	uint32_t node = d->testing, min = d->params.commit_boots_min;
	const struct decide_node *n = decide_node(d, node);
	double llr = kb_model_llr(&d->model, n->y, n->count);
	enum kb_verdict verdict =
		kb_model_verdict(llr, n->count, d->threshold, &d->params);

	if (verdict == KB_VERDICT_UNCLEAR) {
		if (decide_is_exhausted(d, n))
			verdict = KB_VERDICT_UNTESTABLE;
		else if (n->count < min)
			return decide_act(d, node, min - (uint32_t)n->count,
					  "one of %u candidates, at most about %u tests "
					  "to come after it",
					  d->pick.candidates, d->pick.steps);
		else if (n->count < d->params.commit_boots_max)
			return decide_act(
				d, node, batch_size(d, n, llr),
				"not clear after %zu boots: evidence %+.1f of %.1f",
				n->count, llr, d->threshold);
	}
	settle(d, node, verdict);
	return STEP_AGAIN;
}

void decide_remark_odd_levels(struct kb_decide *d)
{
	uint32_t below = 0, between = 0, above = 0;

	for (uint32_t n = 0; n < d->dag->node_count; n++) {
		struct kb_decide_node state;

		kb_decide_node_state(d, n, &state);
		if (n == d->bad_end || state.boots == 0 || isnan(state.level))
			continue;
		below += (state.level + 0.5) * d->model.delta <
			 -ODD_SCALES * d->model.scale;
		above += (state.level - 1.5) * d->model.delta >
			 ODD_SCALES * d->model.scale;
		between += state.verdict == KB_VERDICT_UNCLEAR &&
			   fabs(state.level - 0.5) < 0.25;
	}
	if (below + between + above)
		decide_remark(d,
			      "; more than two levels? tested commits below %u, between "
			      "%u, above %u",
			      below, between, above);
}

static enum decide_step step_search(struct kb_decide *d)
{
	if (d->testing != KB_NODE_NONE)
		return test_commit(d);
	d->pick = kb_pick_next(d->dag, d->bad, d->excluded, d->skipped, d->interesting);
	if (d->pick.node != UINT32_MAX) {
		d->testing = d->pick.node;
		return STEP_AGAIN;
	}
	if (d->pick.only_skipped) {
		decide_remark(d,
			      "%u commits are left and none that could tell them apart "
			      "can be tested",
			      d->left_over_count);
		decide_remark_odd_levels(d);
		return decide_finish(d, KB_OUTCOME_SET);
	}
	d->culprit = d->left_over[0];
	return decide_start_confirm(d);
}

void decide_advance(struct kb_decide *d)
{
	enum decide_step step = STEP_AGAIN;

	while (step == STEP_AGAIN) {
		switch (d->current.phase) {
		case KB_PHASE_CALIBRATE:
			step = step_calibrate(d);
			break;
		case KB_PHASE_SEARCH:
			step = step_search(d);
			break;
		case KB_PHASE_CONFIRM:
			step = decide_step_confirm(d);
			break;
		case KB_PHASE_DONE:
			return;
		}
	}
}
