/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics on plain arrays of finite numbers: pure. Tests are one-sided "b is larger
 * than a" unless said. The only module (with its tests) that uses libRmath.
 */
#ifndef KB_BISECT_STATS_H
#define KB_BISECT_STATS_H

#include <stddef.h>

double kb_stats_mean(const double *x, size_t n); /* NAN for n == 0 */
double kb_stats_sd(const double *x, size_t n);	 /* sample sd (n - 1); NAN for n < 2 */
double kb_stats_median(const double *x, size_t n);
/** Linear interpolation between order statistics (R's type 7); q in [0, 1]. */
double kb_stats_quantile(const double *x, size_t n, double q);
/** 1.4826 * median absolute deviation from the median; NAN for n == 0. */
double kb_stats_mad(const double *x, size_t n);

/**
 * Exact one-sided p of the Mann-Whitney U test that b tends to be larger than a. Ties are
 * handled by the exact permutation distribution of midranks (no normal approximation up
 * to 60 + 60; beyond, the normal one with tie and continuity correction). 1 when a or b
 * is empty or all values are equal. Source: counting subsets by rank sum, one value at a
 * time (Streitberg and Roehmel 1986).
 */
double kb_stats_mwu_p(const double *a, size_t an, const double *b, size_t bn);

/**
 * Exact one-sided permutation p for the difference of means, mean(b) - mean(a): full
 * enumeration while C(an+bn, an) <= 200000, else a fixed-seed Monte Carlo of 100000 draws
 * with the (k+1)/(m+1) rule. 1 when a or b is empty.
 */
double kb_stats_permutation_p(const double *a, size_t an, const double *b, size_t bn);

/**
 * Welch's t interval for mean(b) - mean(a) at `level` (e.g. 0.95), degrees of freedom
 * after Satterthwaite. NANs when an or bn < 2; a single point when neither side varies.
 */
void kb_stats_welch_ci(const double *a, size_t an, const double *b, size_t bn,
		       double level, double *ret_low, double *ret_high);

/** Quantiles of distributions, p in (0, 1), df > 0. */
double kb_stats_normal_quantile(double p);
double kb_stats_t_quantile(double p, double df);
double kb_stats_chisq_quantile(double p, double df);

#endif
