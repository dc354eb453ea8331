/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search, one part of the history after the other. */
#include "bisect/decide_bayes_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/rng.h"
#include "bisect/stats.h"
#include "harness/base/mem.h"

#define LEAST_INFORMATION 0.02 /* nats; below, an action is not worth its cost */
/* While the candidates are many and side by side, every single test tells little. */
#define LEAST_WHEN_WIDE 0.001
#define WIDE 0.2 /* no candidate is more probable than this */
#define CAP_STRETCH 4
#define ASTRAY 8 /* commits tested beyond a clean bisection's */
#define BUDGET 4.0

enum bayes_step bayes_act(struct kb_decide_bayes *d, uint32_t node, uint32_t count,
			  const char *fmt, ...)
{
	va_list ap;

	d->current.node = node;
	d->current.count = d->left = count;
	va_start(ap, fmt);
	vsnprintf(d->current.why, sizeof(d->current.why), fmt, ap);
	va_end(ap);
	return STEP_ACT;
}

void bayes_remark(struct kb_decide_bayes *d, const char *fmt, ...)
{
	size_t used = strlen(d->result.reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->result.reason + used, sizeof(d->result.reason) - used, fmt, ap);
	va_end(ap);
}

enum bayes_step bayes_finish(struct kb_decide_bayes *d, enum kb_outcome outcome)
{
	d->result.outcome = outcome;
	d->current = (struct kb_action){.phase = KB_PHASE_DONE, .node = KB_NODE_NONE};
	snprintf(d->current.why, sizeof(d->current.why), "%.*s",
		 (int)sizeof(d->current.why) - 1, d->result.reason);
	d->left = 0;
	return STEP_ACT;
}

bool bayes_is_exhausted(const struct kb_decide_bayes *d, uint32_t node)
{
	const struct bayes_node *n = bayes_node(d, node);

	return n->untestable || n->failed > d->params.retries + n->count / 4;
}

/* --- random order ------------------------------------------------------------------- */

static void shuffle(struct kb_decide_bayes *d, uint32_t count, uint32_t round)
{
	uint64_t stream = (uint64_t)d->current.phase << 32 | d->part << 8 | d->attempt;
	struct kb_rng rng = kb_rng_at(d->params.seed, stream, round);

	for (uint32_t i = 0; i < count; i++)
		d->order[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = kb_rng_below(&rng, i), swap = d->order[i - 1];

		d->order[i - 1] = d->order[j];
		d->order[j] = swap;
	}
}

static uint32_t boots_of(const struct kb_decide_bayes *d, uint32_t node, bool fresh)
{
	return fresh ? bayes_fresh(d, node) : (uint32_t)bayes_node(d, node)->count;
}

bool bayes_turn(struct kb_decide_bayes *d, const uint32_t *subjects, uint32_t count,
		uint32_t target, bool fresh, uint32_t *ret_node, uint32_t *ret_boots)
{
	uint32_t round = UINT32_MAX, last;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t have = boots_of(d, subjects[i], fresh);

		if (d->params.exact && have < target) {
			*ret_node = subjects[i];
			*ret_boots = target - have;
			return true;
		}
		round = have < round ? have : round;
	}
	if (round >= target)
		return false;
	shuffle(d, count, round);
	for (uint32_t i = 0; i < count; i++) {
		*ret_node = subjects[d->order[i]];
		if (boots_of(d, *ret_node, fresh) == round)
			break;
	}
	*ret_boots = 1;
	last = subjects[d->order[count - 1]];
	if (*ret_node == last && round + 1 < target) {
		shuffle(d, count, round + 1);
		if (subjects[d->order[0]] == last)
			*ret_boots = 2; /* last of this round and first of the next */
	}
	return true;
}

double *bayes_boots(const struct kb_decide_bayes *d, uint32_t node, size_t from)
{
	const struct bayes_node *n = bayes_node(d, node);
	double *y = kb_calloc(n->count - from + 1, sizeof(*y));

	for (size_t i = from; i < n->count; i++)
		y[i - from] = d->parts[d->part].sign * n->y[i];
	return y;
}

