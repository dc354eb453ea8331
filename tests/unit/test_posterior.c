/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/posterior.h"

#include "bisect/posterior_reach.h"
#include "tests/tap.h"
#include "tests/unit/random_dag.h"

#define BOOTS_MAX 40

/* --- sums over ancestors ------------------------------------------------------------ */

static double worst_sum_error(const struct kb_dag *dag, uint32_t head,
			      const double *weight, double tolerance)
{
	uint32_t count = dag->node_count;
	KB_AUTO_FREE double *sums = kb_calloc(count, sizeof(*sums));
	KB_AUTO_FREE uint8_t *in = kb_calloc(count, 1);
	struct kb_reach *reach = kb_reach_new(dag, head);
	double worst = 0;

	for (uint32_t n = 0; n < count; n++)
		sums[n] = -1;
	kb_reach_sums(reach, weight, tolerance, sums);
	kb_reach_free(reach);
	kb_dag_mark_ancestors(dag, head, in);
	for (uint32_t n = 0; n < count; n++) {
		KB_AUTO_FREE uint8_t *marks = kb_calloc(count, 1);
		double want = 0;

		kb_dag_mark_ancestors(dag, n, marks);
		for (uint32_t k = 0; k < count; k++)
			want += marks[k] ? weight[k] : 0;
		worst = fmax(worst, fabs(sums[n] - (in[n] ? want : -1)));
	}
	return worst;
}

static void reach_equals_enumeration(void)
{
	double worst = 0, worst_rough = 0;

	for (uint32_t i = 0; i < 300; i++) {
		struct kb_rng rng = kb_rng_at(1, i, 0);
		KB_AUTO(kb_dag_free) struct kb_dag dag;
		uint32_t count = 2 + kb_rng_below(&rng, i % 10 ? 60 : 600);
		KB_AUTO_FREE double *weight = kb_calloc(count, sizeof(*weight));
		uint32_t head = i % 3 ? count - 1 : kb_rng_below(&rng, count);

		random_dag(&rng, count, 1 + kb_rng_below(&rng, 12), &dag);
		for (uint32_t n = 0; n < count; n++)
			weight[n] = kb_rng_below(&rng, 3) ? kb_rng_unit(&rng) / count : 0;
		worst = fmax(worst, worst_sum_error(&dag, head, weight, 0));
		worst_rough =
			fmax(worst_rough, worst_sum_error(&dag, head, weight, 0.01));
	}
	is_double(worst, 0, 1e-12, "sums over ancestors of 300 random graphs");
	ok(worst_rough < 0.03, "a tolerance costs little more than it says (%.3g)",
	   worst_rough);
}

/* --- posterior against enumeration ---------------------------------------------------
 */

struct boot {
	uint32_t node, layout;
	double y;
};

static const struct kb_noise usual_noise = {
	.low = -5, .high = 9, .good = 1, .bad = 4, .delta = 3, .scale = 0.8};

/* ln density of boots that share an unknown level, by the full covariance matrix. */
static double dense_log_like(const struct boot *boot, const bool *in, size_t n, double s,
			     double tau)
{
	double m[BOOTS_MAX][BOOTS_MAX], y[BOOTS_MAX], one[BOOTS_MAX], logdet = 0;
	double a = 0, b = 0, c = 0;
	size_t index[BOOTS_MAX], k = 0;

	for (size_t i = 0; i < n; i++) {
		if (in[i])
			index[k++] = i;
	}
	for (size_t i = 0; i < k; i++) {
		const struct boot *x = &boot[index[i]];

		y[i] = (kb_noise_clip(&usual_noise, x->y) - usual_noise.good) /
		       usual_noise.scale;
		one[i] = 1;
		for (size_t j = 0; j <= i; j++) {
			const struct boot *z = &boot[index[j]];
			bool same = x->node == z->node && x->layout == z->layout;

			m[i][j] = (i == j ? s * s : 0) + (same ? tau * tau : 0);
		}
	}
	/* Cholesky; y and the ones are carried along. */
	for (size_t j = 0; j < k; j++) {
		for (size_t q = 0; q < j; q++) {
			m[j][j] -= m[j][q] * m[j][q];
			y[j] -= m[j][q] * y[q];
			one[j] -= m[j][q] * one[q];
		}
		m[j][j] = sqrt(m[j][j]);
		logdet += log(m[j][j]);
		y[j] /= m[j][j];
		one[j] /= m[j][j];
		for (size_t i = j + 1; i < k; i++) {
			for (size_t q = 0; q < j; q++)
				m[i][j] -= m[i][q] * m[j][q];
			m[i][j] /= m[j][j];
		}
	}
	for (size_t i = 0; i < k; i++) {
		a += y[i] * y[i];
		b += y[i] * one[i];
		c += one[i] * one[i];
	}
	return -logdet - (a - b * b / c) / 2 - log(c) / 2;
}

