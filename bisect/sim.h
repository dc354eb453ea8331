/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated truth against decision rules: the production engine through its own
 * interface, and the rules of others as baselines. Pure; the same seed gives the same
 * trial.
 */
#ifndef KB_BISECT_SIM_H
#define KB_BISECT_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bisect/plan.h"

enum kb_sim_noise { KB_SIM_GAUSSIAN, KB_SIM_T3, KB_SIM_BIMODAL };
enum kb_sim_shape { KB_SIM_LINE, KB_SIM_MERGES };

/* One scenario. Effects are ln ratios; noise is the sd of a boot's ln. */
struct kb_sim_cell {
	const char *name;
	double effect, cv;
	enum kb_sim_noise noise;
	enum kb_sim_shape shape;
	double layout;	   /* sd of a build's own offset, as a part of the effect */
	double middle;	   /* level between two changes, as a part; 0: one change */
	double bad_noise;  /* noise of bad commits relative to good ones; 0: the same */
	double drift;	   /* of all levels over 100 boots, as a part of the noise */
	double untestable; /* share of commits */
	uint32_t untestable_run; /* in runs of about this length; 0: each on its own */
};

const struct kb_sim_cell *kb_sim_cells(size_t *ret_count);

enum kb_sim_rule {
	KB_SIM_ENGINE,	/* bisect/decide_bayes.h */
	KB_SIM_FIRST,	/* bisect/decide.h */
	KB_SIM_PLAIN_1, /* bisection, the mean of 1 boot against the middle */
	KB_SIM_PLAIN_3,
	KB_SIM_PLAIN_10,
	KB_SIM_PLAIN_30,
	KB_SIM_BAYESECT, /* pass or fail, both rates unknown; least expected entropy */
	KB_SIM_BBCHOP,	 /* the same, but good commits never fail */
	KB_SIM_RULES
};
const char *kb_sim_rule_name(enum kb_sim_rule rule);
/** Some rules know neither merges nor untestable commits. */
bool kb_sim_can(enum kb_sim_rule rule, const struct kb_sim_cell *cell);

/* What trials came to; all but the costs are numbers of trials. */
struct kb_sim_tally {
	uint32_t trials;
	uint32_t wrong;	     /* one culprit, as sure as the rule gets, and not the one */
	uint32_t unresolved; /* a set, or a culprit that was not confirmed */
	uint32_t refused;
	uint32_t multi;	  /* two changes reported */
	uint32_t both;	  /* ... and they are the two */
	uint32_t covered; /* the credible set has the (or a) culprit */
	uint32_t posed;	  /* trials with a credible set */
	double builds, boots, set_size;
};
void kb_sim_tally_add(struct kb_sim_tally *to, const struct kb_sim_tally *from);

/** @param table borrowed @param trial its number: seeds everything together with seed */
void kb_sim_trial(const struct kb_sim_cell *cell, enum kb_sim_rule rule,
		  uint32_t candidates, uint64_t seed, uint32_t trial,
		  const struct kb_plan_table *table, struct kb_sim_tally *tally);

#endif
