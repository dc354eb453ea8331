/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the boots so far say about which commit is the first bad one: pure.
 *
 * Model: a build of commit x measures at the bad level if the culprit is x or an ancestor
 * of x, at the good level otherwise; on top of its level a build has an offset of its own
 * (code layout, sd tau) and a boot has noise (sd s, which may differ between good and
 * bad). Levels are integrated out, tau and the two s are summed over grids. Candidates
 * that no tested commit tells apart share one likelihood: it is computed once per class.
 */
#ifndef KB_BISECT_POSTERIOR_H
#define KB_BISECT_POSTERIOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bisect/dag.h"

/* What calibration fixes for the rest of the run. */
struct kb_noise {
	double low, high; /* y beyond counts as these */
	double good, bad; /* means of the clipped boots */
	double delta;	  /* bad - good */
	double scale;	  /* robust sd of one boot, and at least a 25th of delta */
	bool layouts;	  /* the layout of code is expected to matter */
};

/**
 * @return false (and *ret_noise untouched) when an endpoint has less than two boots, or
 * when nothing varies and nothing differs
 */
bool kb_noise_fit(const double *good, size_t good_n, const double *bad, size_t bad_n,
		  bool layouts, struct kb_noise *ret_noise);

double kb_noise_clip(const struct kb_noise *noise, double y);

/* One build, its boots clipped. */
struct kb_posterior_build {
	uint32_t node; /* KB_POSTERIOR_GOOD: the good endpoint */
	uint32_t layout;
	uint32_t boots;
	double mean, squares; /* in units of noise.scale above noise.good */
};

#define KB_POSTERIOR_GOOD UINT32_MAX /* the same as KB_NODE_GOOD */
#define KB_POSTERIOR_TAUS 5

struct kb_posterior;

/**
 * @param dag borrowed
 * @param bad a node; candidates are its ancestors and itself
 * @param prior node_count weights >= 0, borrowed for the call; NULL: all alike. At least
 * one candidate's must be positive (asserted)
 */
struct kb_posterior *kb_posterior_new(const struct kb_dag *dag, uint32_t bad,
				      const double *prior, const struct kb_noise *noise);
void kb_posterior_free(struct kb_posterior *p);

/** One valid boot. @param node any node of the graph, or KB_POSTERIOR_GOOD */
void kb_posterior_add(struct kb_posterior *p, uint32_t node, uint32_t layout, double y);

/** Takes in what was added; what the functions below tell is as of the last update. */
void kb_posterior_update(struct kb_posterior *p);

/** Probability of each node to be the first bad commit. @return node_count, borrowed */
const double *kb_posterior_all(const struct kb_posterior *p);

/** The most probable candidate, of equals the oldest. */
uint32_t kb_posterior_top(const struct kb_posterior *p);

/** Probability that each node is bad: the sum over itself and its ancestors. Nodes that
 * are not ancestors of the bad end get 1. @param ret_bad node_count, filled
 * @param tolerance how far off a value may be; 0: exact up to rounding */
void kb_posterior_bad(const struct kb_posterior *p, double tolerance, double *ret_bad);

/** Probability of each tau of the grid, and its size in units of noise.scale. */
const double *kb_posterior_tau_weights(const struct kb_posterior *p);
double kb_posterior_tau(const struct kb_posterior *p, uint32_t which);

const struct kb_noise *kb_posterior_noise(const struct kb_posterior *p);
const struct kb_posterior_build *kb_posterior_builds(const struct kb_posterior *p,
						     size_t *ret_count);
const struct kb_dag *kb_posterior_dag(const struct kb_posterior *p);
/** Candidates that were measured, and classes that their boots can tell apart. */
uint32_t kb_posterior_tested(const struct kb_posterior *p);
uint32_t kb_posterior_class_count(const struct kb_posterior *p);

/**
 * Two changes rather than one: some tested commits lie on a level between (or beyond) the
 * endpoints'.
 */
struct kb_two_changes {
	double probability; /* against one change; 0.1 before any boot */
	uint32_t first, second;
	double first_probability, second_probability; /* given that there are two */
};
void kb_posterior_two_changes(const struct kb_posterior *p, struct kb_two_changes *ret);

#endif
