/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calibration of the ends of a part: do they differ, and enough so? */
#include "bisect/decide_bayes_internal.h"

#include <math.h>

#include "bisect/stats.h"
#include "harness/base/mem.h"

#define LEAST_CALIBRATION 5
#define CALIBRATION 30	 /* boots per endpoint times d^2: levels known well enough */
#define LEAST_SHARE 0.15 /* of the whole difference that a part must show */

void bayes_plan_looks(const struct kb_decide_params *params, struct kb_looks *ret_looks)
{
	const double budget = 0.01, first = 0.004; /* 5 + 5 boots can reach that */
	uint32_t boots = params->calibration_boots, max = params->calibration_boots_max;
	struct kb_looks looks = {0};

	boots = boots < LEAST_CALIBRATION ? LEAST_CALIBRATION : boots;
	max = max < boots ? boots : max;
	while (boots < max && looks.count < KB_LOOKS_MAX - 1) {
		/* A look just before the last costs level and saves next to nothing. */
		if (max - boots >= boots / 4)
			looks.boots[looks.count++] = boots;
		boots += boots / 2;
	}
	looks.boots[looks.count++] = max;
	for (uint32_t i = 0; i < looks.count; i++)
		looks.level[i] = i == 0 ? first : (budget - first) / (looks.count - 1);
	if (looks.count == 1)
		looks.level[0] = budget;
	*ret_looks = looks;
}

/* @return false when the noise is too large for what boots are allowed */
static bool is_powerful(const struct kb_decide_bayes *d, uint32_t boots,
			uint32_t *ret_calibration, uint32_t *ret_commit)
{
	double s = d->noise.delta / d->noise.scale;

	*ret_calibration =
		s > 0 ? (uint32_t)fmin(ceil(CALIBRATION / (s * s)), 1e9) : UINT32_MAX;
	/* A commit that is as likely good as bad is settled to one in twenty. */
	*ret_commit = s > 0 ? (uint32_t)fmin(ceil(11 / (s * s)), 1e9) : UINT32_MAX;
	return boots >= *ret_calibration && d->params.commit_boots_max >= *ret_commit;
}

static enum bayes_step refuse(struct kb_decide_bayes *d, bool significant,
			      uint32_t calibration, uint32_t commit)
{
	if (!significant)
		bayes_remark(d,
			     "the endpoints do not differ: %+.2f %%, p = %.2g after %u "
			     "boots each; a difference of %.2f %% would have been seen",
			     bayes_percent(d->endpoint_effect), d->endpoint_p,
			     d->looks.boots[d->look], bayes_percent(d->detectable));
	else if (d->endpoint_effect < d->params.min_effect)
		bayes_remark(d,
			     "the endpoints differ by only %+.2f %%, less than the "
			     "%.2f %% asked for",
			     bayes_percent(d->endpoint_effect),
			     bayes_percent(d->params.min_effect));
	else
		bayes_remark(d,
			     "the endpoints differ by %+.2f %% (p = %.2g) but too little "
			     "for the noise: it takes %u calibration boots and %u per "
			     "commit, %u and %u are allowed",
			     bayes_percent(d->endpoint_effect), d->endpoint_p,
			     calibration, commit, d->looks.boots[d->look],
			     d->params.commit_boots_max);
	return bayes_finish(d, KB_OUTCOME_NOT_REPRODUCIBLE);
}

static void calibrated(struct kb_decide_bayes *d)
{
	bayes_start_search(d);
	if (d->part > 0)
		return;
	d->calibrated = true;
	d->forecast = kb_plan_forecast(d->options.table, d->candidate_count,
				       d->noise.delta / d->noise.scale,
				       d->options.costs.build / d->options.costs.boot);
}

