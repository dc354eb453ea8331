/* SPDX-License-Identifier: GPL-2.0-or-later */
#define MATHLIB_STANDALONE 1
#include "bisect/stats.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <Rmath.h>

#include "bisect/rng.h"
#include "tests/tap.h"

/* Reference for both rank and permutation tests: every split of the pool, one by one. */
static double split_score(const double *pool, unsigned n, uint32_t b_mask, bool ranks)
{
	double score = 0;
	int bn = __builtin_popcount(b_mask);

	if (ranks) { /* U by its definition: pairs where b is larger, ties count half */
		for (unsigned i = 0; i < n; i++) {
			for (unsigned j = 0; j < n; j++) {
				if (!(b_mask >> i & 1) || b_mask >> j & 1)
					continue;
				score += pool[i] > pool[j]   ? 1
					 : pool[i] < pool[j] ? 0
							     : 0.5;
			}
		}
		return score;
	}
	for (unsigned i = 0; i < n; i++)
		score += b_mask >> i & 1 ? pool[i] / bn
					 : -pool[i] / (int)(n - (unsigned)bn);
	return score;
}

static double brute_force_p(const double *a, unsigned an, const double *b, unsigned bn,
			    bool ranks)
{
	double pool[16], observed;
	uint32_t b_mask = ((UINT32_C(1) << bn) - 1) << an, all = 0, extreme = 0;
	unsigned n = an + bn;

	memcpy(pool, a, an * sizeof(*a));
	memcpy(pool + an, b, bn * sizeof(*b));
	observed = split_score(pool, n, b_mask, ranks);
	for (uint32_t mask = 0; mask < UINT32_C(1) << n; mask++) {
		if ((unsigned)__builtin_popcount(mask) != bn)
			continue;
		all++;
		extreme += split_score(pool, n, mask, ranks) >= observed - 1e-9;
	}
	return (double)extreme / all;
}

static void summaries_known_values(void)
{
	const double x[] = {2, 4, 4, 4, 5, 5, 7, 9}, one[] = {3};
	const double far[] = {1e9 + 1, 1e9 + 2, 1e9 + 3};

	is_double(kb_stats_mean(x, 8), 5, 0, "mean");
	is_double(kb_stats_sd(x, 8), sqrt(32.0 / 7), 1e-15, "sample sd");
	is_double(kb_stats_median(x, 8), 4.5, 0, "median of an even count");
	is_double(kb_stats_median(x, 7), 4, 0, "median of an odd count");
	/* deviations from 4.5: .5 .5 .5 .5 .5 2.5 2.5 4.5 */
	is_double(kb_stats_mad(x, 8), 1.4826 * 0.5, 1e-15, "mad");
	is_double(kb_stats_quantile(x, 8, 0.25), 4, 0, "lower quartile");
	is_double(kb_stats_quantile(x, 8, 0.9), 7.6, 1e-12,
		  "quantile between two values");
	is_double(kb_stats_quantile(x, 8, 1), 9, 0, "largest value");
	is_double(kb_stats_sd(far, 3), 1, 0, "sd is not lost far from zero");
	is_double(kb_stats_mean(x, 0), NAN, 0, "mean of nothing");
	is_double(kb_stats_median(x, 0), NAN, 0, "median of nothing");
	is_double(kb_stats_mad(x, 0), NAN, 0, "mad of nothing");
	is_double(kb_stats_sd(one, 1), NAN, 0, "sd of one");
}

static void mwu_known_values(void)
{
	const double a[] = {1, 2, 3, 4, 5}, b[] = {6, 7, 8, 9, 10},
		     c[] = {4.5, 6, 7, 8, 9};
	const double same[] = {2, 2, 2};

	is_double(kb_stats_mwu_p(a, 5, b, 5), 1.0 / 252, 1e-15,
		  "complete separation of 5 + 5");
	is_double(kb_stats_mwu_p(a, 5, c, 5), 2.0 / 252, 1e-15, "one pair out of order");
	is_double(kb_stats_mwu_p(b, 5, a, 5), 1, 1e-15, "the wrong direction");
	is_double(kb_stats_mwu_p(a, 4, b, 4), 1.0 / 70, 1e-15, "4 + 4 cannot reach 1 %%");
	is_double(kb_stats_mwu_p(a, 0, b, 4), 1, 0, "an empty sample");
	is_double(kb_stats_mwu_p(same, 3, same, 2), 1, 1e-15, "nothing but ties");
}

