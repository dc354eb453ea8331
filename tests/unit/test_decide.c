/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/decide.h"

#include <math.h>
#include <stdint.h>

#include "tests/tap.h"
#include "tests/unit/decide_sim.h"

static void expect_culprit(const struct history *h, uint32_t culprit, const char *what)
{
	struct truth t = {
		.history = h, .culprit = culprit, .delta = 0.1, .sd = 0.01, .seed = 5};
	struct kb_decide_params params = usual_params();
	struct trial trial = trial_run(&t, &params, NULL, NULL);
	const struct kb_decide_result *r = &trial.result;

	ok(r->outcome == KB_OUTCOME_CULPRIT && r->candidate_count == 1 &&
		   r->candidates[0] == culprit && r->confirmed,
	   "%s: found and confirmed", what);
	ok(r->effect_low < 0.1 && 0.1 < r->effect_high && r->effect_low > 0.05,
	   "%s: interval [%.4f, %.4f] holds the effect", what, r->effect_low,
	   r->effect_high);
	ok(r->endpoint_p < 0.01 && r->confirm_p <= 0.005, "%s: p values", what);
	trial_free(&trial);
}

static void small_histories(void)
{
	for (uint32_t count = 1; count <= 9; count++) {
		KB_AUTO(history_free) struct history h = history_line(count);
		char what[40];

		for (uint32_t culprit = 0; culprit < count;
		     culprit += count < 4 ? 1 : count - 1) {
			snprintf(what, sizeof(what), "commit %u of %u", culprit + 1,
				 count);
			expect_culprit(&h, culprit, what);
		}
	}
}

static void merge_is_culprit(void)
{
	/* Two branches of good commits whose merge is slow. */
	const uint32_t edges[][2] = {{0, 0}, {1, 0}, {0, 0}, {3, 0},
				     {2, 4}, {5, 0}, {6, 0}};
	KB_AUTO(history_free) struct history h = {.outside = kb_calloc(8, 1)};

	kb_dag_init(&h.dag);
	h.outside[kb_dag_add(&h.dag, NULL, 0)] = 1;
	for (uint32_t i = 0; i < 7; i++)
		kb_dag_add(&h.dag, edges[i], i == 4 ? 2 : 1);
	expect_culprit(&h, 5, "a merge");
	expect_culprit(&h, 3, "a commit on the side branch");
}

static void measured_nodes(struct kb_decide *d, const struct kb_action *a)
{
	static uint32_t seen;

	(void)d;
	if (a->phase == KB_PHASE_CONFIRM && a->node == KB_NODE_GOOD)
		seen |= 1;
	if (a->phase == KB_PHASE_CONFIRM && a->node == 0)
		seen |= 2;
	if (a->phase == KB_PHASE_CONFIRM && a->node == 1)
		seen |= 4;
	if (seen == 7)
		seen |= 8;
	if (seen == 15) {
		ok(true, "good endpoint, parent and culprit get fresh boots");
		seen |= 16;
	}
}

static void parents_outside_use_good(void)
{
	/* Commit 1 merges commit 0 and something from before good. */
	KB_AUTO(history_free) struct history h = history_line(2);
	struct kb_decide_params params = usual_params();
	struct truth t = {.history = &h, .culprit = 1, .delta = 0.1, .sd = 0.01};
	struct trial trial;
	int before = tap_count;

	h.outside[1] = 1;
	trial = trial_run(&t, &params, NULL, measured_nodes);
	is_int(tap_count - before, 1, "that was seen");
	ok(trial.result.confirmed, "confirmed against both");
	trial_free(&trial);
}