static double brute_weight(const struct kb_dag *dag, uint32_t culprit,
			   const struct boot *boot, size_t n, bool layouts)
{
	static const double sds[7] = {0.5, 0.63, 0.8, 1, 1.25, 1.6, 2};
	static const double taus[5] = {0, 0.1, 0.2, 0.3, 0.45};
	static const double weights[2][5] = {{0.35, 0.25, 0.2, 0.12, 0.08},
					     {0.1, 0.2, 0.25, 0.25, 0.2}};
	double delta = usual_noise.delta / usual_noise.scale, sum = 0;
	bool in[2][BOOTS_MAX];

	for (size_t i = 0; i < n; i++) {
		KB_AUTO_FREE uint8_t *marks = kb_calloc(dag->node_count, 1);

		if (boot[i].node != KB_POSTERIOR_GOOD)
			kb_dag_mark_ancestors(dag, boot[i].node, marks);
		in[1][i] = marks[culprit];
		in[0][i] = !marks[culprit];
	}
	for (int t = 0; t < 5; t++) {
		double side[2] = {0, 0};

		for (int g = 0; g < 2; g++) {
			for (int s = 0; s < 7; s++)
				side[g] += exp(dense_log_like(boot, in[g], n, sds[s],
							      taus[t] * delta));
		}
		sum += weights[layouts][t] * side[0] * side[1];
	}
	return sum;
}

struct case_ {
	struct kb_dag dag;
	struct boot boot[BOOTS_MAX];
	size_t boots;
	double *prior; /* owned; may be NULL */
};

static void case_free(struct case_ *c)
{
	kb_dag_free(&c->dag);
	free(c->prior);
}

static void case_make(struct case_ *c, uint32_t which)
{
	struct kb_rng rng = kb_rng_at(2, which, 0);
	uint32_t count = 2 + kb_rng_below(&rng, 11), builds = 1 + kb_rng_below(&rng, 7);

	*c = (struct case_){0};
	random_dag(&rng, count, 1 + kb_rng_below(&rng, 5), &c->dag);
	for (uint32_t b = 0; b < builds + 2; b++) {
		uint32_t node = b == 0	 ? KB_POSTERIOR_GOOD
				: b == 1 ? count - 1
					 : kb_rng_below(&rng, count);
		uint32_t layout = kb_rng_below(&rng, 2),
			 boots = 1 + kb_rng_below(&rng, 4);
		double level = kb_rng_below(&rng, 2) ? 4 : 1;

		level = b == 0 ? 1 : b == 1 ? 4 : level;
		while (boots-- > 0)
			c->boot[c->boots++] =
				(struct boot){node, layout, level + 1.2 * gaussian(&rng)};
	}
	if (which % 4 == 0)
		return;
	c->prior = kb_calloc(count, sizeof(*c->prior));
	for (uint32_t n = 0; n < count; n++)
		c->prior[n] = n + 1 < count && kb_rng_below(&rng, 4) == 0
				      ? 0
				      : 0.1 + kb_rng_unit(&rng);
}

