/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/sim.h"

#include <math.h>
#include <stdlib.h>

#include "bisect/decide_bayes.h"
#include "bisect/sim_internal.h"
#include "harness/base/mem.h"

#define CREDIBLE 0.95
#define ACTIONS_MAX 200000

static const char *const rule_names[KB_SIM_RULES] = {"engine",	 "first",    "plain-1",
						     "plain-3",	 "plain-10", "plain-30",
						     "bayesect", "bbchop"};

const char *kb_sim_rule_name(enum kb_sim_rule rule)
{
	return rule_names[rule];
}

bool kb_sim_can(enum kb_sim_rule rule, const struct kb_sim_cell *cell)
{
	bool line_only = rule == KB_SIM_BAYESECT || rule == KB_SIM_BBCHOP;
	bool refuses = rule == KB_SIM_ENGINE || rule == KB_SIM_FIRST;

	if (!(cell->effect > 0))
		return refuses;
	return !line_only || (cell->shape == KB_SIM_LINE && !(cell->untestable > 0));
}

void kb_sim_tally_add(struct kb_sim_tally *to, const struct kb_sim_tally *from)
{
	to->trials += from->trials;
	to->wrong += from->wrong;
	to->unresolved += from->unresolved;
	to->refused += from->refused;
	to->multi += from->multi;
	to->both += from->both;
	to->covered += from->covered;
	to->posed += from->posed;
	to->builds += from->builds;
	to->boots += from->boots;
	to->set_size += from->set_size;
}

static bool is_change(const struct sim_world *w, uint32_t node)
{
	return node == w->first || node == w->second;
}

/* Both engines answer the same questions. */
struct engine {
	struct kb_decide_bayes *bayes;
	struct kb_decide *first;
};

static void engine_next(struct engine *e, struct kb_action *ret_action)
{
	if (e->bayes)
		kb_decide_bayes_next(e->bayes, ret_action);
	else
		kb_decide_next(e->first, ret_action);
}

static void engine_act(struct engine *e, struct sim_world *w, const struct kb_action *a)
{
	if (a->node != KB_NODE_GOOD && w->untestable[a->node]) {
		w->builds++;
		if (e->bayes)
			kb_decide_bayes_feed_untestable(e->bayes, a->node);
		else
			kb_decide_feed_untestable(e->first, a->node);
		return;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		double y = sim_boot(w, a->node);

		if (e->bayes)
			kb_decide_bayes_feed_boot(e->bayes, a->node, y);
		else
			kb_decide_feed_boot(e->first, a->node, y);
	}
}

static double probability(const struct engine *e, uint32_t node)
{
	struct kb_decide_node state;

	if (e->bayes)
		kb_decide_bayes_node_state(e->bayes, node, &state);
	else
		kb_decide_node_state(e->first, node, &state);
	return state.probability;
}

/* The culprit is in the credible set unless more probable ones fill it. */
static void judge_credible(const struct engine *e, const struct sim_world *w,
			   struct kb_sim_tally *tally)
{
	uint32_t count = w->dag.node_count, size = 0;
	KB_AUTO_FREE double *p = kb_calloc(count, sizeof(*p));
	double before = 0, sum = 0, truth;

	for (uint32_t n = 0; n < count; n++)
		p[n] = probability(e, n);
	truth = fmax(p[w->first], p[w->second]);
	for (uint32_t n = 0; n < count; n++)
		before += p[n] > truth ? p[n] : 0;
	while (sum < CREDIBLE && size < count) {
		uint32_t top = 0;

		for (uint32_t n = 1; n < count; n++)
			top = p[n] > p[top] ? n : top;
		sum += p[top];
		p[top] = -1;
		size++;
	}
	tally->posed++;
	tally->covered += before < CREDIBLE;
	tally->set_size += size;
}

static void judge_engine(const struct engine *e, const struct sim_world *w,
			 struct kb_sim_tally *tally)
{
	KB_AUTO(kb_decide_result_free) struct kb_decide_result r;
	uint32_t hits = 0;

	if (e->bayes)
		kb_decide_bayes_result(e->bayes, &r);
	else
		kb_decide_result(e->first, &r);
	for (size_t i = 0; i < r.candidate_count; i++)
		hits += is_change(w, r.candidates[i]);
	switch (r.outcome) {
	case KB_OUTCOME_CULPRIT:
		if (r.confirmed)
			tally->wrong += hits == 0;
		else
			tally->unresolved++;
		break;
	case KB_OUTCOME_MULTI:
		tally->multi++;
		tally->both += hits == 2 && r.candidate_count == 2;
		tally->wrong += hits == 0;
		break;
	case KB_OUTCOME_NOT_REPRODUCIBLE:
		tally->refused++;
		return;
	default:
		tally->unresolved++;
		break;
	}
	judge_credible(e, w, tally);
}

static struct kb_decide_params engine_params(const struct kb_sim_cell *cell,
					     uint64_t seed)
{
	uint32_t most = 4 * sim_calibration(cell);

	if (!(cell->effect > 0))
		most = 60;
	return (struct kb_decide_params){
		.alpha = 0.05,
		.calibration_boots = 20,
		.calibration_boots_max = most < 60 ? 60 : most,
		.commit_boots_min = 1,
		.commit_boots_max = most,
		.confirm_boots = 5,
		.retries = 2,
		.min_effect = 0.002,
		.seed = seed,
	};
}

static void run_engine(struct sim_world *w, bool bayes, const struct kb_plan_table *table,
		       struct kb_sim_tally *tally)
{
	struct kb_decide_params params = engine_params(w->cell, w->seed);
	struct kb_decide_bayes_options options = {.table = table,
						  .layouts = w->cell->layout > 0};
	struct engine e = {0};
	struct kb_action a;

	if (bayes)
		e.bayes = kb_decide_bayes_new(&params, &w->dag, sim_head(w), NULL,
					      w->outside, &options);
	else
		e.first = kb_decide_new(&params, &w->dag, sim_head(w), NULL, w->outside);
	for (uint32_t i = 0; i < ACTIONS_MAX; i++) {
		engine_next(&e, &a);
		if (a.phase == KB_PHASE_DONE)
			break;
		engine_act(&e, w, &a);
	}
	judge_engine(&e, w, tally);
	kb_decide_bayes_free(e.bayes);
	kb_decide_free(e.first);
}

void kb_sim_trial(const struct kb_sim_cell *cell, enum kb_sim_rule rule,
		  uint32_t candidates, uint64_t seed, uint32_t trial,
		  const struct kb_plan_table *table, struct kb_sim_tally *tally)
{
	static const uint32_t plain_boots[KB_SIM_RULES] = {
		[KB_SIM_PLAIN_1] = 1,
		[KB_SIM_PLAIN_3] = 3,
		[KB_SIM_PLAIN_10] = 10,
		[KB_SIM_PLAIN_30] = 30,
	};
	KB_AUTO(sim_world_free) struct sim_world w;

	sim_world_init(&w, cell, candidates, seed, trial);
	tally->trials++;
	if (rule == KB_SIM_ENGINE || rule == KB_SIM_FIRST)
		run_engine(&w, rule == KB_SIM_ENGINE, table, tally);
	else if (plain_boots[rule])
		tally->wrong += !is_change(&w, sim_run_plain(&w, plain_boots[rule]));
	else
		tally->wrong +=
			!is_change(&w, sim_run_pass_fail(&w, rule == KB_SIM_BAYESECT));
	tally->builds += w.builds;
	tally->boots += w.boots;
}