static void refusals_say_why(void)
{
	KB_AUTO(history_free) struct history h = history_line(20);
	struct kb_decide_params params = usual_params();
	struct truth t = {.history = &h, .culprit = 7, .delta = -0.1, .sd = 0.01};
	KB_AUTO_FREE uint8_t *broken = kb_calloc(20, 1);
	struct trial trial = trial_run(&t, &params, NULL, NULL);

	is_int(trial.result.outcome, KB_OUTCOME_NOT_REPRODUCIBLE,
	       "an improvement is refused");
	ok(strstr(trial.result.reason, "swapped"), "and the reason says so: %s",
	   trial.result.reason);
	is_int(trial.boots, 10, "at the first look");
	is_int(trial.result.candidate_count, 0, "without candidates");
	trial_free(&trial);

	t.delta = 0;
	trial = trial_run(&t, &params, NULL, NULL);
	is_int(trial.boots, 80, "no difference: all looks are used");
	/* (z .0025 or .002 + z .9) * .01 * sqrt(2 / 40), about 4.2 * 0.00224 */
	is_double(trial.result.detectable, 0.0094, 0.0025, "what could have been seen");
	trial_free(&trial);

	t.delta = 0.1;
	t.good_fails = true;
	trial = trial_run(&t, &params, NULL, NULL);
	is_int(trial.result.outcome, KB_OUTCOME_INFRASTRUCTURE, "good does not boot");
	ok(strstr(trial.result.reason, "good endpoint"), "%s", trial.result.reason);
	ok(trial.boots <= 20, "after a few tries");
	trial_free(&trial);

	t.good_fails = false;
	broken[19] = 1;
	t.untestable = broken;
	trial = trial_run(&t, &params, NULL, NULL);
	is_int(trial.result.outcome, KB_OUTCOME_INFRASTRUCTURE, "bad does not compile");
	ok(strstr(trial.result.reason, "bad endpoint"), "%s", trial.result.reason);
	trial_free(&trial);

	/* d = 1: significant with 40 boots, but not enough for 12 boots per commit */
	t = (struct truth){
		.history = &h, .culprit = 7, .delta = 0.05, .sd = 0.05, .seed = 2};
	trial = trial_run(&t, &params, NULL, NULL);
	is_int(trial.result.outcome, KB_OUTCOME_NOT_REPRODUCIBLE,
	       "underpowered is refused");
	ok(strstr(trial.result.reason, "too little for the noise"), "%s",
	   trial.result.reason);
	trial_free(&trial);
	params.force = true;
	trial = trial_run(&t, &params, NULL, NULL);
	ok(trial.result.outcome == KB_OUTCOME_CULPRIT ||
		   trial.result.outcome == KB_OUTCOME_SET,
	   "unless forced: %s", trial.result.reason);
	trial_free(&trial);
}

static void third_level_is_not_hidden(void)
{
	KB_AUTO(history_free) struct history h = history_line(16);
	KB_AUTO_FREE double *level = kb_calloc(16, sizeof(*level));
	struct kb_decide_params params = usual_params();
	struct truth t = {.history = &h, .culprit = 12, .sd = 0.001, .level = level};
	struct trial trial;

	for (uint32_t n = 0; n < 16; n++)
		level[n] = n >= 12 ? 0.1 : n >= 4 ? 0.05 : 0;
	trial = trial_run(&t, &params, NULL, NULL);
	ok(strstr(trial.result.reason, "levels"), "half way up: %s", trial.result.reason);
	ok(!trial.result.confirmed || strstr(trial.result.reason, "explains only"),
	   "half an effect is never the whole answer");
	trial_free(&trial);

	for (uint32_t n = 0; n < 16; n++)
		level[n] = n >= 12 ? 0.1 : n >= 4 ? -0.2 : 0;
	trial = trial_run(&t, &params, NULL, NULL);
	is_int(trial.result.candidates[0], 12,
	       "a dip before the culprit does not mislead");
	ok(strstr(trial.result.reason, "below"), "and is told: %s", trial.result.reason);
	trial_free(&trial);
}

static void same_events_same_actions(void)
{
	struct kb_rng rng = {3};
	KB_AUTO(history_free) struct history h = history_random(&rng, 120);
	struct truth t = {.history = &h,
			  .culprit = 60,
			  .delta = 0.04,
			  .sd = 0.01,
			  .seed = 9,
			  .outlier_share = 0.05,
			  .flaky_share = 0.05};
	struct kb_decide_params params = usual_params();
	struct trial one = trial_run(&t, &params, NULL, NULL), two, scaled;

	two = trial_run(&t, &params, NULL, NULL);
	ok(one.actions_hash == two.actions_hash && one.actions > 20,
	   "a run repeats itself");
	t.offset = log(1000); /* milliseconds became microseconds */
	scaled = trial_run(&t, &params, NULL, NULL);
	ok(scaled.actions_hash == one.actions_hash, "another unit changes no action");
	is_double(scaled.result.effect, one.result.effect, 1e-9, "nor the effect");
	trial_free(&one);
	trial_free(&two);
	trial_free(&scaled);
	params.seed = 2;
	two = trial_run(&t, &params, NULL, NULL);
	ok(one.actions_hash != two.actions_hash, "another seed gives another order");
	trial_free(&two);
}

