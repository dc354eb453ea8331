/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/decide_bayes.h"

#include "tests/tap.h"
#include "tests/unit/random_dag.h"

#define ACTIONS_MAX 5000

struct truth {
	const struct kb_dag *dag;
	const uint32_t *noise_id; /* NULL: the node's number */
	double *level;		  /* owned; per node */
	uint8_t *untestable;	  /* owned; does not compile */
	uint8_t *no_boot;	  /* owned */
	double sd, offset;
	uint64_t seed;
	bool exact; /* boots are functions of few perturbations */
};

struct outcome {
	struct kb_decide_result result;
	uint32_t boots, builds, actions;
	uint64_t hash;
	double *probability; /* owned; per node */
};

static struct kb_decide_params usual(void)
{
	return (struct kb_decide_params){
		.alpha = 0.05,
		.calibration_boots = 10,
		.calibration_boots_max = 60,
		.commit_boots_min = 1,
		.commit_boots_max = 100,
		.confirm_boots = 5,
		.retries = 2,
		.min_effect = 0.002,
		.seed = 1,
	};
}

static void truth_init(struct truth *t, const struct kb_dag *dag, uint32_t culprit,
		       double delta, double sd)
{
	*t = (struct truth){.dag = dag, .sd = sd, .seed = 3};
	t->level = kb_calloc(dag->node_count, sizeof(*t->level));
	t->untestable = kb_calloc(dag->node_count, 1);
	t->no_boot = kb_calloc(dag->node_count, 1);
	for (uint32_t n = 0; n < dag->node_count; n++) {
		KB_AUTO_FREE uint8_t *marks = kb_calloc(dag->node_count, 1);

		kb_dag_mark_ancestors(dag, n, marks);
		t->level[n] = marks[culprit] ? delta : 0;
	}
}

static void truth_free(struct truth *t)
{
	free(t->level);
	free(t->untestable);
	free(t->no_boot);
}

static void outcome_free(struct outcome *o)
{
	kb_decide_result_free(&o->result);
	free(o->probability);
}

static double boot(const struct truth *t, uint32_t node, uint32_t nth)
{
	uint32_t id = node != KB_NODE_GOOD && t->noise_id ? t->noise_id[node] : node;
	struct kb_rng rng =
		kb_rng_at(t->seed, t->exact ? 0 : id, t->exact ? nth % 3 : nth);

	return t->offset + (node == KB_NODE_GOOD ? 0 : t->level[node]) +
	       t->sd * gaussian(&rng);
}

static void perform(const struct truth *t, struct kb_decide_bayes *d,
		    const struct kb_action *a, uint32_t *done, struct outcome *o)
{
	uint32_t at = a->node == KB_NODE_GOOD ? t->dag->node_count : a->node;

	o->builds += done[at] == 0;
	if (a->node != KB_NODE_GOOD && t->untestable[a->node]) {
		kb_decide_bayes_feed_untestable(d, a->node);
		return;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		o->boots++;
		if (a->node != KB_NODE_GOOD && t->no_boot[a->node])
			kb_decide_bayes_feed_failed_boot(d, a->node);
		else
			kb_decide_bayes_feed_boot(d, a->node,
						  boot(t, a->node, done[at]++));
	}
}

static struct outcome run(const struct truth *t, const struct kb_decide_params *params)
{
	uint32_t count = t->dag->node_count;
	KB_AUTO_FREE uint32_t *done = kb_calloc((size_t)count + 1, sizeof(*done));
	struct kb_decide_bayes *d =
		kb_decide_bayes_new(params, t->dag, count - 1, NULL, NULL, NULL);
	struct outcome o = {.probability = kb_calloc(count, sizeof(double))};
	struct kb_action a;

	for (kb_decide_bayes_next(d, &a);
	     a.phase != KB_PHASE_DONE && o.actions < ACTIONS_MAX;
	     kb_decide_bayes_next(d, &a)) {
		o.actions++;
		o.hash = kb_rng_at(o.hash, a.node, a.count).state;
		perform(t, d, &a, done, &o);
	}
	kb_decide_bayes_result(d, &o.result);
	for (uint32_t n = 0; n < count; n++) {
		struct kb_decide_node state;

		kb_decide_bayes_node_state(d, n, &state);
		o.probability[n] = state.probability;
	}
	kb_decide_bayes_free(d);
	return o;
}

