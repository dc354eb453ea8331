/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/decide_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/stats.h"
#include "harness/base/mem.h"

/* Share of boots that may land anywhere, whatever the kernel: bounds what one boot can
 * say. */
#define OUTLIER_SHARE 0.02
/* Boots further out than this speak no louder than those here (in units of scale). */
#define CLIP 2.5
/* Levels of commits between the endpoints move a little with code layout; finer than this
 * part of the endpoint difference nothing is told apart. */
#define LEVEL_GRAIN 8.0
#define DF_MAX 30.0

/*
 * Spread that a single wild boot cannot inflate: the larger of two robust estimates, as
 * each alone is often much too small with five boots.
 */
static double robust_spread(const double *good, size_t good_n, const double *bad,
			    size_t bad_n)
{
	KB_AUTO_FREE double *dev = kb_calloc(good_n + bad_n, sizeof(*dev));
	const double *side[2] = {good, bad};
	const size_t n[2] = {good_n, bad_n};
	double iqr = 0;
	size_t used = 0;

	for (int s = 0; s < 2; s++) {
		double median = kb_stats_median(side[s], n[s]);
		size_t nearest = used;

		for (size_t i = 0; i < n[s]; i++) {
			dev[used + i] = fabs(side[s][i] - median);
			if (dev[used + i] < dev[nearest])
				nearest = used + i;
		}
		/* The median was fitted: its own residual, zero with odd n, tells
		 * nothing. */
		used += n[s] - 1;
		dev[nearest] = dev[used];
		iqr += kb_stats_quantile(side[s], n[s], 0.75) -
		       kb_stats_quantile(side[s], n[s], 0.25);
	}
	return fmax(1.4826 * kb_stats_median(dev, used), iqr / 2 / 1.349);
}

/* Mean with what lies beyond 3 spreads of the median pulled in; adds up the squares. */
static double pulled_in_mean(const double *y, size_t n, double spread, double *squares)
{
	KB_AUTO_FREE double *x = kb_calloc(n, sizeof(*x));
	double median = kb_stats_median(y, n), mean;

	for (size_t i = 0; i < n; i++)
		x[i] = fmin(fmax(y[i], median - 3 * spread), median + 3 * spread);
	mean = kb_stats_mean(x, n);
	for (size_t i = 0; i < n; i++)
		*squares += (x[i] - mean) * (x[i] - mean);
	return mean;
}

bool kb_model_fit(const double *good, size_t good_n, const double *bad, size_t bad_n,
		  struct kb_model *ret_model)
{
	struct kb_model m = {0};
	double spread, squares = 0, df, per_level;

	if (good_n < 2 || bad_n < 2)
		return false;
	spread = robust_spread(good, good_n, bad, bad_n);
	m.good = pulled_in_mean(good, good_n, spread, &squares);
	m.bad = pulled_in_mean(bad, bad_n, spread, &squares);
	m.delta = m.bad - m.good;
	df = (double)(good_n + bad_n - 2);
	m.boot_sd = sqrt(squares / df);
	m.separation =
		m.delta / (m.boot_sd * sqrt(df / kb_stats_chisq_quantile(0.1, df)));
	if (!(m.boot_sd > 0))
		m.separation = m.delta > 0 ? INFINITY : 0;
	/* A new boot differs from the true level, and the fitted level does so too. */
	per_level = 2.0 * (double)good_n * (double)bad_n / (double)(good_n + bad_n);
	m.scale = fmax(m.boot_sd * sqrt(1 + 1 / per_level), fabs(m.delta) / LEVEL_GRAIN);
	m.df = fmin(df, DF_MAX);
	*ret_model = m;
	return true;
}

static double student_density(double z, double df)
{
	double norm = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * M_PI) / 2;

	return exp(norm - (df + 1) / 2 * log1p(z * z / df));
}

double kb_model_clip(const struct kb_model *model, double y)
{
	return fmin(fmax(y, model->good - CLIP * model->scale),
		    model->bad + CLIP * model->scale);
}