/* --- parts -------------------------------------------------------------------------- */

bool bayes_add_part(struct kb_decide_bayes *d, uint32_t good, uint32_t bad, double sign)
{
	for (uint32_t i = 0; i < d->part_count; i++) {
		if (d->parts[i].good == good && d->parts[i].bad == bad)
			return false;
	}
	if (d->part_count == PARTS_MAX)
		return false;
	d->parts[d->part_count++] = (struct bayes_part){good, bad, sign};
	return true;
}

static void mark_descendants(const struct kb_dag *dag, uint32_t from, uint8_t *marks)
{
	marks[from] = 1;
	for (uint32_t n = from + 1; n < dag->node_count; n++) {
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			marks[n] |= marks[dag->parents[i]];
	}
}

/* Who may be the culprit of this part, and whose boots tell about it. */
static void lay_out_part(struct kb_decide_bayes *d)
{
	const struct bayes_part *part = &d->parts[d->part];
	uint32_t count = d->dag->node_count;
	KB_AUTO_FREE uint8_t *before = kb_calloc(count, 1);
	KB_AUTO_FREE uint8_t *after = kb_calloc(count, 1);
	double sum = 0;

	memset(d->member, 0, count);
	kb_dag_mark_ancestors(d->dag, part->bad, d->member);
	memset(after, 1, count);
	if (part->good != KB_NODE_GOOD) {
		kb_dag_mark_ancestors(d->dag, part->good, before);
		memset(after, 0, count);
		mark_descendants(d->dag, part->good, after);
	}
	d->candidate_count = 0;
	for (uint32_t n = 0; n < count; n++) {
		bool candidate = d->member[n] && !before[n] &&
				 (!d->interesting || d->interesting[n]);

		d->prior[n] = !candidate ? 0 : d->options.prior ? d->options.prior[n] : 1;
		d->candidate_count += d->prior[n] > 0;
		sum += d->prior[n];
		d->member[n] &= after[n];
	}
	if (!(sum > 0)) {
		/* With path limiting, nothing may be left that touches the paths. */
		d->prior[part->bad] = 1;
		d->candidate_count = 1;
	}
}

void bayes_take_boot(struct kb_decide_bayes *d, uint32_t node, size_t which)
{
	const struct bayes_node *n = bayes_node(d, node);
	double sign = d->parts[d->part].sign;

	/* A boot that repeats another to the last digit is no further evidence when
	 * boots are functions of their perturbation. */
	for (size_t i = 0; i < which && d->params.exact; i++) {
		if (!(n->y[i] < n->y[which]) && !(n->y[i] > n->y[which]))
			return;
	}
	if (node == d->parts[d->part].good)
		kb_posterior_add(d->posterior, KB_POSTERIOR_GOOD, 0, sign * n->y[which]);
	else if (node != KB_NODE_GOOD && d->member[node])
		kb_posterior_add(d->posterior, node, 0, sign * n->y[which]);
}

void bayes_start_search(struct kb_decide_bayes *d)
{
	kb_posterior_free(d->posterior);
	lay_out_part(d);
	d->posterior =
		kb_posterior_new(d->dag, d->parts[d->part].bad, d->prior, &d->noise);
	for (uint32_t i = 0; i <= d->dag->node_count; i++) {
		uint32_t node = i < d->dag->node_count ? i : KB_NODE_GOOD;

		for (size_t b = 0; b < d->nodes[i].count; b++)
			bayes_take_boot(d, node, b);
	}
	d->attempt = d->round = 0;
	d->current.phase = KB_PHASE_SEARCH;
}

