/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the first decision rule believes about noise: the two endpoint levels and the
 * spread around them, fitted once to the calibration boots and frozen, and how one boot
 * speaks for "bad" or "good" under it. Pure. Shared by decide*.c only.
 */
#ifndef KB_BISECT_DECIDE_MODEL_H
#define KB_BISECT_DECIDE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bisect/decide.h"

struct kb_model {
	double good, bad;  /* levels of y; outliers pulled in */
	double delta;	   /* bad - good */
	double boot_sd;	   /* pooled, outliers pulled in */
	double separation; /* delta : sd, the sd taken at its upper 90 % limit */
	double scale; /* of the likelihood: of one new boot, and at least delta / 8 */
	double df;    /* its tail */
};

/** @return false (and *ret_model unusable) when an endpoint has less than two boots */
bool kb_model_fit(const double *good, size_t good_n, const double *bad, size_t bad_n,
		  struct kb_model *ret_model);

/** y, or the end of the range beyond which it counts no more. */
double kb_model_clip(const struct kb_model *model, double y);

/** ln likelihood ratio bad : good of some boots of one commit. */
double kb_model_llr(const struct kb_model *model, const double *y, size_t n);

/** |llr| at which one commit is decided, when `steps` of them share half of alpha. */
double kb_model_threshold(double alpha, uint32_t steps);

/** Boots of one commit after which it is decided nearly always, at this separation. */
uint32_t kb_model_boots_needed(double separation, double threshold);

/** Bad, good or unclear by the sequential test; unclear also below commit_boots_min. */
enum kb_verdict kb_model_verdict(double llr, size_t n, double threshold,
				 const struct kb_decide_params *params);

/* The looks at the calibration boots. */
#define KB_LOOKS_MAX 16
struct kb_looks {
	uint32_t count;
	uint32_t boots[KB_LOOKS_MAX]; /* per endpoint, ascending */
	double level[KB_LOOKS_MAX];   /* one-sided; they add up to 0.01 */
};
void kb_looks_plan(const struct kb_decide_params *params, struct kb_looks *ret_looks);

/* Smallest ln ratio that `boots` per endpoint show with 90 % power at `level`. */
double kb_looks_detectable(double sd, uint32_t boots, double level);

#endif
