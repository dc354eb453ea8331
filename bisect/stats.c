/* SPDX-License-Identifier: GPL-2.0-or-later */
#define MATHLIB_STANDALONE 1
#include "bisect/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <Rmath.h>

#include "bisect/rng.h"
#include "harness/base/mem.h"

#define EXACT_RANK_MAX 60
#define ENUMERATE_MAX 200000.0
#define MONTE_CARLO_DRAWS 100000

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted_copy(const double *x, size_t n)
{
	double *copy = kb_calloc(n ? n : 1, sizeof(*copy));

	if (n)
		memcpy(copy, x, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), compare_doubles);
	return copy;
}

double kb_stats_mean(const double *x, size_t n)
{
	double sum = 0, rest = 0;

	if (n == 0)
		return NAN;
	/* Around the first value: samples of one kernel agree in most of their digits. */
	for (size_t i = 0; i < n; i++)
		sum += x[i] - x[0];
	sum = x[0] + sum / (double)n;
	for (size_t i = 0; i < n; i++)
		rest += x[i] - sum;
	return sum + rest / (double)n;
}

static double squares(const double *x, size_t n, double mean)
{
	double ss = 0;

	for (size_t i = 0; i < n; i++)
		ss += (x[i] - mean) * (x[i] - mean);
	return ss;
}

double kb_stats_sd(const double *x, size_t n)
{
	if (n < 2)
		return NAN;
	return sqrt(squares(x, n, kb_stats_mean(x, n)) / (double)(n - 1));
}

static double sorted_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t low = (size_t)at;
	double part = at - (double)low;

	if (low + 1 >= n)
		return sorted[n - 1];
	return sorted[low] + part * (sorted[low + 1] - sorted[low]);
}

double kb_stats_quantile(const double *x, size_t n, double q)
{
	KB_AUTO_FREE double *sorted = NULL;

	if (n == 0)
		return NAN;
	sorted = sorted_copy(x, n);
	return sorted_quantile(sorted, n, q);
}

double kb_stats_median(const double *x, size_t n)
{
	return kb_stats_quantile(x, n, 0.5);
}

double kb_stats_mad(const double *x, size_t n)
{
	KB_AUTO_FREE double *dev = NULL;
	double median = kb_stats_median(x, n);

	if (n == 0)
		return NAN;
	dev = kb_calloc(n, sizeof(*dev));
	for (size_t i = 0; i < n; i++)
		dev[i] = fabs(x[i] - median);
	return 1.4826 * kb_stats_median(dev, n);
}

static double binomial(size_t n, size_t k)
{
	double c = 1;

	for (size_t i = 1; i <= k; i++)
		c = c * (double)(n - k + i) / (double)i;
	return k < 25 ? nearbyint(c) : c;
}

struct pooled {
	double value;
	bool is_small; /* belongs to the smaller of the two samples */
};

static int compare_pooled(const void *a, const void *b)
{
	const struct pooled *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/*
 * Doubled midranks, counted from 0 (so that they are small integers even with ties), of
 * the pooled sample. They are turned round when the smaller sample is b, so that the tail
 * that is asked for is always "the smaller sample has a low rank sum".
 * @ret_observed rank sum of the smaller sample
 * @ret_ties sum of t^3 - t over groups of equal values
 */
static size_t *pooled_ranks(const double *a, size_t an, const double *b, size_t bn,
			    size_t *ret_observed, double *ret_ties)
{
	size_t n = an + bn, observed = 0;
	KB_AUTO_FREE struct pooled *pool = kb_calloc(n, sizeof(*pool));
	size_t *rank = kb_calloc(n, sizeof(*rank));
	bool turned = bn < an;
	double ties = 0;

	for (size_t i = 0; i < n; i++) {
		pool[i].value = i < an ? a[i] : b[i - an];
		pool[i].is_small = (i >= an) == turned;
	}
	qsort(pool, n, sizeof(*pool), compare_pooled);
	for (size_t i = 0, end; i < n; i = end) {
		double t;

		for (end = i + 1; end < n && !(pool[end].value > pool[i].value); end++)
			;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t j = i; j < end; j++) {
			rank[j] = turned ? 2 * (n - 1) - (i + end - 1) : i + end - 1;
			if (pool[j].is_small)
				observed += rank[j];
		}
	}
	*ret_observed = observed;
	*ret_ties = ties;
	return rank;
}

/* P(rank sum of k out of n <= observed), all subsets being equally likely. */
static double rank_sum_tail(const size_t *rank, size_t n, size_t k, size_t observed)
{
	size_t width = observed + 1;
	/* ways[j * width + s]: subsets of j values seen so far with rank sum s */
	KB_AUTO_FREE double *ways = kb_calloc((k + 1) * width, sizeof(*ways));
	size_t largest = 0;
	double sum = 0;

	ways[0] = 1;
	for (size_t i = 0; i < n; i++) {
		size_t r = rank[i];

		if (r > observed)
			continue;
		for (size_t j = i + 1 < k ? i + 1 : k; j > 0; j--) {
			double *to = ways + j * width + r;
			const double *from = ways + (j - 1) * width;

			/* j - 1 values so far cannot have reached more than this. */
			size_t end = (j - 1) * largest + 1;

			end = end < width - r ? end : width - r;
			for (size_t s = 0; s < end; s++)
				to[s] += from[s];
		}
		largest = r > largest ? r : largest;
	}
	for (size_t s = 0; s < width; s++)
		sum += ways[k * width + s];
	return fmin(1, sum / binomial(n, k));
}