/* Feeds a log of one run to a new engine that is asked only now and then. */
static void replay_needs_no_questions(void)
{
	KB_AUTO(history_free) struct history h = history_line(40);
	struct kb_decide_params params = usual_params();
	struct truth t = {.history = &h,
			  .culprit = 25,
			  .delta = 0.04,
			  .sd = 0.01,
			  .flaky_share = 0.1,
			  .seed = 4};
	KB_AUTO_FREE uint8_t *slow = descendants(&h.dag, 25);
	uint32_t boots_a[41] = {0}, differ = 0, fed = 0;
	struct kb_decide *a = kb_decide_new(&params, &h.dag, 39, NULL, h.outside);
	struct kb_decide *b = kb_decide_new(&params, &h.dag, 39, NULL, h.outside);
	struct kb_action act_a, act_b;

	for (kb_decide_next(a, &act_a); act_a.phase != KB_PHASE_DONE;
	     kb_decide_next(a, &act_a)) {
		uint32_t at = act_a.node == KB_NODE_GOOD ? 40 : act_a.node,
			 first = boots_a[at];
		struct trial unused = {0};

		run_action(&t, slow, a, &act_a, boots_a, &unused);
		for (uint32_t n = first; n < boots_a[at]; n++) {
			struct kb_decide_progress progress;
			bool failed;
			double y = truth_boot(&t, slow, act_a.node, n, &failed);

			if (failed)
				kb_decide_feed_failed_boot(b, act_a.node);
			else
				kb_decide_feed_boot(b, act_a.node, y);
			if (++fed % 3 == 0) /* questions must not change anything */
				kb_decide_next(b, &act_b);
			kb_decide_progress(b, &progress);
		}
		kb_decide_next(a, &act_a);
		kb_decide_next(b, &act_b);
		differ += act_a.node != act_b.node || act_a.count != act_b.count ||
			  act_a.phase != act_b.phase;
	}
	is_int(differ, 0, "a replayed journal leads to the same actions");
	ok(fed > 30, "over a whole run (%u boots)", fed);
	kb_decide_free(a);
	kb_decide_free(b);
}

static struct history renumbered(const struct history *h, struct kb_rng *rng,
				 uint32_t *new_of)
{
	uint32_t count = h->dag.node_count;
	KB_AUTO_FREE uint32_t *old_of = kb_calloc(count, sizeof(*old_of));
	struct history r = {.outside = kb_calloc(count, 1)};

	/* Another topological order: again and again any commit whose parents are placed.
	 */
	kb_dag_init(&r.dag);
	memset(new_of, 0xff, count * sizeof(*new_of));
	for (uint32_t placed = 0; placed < count;) {
		uint32_t n = kb_rng_below(rng, count), parents[8], k = 0;

		if (new_of[n] != UINT32_MAX)
			continue;
		for (uint32_t i = 0; i < kb_dag_parent_count(&h->dag, n); i++) {
			parents[k] = new_of[kb_dag_parent(&h->dag, n, i)];
			if (parents[k++] == UINT32_MAX)
				break;
		}
		if (k > 0 && parents[k - 1] == UINT32_MAX)
			continue;
		new_of[n] = kb_dag_add(&r.dag, parents, k);
		r.outside[new_of[n]] = h->outside[n];
		placed++;
	}
	return r;
}

static void numbering_does_not_matter(void)
{
	uint32_t differ = 0, moved = 0;

	for (uint32_t i = 0; i < 60; i++) {
		struct kb_rng rng = kb_rng_at(8, i, 0);
		KB_AUTO(history_free) struct history h = history_random(&rng, 60);
		uint32_t count = h.dag.node_count, culprit = kb_rng_below(&rng, count);
		KB_AUTO_FREE uint32_t *new_of = kb_calloc(count, sizeof(*new_of));
		KB_AUTO_FREE uint32_t *old_of = kb_calloc(count, sizeof(*old_of));
		KB_AUTO(history_free) struct history r = renumbered(&h, &rng, new_of);
		struct kb_decide_params params = usual_params();
		struct truth t = {
			.history = &h, .culprit = culprit, .delta = 0.1, .sd = 0.01};
		struct truth u = t;
		struct trial one, two;

		for (uint32_t n = 0; n < count; n++) {
			old_of[new_of[n]] = n;
			moved += new_of[n] != n;
		}
		u.history = &r;
		u.culprit = new_of[culprit];
		u.noise_id = old_of;
		one = trial_run(&t, &params, NULL, NULL);
		two = trial_run(&u, &params, NULL, NULL);
		differ += one.result.candidate_count != 1 ||
			  two.result.candidate_count != 1 ||
			  one.result.candidates[0] != old_of[two.result.candidates[0]];
		trial_free(&one);
		trial_free(&two);
	}
	is_int(differ, 0, "renumbering the commits does not change the culprit");
	ok(moved > 100, "and they were renumbered");
}