double kb_model_llr(const struct kb_model *model, const double *y, size_t n)
{
	double width = model->delta + 2 * CLIP * model->scale;
	double outlier = OUTLIER_SHARE * model->scale / width, llr = 0;

	assert(model->delta > 0);
	for (size_t i = 0; i < n; i++) {
		double x = kb_model_clip(model, y[i]);
		double as_bad =
			student_density((x - model->bad) / model->scale, model->df);
		double as_good =
			student_density((x - model->good) / model->scale, model->df);

		llr += log((1 - OUTLIER_SHARE) * as_bad + outlier) -
		       log((1 - OUTLIER_SHARE) * as_good + outlier);
	}
	return llr;
}

/* Wald's sequential test: with even odds before, the posterior error at the bound. */
double kb_model_threshold(double alpha, uint32_t steps)
{
	double share = alpha / 2 / (steps ? steps : 1);

	return log((1 - share) / share);
}

uint32_t kb_model_boots_needed(double separation, double threshold)
{
	/* A test of fixed size n errs with P(Z > d sqrt(n) / 2). */
	double z = -kb_stats_normal_quantile(1 / (1 + exp(threshold)));
	double d = fmin(separation, LEVEL_GRAIN);

	if (!(d > 0))
		return UINT32_MAX;
	return (uint32_t)fmin(ceil(4 * z * z / (d * d)), 1e9);
}

enum kb_verdict kb_model_verdict(double llr, size_t n, double threshold,
				 const struct kb_decide_params *params)
{
	if (n < params->commit_boots_min || fabs(llr) < threshold)
		return KB_VERDICT_UNCLEAR;
	return llr > 0 ? KB_VERDICT_BAD : KB_VERDICT_GOOD;
}

enum kb_verdict kb_decide_classify(const double *good, size_t good_n, const double *bad,
				   size_t bad_n, const double *sample, size_t sample_n,
				   const struct kb_decide_params *params)
{
	const uint32_t usual_steps = 10; /* the range is not known here */
	double threshold = kb_model_threshold(params->alpha, usual_steps);
	struct kb_model model;

	if (sample_n == 0 || !kb_model_fit(good, good_n, bad, bad_n, &model) ||
	    !(model.delta > 0))
		return KB_VERDICT_UNCLEAR;
	return kb_model_verdict(kb_model_llr(&model, sample, sample_n), sample_n,
				threshold, params);
}

/*
 * The error budget of 0.01 is split unevenly: with 5 + 5 boots the smallest p that exists
 * is 1 / 252, so the first look gets just that much, which complete separation meets; the
 * rest is shared by the later looks. With 4 + 4 no result could ever pass (1 / 70).
 */
void kb_looks_plan(const struct kb_decide_params *params, struct kb_looks *ret_looks)
{
	const uint32_t least = 5;
	const double budget = 0.01, first = 0.004;
	uint32_t boots = params->calibration_boots, max = params->calibration_boots_max;
	struct kb_looks looks = {0};

	boots = boots < least ? least : boots;
	max = max < boots ? boots : max;
	while (boots < max && looks.count < KB_LOOKS_MAX - 1) {
		/* A look just before the last one costs level and saves next to nothing.
		 */
		if (max - boots >= boots / 4)
			looks.boots[looks.count++] = boots;
		boots = boots > max / 2 ? max : 2 * boots;
	}
	looks.boots[looks.count++] = max;
	for (uint32_t i = 0; i < looks.count; i++)
		looks.level[i] = i == 0 ? first : (budget - first) / (looks.count - 1);
	if (looks.count == 1)
		looks.level[0] = budget;
	*ret_looks = looks;
}

double kb_looks_detectable(double sd, uint32_t boots, double level)
{
	return (kb_stats_normal_quantile(1 - level) + kb_stats_normal_quantile(0.9)) *
	       sd * sqrt(2.0 / boots);
}
