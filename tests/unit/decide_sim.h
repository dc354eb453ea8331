/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulated truth for tests of the decision rule: a history, a culprit, noisy boots. */
#ifndef KB_TESTS_UNIT_DECIDE_SIM_H
#define KB_TESTS_UNIT_DECIDE_SIM_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/decide.h"
#include "bisect/rng.h"
#include "harness/base/mem.h"

struct history {
	struct kb_dag dag;
	uint8_t *outside; /* owned; parents_outside */
};

static void history_free(struct history *h)
{
	kb_dag_free(&h->dag);
	free(h->outside);
	h->outside = NULL;
}

__attribute__((unused)) static struct history history_line(uint32_t count)
{
	struct history h = {.outside = kb_calloc(count, 1)};

	kb_dag_init(&h.dag);
	h.outside[0] = 1;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t parent = n - 1;

		kb_dag_add(&h.dag, &parent, n > 0);
	}
	return h;
}

/* Branches, merges and branches that start from before the range; ends in one head. */
static struct history history_random(struct kb_rng *rng, uint32_t count)
{
	struct history h = {.outside = kb_calloc((size_t)count * 2 + 1, 1)};
	KB_AUTO_FREE uint32_t *heads = kb_calloc((size_t)count * 2 + 1, sizeof(*heads));
	uint32_t head_count = 0;

	kb_dag_init(&h.dag);
	while (h.dag.node_count < count || head_count > 1) {
		uint32_t parents[2], parent_count = 1, at, dice = kb_rng_below(rng, 10);
		bool closing = h.dag.node_count >= count;

		at = head_count ? kb_rng_below(rng, head_count) : 0;
		if (head_count == 0 || (dice == 0 && !closing)) {
			parent_count = 0;
			at = head_count++;
		} else if (dice <= 2 && !closing) {
			parents[0] = kb_rng_below(rng, h.dag.node_count);
			if (parents[0] != heads[at])
				at = head_count++;
		} else if (head_count > 1 && (dice <= 5 || closing)) {
			uint32_t other = (at + 1) % head_count;

			parents[0] = heads[at];
			parents[1] = heads[other];
			parent_count = 2;
			heads[other] = heads[--head_count];
			at = at == head_count ? other : at;
		} else {
			parents[0] = heads[at];
		}
		heads[at] = kb_dag_add(&h.dag, parents, parent_count);
		h.outside[heads[at]] = parent_count == 0;
	}
	return h;
}

struct truth {
	const struct history *history;
	uint32_t culprit;
	double base, delta, sd;
	double outlier_share;	   /* neutral: up or down by 3 to 15 sd */
	double flaky_share;	   /* boots that fail for no reason */
	const uint8_t *untestable; /* node_count bytes or NULL: does not compile */
	const uint8_t *boot_fails; /* node_count bytes or NULL: never boots */
	bool good_fails;
	const double *level;	  /* node_count entries or NULL: replaces base + delta */
	const uint32_t *noise_id; /* NULL: the node's number; else whose noise it gets */
	uint64_t seed;
	double scale, offset; /* y becomes scale * y + offset; scale 0 means 1 */
};

struct trial {
	struct kb_decide_result result; /* freed by trial_free() */
	uint32_t builds, boots, search_boots, actions;
	uint64_t actions_hash;
	enum kb_phase last_phase;
};