static void path_limited(void)
{
	KB_AUTO(history_free) struct history h = history_line(30);
	KB_AUTO_FREE uint8_t *touches = kb_calloc(30, 1);
	struct kb_decide_params params = usual_params();
	struct truth t = {.history = &h, .culprit = 10, .delta = 0.1, .sd = 0.01};
	struct trial trial;

	for (uint32_t n = 0; n < 30; n += 5)
		touches[n] = 1;
	trial = trial_run(&t, &params, touches, NULL);
	ok(trial.result.candidate_count == 1 && trial.result.candidates[0] == 10 &&
		   trial.result.confirmed,
	   "only commits that touch the paths are candidates");
	ok(trial.builds <= 2 + 3 + 2, "and only they are tested");
	trial_free(&trial);
}

static void node_states(void)
{
	KB_AUTO(history_free) struct history h = history_line(4);
	struct kb_decide_params params = usual_params();
	struct kb_decide *d;
	struct kb_decide_node state;
	struct kb_decide_progress progress;
	struct kb_action a;
	double sum = 0;

	params.exact = true;
	d = kb_decide_new(&params, &h.dag, 3, NULL, h.outside);
	kb_decide_progress(d, &progress);
	is_int(progress.candidates_left, 4, "candidates before");
	is_int(progress.steps_left, 2, "steps before");
	is_int(progress.boots_left, 10 + 2 * 2 + 2 * 5, "boots before");
	for (int i = 0; i < 5; i++)
		kb_decide_feed_boot(d, KB_NODE_GOOD, 1 + 0.001 * i);
	kb_decide_node_state(d, KB_NODE_GOOD, &state);
	is_int(state.boots, 5, "boots of good");
	is_double(state.mean, 1.002, 1e-12, "mean of good");
	is_double(state.sd, 0.001 * sqrt(2.5), 1e-12, "sd of good");
	for (int i = 0; i < 5; i++)
		kb_decide_feed_boot(d, 3, 1.1 + 0.001 * i);
	kb_decide_next(d, &a);
	ok(a.phase == KB_PHASE_SEARCH && a.node == 1 && a.count == 2,
	   "the search begins in the middle with two boots");
	kb_decide_feed_boot(d, 1, 1.1);
	kb_decide_next(d, &a);
	ok(a.node == 1 && a.count == 1, "a batch half fed asks for its rest");
	kb_decide_feed_boot(d, 1, 1.103);
	kb_decide_node_state(d, 1, &state);
	is_int(state.verdict, KB_VERDICT_BAD, "two boots at bad's level are bad");
	is_double(state.level, 0.995, 1e-6, "and lie there");
	for (uint32_t n = 0; n < 4; n++) {
		kb_decide_node_state(d, n, &state);
		sum += state.probability;
	}
	is_double(sum, 1, 1e-12, "probabilities add up");
	kb_decide_feed_untestable(d, 0);
	kb_decide_next(d, &a);
	is_int(a.phase, KB_PHASE_DONE, "the last test fails to compile: the end");
	kb_decide_progress(d, &progress);
	is_int(progress.candidates_left, 2, "two are left");
	kb_decide_free(d);
	kb_decide_free(NULL);
}

static void classify(void)
{
	const double good[] = {1.000, 1.002, 0.999, 1.001, 1.000};
	const double bad[] = {1.050, 1.049, 1.051, 1.052, 1.050};
	const double like_good[] = {1.001, 0.998}, like_bad[] = {1.049, 1.053};
	const double half[] = {1.025, 1.026, 1.0245}, odd[] = {1.001, 1.090, 1.000};
	const double beyond[] = {1.2, 1.3, 1.4}, split[] = {1.0, 1.05};
	struct kb_decide_params p = usual_params();

	is_int(kb_decide_classify(good, 5, bad, 5, like_good, 2, &p), KB_VERDICT_GOOD,
	       "good");
	is_int(kb_decide_classify(good, 5, bad, 5, like_bad, 2, &p), KB_VERDICT_BAD,
	       "bad");
	is_int(kb_decide_classify(good, 5, bad, 5, beyond, 3, &p), KB_VERDICT_BAD,
	       "worse");
	is_int(kb_decide_classify(good, 5, bad, 5, half, 3, &p), KB_VERDICT_UNCLEAR,
	       "between");
	is_int(kb_decide_classify(good, 5, bad, 5, split, 2, &p), KB_VERDICT_UNCLEAR,
	       "split");
	is_int(kb_decide_classify(good, 5, bad, 5, odd, 3, &p), KB_VERDICT_GOOD,
	       "one wild boot among good ones");
	is_int(kb_decide_classify(good, 5, bad, 5, like_bad, 1, &p), KB_VERDICT_UNCLEAR,
	       "one boot is not enough");
	is_int(kb_decide_classify(bad, 5, good, 5, like_bad, 2, &p), KB_VERDICT_UNCLEAR,
	       "endpoints the wrong way round tell nothing");
	is_int(kb_decide_classify(good, 1, bad, 5, like_bad, 2, &p), KB_VERDICT_UNCLEAR,
	       "no spread known");
}