static void line_dag(struct kb_dag *dag, uint32_t count)
{
	kb_dag_init(dag);
	for (uint32_t n = 0; n < count; n++)
		kb_dag_add(dag, &(uint32_t){n - 1}, n > 0);
}

static bool has(const struct outcome *o, uint32_t node)
{
	for (size_t i = 0; i < o->result.candidate_count; i++) {
		if (o->result.candidates[i] == node)
			return true;
	}
	return false;
}

static bool is_found(const struct outcome *o, uint32_t culprit)
{
	return o->result.outcome == KB_OUTCOME_CULPRIT && o->result.confirmed &&
	       o->result.candidate_count == 1 && has(o, culprit);
}

/* --- finding -------------------------------------------------------------------------
 */

static void finds_on_lines(void)
{
	const uint32_t at[][2] = {{1, 0}, {2, 0}, {2, 1},    {9, 0},
				  {9, 5}, {9, 8}, {400, 123}};

	for (size_t i = 0; i < KB_COUNT_OF(at); i++) {
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO(truth_free) struct truth t;
		struct kb_decide_params params = usual();

		line_dag(&dag, at[i][0]);
		truth_init(&t, &dag, at[i][1], 0.1, 0.02);
		KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
		ok(is_found(&o, at[i][1]), "commit %u of %u: %s", at[i][1] + 1, at[i][0],
		   o.result.reason);
		ok(o.result.effect_low < 0.1 && 0.1 < o.result.effect_high,
		   "interval [%.3f, %.3f] holds the effect", o.result.effect_low,
		   o.result.effect_high);
	}
}

static void finds_on_graphs(void)
{
	uint32_t wrong = 0, found = 0, builds = 0;
	const uint32_t runs = 60;

	for (uint32_t i = 0; i < runs; i++) {
		struct kb_rng rng = kb_rng_at(6, i, 0);
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO(truth_free) struct truth t;
		struct kb_decide_params params = usual();
		uint32_t culprit = kb_rng_below(&rng, 120);

		random_dag(&rng, 120, 10, &dag);
		truth_init(&t, &dag, culprit, 0.1, 0.03);
		t.seed = i;
		KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
		found += is_found(&o, culprit);
		wrong += o.result.confirmed && !has(&o, culprit);
		builds += o.builds;
	}
	ok(found >= runs - 2, "found and confirmed on %u of %u random graphs", found,
	   runs);
	is_int(wrong, 0, "never a wrong one");
	ok(builds < 16 * runs, "in %.1f builds on average", builds / (double)runs);
}

/* --- refusing ------------------------------------------------------------------------
 */

static void refuses(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	struct kb_decide_params params = usual();
	KB_AUTO(truth_free) struct truth none, swapped, weak, broken;

	line_dag(&dag, 30);
	truth_init(&none, &dag, 7, 0, 0.02);
	KB_AUTO(outcome_free) struct outcome a = run(&none, &params);
	is_int(a.result.outcome, KB_OUTCOME_NOT_REPRODUCIBLE, "no difference");
	is_int(a.boots, 120, "after all looks");
	is_int(a.result.candidate_count, 0, "without candidates");
	ok(a.result.detectable > 0.005 && a.result.detectable < 0.05,
	   "what could have been seen: %.3f", a.result.detectable);

	truth_init(&swapped, &dag, 7, -0.1, 0.02);
	KB_AUTO(outcome_free) struct outcome b = run(&swapped, &params);
	is_int(b.result.outcome, KB_OUTCOME_NOT_REPRODUCIBLE, "an improvement");
	ok(strstr(b.result.reason, "swapped"), "says so: %s", b.result.reason);

	truth_init(&weak, &dag, 7, 0.013, 0.02);
	params.calibration_boots_max = 40;
	weak.seed = 8;
	KB_AUTO(outcome_free) struct outcome c = run(&weak, &params);
	is_int(c.result.outcome, KB_OUTCOME_NOT_REPRODUCIBLE, "underpowered: %s",
	       c.result.reason);

	truth_init(&broken, &dag, 7, 0.1, 0.02);
	broken.untestable[29] = 1;
	KB_AUTO(outcome_free) struct outcome e = run(&broken, &params);
	is_int(e.result.outcome, KB_OUTCOME_INFRASTRUCTURE, "no bad end: %s",
	       e.result.reason);
	broken.untestable[29] = 0;
	broken.no_boot[29] = 1;
	KB_AUTO(outcome_free) struct outcome f = run(&broken, &params);
	is_int(f.result.outcome, KB_OUTCOME_INFRASTRUCTURE, "it does not boot: %s",
	       f.result.reason);
}