static struct kb_posterior *case_posterior(const struct case_ *c,
					   const struct kb_noise *noise, double scale,
					   double shift)
{
	struct kb_posterior *p =
		kb_posterior_new(&c->dag, c->dag.node_count - 1, c->prior, noise);

	for (size_t i = 0; i < c->boots; i++) {
		kb_posterior_add(p, c->boot[i].node, c->boot[i].layout,
				 scale * c->boot[i].y + shift);
		if (i % 5 == 0)
			kb_posterior_update(p);
	}
	kb_posterior_update(p);
	return p;
}

static void posterior_equals_enumeration(void)
{
	double worst = 0, worst_bad = 0, moved = 0;

	for (uint32_t i = 0; i < 250; i++) {
		KB_AUTO(case_free) struct case_ c;
		struct kb_noise noise = usual_noise;
		double want[16], bad[16], sum = 0;

		case_make(&c, i);
		noise.layouts = i % 2;
		uint32_t count = c.dag.node_count;
		struct kb_posterior *p = case_posterior(&c, &noise, 1, 0);

		for (uint32_t n = 0; n < count; n++) {
			want[n] = brute_weight(&c.dag, n, c.boot, c.boots, i % 2) *
				  (c.prior ? c.prior[n] : 1);
			sum += want[n];
		}
		kb_posterior_bad(p, 0, bad);
		for (uint32_t n = 0; n < count; n++) {
			KB_AUTO_FREE uint8_t *marks = kb_calloc(count, 1);
			double want_bad = 0, got = kb_posterior_all(p)[n];

			worst = fmax(worst, fabs(got - want[n] / sum));
			moved = fmax(moved, got);
			kb_dag_mark_ancestors(&c.dag, n, marks);
			for (uint32_t k = 0; k < count; k++)
				want_bad += marks[k] ? want[k] / sum : 0;
			worst_bad = fmax(worst_bad, fabs(bad[n] - want_bad));
		}
		kb_posterior_free(p);
	}
	is_double(worst, 0, 1e-9, "posterior of 250 random cases equals enumeration");
	is_double(worst_bad, 0, 1e-9, "and so does the chance of each commit to be bad");
	ok(moved > 0.9, "the boots did say something");
}

static void units_and_numbers_do_not_matter(void)
{
	double shifted = 0, scaled = 0, renumbered = 0;

	for (uint32_t i = 0; i < 60; i++) {
		KB_AUTO(case_free) struct case_ c, r = {0};
		struct kb_noise far = usual_noise, wide = usual_noise;
		struct kb_rng rng = kb_rng_at(3, i, 0);
		uint32_t new_of[16];

		case_make(&c, i);
		uint32_t count = c.dag.node_count;
		far.low += log(1000);
		far.high += log(1000);
		far.good += log(1000);
		far.bad += log(1000);
		wide = (struct kb_noise){.low = -50,
					 .high = 90,
					 .good = 10,
					 .bad = 40,
					 .delta = 30,
					 .scale = 8};
		r = c;
		r.prior = c.prior ? kb_calloc(count, sizeof(*r.prior)) : NULL;
		renumbered_dag(&c.dag, &rng, new_of, &r.dag);
		for (uint32_t n = 0; n < count && c.prior; n++)
			r.prior[new_of[n]] = c.prior[n];
		for (size_t b = 0; b < c.boots; b++) {
			if (c.boot[b].node != KB_POSTERIOR_GOOD)
				r.boot[b].node = new_of[c.boot[b].node];
		}

		struct kb_posterior *p = case_posterior(&c, &usual_noise, 1, 0);
		struct kb_posterior *q[3] = {case_posterior(&c, &far, 1, log(1000)),
					     case_posterior(&c, &wide, 10, 0),
					     case_posterior(&r, &usual_noise, 1, 0)};
		for (uint32_t n = 0; n < count; n++) {
			double x = kb_posterior_all(p)[n];

			shifted = fmax(shifted, fabs(kb_posterior_all(q[0])[n] - x));
			scaled = fmax(scaled, fabs(kb_posterior_all(q[1])[n] - x));
			renumbered = fmax(renumbered,
					  fabs(kb_posterior_all(q[2])[new_of[n]] - x));
		}
		kb_posterior_free(p);
		for (int k = 0; k < 3; k++)
			kb_posterior_free(q[k]);
	}
	is_double(shifted, 0, 1e-9, "another unit of the metric changes nothing");
	is_double(scaled, 0, 1e-9, "a power of the metric changes nothing");
	is_double(renumbered, 0, 1e-9,
		  "another numbering of the commits changes nothing");
}

