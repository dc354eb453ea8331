/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What to measure next: the action that is expected to tell most about the culprit per
 * cost. Pure. An action is some boots of a commit not built yet, more boots of a build,
 * or a new layout of a built commit.
 */
#ifndef KB_BISECT_PLAN_H
#define KB_BISECT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "bisect/posterior.h"

/* In any unit, e.g. boots or seconds. */
struct kb_plan_costs {
	double boot;		/* > 0 */
	double build;		/* of a commit or layout that build_of does not know */
	const double *build_of; /* node_count, borrowed, or NULL; 0: cached */
};

struct kb_plan_limits {
	const uint8_t *testable; /* node_count, borrowed: 0 is never asked for */
	const uint8_t *skipped;	 /* node_count, borrowed, or NULL: tried in vain; commits
				  * near by are likely to fail, too */
	uint32_t boots_min;	 /* of a new build */
	uint32_t boots_max;	 /* per build; 0: no limit; see kb_plan_boots_cap() */
	uint32_t layouts_max;	 /* per commit; 0 counts as 1 */
	double least;		 /* information in nats that is worth an action */
};

struct kb_plan_choice {
	uint32_t node; /* UINT32_MAX: no action would tell enough */
	uint32_t layout;
	uint32_t boots;
	bool is_new;	    /* needs a build */
	double bad;	    /* probability that the commit is bad */
	double information; /* expected, in nats */
	double cost;
	double failure; /* chance that it cannot be tested */
};

/* A table of the information that one look gives; made once, used for all choices. */
struct kb_plan_table;
struct kb_plan_table *kb_plan_table_new(void);
void kb_plan_table_free(struct kb_plan_table *table);

/**
 * Mutual information in nats of a bit that is 1 with probability p and one number seen
 * through N(0, 1) or N(d, 1). @param p in [0, 1] @param d >= 0
 */
double kb_plan_information(const struct kb_plan_table *table, double p, double d);

/** The best next action, as of the posterior's last update. */
struct kb_plan_choice kb_plan_next(const struct kb_plan_table *table,
				   const struct kb_posterior *posterior,
				   const struct kb_plan_costs *costs,
				   const struct kb_plan_limits *limits);

/** Boots of one build beyond which the next commit tells more: max(4, 40 / d^2). */
uint32_t kb_plan_boots_cap(double d);

/** Chance of each commit to be untestable, from those that were. @param testable number
 * of commits that could be tested @param ret_failure node_count, filled */
void kb_plan_failure(const struct kb_dag *dag, const uint8_t *skipped, uint32_t tested,
		     double *ret_failure);

/* What a search among `candidates` is likely to take, calibration and final stage not
 * counted. Source: information needed over the best rate; "+ 2" is fitted. */
struct kb_plan_forecast {
	double builds, boots, cost;
};
struct kb_plan_forecast kb_plan_forecast(const struct kb_plan_table *table,
					 uint32_t candidates, double d,
					 double build_cost);

#endif
