/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by decide.c (state and reports), decide_rule.c and decide_confirm.c only. */
#ifndef KB_BISECT_DECIDE_INTERNAL_H
#define KB_BISECT_DECIDE_INTERNAL_H

#include "bisect/decide.h"
#include "bisect/decide_model.h"
#include "bisect/pick.h"

struct decide_node {
	double *y; /* owned; valid boots in the order fed */
	size_t count, cap;
	size_t fresh_from; /* boots of the confirmation start here */
	uint32_t failed;
	enum kb_verdict verdict;
	bool untestable;
};

struct kb_decide {
	struct kb_decide_params params;
	const struct kb_dag *dag;	/* borrowed */
	const uint8_t *interesting;	/* borrowed; may be NULL */
	const uint8_t *parents_outside; /* borrowed */
	uint32_t bad_end;
	struct decide_node *nodes; /* owned; node_count entries, then the good endpoint */

	/* The action at work; `left` boots of it are still to be fed. */
	struct kb_action current;
	uint32_t left;

	struct kb_looks looks;
	uint32_t look;
	bool model_ready;
	struct kb_model model;
	double endpoint_p, threshold, detectable;

	uint32_t bad;		     /* oldest commit known to be bad */
	uint8_t *excluded, *skipped; /* owned; as in kb_pick_next() */
	uint32_t *left_over;	     /* owned; candidates still possible, newest first */
	uint32_t left_over_count;
	uint8_t *is_left; /* owned; 1 for those in left_over */
	uint32_t testing; /* KB_NODE_NONE between commits */
	uint32_t tested;  /* commits decided good or bad */
	struct kb_pick pick;

	uint32_t culprit;
	uint32_t *subjects; /* owned; the culprit, then those it is held against */
	uint32_t subject_count, parents_replaced;
	uint32_t confirm_target, confirm_round;
	uint32_t *order; /* owned; scratch for random order */
	size_t order_cap;

	struct kb_decide_result result; /* without the candidates */
};

static inline struct decide_node *decide_node(const struct kb_decide *d, uint32_t node)
{
	return &d->nodes[node == KB_NODE_GOOD ? d->dag->node_count : node];
}

/** Plans the next action (or the end) from all that was fed. */
void decide_advance(struct kb_decide *d);
/** Recomputes candidates left after a change of bad or excluded. */
void decide_refresh_candidates(struct kb_decide *d);
/** Too many boots failed, or it is known to be untestable. */
bool decide_is_exhausted(const struct kb_decide *d, const struct decide_node *n);

/* A step of the rule has set an action (or the end), or the new state is looked at anew.
 */
enum decide_step { STEP_AGAIN, STEP_ACT };

enum decide_step decide_act(struct kb_decide *d, uint32_t node, uint32_t count,
			    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/** Adds to the result's reason, which is cut where it does not fit. */
void decide_remark(struct kb_decide *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
enum decide_step decide_finish(struct kb_decide *d, enum kb_outcome outcome);
/** What does not fit the picture of two levels is not hidden. */
void decide_remark_odd_levels(struct kb_decide *d);
double decide_percent(double ln_ratio);

static inline uint32_t decide_fresh_count(const struct kb_decide *d, uint32_t node)
{
	const struct decide_node *n = decide_node(d, node);

	return (uint32_t)(n->count - n->fresh_from);
}

/**
 * Whose turn it is until all subjects have `target` fresh boots: one boot each per round,
 * every round in a random order of its own, so that drift of the host hits all alike. In
 * exact mode there is no drift and the whole batch of one subject may run side by side.
 * @return false when all have enough
 */
bool decide_whose_turn(struct kb_decide *d, const uint32_t *subjects, uint32_t count,
		       uint32_t target, uint32_t *ret_node, uint32_t *ret_boots);

enum decide_step decide_start_confirm(struct kb_decide *d);
enum decide_step decide_step_confirm(struct kb_decide *d);

#endif
