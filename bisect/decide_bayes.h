/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Bayesian decision engine. The same questions and answers as bisect/decide.h, which
 * also has their meaning; pure, and a function of what was fed.
 */
#ifndef KB_BISECT_DECIDE_BAYES_H
#define KB_BISECT_DECIDE_BAYES_H

#include "bisect/decide.h"
#include "bisect/plan.h"

struct kb_decide_bayes;

/* All may be left zero. Everything is borrowed for the life of the engine. */
struct kb_decide_bayes_options {
	struct kb_plan_costs costs;	   /* boot 0: a build costs as much as 10 boots */
	const double *prior;		   /* node_count weights; NULL: all alike */
	const struct kb_plan_table *table; /* NULL: the engine makes its own */
	bool layouts; /* the layout of code is expected to move levels */
};

/** As kb_decide_new(). @param options NULL: the defaults */
struct kb_decide_bayes *
kb_decide_bayes_new(const struct kb_decide_params *params, const struct kb_dag *dag,
		    uint32_t bad, const uint8_t *interesting,
		    const uint8_t *parents_outside,
		    const struct kb_decide_bayes_options *options);
void kb_decide_bayes_free(struct kb_decide_bayes *d);

void kb_decide_bayes_next(struct kb_decide_bayes *d, struct kb_action *ret_action);
void kb_decide_bayes_feed_boot(struct kb_decide_bayes *d, uint32_t node, double y);
void kb_decide_bayes_feed_failed_boot(struct kb_decide_bayes *d, uint32_t node);
void kb_decide_bayes_feed_untestable(struct kb_decide_bayes *d, uint32_t node);

void kb_decide_bayes_node_state(const struct kb_decide_bayes *d, uint32_t node,
				struct kb_decide_node *ret_state);
/** Candidates: the culprit; of several changes each; else the credible set of 1 - alpha.
 */
void kb_decide_bayes_result(const struct kb_decide_bayes *d,
			    struct kb_decide_result *ret_result);
void kb_decide_bayes_progress(const struct kb_decide_bayes *d,
			      struct kb_decide_progress *ret);

/** What the search will take, as of the end of calibration. @return false before it */
bool kb_decide_bayes_forecast(const struct kb_decide_bayes *d,
			      struct kb_plan_forecast *ret_forecast);

#endif