/* --- noise ---------------------------------------------------------------------------
 */

static void noise_is_robust(void)
{
	double good[12], bad[12];
	struct kb_rng rng = {7};
	struct kb_noise calm, wild;

	for (int i = 0; i < 12; i++) {
		good[i] = 0.01 * gaussian(&rng);
		bad[i] = 0.1 + 0.01 * gaussian(&rng);
	}
	ok(kb_noise_fit(good, 12, bad, 12, false, &calm), "a usual calibration");
	ok(calm.scale > 0.005 && calm.scale < 0.02, "sd %.4f", calm.scale);
	is_double(calm.delta, 0.1, 0.01, "difference");
	good[3] = 7;
	kb_noise_fit(good, 12, bad, 12, false, &wild);
	ok(wild.scale < 1.5 * calm.scale && wild.delta > 0.8 * calm.delta,
	   "one wild boot changes little: sd %.4f, difference %.4f", wild.scale,
	   wild.delta);
	is_double(kb_noise_clip(&calm, 99), kb_noise_clip(&calm, 2), 0, "far is far");
	ok(!kb_noise_fit(good, 1, bad, 12, false, &calm), "one boot is too little");
	for (int i = 0; i < 12; i++)
		good[i] = bad[i] = 1;
	ok(!kb_noise_fit(good, 12, bad, 12, false, &calm), "nothing varies or differs");
	for (int i = 0; i < 12; i++)
		bad[i] = 2;
	ok(kb_noise_fit(good, 12, bad, 12, false, &calm) && calm.scale > 0,
	   "without any noise there is still a finest difference");
}

/* --- two changes ---------------------------------------------------------------------
 */

static struct kb_two_changes levels_of_line(const double *level, double sd)
{
	const uint32_t at[] = {KB_POSTERIOR_GOOD, 3, 7, 8, 11, 12, 15, 19};
	struct kb_noise noise = {
		.low = -3, .high = 13, .bad = 10, .delta = 10, .scale = 1};
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	struct kb_two_changes two;
	struct kb_rng rng = {5};

	kb_dag_init(&dag);
	for (uint32_t n = 0; n < 20; n++)
		kb_dag_add(&dag, &(uint32_t){n - 1}, n > 0);
	struct kb_posterior *p = kb_posterior_new(&dag, 19, NULL, &noise);
	for (size_t i = 0; i < KB_COUNT_OF(at); i++) {
		for (int k = 0; k < 6; k++)
			kb_posterior_add(p, at[i], 0, level[i] + sd * gaussian(&rng));
	}
	kb_posterior_update(p);
	kb_posterior_two_changes(p, &two);
	kb_posterior_free(p);
	return two;
}

static void levels_between_are_seen(void)
{
	const double one[] = {0, 0, 0, 10, 10, 10, 10, 10};
	const double half[] = {0, 0, 0, 5, 5, 10, 10, 10};
	const double over[] = {0, 0, 0, 16, 16, 10, 10, 10}; /* and a partial fix */
	struct kb_two_changes two = levels_of_line(one, 1);

	ok(two.probability < 0.1, "one change is one change (%.3g)", two.probability);
	two = levels_of_line(half, 1);
	ok(two.probability > 0.9, "two steps (%.3g)", two.probability);
	is_int(two.first, 8, "the first");
	is_int(two.second, 12, "the second");
	ok(two.first_probability > 0.9 && two.second_probability > 0.9, "both surely");
	two = levels_of_line(over, 1);
	ok(two.probability > 0.9 && two.first == 8 && two.second == 12,
	   "a regression and a partial fix (%.3g)", two.probability);
}

int main(void)
{
	reach_equals_enumeration();
	posterior_equals_enumeration();
	units_and_numbers_do_not_matter();
	noise_is_robust();
	levels_between_are_seen();
	return tap_done();
}
