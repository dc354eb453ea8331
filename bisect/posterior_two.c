/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is it one change or two? Three levels of measurement against two. */
#include <math.h>
#include <string.h>

#include "bisect/posterior_internal.h"
#include "harness/base/mem.h"

#define PRIOR_TWO 0.1

/* Every tested commit that contains the second change contains the first. */
static bool is_nested(const struct kb_posterior *p, size_t first, size_t second)
{
	const uint8_t *a = p->bits + first * p->slot_cap;
	const uint8_t *b = p->bits + second * p->slot_cap;
	bool differ = false;

	for (size_t s = 0; s < p->slot_count; s++) {
		if (b[s] && !a[s])
			return false;
		differ |= a[s] != b[s];
	}
	return differ;
}

static double pair_log_like(const struct kb_posterior *p, size_t first, size_t second)
{
	struct posterior_group group[3] = {{0}};
	double delta = p->noise.delta / p->noise.scale, x[TAUS];

	for (size_t i = 0; i < p->build_count; i++) {
		const struct posterior_build *b = &p->builds[i];
		int level =
			posterior_is_bad(p, first, b) + posterior_is_bad(p, second, b);

		posterior_group_add(&group[level], b);
	}
	for (uint32_t t = 0; t < TAUS; t++)
		x[t] = posterior_log_tau(p, t) + posterior_group_flat(&group[0], t) +
		       posterior_group_known(&group[1], t, delta / 2, delta) +
		       posterior_group_flat(&group[2], t);
	return posterior_log_sum(x, TAUS);
}

/* The most probable candidate when classes have these weights. */
static uint32_t top_of(const struct kb_posterior *p, const double *class_weight,
		       double *ret_probability)
{
	uint32_t top = p->bad;
	double best = -1, total = 0;

	for (size_t c = 0; c < p->class_count; c++)
		total += class_weight[c];
	for (uint32_t n = 0; n <= p->bad; n++) {
		uint32_t c = p->class_of[n];
		double x;

		if (c == NO_SLOT || !(p->classes[c].prior > 0))
			continue;
		x = class_weight[c] * p->prior[n] / p->classes[c].prior;
		if (x > best) {
			best = x;
			top = n;
		}
	}
	*ret_probability = total > 0 ? best / total : 0;
	return top;
}

void kb_posterior_two_changes(const struct kb_posterior *p, struct kb_two_changes *ret)
{
	size_t count = p->class_count;
	KB_AUTO_FREE double *first = kb_calloc(count, sizeof(*first));
	KB_AUTO_FREE double *second = kb_calloc(count, sizeof(*second));
	double pairs = 0, evidence = 0, odds;

	*ret = (struct kb_two_changes){.first = p->bad, .second = p->bad};
	for (size_t a = 0; a < count; a++) {
		for (size_t b = 0; b < count; b++) {
			double prior = p->classes[a].prior * p->classes[b].prior, like;

			if (a == b || !(prior > 0) || !is_nested(p, a, b))
				continue;
			like = exp(fmin(pair_log_like(p, a, b) - p->log_evidence, 600));
			pairs += prior;
			evidence += prior * like;
			first[a] += prior * like;
			second[b] += prior * like;
		}
	}
	if (!(pairs > 0))
		return;
	/* Pairs that no test has parted cannot be told from one change: left out. */
	odds = PRIOR_TWO / (1 - PRIOR_TWO) * evidence / pairs;
	ret->probability = odds / (1 + odds);
	ret->first = top_of(p, first, &ret->first_probability);
	ret->second = top_of(p, second, &ret->second_probability);
}