static enum bayes_step judge_first_part(struct kb_decide_bayes *d, bool fits, double p,
					double reverse_p)
{
	const struct bayes_node *good = bayes_node(d, KB_NODE_GOOD);
	const struct bayes_node *bad = bayes_node(d, d->bad_end);
	uint32_t boots = d->looks.boots[d->look], calibration = 0, commit = 0;
	double level = d->looks.level[d->look];
	bool significant, powerful;

	d->endpoint_p = p;
	d->endpoint_effect =
		kb_stats_mean(bad->y, bad->count) - kb_stats_mean(good->y, good->count);
	d->detectable = d->params.min_effect;
	if (fits)
		d->detectable = fmax(kb_looks_detectable(d->noise.scale, boots, level),
				     d->params.min_effect);
	if (fits && reverse_p <= level && -d->noise.delta >= d->params.min_effect) {
		bayes_remark(d,
			     "the bad endpoint is the faster one (%+.2f %%, p = %.2g): "
			     "are good and bad swapped? To find an improvement, swap the "
			     "terms",
			     bayes_percent(d->endpoint_effect), reverse_p);
		return bayes_finish(d, KB_OUTCOME_NOT_REPRODUCIBLE);
	}
	significant = fits && p <= level && d->noise.delta > 0;
	powerful = fits && is_powerful(d, boots, &calibration, &commit);
	if (significant && powerful && d->noise.delta >= d->params.min_effect) {
		calibrated(d);
		return STEP_AGAIN;
	}
	if (d->look + 1 < d->looks.count) {
		d->look++;
		return STEP_AGAIN;
	}
	if (significant && d->params.force && d->noise.delta >= d->params.min_effect) {
		bayes_remark(d, "underpowered, forced; ");
		calibrated(d);
		return STEP_AGAIN;
	}
	return refuse(d, significant, calibration, commit);
}

static enum bayes_step judge_look(struct kb_decide_bayes *d)
{
	const struct bayes_part *part = &d->parts[d->part];
	KB_AUTO_FREE double *good = bayes_boots(d, part->good, 0);
	KB_AUTO_FREE double *bad = bayes_boots(d, part->bad, 0);
	size_t good_n = bayes_node(d, part->good)->count;
	size_t bad_n = bayes_node(d, part->bad)->count;
	bool fits = kb_noise_fit(good, good_n, bad, bad_n, d->options.layouts, &d->noise);
	double p = kb_stats_mwu_p(good, good_n, bad, bad_n);
	double reverse_p = 1, least, slack;
	uint32_t calibration, commit;

	if (fits && d->noise.delta < 0)
		reverse_p = kb_stats_mwu_p(bad, bad_n, good, good_n);
	if (d->part == 0)
		return judge_first_part(d, fits, p, reverse_p);
	least = fmax(d->params.min_effect, LEAST_SHARE * d->endpoint_effect);
	if (fits && p <= d->looks.level[d->look] && d->noise.delta >= least &&
	    is_powerful(d, d->looks.boots[d->look], &calibration, &commit)) {
		calibrated(d);
		return STEP_AGAIN;
	}
	/* A difference worth finding would show by now. */
	slack = fits ? 2.5 * d->noise.scale * sqrt(2.0 / d->looks.boots[d->look]) : 0;
	if (d->look + 1 < d->looks.count && d->noise.delta + slack >= least) {
		d->look++;
		return STEP_AGAIN;
	}
	return bayes_next_part(d); /* nothing to be found there */
}

enum bayes_step bayes_step_calibrate(struct kb_decide_bayes *d)
{
	const uint32_t ends[2] = {d->parts[d->part].good, d->parts[d->part].bad};
	uint32_t node, boots;

	for (int i = 0; i < 2; i++) {
		const struct bayes_node *n = bayes_node(d, ends[i]);

		if (!bayes_is_exhausted(d, ends[i]))
			continue;
		if (d->part > 0)
			return bayes_next_part(d);
		bayes_remark(d, "the %s endpoint cannot be measured: ",
			     i == 0 ? "good" : "bad");
		if (n->untestable)
			bayes_remark(d, "it does not build or is marked untestable");
		else
			bayes_remark(d, "%u of %u boots failed", n->failed,
				     n->failed + (uint32_t)n->count);
		return bayes_finish(d, KB_OUTCOME_INFRASTRUCTURE);
	}
	if (!bayes_turn(d, ends, 2, d->looks.boots[d->look], false, &node, &boots))
		return judge_look(d);
	return bayes_act(d, node, boots,
			 "calibration look %u of at most %u: %u boots per %s",
			 d->look + 1, d->looks.count, d->looks.boots[d->look],
			 d->part ? "end of a part" : "endpoint");
}