enum bayes_step bayes_next_part(struct kb_decide_bayes *d)
{
	if (d->part + 1 < d->part_count && d->found_count < FOUND_MAX) {
		d->part++;
		d->look = 0;
		d->current.phase = KB_PHASE_CALIBRATE;
		return STEP_AGAIN;
	}
	if (d->found_count > 1) {
		bayes_remark(d, "; %u changes found", d->found_count);
		return bayes_finish(d, KB_OUTCOME_MULTI);
	}
	if (d->found_count == 1 || d->set_count == 1)
		return bayes_finish(d, KB_OUTCOME_CULPRIT);
	return bayes_finish(d, KB_OUTCOME_SET);
}

/* --- search ------------------------------------------------------------------------- */

struct ranked {
	uint32_t node;
	double weight;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

void bayes_keep_posterior(struct kb_decide_bayes *d)
{
	size_t bytes = d->dag->node_count * sizeof(*d->reported);

	if (!d->reported)
		d->reported = kb_malloc(bytes);
	memcpy(d->reported, kb_posterior_all(d->posterior), bytes);
}

void bayes_keep_set(struct kb_decide_bayes *d)
{
	uint32_t count = d->dag->node_count;
	KB_AUTO_FREE struct ranked *ranked = kb_calloc(count, sizeof(*ranked));
	const double *w = kb_posterior_all(d->posterior);
	double sum = 0;

	for (uint32_t n = 0; n < count; n++)
		ranked[n] = (struct ranked){n, w[n]};
	qsort(ranked, count, sizeof(*ranked), compare_ranked);
	if (d->found_count == 0)
		bayes_keep_posterior(d);
	free(d->set);
	d->set = kb_calloc(count, sizeof(*d->set));
	d->set_count = 0;
	while (d->set_count < count && sum < 1 - d->params.alpha) {
		sum += ranked[d->set_count].weight;
		d->set[d->set_count] = ranked[d->set_count].node;
		d->set_count++;
	}
}

/* Below, between or above the ends: which way do the two parts go? */
static void add_anchored(struct kb_decide_bayes *d, struct bayes_part part,
			 uint32_t anchor)
{
	const struct bayes_node *n = bayes_node(d, anchor);
	double y = part.sign * kb_stats_mean(n->y, n->count);
	double first = y < d->noise.good ? -part.sign : part.sign;
	double second = y > d->noise.bad ? -part.sign : part.sign;

	bayes_add_part(d, part.good, anchor, first);
	bayes_add_part(d, anchor, part.bad, second);
}

/* The measured commit that lies most surely between the levels parts the two searches. */
static enum bayes_step split(struct kb_decide_bayes *d)
{
	const struct bayes_part part = d->parts[d->part];
	uint32_t anchor = KB_NODE_NONE;
	double best = 0;

	for (uint32_t n = 0; n < d->dag->node_count; n++) {
		const struct bayes_node *node = bayes_node(d, n);
		double level, room;

		if (!d->member[n] || n == part.bad || n == part.good ||
		    node->count == 0 || bayes_is_exhausted(d, n))
			continue;
		level = (part.sign * kb_stats_mean(node->y, node->count) -
			 d->noise.good) /
			d->noise.delta;
		room = fmin(fabs(level), fabs(1 - level)) * sqrt((double)node->count);
		if (room > best) {
			best = room;
			anchor = n;
		}
	}
	bayes_keep_set(d);
	if (anchor != KB_NODE_NONE) {
		bayes_remark(d, "more than two levels; ");
		add_anchored(d, part, anchor);
	}
	return bayes_next_part(d);
}

/* When boots repeat each other, more of them would be asked for again and again. */
static bool is_spent(const struct kb_decide_bayes *d, uint32_t node)
{
	return d->params.exact &&
	       bayes_node(d, node)->count >=
		       kb_plan_boots_cap(d->noise.delta / d->noise.scale);
}

static struct kb_plan_choice choose(struct kb_decide_bayes *d, double top)
{
	uint32_t cap = kb_plan_boots_cap(d->noise.delta / d->noise.scale);
	uint32_t most = d->params.commit_boots_max;
	struct kb_plan_choice choice;
	struct kb_plan_limits limits = {
		.testable = d->testable,
		.skipped = d->any_skipped ? d->skipped : NULL,
		.boots_min = d->params.commit_boots_min,
		.layouts_max = 1,
		.least = top < WIDE ? LEAST_WHEN_WIDE : LEAST_INFORMATION,
	};