/* --- skips ---------------------------------------------------------------------------
 */

static void skips_never_lose_the_culprit(void)
{
	uint32_t lost = 0, wrong = 0, raised = 0;
	const uint32_t runs = 80;

	for (uint32_t i = 0; i < runs; i++) {
		struct kb_rng rng = kb_rng_at(9, i, 0);
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO(truth_free) struct truth t;
		struct kb_decide_params params = usual();
		uint32_t culprit = kb_rng_below(&rng, 60);

		if (i % 2)
			random_dag(&rng, 60, 8, &dag);
		else
			line_dag(&dag, 60);
		truth_init(&t, &dag, culprit, 0.1, 0.02);
		t.seed = i;
		for (uint32_t n = 0; n + 1 < 60; n++) {
			t.untestable[n] = kb_rng_below(&rng, 4) == 0;
			t.no_boot[n] = kb_rng_below(&rng, 12) == 0;
		}
		KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
		lost += !has(&o, culprit);
		wrong += o.result.confirmed && !has(&o, culprit);
		for (uint32_t n = 0; n < 60; n++)
			raised += n != culprit && o.probability[n] >= 1 - params.alpha;
	}
	ok(lost <= 2, "the culprit is in the answer (lost %u of %u)", lost, runs);
	is_int(wrong, 0, "a wrong commit is never confirmed");
	is_int(raised, 0, "no wrong commit gets above the threshold");
}

static void untestable_culprit_is_a_set(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	KB_AUTO(truth_free) struct truth t;
	struct kb_decide_params params = usual();

	line_dag(&dag, 40);
	truth_init(&t, &dag, 20, 0.1, 0.02);
	for (uint32_t n = 18; n < 23; n++)
		t.untestable[n] = 1;
	KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
	is_int(o.result.outcome, KB_OUTCOME_SET, "a set: %s", o.result.reason);
	is_int(o.result.candidate_count, 6, "of those that cannot be told apart");
	for (uint32_t n = 18; n < 24; n++)
		ok(has(&o, n) && fabs(o.probability[n] - 1 / 6.0) < 0.02,
		   "commit %u with %.3f", n, o.probability[n]);
}

/* --- more than one change --------------------------------------------------------------
 */

static void expect_two(const char *what, double middle)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	KB_AUTO(truth_free) struct truth t;
	struct kb_decide_params params = usual();

	line_dag(&dag, 100);
	truth_init(&t, &dag, 70, 0.1, 0.01);
	for (uint32_t n = 30; n < 70; n++)
		t.level[n] = middle;
	KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
	is_int(o.result.outcome, KB_OUTCOME_MULTI, "%s: %s", what, o.result.reason);
	ok(o.result.candidate_count == 2 && has(&o, 30) && has(&o, 70), "both are named");
}

static void side_branch_has_its_own_level(void)
{
	/* Only one change, but on a side branch: no commit is between the levels. */
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	KB_AUTO(truth_free) struct truth t;
	struct kb_decide_params params = usual();
	uint32_t tip;

	line_dag(&dag, 20);
	tip = kb_dag_add(&dag, &(uint32_t){4}, 1);
	for (int i = 0; i < 15; i++)
		tip = kb_dag_add(&dag, &tip, 1);
	tip = kb_dag_add(&dag, (uint32_t[]){19, tip}, 2);
	kb_dag_add(&dag, &tip, 1);
	truth_init(&t, &dag, 28, 0.1, 0.01);
	KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
	ok(is_found(&o, 28), "a commit on a side branch: %s", o.result.reason);
	truth_free(&t);
	truth_init(&t, &dag, 36, 0.1, 0.01);
	KB_AUTO(outcome_free) struct outcome m = run(&t, &params);
	ok(is_found(&m, 36), "a merge of two good sides: %s", m.result.reason);
}

