/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The final stage: fresh boots of the likely culprit and its parents, and what share of
 * the whole difference the culprit explains. */
#include "bisect/decide_bayes_internal.h"

#include <math.h>
#include <string.h>

#include "bisect/stats.h"
#include "harness/base/mem.h"

#define LEAST_FRESH 5 /* 5 + 5 boots can reach p = 1 / 252 */
#define LEAST_LATER 8 /* levels of later attempts need more */
#define ATTEMPTS_MAX 3
#define TARGET_MAX 400
#define LEAST_EXTENDED 12
#define SUSPICIOUS 0.7 /* standard errors */

/*
 * All looks of all attempts share an error of 0.01: 0.004, which 5 + 5 boots can reach,
 * and 0.003 for the first culprit; what is left halves with every further one.
 */
static double level_of(uint32_t attempt, uint32_t round)
{
	if (attempt == 0)
		return round == 0 ? 0.004 : 0.003;
	return 0.0015 * exp2(-(double)attempt);
}

static void add_subject(struct kb_decide_bayes *d, uint32_t node)
{
	for (uint32_t i = 0; i < d->subject_count; i++) {
		if (d->subjects[i] == node)
			return;
	}
	d->subjects[d->subject_count++] = node;
}

enum bayes_step bayes_start_confirm(struct kb_decide_bayes *d, uint32_t culprit)
{
	uint32_t parents = kb_dag_parent_count(d->dag, culprit);
	double s = d->noise.delta / d->noise.scale;
	double least = d->attempt ? LEAST_LATER : LEAST_FRESH;
	double target = fmax(fmax(d->params.confirm_boots, least), ceil(30 / (s * s)));

	d->culprit = culprit;
	d->subject_count = 0;
	add_subject(d, culprit);
	for (uint32_t i = 0; i < parents; i++)
		add_subject(d, kb_dag_parent(d->dag, culprit, i));
	if (parents == 0 || (d->parents_outside && d->parents_outside[culprit]))
		add_subject(d, KB_NODE_GOOD);
	for (uint32_t n = 0; n <= d->dag->node_count; n++)
		d->nodes[n].fresh_from = d->nodes[n].count;
	d->target = (uint32_t)fmin(target, TARGET_MAX);
	d->round = 0;
	d->is_extended = d->is_confirmed = false;
	d->current.phase = KB_PHASE_CONFIRM;
	return STEP_AGAIN;
}

/* The oldest commit that contains `node` and is good as far as is known. */
static uint32_t good_descendant(const struct kb_decide_bayes *d, uint32_t node)
{
	KB_AUTO_FREE double *bad = kb_calloc(d->dag->node_count, sizeof(*bad));
	KB_AUTO_FREE uint8_t *marks = kb_calloc(d->dag->node_count, 1);

	kb_posterior_bad(d->posterior, 1e-7, bad);
	for (uint32_t n = node + 1; n < d->dag->node_count; n++) {
		if (bayes_node(d, n)->count == 0 || bad[n] > d->params.alpha ||
		    bayes_is_exhausted(d, n))
			continue;
		kb_dag_mark_ancestors(d->dag, n, marks);
		if (marks[node])
			return n;
	}
	return KB_NODE_NONE;
}

/* The exact test of means clipped to bounds that were fixed before. */
static double permutation_p(const struct kb_noise *noise, const double *a, size_t an,
			    const double *b, size_t bn)
{
	KB_AUTO_FREE double *x = kb_calloc(an + bn, sizeof(*x));

	for (size_t i = 0; i < an + bn; i++)
		x[i] = kb_noise_clip(noise, i < an ? a[i] : b[i - an]);
	return kb_stats_permutation_p(x, an, x + an, bn);
}

/* Holds the culprit against the parent it differs least from. */
static struct bayes_found hold_against_parents(const struct kb_decide_bayes *d)
{
	const struct bayes_node *c = bayes_node(d, d->culprit);
	KB_AUTO_FREE double *cy = bayes_boots(d, d->culprit, c->fresh_from);
	size_t cn = c->count - c->fresh_from;
	struct bayes_found f = {.node = d->culprit, .p = -1};