	for (uint32_t n = 0; n < d->dag->node_count; n++)
		d->testable[n] = d->member[n] && n != d->parts[d->part].bad &&
				 n != d->parts[d->part].good &&
				 (!d->interesting || d->interesting[n]) &&
				 !bayes_is_exhausted(d, n) && !is_spent(d, n);
	limits.boots_max = cap < most ? cap : most;
	choice = kb_plan_next(d->options.table, d->posterior, &d->options.costs, &limits);
	if (choice.node != UINT32_MAX || cap >= most || d->params.exact)
		return choice;
	/* Beyond the cap boots of a build help little; but here nothing else is left. */
	limits.boots_max = CAP_STRETCH * cap < most ? CAP_STRETCH * cap : most;
	return kb_plan_next(d->options.table, d->posterior, &d->options.costs, &limits);
}

static bool is_two(struct kb_decide_bayes *d)
{
	/* Builds with levels of their own look like that, too. */
	if (d->noise.layouts)
		return false;
	kb_posterior_two_changes(d->posterior, &d->two);
	return d->two.probability > 0.5 && d->part_count + 2 <= PARTS_MAX;
}

/* A search that takes longer than it should may have levels that the model has not. */
static bool is_astray(const struct kb_decide_bayes *d, bool asks_for_new)
{
	return asks_for_new &&
	       kb_posterior_tested(d->posterior) > log2(d->candidate_count) + ASTRAY;
}

static bool is_over_budget(const struct kb_decide_bayes *d)
{
	return kb_posterior_tested(d->posterior) >
	       BUDGET * (log2(d->candidate_count) + ASTRAY);
}

enum bayes_step bayes_step_search(struct kb_decide_bayes *d)
{
	struct kb_plan_choice choice;
	uint32_t top;
	double chance;

	kb_posterior_update(d->posterior);
	top = kb_posterior_top(d->posterior);
	chance = kb_posterior_all(d->posterior)[top];
	if (d->part == 0)
		kb_posterior_bad(d->posterior, 1e-7, d->bad_chance);
	if (chance >= 1 - d->params.alpha)
		return is_two(d) ? split(d) : bayes_start_confirm(d, top);
	choice = choose(d, chance);
	if (is_astray(d, choice.is_new) && is_two(d))
		return split(d);
	if (choice.node != UINT32_MAX && !is_over_budget(d))
		return bayes_act(d, choice.node, choice.boots,
				 "%s commit, bad with probability %.2f: %.2f bits for "
				 "the cost of %.0f boots",
				 choice.is_new ? "a new" : "more boots of a", choice.bad,
				 choice.information / M_LN2,
				 choice.cost / d->options.costs.boot);
	if (is_two(d))
		return split(d);
	bayes_keep_set(d);
	bayes_remark(d, "%s%zu commits are left, with %.0f %% probability, and %s",
		     d->found_count ? "; " : "", d->set_count,
		     100 * (1 - d->params.alpha),
		     choice.node == UINT32_MAX ? "no test would tell them apart"
					       : "levels do not fit a single change");
	return bayes_next_part(d);
}

void bayes_advance(struct kb_decide_bayes *d)
{
	enum bayes_step step = STEP_AGAIN;

	while (step == STEP_AGAIN) {
		switch (d->current.phase) {
		case KB_PHASE_CALIBRATE:
			step = bayes_step_calibrate(d);
			break;
		case KB_PHASE_SEARCH:
			step = bayes_step_search(d);
			break;
		case KB_PHASE_CONFIRM:
			step = bayes_step_confirm(d);
			break;
		case KB_PHASE_DONE:
			return;
		}
	}
}