double kb_stats_mwu_p(const double *a, size_t an, const double *b, size_t bn)
{
	KB_AUTO_FREE size_t *rank = NULL;
	size_t n = an + bn, k = an < bn ? an : bn, observed;
	double ties, variance, centre, count;

	if (k == 0)
		return 1;
	rank = pooled_ranks(a, an, b, bn, &observed, &ties);
	if (an <= EXACT_RANK_MAX && bn <= EXACT_RANK_MAX) {
		/* Without ties every doubled rank is even. */
		for (size_t i = 0; i < n && !(ties > 0); i++)
			rank[i] /= 2;
		return rank_sum_tail(rank, n, k, ties > 0 ? observed : observed / 2);
	}

	count = (double)n;
	variance =
		(double)an * (double)bn / 12 * (count + 1 - ties / (count * (count - 1)));
	if (!(variance > 0))
		return 1;
	centre = (double)k * (count - 1) / 2;
	return pnorm((double)observed / 2 + 0.5 - centre, 0, sqrt(variance), 1, 0);
}

/* Subsets of k of x[from..n) whose sum, added to `sum`, does not exceed the limit. */
static double count_low_sums(const double *x, size_t n, size_t from, size_t k, double sum,
			     double limit)
{
	double found = 0;

	if (k == 0)
		return sum <= limit ? 1 : 0;
	for (size_t i = from; i + k <= n; i++)
		found += count_low_sums(x, n, i + 1, k - 1, sum + x[i], limit);
	return found;
}

static double sample_low_sums(double *x, size_t n, size_t k, double limit)
{
	struct kb_rng rng = {UINT64_C(0x6b62697365637431)};
	uint32_t found = 0;

	for (uint32_t draw = 0; draw < MONTE_CARLO_DRAWS; draw++) {
		double sum = 0;

		for (size_t i = 0; i < k; i++) {
			size_t j = i + kb_rng_below(&rng, (uint32_t)(n - i));
			double swap = x[i];

			x[i] = x[j];
			x[j] = swap;
			sum += x[i];
		}
		found += sum <= limit;
	}
	return (found + 1.0) / (MONTE_CARLO_DRAWS + 1.0);
}

double kb_stats_permutation_p(const double *a, size_t an, const double *b, size_t bn)
{
	size_t n = an + bn, k = an < bn ? an : bn;
	KB_AUTO_FREE double *x = kb_calloc(n ? n : 1, sizeof(*x));
	/* The tail asked for is "the smaller sample has a low sum": turn b round if need
	 * be. */
	double sign = bn < an ? -1 : 1, observed = 0, size = 0, centre, limit;

	if (k == 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		x[i] = sign * (i < an ? a[i] : b[i - an]);
	centre = kb_stats_mean(x, n);
	for (size_t i = 0; i < n; i++) {
		x[i] -= centre;
		size += fabs(x[i]);
		if ((i >= an) == (bn < an))
			observed += x[i];
	}
	/* Equal sums reached in another order must count as equal in spite of rounding.
	 */
	limit = observed + 1e-12 * size;
	if (binomial(n, k) <= ENUMERATE_MAX)
		return count_low_sums(x, n, 0, k, 0, limit) / binomial(n, k);
	return sample_low_sums(x, n, k, limit);
}

void kb_stats_welch_ci(const double *a, size_t an, const double *b, size_t bn,
		       double level, double *ret_low, double *ret_high)
{
	double ma, mb, va, vb, se2, df, half = 0;

	*ret_low = *ret_high = NAN;
	if (an < 2 || bn < 2)
		return;
	ma = kb_stats_mean(a, an);
	mb = kb_stats_mean(b, bn);
	va = squares(a, an, ma) / (double)(an - 1) / (double)an;
	vb = squares(b, bn, mb) / (double)(bn - 1) / (double)bn;
	se2 = va + vb;
	if (se2 > 0) {
		double pa = va / se2,
		       pb = vb / se2; /* shares: no underflow in the squares */

		df = 1 / (pa * pa / (double)(an - 1) + pb * pb / (double)(bn - 1));
		half = kb_stats_t_quantile(0.5 + level / 2, df) * sqrt(se2);
	}
	*ret_low = mb - ma - half;
	*ret_high = mb - ma + half;
}

double kb_stats_normal_quantile(double p)
{
	return qnorm(p, 0, 1, 1, 0);
}

double kb_stats_t_quantile(double p, double df)
{
	return qt(p, df, 1, 0);
}

double kb_stats_chisq_quantile(double p, double df)
{
	return qchisq(p, df, 1, 0);
}