/* --- exact mode ------------------------------------------------------------------------
 */

static void repeats_are_no_evidence(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	KB_AUTO(truth_free) struct truth t;
	struct kb_decide_params params = usual();

	params.exact = true;
	params.calibration_boots = 5;
	line_dag(&dag, 200);
	truth_init(&t, &dag, 77, 0.1, 0);
	t.exact = true;
	KB_AUTO(outcome_free) struct outcome o = run(&t, &params);
	ok(is_found(&o, 77), "without any noise: %s", o.result.reason);
	ok(o.boots <= 40, "a handful of boots (%u)", o.boots);
	t.sd = 0.01;
	KB_AUTO(outcome_free) struct outcome p = run(&t, &params);
	ok(is_found(&p, 77) && p.actions < 60, "with few perturbations: %s",
	   p.result.reason);
	/* Three values, again and again, do not make a small difference large. */
	t.sd = 0.1;
	KB_AUTO(outcome_free) struct outcome q = run(&t, &params);
	ok(q.actions < ACTIONS_MAX, "and it comes to an end (%u boots): %s", q.boots,
	   q.result.reason);
}

/* --- replay ----------------------------------------------------------------------------
 */

static void same_events_same_actions(void)
{
	struct kb_rng rng = {2};
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	KB_AUTO(truth_free) struct truth t;
	struct kb_decide_params params = usual();

	random_dag(&rng, 150, 12, &dag);
	truth_init(&t, &dag, 88, 0.05, 0.03);
	KB_AUTO(outcome_free) struct outcome one = run(&t, &params);
	KB_AUTO(outcome_free) struct outcome two = run(&t, &params);
	ok(one.hash == two.hash && one.actions > 20, "a run repeats itself");
	t.offset = log(1000);
	KB_AUTO(outcome_free) struct outcome far = run(&t, &params);
	ok(far.hash == one.hash, "another unit changes no action");
	params.seed = 5;
	KB_AUTO(outcome_free) struct outcome other = run(&t, &params);
	ok(other.hash != one.hash, "another seed gives another order");
}

static void numbering_does_not_matter(void)
{
	uint32_t differ = 0;

	for (uint32_t i = 0; i < 20; i++) {
		struct kb_rng rng = kb_rng_at(8, i, 0);
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		KB_AUTO(kb_dag_free) struct kb_dag again;
		KB_AUTO(truth_free) struct truth t, u;
		uint32_t new_of[80], old_of[80], culprit = kb_rng_below(&rng, 80);
		struct kb_decide_params params = usual();

		random_dag(&rng, 80, 8, &dag);
		renumbered_dag(&dag, &rng, new_of, &again);
		for (uint32_t n = 0; n < 80; n++)
			old_of[new_of[n]] = n;
		truth_init(&t, &dag, culprit, 0.1, 0.01);
		truth_init(&u, &again, new_of[culprit], 0.1, 0.01);
		u.noise_id = old_of;
		KB_AUTO(outcome_free) struct outcome a = run(&t, &params);
		KB_AUTO(outcome_free) struct outcome b = run(&u, &params);
		differ += a.result.outcome != b.result.outcome || !has(&a, culprit) ||
			  !has(&b, new_of[culprit]);
	}
	is_int(differ, 0, "the numbering of commits changes no answer");
}

int main(void)
{
	finds_on_lines();
	finds_on_graphs();
	refuses();
	skips_never_lose_the_culprit();
	untestable_culprit_is_a_set();
	expect_two("two steps", 0.05);
	expect_two("a regression and a partial fix", 0.17);
	expect_two("an improvement and a larger regression", -0.05);
	side_branch_has_its_own_level();
	repeats_are_no_evidence();
	same_events_same_actions();
	numbering_does_not_matter();
	return tap_done();
}