	for (uint32_t i = 1; i < d->subject_count; i++) {
		const struct bayes_node *q = bayes_node(d, d->subjects[i]);
		KB_AUTO_FREE double *qy = bayes_boots(d, d->subjects[i], q->fresh_from);
		size_t qn = q->count - q->fresh_from;
		double effect = kb_stats_mean(cy, cn) - kb_stats_mean(qy, qn);
		double p = permutation_p(&d->noise, qy, qn, cy, cn);

		if (p < f.p || (!(p > f.p) && effect >= f.effect))
			continue;
		f.p = p;
		f.effect = effect;
		kb_stats_welch_ci(qy, qn, cy, cn, 0.95, &f.low, &f.high);
	}
	f.probability = kb_posterior_all(d->posterior)[d->culprit];
	return f;
}

static void show(struct kb_decide_bayes *d, const struct bayes_found *f)
{
	d->result.effect = f->effect;
	d->result.effect_low = f->low;
	d->result.effect_high = f->high;
	d->result.confirm_p = f->p;
}

static double mean_variance(const double *y, size_t n)
{
	double sd = n > 1 ? kb_stats_sd(y, n) : 0;

	return sd * sd / (double)n;
}

/*
 * How much more the ends of this part differ by than the culprit explains, in standard
 * errors; negative when it explains too much. @param ret_share what it explains
 */
static double unexplained(const struct kb_decide_bayes *d, const struct bayes_found *f,
			  double *ret_share)
{
	const struct bayes_part part = d->parts[d->part];
	const struct bayes_node *good = bayes_node(d, part.good);
	const struct bayes_node *bad = bayes_node(d, part.bad);
	double total = part.sign * (kb_stats_mean(bad->y, bad->count) -
				    kb_stats_mean(good->y, good->count));
	double variance =
		mean_variance(good->y, good->count) + mean_variance(bad->y, bad->count);
	double half = (f->high - f->low) / 2 / 1.96;

	if (isfinite(half))
		variance += half * half;
	*ret_share = f->effect / total;
	if (fabs(*ret_share - 1) < 0.1)
		return 0;
	return (total - f->effect) / sqrt(variance);
}

/* What the culprit leaves unexplained must lie before it or after it. */
static void look_for_more(struct kb_decide_bayes *d, const struct bayes_found *f)
{
	const struct bayes_part part = d->parts[d->part];
	double share, z = unexplained(d, f, &share),
		      sign = z > 0 ? part.sign : -part.sign;

	if (fabs(z) < 1.96)
		return;
	bayes_remark(d, "; explains %.0f %% of the difference", 100 * share);
	if (d->noise.layouts)
		return; /* the layouts of both may have made it so */
	if (d->subjects[1] != part.good && d->subjects[1] != KB_NODE_GOOD)
		bayes_add_part(d, part.good, d->subjects[1], sign);
	if (d->culprit != part.bad)
		bayes_add_part(d, d->culprit, part.bad, sign);
}

/* The effect of one commit is small or large: worth a closer look before it is said. */
static bool extend(struct kb_decide_bayes *d, const struct bayes_found *f)
{
	double s = d->noise.delta / d->noise.scale, share;
	uint32_t target =
		(uint32_t)fmin(fmax(ceil(90 / (s * s)), LEAST_EXTENDED), TARGET_MAX);

	if (d->is_extended || d->target >= target ||
	    fabs(unexplained(d, f, &share)) < SUSPICIOUS)
		return false;
	d->is_extended = true;
	d->target = target;
	return true;
}

static enum bayes_step confirmed(struct kb_decide_bayes *d, struct bayes_found f)
{
	const struct bayes_found raw = f; /* larger is worse in this part */
	double sign = d->parts[d->part].sign;