static double gauss(struct kb_rng *rng)
{
	double u = 1 - kb_rng_unit(rng), v = kb_rng_unit(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* The n-th boot of a commit is always the same, whatever was measured before. */
static double truth_boot(const struct truth *t, const uint8_t *slow, uint32_t node,
			 uint32_t nth, bool *ret_failed)
{
	uint32_t id = node != KB_NODE_GOOD && t->noise_id ? t->noise_id[node] : node;
	struct kb_rng rng = kb_rng_at(t->seed, id, nth);
	double y = t->base + t->sd * gauss(&rng);

	if (kb_rng_unit(&rng) < t->outlier_share)
		y += (3 + 12 * kb_rng_unit(&rng)) * t->sd *
		     (kb_rng_below(&rng, 2) ? 1 : -1);
	*ret_failed = kb_rng_unit(&rng) < t->flaky_share;
	if (node == KB_NODE_GOOD)
		*ret_failed |= t->good_fails;
	else
		*ret_failed |= t->boot_fails && t->boot_fails[node];
	if (node != KB_NODE_GOOD)
		y += t->level ? t->level[node] : slow[node] ? t->delta : 0;
	return (t->scale > 0 ? t->scale : 1) * y + t->offset;
}

/* Marks the culprit and all commits that contain it. */
static uint8_t *descendants(const struct kb_dag *dag, uint32_t culprit)
{
	uint8_t *marks = kb_calloc(dag->node_count, 1);

	for (uint32_t n = 0; n < dag->node_count; n++) {
		marks[n] = n == culprit;
		for (uint32_t i = 0; i < kb_dag_parent_count(dag, n); i++)
			marks[n] |= marks[kb_dag_parent(dag, n, i)];
	}
	return marks;
}

static struct kb_decide_params usual_params(void)
{
	return (struct kb_decide_params){
		.alpha = 0.05,
		.calibration_boots = 5,
		.calibration_boots_max = 40,
		.commit_boots_min = 2,
		.commit_boots_max = 12,
		.confirm_boots = 5,
		.retries = 2,
		.min_effect = 0.002,
		.seed = 1,
	};
}

static void run_action(const struct truth *t, const uint8_t *slow, struct kb_decide *d,
		       const struct kb_action *a, uint32_t *boots_of, struct trial *trial)
{
	uint32_t at = a->node == KB_NODE_GOOD ? t->history->dag.node_count : a->node;

	trial->builds += boots_of[at] == 0;
	if (a->node != KB_NODE_GOOD && t->untestable && t->untestable[a->node]) {
		boots_of[at] = 1;
		kb_decide_feed_untestable(d, a->node);
		return;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		bool failed;
		double y = truth_boot(t, slow, a->node, boots_of[at]++, &failed);

		if (failed)
			kb_decide_feed_failed_boot(d, a->node);
		else
			kb_decide_feed_boot(d, a->node, y);
		trial->boots++;
		trial->search_boots += a->phase == KB_PHASE_SEARCH;
	}
}

/* Runs a bisection to its end. @param observer called with every action; may be NULL */
static struct trial
trial_run(const struct truth *t, const struct kb_decide_params *params,
	  const uint8_t *interesting,
	  void (*observer)(struct kb_decide *d, const struct kb_action *a))
{
	const struct history *h = t->history;
	uint32_t bad = h->dag.node_count - 1;
	KB_AUTO_FREE uint8_t *slow = descendants(&h->dag, t->culprit);
	KB_AUTO_FREE uint32_t *boots_of =
		kb_calloc((size_t)h->dag.node_count + 1, sizeof(*boots_of));
	struct kb_decide *d =
		kb_decide_new(params, &h->dag, bad, interesting, h->outside);
	struct trial trial = {0};
	struct kb_action a;

	for (kb_decide_next(d, &a); a.phase != KB_PHASE_DONE; kb_decide_next(d, &a)) {
		if (++trial.actions > 100000)
			break; /* never ends: last_phase tells */
		trial.last_phase = a.phase;
		trial.actions_hash = kb_rng_at(trial.actions_hash, a.node, a.count).state;
		if (observer)
			observer(d, &a);
		run_action(t, slow, d, &a, boots_of, &trial);
	}
	kb_decide_result(d, &trial.result);
	kb_decide_free(d);
	return trial;
}

static void trial_free(struct trial *trial)
{
	kb_decide_result_free(&trial->result);
}

__attribute__((unused)) static bool trial_has(const struct trial *trial, uint32_t node)
{
	for (size_t i = 0; i < trial->result.candidate_count; i++) {
		if (trial->result.candidates[i] == node)
			return true;
	}
	return false;
}

#endif