/* Layout moves levels a little; noise far smaller than that must not make it a riddle. */
static void classify_tolerates_small_shifts(void)
{
	const double good[] = {1, 1.0001, 0.9999, 1, 1.0001};
	const double bad[] = {1.1, 1.1001, 1.0999, 1.1, 1.1001};
	const double near_good[] = {1.02, 1.0201}, near_bad[] = {1.08, 1.0799};
	double many_good[40], many_bad[40];
	const double single[] = {1.1};
	struct kb_decide_params p = usual_params();

	is_int(kb_decide_classify(good, 5, bad, 5, near_good, 2, &p), KB_VERDICT_GOOD,
	       "a fifth of the way up is good");
	is_int(kb_decide_classify(good, 5, bad, 5, near_bad, 2, &p), KB_VERDICT_BAD,
	       "four fifths are bad");
	for (int i = 0; i < 40; i++) {
		many_good[i] = good[i % 5];
		many_bad[i] = bad[i % 5];
	}
	p.commit_boots_min = 1;
	is_int(kb_decide_classify(many_good, 40, many_bad, 40, single, 1, &p),
	       KB_VERDICT_UNCLEAR,
	       "however sharp the endpoints, one boot may be a stray");
}

static void skips_known_beforehand_are_kept(void)
{
	KB_AUTO(history_free) struct history h = history_line(9);
	struct kb_decide_params params = usual_params();
	struct kb_decide *d = kb_decide_new(&params, &h.dag, 8, NULL, h.outside);
	struct kb_action a;

	for (uint32_t n = 2; n <= 5; n++)
		kb_decide_feed_untestable(d, n);
	for (kb_decide_next(d, &a); a.phase == KB_PHASE_CALIBRATE; kb_decide_next(d, &a))
		kb_decide_feed_boot(d, a.node, a.node == KB_NODE_GOOD ? 1 : 1.1);
	ok(a.phase == KB_PHASE_SEARCH && (a.node < 2 || a.node > 5),
	   "a commit skipped by the user is not tested (chose %u)", a.node);
	kb_decide_free(d);
}

static void calibration_is_interleaved(void)
{
	KB_AUTO(history_free) struct history h = history_line(2);
	struct kb_decide_params params = usual_params();
	struct kb_decide *d;
	struct kb_action a;
	uint32_t good = 0, bad = 0, apart = 0, good_first = 0, rounds = 0;

	params.calibration_boots = 40;
	d = kb_decide_new(&params, &h.dag, 1, NULL, h.outside);
	for (kb_decide_next(d, &a); a.phase == KB_PHASE_CALIBRATE;
	     kb_decide_next(d, &a)) {
		bool is_good = a.node == KB_NODE_GOOD;

		if (good == bad) {
			rounds++;
			good_first += is_good;
		}
		good += is_good;
		bad += !is_good;
		apart = good > bad + 1 || bad > good + 1 ? apart + 1 : apart;
		kb_decide_feed_boot(d, a.node, is_good ? 1 : 1.1);
	}
	kb_decide_free(d);
	ok(good == 40 && bad == 40 && apart == 0, "endpoints take turns");
	ok(rounds == 40 && good_first >= 8 && good_first <= 32,
	   "in random order (good first %u of 40)", good_first);
}

int main(void)
{
	small_histories();
	merge_is_culprit();
	parents_outside_use_good();
	refusals_say_why();
	third_level_is_not_hidden();
	same_events_same_actions();
	replay_needs_no_questions();
	numbering_does_not_matter();
	path_limited();
	node_states();
	classify();
	classify_tolerates_small_shifts();
	skips_known_beforehand_are_kept();
	calibration_is_interleaved();
	return tap_done();
}