	bayes_remark(d, "%s", d->found_count > 0 ? "; " : "");
	if (sign < 0) {
		double low = f.low;

		f.low = -f.high;
		f.high = -low;
		f.effect = -f.effect;
	}
	if (d->found_count == 0)
		bayes_keep_posterior(d);
	if (d->found_count == 0 || f.effect > d->result.effect)
		show(d, &f);
	d->result.confirmed = true;
	d->found[d->found_count++] = f;
	bayes_remark(d,
		     "confirmed: %+.2f %% against its parent, p = %.2g, %u fresh boots "
		     "each",
		     bayes_percent(f.effect), f.p, d->target);
	look_for_more(d, &raw);
	return bayes_next_part(d);
}

static enum bayes_step not_confirmed(struct kb_decide_bayes *d,
				     const struct bayes_found *f)
{
	if (d->found_count == 0) {
		show(d, f);
		bayes_keep_set(d);
		bayes_remark(d, "not confirmed: %+.2f %% against its parent, p = %.2g",
			     bayes_percent(f->effect), f->p);
	}
	return bayes_next_part(d);
}

static enum bayes_step judge(struct kb_decide_bayes *d)
{
	struct bayes_found f;
	uint32_t top;

	kb_posterior_update(d->posterior);
	top = kb_posterior_top(d->posterior);
	f = hold_against_parents(d);
	if (d->is_confirmed || (f.p <= level_of(d->attempt, d->round) && f.effect > 0 &&
				top == d->culprit)) {
		d->is_confirmed = true; /* by the look that was planned */
		return extend(d, &f) ? STEP_AGAIN : confirmed(d, f);
	}
	if (top == d->culprit && f.probability >= 1 - d->params.alpha) {
		if (d->round > 0)
			return not_confirmed(d, &f);
		d->round = 1;
		d->target *= 2;
		return STEP_AGAIN;
	}
	if (++d->attempt >= ATTEMPTS_MAX)
		return not_confirmed(d, &f);
	d->current.phase = KB_PHASE_SEARCH;
	return STEP_AGAIN;
}

/* @return false when nobody can stand in for a parent that does not boot */
static bool replace_parent(struct kb_decide_bayes *d, uint32_t which)
{
	uint32_t instead = good_descendant(d, d->subjects[which]);

	if (instead == KB_NODE_NONE)
		return false;
	d->subjects[which] = d->subjects[--d->subject_count];
	add_subject(d, instead);
	return true;
}

enum bayes_step bayes_step_confirm(struct kb_decide_bayes *d)
{
	uint32_t node, boots;

	if (bayes_is_exhausted(d, d->culprit)) {
		bayes_remark(
			d, "not confirmed: the likely culprit could not be booted again");
		bayes_keep_set(d);
		return bayes_next_part(d);
	}
	for (uint32_t i = 1; i < d->subject_count; i++) {
		if (!bayes_is_exhausted(d, d->subjects[i]))
			continue;
		if (d->subjects[i] == KB_NODE_GOOD) {
			bayes_remark(d, "the good endpoint could not be booted again");
			return bayes_finish(d, KB_OUTCOME_INFRASTRUCTURE);
		}
		if (replace_parent(d, i))
			return STEP_AGAIN;
		bayes_remark(d, "a parent of the likely culprit cannot be tested");
		bayes_keep_set(d);
		return bayes_next_part(d);
	}
	if (!bayes_turn(d, d->subjects, d->subject_count, d->target, true, &node,
			&boots)) {
		const uint32_t ends[2] = {d->parts[d->part].good, d->parts[d->part].bad};

		/* What it is a share of must be known as well as the share. */
		if (d->is_extended && !bayes_is_exhausted(d, ends[0]) &&
		    !bayes_is_exhausted(d, ends[1]) &&
		    bayes_turn(d, ends, 2, d->target, false, &node, &boots))
			return bayes_act(d, node, boots,
					 "boots of the ends, to see what share of their "
					 "difference is explained");
		return judge(d);
	}
	return bayes_act(d, node, boots, "confirmation: fresh boots of %s, %u wanted",
			 node == d->culprit ? "the likely culprit" : "its parent",
			 d->target);
}
