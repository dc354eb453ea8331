/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error rates of the decision rule over many simulated histories; fixed seeds. */
#include "bisect/decide.h"

#include <stdint.h>
#include <stdio.h>

#include "tests/tap.h"
#include "tests/unit/decide_sim.h"

struct tally {
	uint32_t trials, right, confirmed, wrong, wrong_confirmed, unconfirmed, sets,
		sets_missing, refused, infrastructure, other;
	double builds, boots, set_size;
};

static void tally_add(struct tally *sum, const struct truth *t, const struct trial *trial)
{
	const struct kb_decide_result *r = &trial->result;

	sum->trials++;
	sum->builds += trial->builds;
	sum->boots += trial->boots;
	switch (r->outcome) {
	case KB_OUTCOME_CULPRIT:
		if (r->candidate_count == 1 && r->candidates[0] == t->culprit) {
			sum->right++;
			sum->confirmed += r->confirmed;
		} else {
			sum->wrong++;
			sum->wrong_confirmed += r->confirmed;
		}
		break;
	case KB_OUTCOME_SET:
		sum->sets++;
		sum->set_size += (double)r->candidate_count;
		sum->sets_missing += !trial_has(trial, t->culprit);
		break;
	case KB_OUTCOME_NOT_REPRODUCIBLE:
		sum->refused++;
		break;
	case KB_OUTCOME_INFRASTRUCTURE:
		sum->infrastructure++;
		break;
	default:
		sum->other++;
	}
}

static void tally_print(const struct tally *s, const char *what)
{
	printf("# %s: %u trials, right %u (confirmed %u), wrong %u (confirmed %u), sets "
	       "%u "
	       "(missing %u, mean size %.1f), refused %u, infrastructure %u; mean builds "
	       "%.1f, "
	       "boots %.1f\n",
	       what, s->trials, s->right, s->confirmed, s->wrong, s->wrong_confirmed,
	       s->sets, s->sets_missing, s->sets ? s->set_size / s->sets : 0, s->refused,
	       s->infrastructure, s->builds / s->trials, s->boots / s->trials);
}

struct scenario {
	const char *name;
	double delta, sd, outlier_share, flaky_share, untestable_share, fails_share;
	uint32_t trials, max_count;
	struct kb_decide_params params;
};

static struct tally run_scenario(const struct scenario *s)
{
	struct tally sum = {0};

	for (uint32_t i = 0; i < s->trials; i++) {
		struct kb_rng rng = kb_rng_at(42, i, 0);
		KB_AUTO(history_free)
		struct history h =
			history_random(&rng, 1 + kb_rng_below(&rng, s->max_count));
		uint32_t count = h.dag.node_count;
		KB_AUTO_FREE uint8_t *untestable = kb_calloc(count, 1);
		KB_AUTO_FREE uint8_t *fails = kb_calloc(count, 1);
		struct truth t = {.history = &h,
				  .culprit = kb_rng_below(&rng, count),
				  .base = -3,
				  .delta = s->delta,
				  .sd = s->sd,
				  .outlier_share = s->outlier_share,
				  .flaky_share = s->flaky_share,
				  .untestable = untestable,
				  .boot_fails = fails,
				  .seed = i};
		struct kb_decide_params params = s->params;
		struct trial trial;

		/* Breakage comes in stretches; the bad endpoint is spared. */
		for (uint32_t n = 0; n + 1 < count; n++) {
			bool before = n > 0 && untestable[n - 1];

			untestable[n] = kb_rng_unit(&rng) <
					(before ? 0.7 : s->untestable_share / 2);
			fails[n] = kb_rng_unit(&rng) < s->fails_share;
		}
		params.seed = i;
		trial = trial_run(&t, &params, NULL, NULL);
		tally_add(&sum, &t, &trial);
		trial_free(&trial);
	}
	tally_print(&sum, s->name);
	return sum;
}

static void culprit_found_like_exact_mode(void)
{
	struct scenario s = {.name = "exact-like, d = 10, 2 % outliers",
			     .delta = 0.02,
			     .sd = 0.002,
			     .outlier_share = 0.02,
			     .trials = 300,
			     .max_count = 300,
			     .params = usual_params()};
	struct tally sum;

	s.params.exact = true;
	sum = run_scenario(&s);
	ok(sum.right >= 297, "d = 10: right in at least 99 %%");
	ok(sum.confirmed >= 294, "d = 10: and confirmed in at least 98 %%");
	is_int(sum.wrong_confirmed, 0, "d = 10: nothing wrong is confirmed");
	ok(sum.boots / sum.trials < 60, "d = 10: a handful of boots per commit");

	s.name = "exact-like, d = 50";
	s.sd = 0.0004;
	s.outlier_share = 0;
	s.trials = 100;
	sum = run_scenario(&s);
	is_int(sum.confirmed, 100, "d = 50: always right and confirmed");
	s.name = "no noise at all";
	s.sd = 0;
	sum = run_scenario(&s);
	is_int(sum.confirmed, 100, "no noise: always right and confirmed");
}