/* Values on a coarse grid, so that ties abound. */
static void fill(struct kb_rng *rng, double *x, unsigned n, uint32_t grid)
{
	for (unsigned i = 0; i < n; i++)
		x[i] = grid ? kb_rng_below(rng, grid) : kb_rng_unit(rng);
}

static void exact_tests_match_enumeration(void)
{
	struct kb_rng rng = {11};
	double mwu_off = 0, perm_off = 0;

	for (int trial = 0; trial < 150; trial++) {
		double a[6], b[6];
		unsigned an = 1 + kb_rng_below(&rng, 6), bn = 1 + kb_rng_below(&rng, 6);
		uint32_t grid = trial % 3 == 0 ? 0 : 2 + kb_rng_below(&rng, 6);

		fill(&rng, a, an, grid);
		fill(&rng, b, bn, grid);
		mwu_off = fmax(mwu_off, fabs(kb_stats_mwu_p(a, an, b, bn) -
					     brute_force_p(a, an, b, bn, true)));
		perm_off = fmax(perm_off, fabs(kb_stats_permutation_p(a, an, b, bn) -
					       brute_force_p(a, an, b, bn, false)));
	}
	is_double(mwu_off, 0, 1e-12, "rank test = enumeration of all splits, with ties");
	is_double(perm_off, 0, 1e-12, "permutation test = enumeration of all splits");
}

static double wins(const double *a, unsigned an, const double *b, unsigned bn)
{
	double u = 0;

	for (unsigned i = 0; i < an; i++) {
		for (unsigned j = 0; j < bn; j++)
			u += b[j] > a[i];
	}
	return u;
}

static void mwu_matches_tables(unsigned an, unsigned bn, double tol, const char *what)
{
	struct kb_rng rng = {an * 100 + bn};
	double worst = 0;

	for (int trial = 0; trial < 20; trial++) {
		double a[100], b[100], u, want;

		fill(&rng, a, an, 0);
		fill(&rng, b, bn, 0);
		for (unsigned i = 0; i < bn; i++)
			b[i] += 0.02 * trial;
		u = wins(a, an, b, bn);
		want = pwilcox(u - 1, bn, an, 0, 0); /* P(U > u - 1) = P(U >= u) */
		worst = fmax(worst, fabs(kb_stats_mwu_p(a, an, b, bn) - want));
		wilcox_free();
	}
	is_double(worst, 0, tol, "%s", what);
}

static void permutation_monte_carlo(void)
{
	/* On ranks the two tests ask the same: there the exact answer is known. */
	const double shift[] = {0.15, 0.3, 0.45};
	double first = NAN;

	for (int s = 0; s < 3; s++) {
		struct kb_rng rng = {77};
		double a[12], b[14], ra[12], rb[14], exact, p;

		fill(&rng, a, 12, 0);
		fill(&rng, b, 14, 0);
		for (int j = 0; j < 14; j++)
			b[j] += shift[s];
		for (int i = 0; i < 12; i++) {
			ra[i] = 0;
			for (int k = 0; k < 12; k++)
				ra[i] += a[k] < a[i];
			ra[i] += 14 - wins(&a[i], 1, b, 14);
		}
		for (int j = 0; j < 14; j++) {
			rb[j] = wins(a, 12, &b[j], 1);
			for (int k = 0; k < 14; k++)
				rb[j] += b[k] < b[j];
		}
		exact = kb_stats_mwu_p(a, 12, b, 14);
		p = kb_stats_permutation_p(ra, 12, rb, 14);
		is_double(p, exact, 5 * sqrt(exact / 1e5) + 2e-5,
			  "sampled p near exact %.4g", exact);
		first = s == 0 ? kb_stats_permutation_p(ra, 12, rb, 14) - p : first;
	}
	is_double(first, 0, 0, "sampling is the same every time");
}

