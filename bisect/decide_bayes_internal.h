/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by decide_bayes*.c only. */
#ifndef KB_BISECT_DECIDE_BAYES_INTERNAL_H
#define KB_BISECT_DECIDE_BAYES_INTERNAL_H

#include <math.h>

#include "bisect/decide_bayes.h"
#include "bisect/decide_model.h"

#define PARTS_MAX 6
#define FOUND_MAX 4

struct bayes_node {
	double *y; /* owned; valid boots in the order fed */
	size_t count, cap;
	size_t fresh_from; /* boots of the final stage start here */
	uint32_t failed;
	bool untestable;
};

/* A stretch of history to search: at first from the good endpoint to the bad one. */
struct bayes_part {
	uint32_t good; /* KB_NODE_GOOD, or a commit: then only what contains it counts */
	uint32_t bad;
	double sign; /* -1: it gets faster from good to bad, the part of a fix */
};

/* A change that fresh boots confirmed. */
struct bayes_found {
	uint32_t node;
	double probability, effect, low, high, p;
};

struct kb_decide_bayes {
	struct kb_decide_params params;
	struct kb_decide_bayes_options options;
	const struct kb_dag *dag; /* borrowed; so are the next two */
	const uint8_t *interesting;
	const uint8_t *parents_outside;
	uint32_t bad_end;
	struct bayes_node *nodes;	 /* owned; node_count, then the good endpoint */
	struct kb_plan_table *own_table; /* owned; NULL when borrowed */
	double *prior;			 /* owned; scratch */
	uint8_t *member;   /* owned; 1: the node's boots count in this part */
	uint8_t *testable; /* owned; scratch */
	uint8_t *skipped;  /* owned */
	bool any_skipped;

	/* The action at work; `left` boots of it are still to be fed. */
	struct kb_action current;
	uint32_t left;

	struct bayes_part parts[PARTS_MAX];
	uint32_t part, part_count;
	struct kb_looks looks;
	uint32_t look;
	struct kb_noise noise;		/* of this part */
	struct kb_posterior *posterior; /* owned; of this part, NULL in calibration */
	double *bad_chance;		/* owned; per node; as of the last search step */
	uint32_t candidate_count;
	double endpoint_effect, endpoint_p, detectable; /* of the first part */
	struct kb_plan_forecast forecast;
	bool calibrated; /* the first part was */

	uint32_t culprit;
	uint32_t *subjects; /* owned; the culprit, then those it is held against */
	uint32_t subject_count, attempt, round, target;
	bool is_confirmed;
	bool is_extended; /* more boots, as it seems to explain too little or too much */
	uint32_t *order;  /* owned; scratch */
	struct bayes_found found[FOUND_MAX];
	uint32_t found_count;
	struct kb_two_changes two;

	double *reported; /* owned; per node; the posterior that the answer rests on */
	uint32_t *set;	  /* owned; the answer when nothing was confirmed */
	size_t set_count;
	struct kb_decide_result result; /* without the candidates */
};

static inline struct bayes_node *bayes_node(const struct kb_decide_bayes *d,
					    uint32_t node)
{
	return &d->nodes[node == KB_NODE_GOOD ? d->dag->node_count : node];
}

static inline uint32_t bayes_fresh(const struct kb_decide_bayes *d, uint32_t node)
{
	const struct bayes_node *n = bayes_node(d, node);

	return (uint32_t)(n->count - n->fresh_from);
}

enum bayes_step { STEP_AGAIN, STEP_ACT };

void bayes_advance(struct kb_decide_bayes *d);
enum bayes_step bayes_act(struct kb_decide_bayes *d, uint32_t node, uint32_t count,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void bayes_remark(struct kb_decide_bayes *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
enum bayes_step bayes_finish(struct kb_decide_bayes *d, enum kb_outcome outcome);
bool bayes_is_exhausted(const struct kb_decide_bayes *d, uint32_t node);

/** Whose turn it is until all subjects have `target` boots (fresh ones with `fresh`),
 * every round in a random order of its own. @return false when all have enough */
bool bayes_turn(struct kb_decide_bayes *d, const uint32_t *subjects, uint32_t count,
		uint32_t target, bool fresh, uint32_t *ret_node, uint32_t *ret_boots);

/** Gives one boot to the posterior of this part, if it belongs there. */
void bayes_take_boot(struct kb_decide_bayes *d, uint32_t node, size_t which);
/** Sets up the posterior of this part from all boots so far. */
void bayes_start_search(struct kb_decide_bayes *d);
/** The next part, or the end when there is none. */
enum bayes_step bayes_next_part(struct kb_decide_bayes *d);
bool bayes_add_part(struct kb_decide_bayes *d, uint32_t good, uint32_t bad, double sign);
/** Boots of a node from the `from`-th on, larger being worse in this part. Owned. */
double *bayes_boots(const struct kb_decide_bayes *d, uint32_t node, size_t from);
/** Remembers the credible set of this part as the answer, unless there is a better. */
void bayes_keep_posterior(struct kb_decide_bayes *d);
void bayes_keep_set(struct kb_decide_bayes *d);

/** Looks at growing numbers of calibration boots; their levels add up to 0.01. */
void bayes_plan_looks(const struct kb_decide_params *params, struct kb_looks *ret_looks);

enum bayes_step bayes_step_calibrate(struct kb_decide_bayes *d);
enum bayes_step bayes_step_search(struct kb_decide_bayes *d);
enum bayes_step bayes_start_confirm(struct kb_decide_bayes *d, uint32_t culprit);
enum bayes_step bayes_step_confirm(struct kb_decide_bayes *d);

static inline double bayes_percent(double ln_ratio)
{
	return 100 * expm1(ln_ratio);
}

#endif
