/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The noise as calibration sees it: robust, and frozen from then on. */
#include <math.h>
#include <string.h>

#include "bisect/posterior.h"
#include "bisect/stats.h"
#include "harness/base/mem.h"

#define CLIP 2.5   /* boots further out, in sds, say no more than these */
#define GRAIN 25.0 /* nothing finer than this part of the difference is told apart */

/*
 * The larger of two robust estimates: each alone is often much too small with few boots.
 * Of each endpoint the smallest residual is left out, as the fitted median makes it so.
 */
static double robust_sd(const double *side[2], const size_t n[2])
{
	KB_AUTO_FREE double *dev = kb_calloc(n[0] + n[1], sizeof(*dev));
	double iqr = 0;
	size_t used = 0;

	for (int e = 0; e < 2; e++) {
		double median = kb_stats_median(side[e], n[e]);
		size_t least = used;

		for (size_t i = 0; i < n[e]; i++) {
			dev[used + i] = fabs(side[e][i] - median);
			if (dev[used + i] < dev[least])
				least = used + i;
		}
		used += n[e] - 1;
		dev[least] = dev[used];
		iqr += kb_stats_quantile(side[e], n[e], 0.75) -
		       kb_stats_quantile(side[e], n[e], 0.25);
	}
	return fmax(1.4826 * kb_stats_median(dev, used), iqr / 2 / 1.349);
}

double kb_noise_clip(const struct kb_noise *noise, double y)
{
	return fmin(fmax(y, noise->low), noise->high);
}

static double clipped_mean(const struct kb_noise *noise, const double *y, size_t n)
{
	KB_AUTO_FREE double *x = kb_calloc(n, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = kb_noise_clip(noise, y[i]);
	return kb_stats_mean(x, n);
}

bool kb_noise_fit(const double *good, size_t good_n, const double *bad, size_t bad_n,
		  bool layouts, struct kb_noise *ret_noise)
{
	const double *side[2] = {good, bad};
	const size_t n[2] = {good_n, bad_n};
	struct kb_noise noise = {.layouts = layouts};
	double sd, median[2];

	if (good_n < 2 || bad_n < 2)
		return false;
	sd = robust_sd(side, n);
	for (int e = 0; e < 2; e++)
		median[e] = kb_stats_median(side[e], n[e]);
	sd = fmax(sd, fabs(median[1] - median[0]) / GRAIN);
	if (!(sd > 0))
		return false;
	noise.scale = sd;
	noise.low = fmin(median[0], median[1]) - CLIP * sd;
	noise.high = fmax(median[0], median[1]) + CLIP * sd;
	noise.good = clipped_mean(&noise, good, good_n);
	noise.bad = clipped_mean(&noise, bad, bad_n);
	noise.delta = noise.bad - noise.good;
	*ret_noise = noise;
	return true;
}
