/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/plan.h"

#include "tests/tap.h"
#include "tests/unit/random_dag.h"

/* By brute force: many draws instead of the integral. */
static double drawn_information(double p, double d)
{
	struct kb_rng rng = {11};
	double sum = 0;
	const int draws = 200000;

	for (int i = 0; i < draws; i++) {
		bool bad = kb_rng_unit(&rng) < p;
		double x = gaussian(&rng) + (bad ? d : 0);
		double a = p * exp(-(x - d) * (x - d) / 2), b = (1 - p) * exp(-x * x / 2);

		sum += log((bad ? a : b) / (a + b) / (bad ? p : 1 - p));
	}
	return sum / draws;
}

static void information_is_right(const struct kb_plan_table *table)
{
	const double at[][2] = {{0.5, 1}, {0.5, 0.3}, {0.3, 2}, {0.03, 1.5}, {0.9, 3}};

	for (size_t i = 0; i < KB_COUNT_OF(at); i++)
		is_double(kb_plan_information(table, at[i][0], at[i][1]),
			  drawn_information(at[i][0], at[i][1]), 0.004,
			  "information at p = %.2f, d = %.1f", at[i][0], at[i][1]);
	is_double(kb_plan_information(table, 0.5, 50), log(2), 1e-3, "all of a bit");
	is_double(kb_plan_information(table, 0.3, 0), 0, 1e-9,
		  "nothing without a difference");
	is_double(kb_plan_information(table, 0, 3), 0, 1e-9, "nothing to learn");
	is_double(kb_plan_information(table, 0.2, 1.7),
		  kb_plan_information(table, 0.8, 1.7), 1e-9, "good and bad are alike");
}

struct line {
	struct kb_dag dag;
	struct kb_posterior *posterior;
	uint8_t *testable, *skipped; /* owned */
	double *build;		     /* owned */
	struct kb_plan_limits limits;
	struct kb_plan_costs costs;
};

static void line_free(struct line *l)
{
	kb_posterior_free(l->posterior);
	kb_dag_free(&l->dag);
	free(l->testable);
	free(l->skipped);
	free(l->build);
}

static void line_init(struct line *l, uint32_t count, double d)
{
	struct kb_noise noise = {
		.low = -3, .high = d + 3, .bad = d, .delta = d, .scale = 1};

	*l = (struct line){.testable = kb_calloc(count, 1),
			   .skipped = kb_calloc(count, 1),
			   .build = kb_calloc(count, sizeof(double)),
			   .costs = {.boot = 1, .build = 10}};
	kb_dag_init(&l->dag);
	for (uint32_t n = 0; n < count; n++) {
		kb_dag_add(&l->dag, &(uint32_t){n - 1}, n > 0);
		l->testable[n] = n + 1 < count;
		l->build[n] = 10;
	}
	l->posterior = kb_posterior_new(&l->dag, count - 1, NULL, &noise);
	for (int i = 0; i < 20; i++) {
		kb_posterior_add(l->posterior, KB_POSTERIOR_GOOD, 0, i % 2 ? 1 : -1);
		kb_posterior_add(l->posterior, count - 1, 0, d + (i % 2 ? 1 : -1));
	}
	kb_posterior_update(l->posterior);
	l->limits = (struct kb_plan_limits){
		.testable = l->testable, .boots_min = 1, .layouts_max = 1, .least = 0.02};
}

static struct kb_plan_choice line_next(struct line *l, const struct kb_plan_table *table)
{
	return kb_plan_next(table, l->posterior, &l->costs, &l->limits);
}

static void halves_a_line(const struct kb_plan_table *table)
{
	KB_AUTO(line_free) struct line l;
	struct kb_plan_choice c;

	line_init(&l, 100, 6);
	c = line_next(&l, table);
	is_int(c.node, 49, "the middle of a line");
	ok(c.is_new && c.boots == 1, "one boot tells all (%u)", c.boots);
	is_double(c.cost, 11, 0, "for a build and a boot");
	is_double(c.bad, 0.5, 0.01, "half of the candidates");

	for (uint32_t n = 0; n < 100; n++)
		l.testable[n] = 0;
	is_int(line_next(&l, table).node, UINT32_MAX, "nothing can be tested");
	l.testable[3] = 1;
	is_int(line_next(&l, table).node, 3, "the only one left");
	l.limits.least = 0.5;
	is_int(line_next(&l, table).node, UINT32_MAX, "unless it tells too little");
}

static void costs_count(const struct kb_plan_table *table)
{
	KB_AUTO(line_free) struct line l, noisy;
	uint32_t dear, cheap;

	line_init(&l, 100, 6);
	l.costs.build_of = l.build;
	l.build[40] = 0;
	is_int(line_next(&l, table).node, 40, "a cached build is worth a worse split");
	l.build[40] = 9.9;
	is_int(line_next(&l, table).node, 49, "hardly cheaper is not enough");

	line_init(&noisy, 100, 1);
	dear = line_next(&noisy, table).boots;
	noisy.costs.build = 0.5;
	cheap = line_next(&noisy, table).boots;
	ok(dear > 2 * cheap, "dear builds are booted more (%u, %u)", dear, cheap);
	noisy.limits.boots_max = 3;
	noisy.costs.build = 10;
	ok(line_next(&noisy, table).boots <= 3, "up to the limit");
}

