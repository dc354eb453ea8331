/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decision rule behind a small pure interface: it is told what was measured and says
 * what to do next. No I/O, no clock, no git: the same events give the same actions, so
 * that a run is resumed by replaying its journal.
 *
 * A measurement enters as one number per boot: y = ln(metric), sign turned so that larger
 * is worse. The boot is the unit of replication.
 */
#ifndef KB_BISECT_DECIDE_H
#define KB_BISECT_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bisect/dag.h"
#include "harness/base/error.h"
#include "harness/base/str.h"

/* Who is measured: a node of the DAG, or the good endpoint, which is not in it. */
#define KB_NODE_GOOD UINT32_MAX
#define KB_NODE_NONE (UINT32_MAX - 1)

struct kb_decide_params {
	double alpha;		    /* accepted error of the answer, e.g. 0.05 */
	uint32_t calibration_boots; /* first look, per endpoint; below 5 counts as 5: no
				     * exact test of 4 + 4 boots reaches 1 % */
	uint32_t calibration_boots_max; /* give up (does not reproduce) here */
	uint32_t commit_boots_min;	/* per tested commit */
	uint32_t commit_boots_max;
	uint32_t confirm_boots; /* fresh boots of culprit and each parent, at least 5;
				 * more when the endpoints are not far apart */
	uint32_t retries;	/* failed boots before a commit is untestable; one more
				 * is allowed for every four valid boots */
	double min_effect;	/* ln ratio below which endpoints count as equal */
	uint64_t seed;		/* for random order */
	bool force;		/* go on when underpowered */
	bool exact;		/* boots are pure functions of their perturbation: no
				 * drift, so that order is free and batches are large */
};

enum kb_phase { KB_PHASE_CALIBRATE, KB_PHASE_SEARCH, KB_PHASE_CONFIRM, KB_PHASE_DONE };

/* Of a whole bisection; exit codes and JSON words derive from it. */
enum kb_outcome {
	KB_OUTCOME_NONE = 0,
	KB_OUTCOME_CULPRIT,
	KB_OUTCOME_SET,
	KB_OUTCOME_NOT_REPRODUCIBLE,
	KB_OUTCOME_MULTI,
	KB_OUTCOME_INFRASTRUCTURE,
};

/* What to do next: `count` boots of `node`; boots of one action may run side by side. */
struct kb_action {
	enum kb_phase phase; /* KB_PHASE_DONE: nothing; ask kb_decide_result() */
	uint32_t node;	     /* or KB_NODE_GOOD */
	uint32_t count;
	char why[160]; /* one line for people and for the journal */
};

/* The verdict on one tested commit. */
enum kb_verdict {
	KB_VERDICT_NONE = 0,
	KB_VERDICT_GOOD,
	KB_VERDICT_BAD,
	KB_VERDICT_UNCLEAR,
	KB_VERDICT_UNTESTABLE,
};

struct kb_decide; /* one bisection */

/**
 * @param dag borrowed for the life of the result; the bad endpoint is node `bad`
 * @param interesting as in kb_pick_next(), borrowed, may be NULL
 * @param parents_outside node_count bytes, borrowed: 1 where the node has a parent
 * outside the DAG (an ancestor of good: taken as KB_NODE_GOOD when confirming)
 */
struct kb_decide *kb_decide_new(const struct kb_decide_params *params,
				const struct kb_dag *dag, uint32_t bad,
				const uint8_t *interesting,
				const uint8_t *parents_outside);
void kb_decide_free(struct kb_decide *d);

/** The next action. Calling it again without feeding anything gives the same answer. */
void kb_decide_next(struct kb_decide *d, struct kb_action *ret_action);

/**
 * One valid boot of a node. Fed in the order of boot numbers of an action, so that replay
 * is exact. @param y finite (asserted)
 */
void kb_decide_feed_boot(struct kb_decide *d, uint32_t node, double y);

/** A boot of the node that gave no valid sample (panic, hang, precondition, ...). */
void kb_decide_feed_failed_boot(struct kb_decide *d, uint32_t node);

/** The node can't be tested at all (does not compile, needed symbol missing, user skip).
 */
void kb_decide_feed_untestable(struct kb_decide *d, uint32_t node);

/* State of one node (or of KB_NODE_GOOD), for reports and progress. */
struct kb_decide_node {
	enum kb_verdict verdict;
	uint32_t boots; /* valid ones */
	uint32_t failed;
	double mean, sd;    /* of y over all valid boots; sd NAN below two */
	double level;	    /* where the mean lies: 0 at good's level, 1 at bad's; NAN if
			     * there are no boots or the endpoints are not calibrated */
	double probability; /* of being the first bad commit, as far as the rule can say
			     */
};
void kb_decide_node_state(const struct kb_decide *d, uint32_t node,
			  struct kb_decide_node *ret_state);

struct kb_decide_result {
	enum kb_outcome outcome;
	uint32_t *candidates; /* owned; culprit first, or the set that is left */
	size_t candidate_count;
	bool confirmed; /* culprit differs from every parent, fresh boots */
	double effect;	/* ln ratio culprit : parent, fresh boots; NAN if none */
	double effect_low, effect_high; /* 95 % confidence interval of it */
	double confirm_p; /* worst one-sided exact p over the parents; NAN if none */
	double endpoint_effect; /* ln ratio bad : good from calibration */
	double endpoint_p;
	double detectable; /* smallest ln ratio that calibration could have seen */
	char reason[256];  /* one line */
};

/** What is known now; final once the phase is KB_PHASE_DONE. */
void kb_decide_result(const struct kb_decide *d, struct kb_decide_result *ret_result);
void kb_decide_result_free(struct kb_decide_result *result);

/* Progress for people. */
struct kb_decide_progress {
	enum kb_phase phase;
	uint32_t candidates_left;
	uint32_t steps_left; /* estimated commits still to test */
	uint32_t boots_left; /* estimated boots still to run */
	uint32_t top_node;   /* KB_NODE_NONE before there is one */
	double top_probability;
};
void kb_decide_progress(const struct kb_decide *d, struct kb_decide_progress *ret);

/**
 * For `kbisect judge`: one commit against recorded endpoint samples.
 * @return KB_VERDICT_GOOD, _BAD, or _UNCLEAR when more boots are needed
 */
enum kb_verdict kb_decide_classify(const double *good, size_t good_n, const double *bad,
				   size_t bad_n, const double *sample, size_t sample_n,
				   const struct kb_decide_params *params);

#endif
