/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>

#include "bisect/plan.h"
#include "harness/base/mem.h"

/* p = u^2 / 2 with equal steps of u: information is steep where p is small. */
#define P_STEPS 32
#define D_STEPS 48
#define D_MAX 8.0 /* nearly all of the bit */
#define POINTS 96

struct kb_plan_table {
	double value[P_STEPS + 1][D_STEPS + 1];
};

static double entropy(double p)
{
	if (p < 1e-300 || p >= 1)
		return 0;
	/* cppcheck-suppress invalidFunctionArg ; it takes u / 32 for an integer */
	return -p * log(p) - (1 - p) * log1p(-p);
}

/*
 * H(bit) - E[H(bit | x)], x integrated over both bells by the trapezoid rule, which for
 * bells converges faster than any power of the step.
 */
static double integrate(double p, double d)
{
	double from = -7, to = d + 7, step = (to - from) / POINTS, rest = 0;

	for (int i = 0; i <= POINTS; i++) {
		double x = from + i * step;
		double a = p * exp(-(x - d) * (x - d) / 2), b = (1 - p) * exp(-x * x / 2);

		if (a + b > 0)
			rest += (a + b) * entropy(a / (a + b));
	}
	return fmax(0, entropy(p) - rest * step / sqrt(2 * M_PI));
}

struct kb_plan_table *kb_plan_table_new(void)
{
	struct kb_plan_table *table = kb_calloc(1, sizeof(*table));

	for (int i = 0; i <= P_STEPS; i++) {
		double u = (double)i / P_STEPS;

		for (int j = 0; j <= D_STEPS; j++)
			table->value[i][j] = integrate(u * u / 2, j * D_MAX / D_STEPS);
	}
	return table;
}

void kb_plan_table_free(struct kb_plan_table *table)
{
	free(table);
}

double kb_plan_information(const struct kb_plan_table *table, double p, double d)
{
	double u = sqrt(2 * fmax(0, fmin(p, 1 - p))) * P_STEPS;
	double v = fmin(d, D_MAX) / D_MAX * D_STEPS;
	int i = u < P_STEPS ? (int)u : P_STEPS - 1,
	    j = v < D_STEPS ? (int)v : D_STEPS - 1;
	double a = u - i, b = v - j;

	return (1 - a) * ((1 - b) * table->value[i][j] + b * table->value[i][j + 1]) +
	       a * ((1 - b) * table->value[i + 1][j] + b * table->value[i + 1][j + 1]);
}

struct kb_plan_forecast kb_plan_forecast(const struct kb_plan_table *table,
					 uint32_t candidates, double d, double build_cost)
{
	double bits = log2(fmax(candidates, 1)) + 2, best = 0, best_n = 1;

	for (uint32_t n = 1; n <= 1u << 20; n += 1 + n / 8) {
		double rate = kb_plan_information(table, 0.5, d * sqrt(n)) / M_LN2 /
			      (build_cost + n);

		if (rate > best) {
			best = rate;
			best_n = n;
		}
	}
	if (!(best > 0))
		return (struct kb_plan_forecast){INFINITY, INFINITY, INFINITY};
	return (struct kb_plan_forecast){
		.cost = bits / best,
		.builds = bits / best / (build_cost + best_n),
		.boots = bits / best / (build_cost + best_n) * best_n,
	};
}