static void unclear_builds_get_more(const struct kb_plan_table *table)
{
	KB_AUTO(line_free) struct line l;
	struct kb_plan_choice c;

	line_init(&l, 100, 3);
	kb_posterior_add(l.posterior, 49, 0, 1.5);
	kb_posterior_update(l.posterior);
	c = line_next(&l, table);
	ok(c.node == 49 && !c.is_new, "between good and bad: more boots (%u)", c.node);
	l.limits.boots_max = 1;
	c = line_next(&l, table);
	ok(c.node != 49 && c.is_new, "no more than the limit: another commit (%u)",
	   c.node);
	for (uint32_t n = 0; n < 100; n++)
		l.testable[n] = n == 49;
	l.limits.layouts_max = 2;
	c = line_next(&l, table);
	ok(c.node == 49 && c.layout == 1 && c.is_new, "or another layout");
}

static void skips_are_kept_away_from(const struct kb_plan_table *table)
{
	KB_AUTO(line_free) struct line l;
	KB_AUTO_FREE double *failure = kb_calloc(100, sizeof(*failure));
	struct kb_plan_choice c;

	line_init(&l, 100, 6);
	l.testable[49] = 0;
	l.skipped[49] = 1;
	c = line_next(&l, table);
	ok(c.node == 48 || c.node == 50, "as near as can be, without risk (%u)", c.node);
	l.limits.skipped = l.skipped;
	c = line_next(&l, table);
	ok(abs((int)c.node - 49) > 4 && abs((int)c.node - 49) < 40,
	   "some way off a commit that failed (%u)", c.node);
	kb_plan_failure(&l.dag, l.skipped, 0, failure);
	is_double(failure[49], 1, 0, "it fails for certain");
	ok(failure[48] > failure[30] && failure[30] > failure[0] && failure[0] > 0,
	   "the risk fades with distance");
	is_double(failure[48], failure[50], 1e-12, "in both directions");
}

static void forecasts(const struct kb_plan_table *table)
{
	/* Figures of the design, in boots, at 1000 candidates and 10 boots a build. */
	const double at[][2] = {{0.5, 640}, {1, 299}, {2, 184}, {3.3, 149}, {5, 135}};

	for (size_t i = 0; i < KB_COUNT_OF(at); i++) {
		struct kb_plan_forecast f = kb_plan_forecast(table, 1000, at[i][0], 10);

		is_double(f.cost, at[i][1], 0.03 * at[i][1], "forecast for d = %.1f",
			  at[i][0]);
		is_double(f.cost, 10 * f.builds + f.boots, 1e-6, "its parts add up");
	}
}

/* The choice in another numbering of the same history has the same worth. */
static void numbering_does_not_matter(const struct kb_plan_table *table)
{
	double differ = 0;

	for (uint32_t i = 0; i < 60; i++) {
		struct kb_rng rng = kb_rng_at(4, i, 0);
		struct kb_noise noise = {
			.low = -3, .high = 6, .bad = 3, .delta = 3, .scale = 1};
		struct kb_dag dag[2];
		uint32_t count = 40, new_of[40], tested = kb_rng_below(&rng, 39);
		uint8_t testable[40];
		struct kb_plan_choice c[2];

		memset(testable, 1, sizeof(testable));
		random_dag(&rng, count, 6, &dag[0]);
		renumbered_dag(&dag[0], &rng, new_of, &dag[1]);
		for (int k = 0; k < 2; k++) {
			struct kb_posterior *p = kb_posterior_new(
				&dag[k], k ? new_of[39] : 39, NULL, &noise);
			struct kb_plan_costs costs = {.boot = 1, .build = 10};
			struct kb_plan_limits limits = {.testable = testable,
							.boots_min = 1,
							.layouts_max = 1,
							.least = 1e-4};

			for (int b = 0; b < 9; b++) {
				kb_posterior_add(p, KB_POSTERIOR_GOOD, 0, b % 3 - 1);
				kb_posterior_add(p, k ? new_of[39] : 39, 0, b % 3 + 2);
			}
			kb_posterior_add(p, k ? new_of[tested] : tested, 0, 3.3);
			kb_posterior_update(p);
			c[k] = kb_plan_next(table, p, &costs, &limits);
			kb_posterior_free(p);
		}
		differ = fmax(differ, fabs(c[0].information - c[1].information));
		differ = fmax(differ, c[0].boots != c[1].boots);
		kb_dag_free(&dag[0]);
		kb_dag_free(&dag[1]);
	}
	is_double(differ, 0, 1e-9, "another numbering: a choice of the same worth");
}

int main(void)
{
	struct kb_plan_table *table = kb_plan_table_new();

	information_is_right(table);
	halves_a_line(table);
	costs_count(table);
	unclear_builds_get_more(table);
	skips_are_kept_away_from(table);
	forecasts(table);
	numbering_does_not_matter(table);
	kb_plan_table_free(table);
	return tap_done();
}