static void permutation_extreme_is_never_zero(void)
{
	double a[30], b[30];

	for (int i = 0; i < 30; i++) {
		a[i] = i;
		b[i] = 1000 + i;
	}
	is_double(kb_stats_permutation_p(a, 30, b, 30), 1 / 100001.0, 1e-12,
		  "the smallest p that sampling can give");
	is_double(kb_stats_permutation_p(a, 5, b, 5), 1 / 252.0, 1e-15, "exact 5 + 5");
	is_double(kb_stats_permutation_p(a, 0, b, 5), 1, 0, "an empty sample");
}

/* Student's distribution function by Simpson's rule: no library between it and the
 * formula. */
static double student_cdf(double t, double df)
{
	const int steps = 20000;
	double c = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * M_PI), sum = 0;

	for (int i = 0; i <= steps; i++) {
		double x = t * i / steps;
		double f = c * pow(1 + x * x / df, -(df + 1) / 2);

		sum += f * (i == 0 || i == steps ? 1 : i % 2 ? 4 : 2);
	}
	return 0.5 + sum * t / steps / 3;
}

static void welch_interval(void)
{
	const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 4, 6, 8, 10}, flat[] = {7, 7};
	const double unlike[] = {1, 2, 3, 4, 5, 6, 7, 8};
	/* means 3 and 6, variances 2.5 and 10: standard error^2 2.5, df 6.25 / 1.0625 */
	double low, high, se = sqrt(2.5), df = 6.25 / 1.0625;

	kb_stats_welch_ci(a, 5, b, 5, 0.95, &low, &high);
	is_double((low + high) / 2, 3, 1e-12, "centre is the difference of means");
	is_double(student_cdf((high - low) / 2 / se, df), 0.975, 1e-9,
		  "half width at 95 %%");
	kb_stats_welch_ci(a, 5, b, 5, 0.8, &low, &high);
	is_double(student_cdf((high - low) / 2 / se, df), 0.9, 1e-9,
		  "half width at 80 %%");
	/* 2.5 / 5 against 6 / 8: 1.25^2 / (0.25 / 4 + 0.5625 / 7) */
	kb_stats_welch_ci(a, 5, unlike, 8, 0.95, &low, &high);
	is_double(student_cdf((high - low) / 2 / sqrt(1.25),
			      1.5625 / (0.0625 + 0.5625 / 7)),
		  0.975, 1e-9, "unequal sizes");
	kb_stats_welch_ci(flat, 2, flat, 2, 0.95, &low, &high);
	ok(low == 0 && high == 0, "no spread gives a point");
	kb_stats_welch_ci(a, 1, b, 5, 0.95, &low, &high);
	ok(isnan(low) && isnan(high), "one value gives no interval");
}

static void quantiles(void)
{
	is_double(kb_stats_normal_quantile(0.975), 1.959963984540054, 1e-12, "normal");
	is_double(kb_stats_t_quantile(0.975, 1), tan(M_PI * 0.475), 1e-9,
		  "t, Cauchy case");
	is_double(kb_stats_chisq_quantile(0.1, 2), -2 * log(0.9), 1e-12, "chi^2, 2 df");
}

int main(void)
{
	summaries_known_values();
	mwu_known_values();
	exact_tests_match_enumeration();
	mwu_matches_tables(7, 9, 1e-12, "small samples match libRmath");
	mwu_matches_tables(25, 40, 1e-12, "medium samples match libRmath");
	mwu_matches_tables(40, 25, 1e-12, "and the other way round");
	mwu_matches_tables(61, 65, 2e-3, "beyond 60 the approximation is near");
	permutation_monte_carlo();
	permutation_extreme_is_never_zero();
	welch_interval();
	quantiles();
	return tap_done();
}
