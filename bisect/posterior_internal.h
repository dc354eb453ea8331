/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by posterior*.c only. */
#ifndef KB_BISECT_POSTERIOR_INTERNAL_H
#define KB_BISECT_POSTERIOR_INTERNAL_H

#include "bisect/posterior.h"

#define TAUS KB_POSTERIOR_TAUS
#define SDS 7
#define CELLS (TAUS * SDS)
#define NO_SLOT UINT32_MAX

/* What one build adds to a group's likelihood, for one (tau, s). */
struct posterior_term {
	double constant; /* all that does not depend on the group's level */
	double w, wy, wyy;
};

struct posterior_build {
	struct kb_posterior_build pub;
	uint32_t slot; /* of its node; NO_SLOT: the good endpoint, or not an ancestor */
	bool always_bad;
	bool stale; /* terms are older than pub */
	struct posterior_term terms[CELLS];
};

/* Candidates that the tested commits do not tell apart. */
struct posterior_class {
	double prior;  /* sum over its members */
	uint32_t size; /* members, those of prior zero counted */
	double log_like;
	double log_like_tau[TAUS];
};

struct kb_posterior {
	const struct kb_dag *dag; /* borrowed */
	uint32_t bad;
	struct kb_noise noise;
	double *prior;			 /* owned; sums to 1 */
	uint32_t *class_of;		 /* owned; per node; NO_SLOT: not a candidate */
	struct posterior_class *classes; /* owned */
	size_t class_count, class_cap;
	uint8_t *bits; /* owned; bits[class * slot_cap + slot]: tested commit is bad */
	size_t slot_count, slot_cap;
	uint32_t *slot_of;		 /* owned; per node */
	struct posterior_build *builds;	 /* owned */
	struct kb_posterior_build *pubs; /* owned; copy for readers */
	size_t build_count, build_cap;
	struct kb_reach *reach; /* owned; made when first needed */
	double *weight;		/* owned; per node */
	double tau_weight[TAUS];
	double log_evidence; /* of one change */
};

/* The sums of a group of builds, per (tau, s). */
struct posterior_group {
	uint32_t builds;
	struct posterior_term sums[CELLS];
};

void posterior_group_add(struct posterior_group *g, const struct posterior_build *b);
/** ln likelihood of a group of unknown level, s averaged over its grid. */
double posterior_group_flat(const struct posterior_group *g, uint32_t tau);
/** The same when the level is known to be about `centre`, with sd `sd`. */
double posterior_group_known(const struct posterior_group *g, uint32_t tau, double centre,
			     double sd);
double posterior_log_sum(const double *x, size_t n);
double posterior_log_tau(const struct kb_posterior *p, uint32_t tau);

static inline bool posterior_is_bad(const struct kb_posterior *p, size_t cls,
				    const struct posterior_build *b)
{
	if (b->slot == NO_SLOT)
		return b->always_bad;
	return p->bits[cls * p->slot_cap + b->slot];
}

#endif