static void errors_bounded_in_noise(void)
{
	struct scenario s = {.name = "d = 4",
			     .delta = 0.04,
			     .sd = 0.01,
			     .outlier_share = 0.02,
			     .trials = 200,
			     .max_count = 200,
			     .params = usual_params()};
	struct tally sum = run_scenario(&s);

	ok(sum.wrong <= 6, "d = 4: wrong in at most 3 %%");
	ok(sum.right >= 180, "d = 4: right in at least 90 %%");
	is_int(sum.wrong_confirmed, 0, "d = 4: nothing wrong is confirmed");

	s.name = "d = 2";
	s.sd = 0.02;
	s.params.commit_boots_max = 40;
	sum = run_scenario(&s);
	ok(sum.wrong <= 10, "d = 2: wrong in at most 5 %%");
	ok(sum.right >= 170, "d = 2: right in at least 85 %%");
	ok(sum.wrong_confirmed <= 2, "d = 2: wrong and confirmed in at most 1 %%");

	s.name = "d = 1";
	s.sd = 0.04;
	s.trials = 30;
	s.params.calibration_boots = 20;
	s.params.calibration_boots_max = 160;
	s.params.commit_boots_max = 100;
	sum = run_scenario(&s);
	ok(sum.wrong <= 2, "d = 1: wrong in at most 7 %%");
	ok(sum.right >= 24, "d = 1: right in at least 80 %%");
	ok(sum.wrong_confirmed <= 1, "d = 1: hardly anything wrong is confirmed");
}

static void null_difference_refused(void)
{
	struct scenario s = {.name = "no difference",
			     .sd = 0.01,
			     .outlier_share = 0.02,
			     .trials = 200,
			     .max_count = 50,
			     .params = usual_params()};
	struct tally sum;

	s.params.min_effect = 0;
	s.params.commit_boots_max = 100;
	sum = run_scenario(&s);
	ok(sum.refused >= 198, "no difference: refused in at least 99 %%");

	s.name = "no difference, forced";
	s.params.force = true;
	s.trials = 100;
	sum = run_scenario(&s);
	ok(sum.refused >= 99, "no difference: refused even when forced");
	s.params.force = false;
	s.name = "underpowered, d = 0.5";
	s.delta = 0.005;
	s.trials = 100;
	sum = run_scenario(&s);
	ok(sum.refused >= 95, "too little for the noise: refused");
	s.name = "below the effect asked for";
	s.sd = 0.0005;
	s.params.min_effect = 0.01;
	sum = run_scenario(&s);
	is_int(sum.refused, 100, "too small an effect: refused");
}

static void untestable_commits_never_lose_the_culprit(void)
{
	struct scenario s = {.name = "stretches that do not compile",
			     .delta = 0.02,
			     .sd = 0.002,
			     .outlier_share = 0.02,
			     .untestable_share = 0.15,
			     .fails_share = 0.05,
			     .trials = 300,
			     .max_count = 100,
			     .params = usual_params()};
	struct tally sum = run_scenario(&s);

	ok(sum.wrong + sum.sets_missing <= 3, "culprit is the answer or in the set");
	is_int(sum.wrong_confirmed, 0, "nothing wrong is confirmed");
	ok(sum.sets > 30 && sum.right > 30, "both kinds of answers occur");
	is_int(sum.refused + sum.infrastructure + sum.other, 0, "nothing else happens");

	s.name = "one boot in ten fails";
	s.untestable_share = s.fails_share = 0;
	s.flaky_share = 0.1;
	s.trials = 100;
	sum = run_scenario(&s);
	ok(sum.right + sum.sets >= 98, "flaky boots do no harm");
	ok(sum.right >= 95, "flaky boots are tried again");
}

int main(void)
{
	culprit_found_like_exact_mode();
	errors_bounded_in_noise();
	null_difference_refused();
	untestable_commits_never_lose_the_culprit();
	return tap_done();
}
