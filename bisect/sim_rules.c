/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of others, as they are described; none of their code. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/pick.h"
#include "bisect/sim_internal.h"
#include "harness/base/mem.h"

#define TESTS_MAX 20000

/*
 * What counts as slow: the middle between the endpoints' means; for a rule that cannot
 * bear a good commit's failing, at least 2.5 sd above good.
 */
static double slow_from(struct sim_world *w, bool good_may_fail)
{
	uint32_t n = sim_calibration(w->cell);
	double good = 0, bad = 0, squares = 0, middle;

	for (uint32_t i = 0; i < n; i++) {
		double y = sim_boot(w, KB_NODE_GOOD);

		good += y / n;
		squares += y * y / n;
		bad += sim_boot(w, sim_head(w)) / n;
	}
	middle = (good + bad) / 2;
	if (good_may_fail)
		return middle;
	return fmax(middle, good + 2.5 * sqrt(squares - good * good));
}

uint32_t sim_run_plain(struct sim_world *w, uint32_t boots)
{
	uint32_t count = w->dag.node_count, bad = sim_head(w);
	KB_AUTO_FREE uint8_t *excluded = kb_calloc(count, 1);
	KB_AUTO_FREE uint8_t *skipped = kb_calloc(count, 1);
	double middle = slow_from(w, true);

	for (;;) {
		struct kb_pick pick = kb_pick_next(&w->dag, bad, excluded, skipped, NULL);
		double sum = 0;

		if (pick.node == UINT32_MAX)
			break;
		if (w->untestable[pick.node]) {
			skipped[pick.node] = 1;
			w->builds++;
			continue;
		}
		for (uint32_t i = 0; i < boots; i++)
			sum += sim_boot(w, pick.node);
		if (sum / boots > middle)
			bad = pick.node;
		else
			kb_dag_mark_ancestors(&w->dag, pick.node, excluded);
	}
	/* Of what is left git names the set; the newest is as good a guess as any. */
	return bad;
}

/* --- pass or fail, on a line ----------------------------------------------------------
 */

/*
 * The fail rates before and from the culprit on are unknown: Beta(1/2, 1/2) each, or for
 * commits that never fail without being bad, 0 and Beta(1, 1). Candidates between two
 * tested commits share one likelihood: all sums run over these stretches.
 */
struct pass_fail {
	uint32_t count;
	bool good_may_fail;
	uint32_t *passes, *fails; /* owned; per commit */
	/* Per candidate: the posterior, and the chance that the next test fails of a
	 * commit that has it and of one that has not. */
	double *weight, *bad_fails, *good_fails; /* owned */
};

static double log_beta(double a, double b)
{
	return lgamma(a) + lgamma(b) - lgamma(a + b);
}

/* @param total passes and fails of all commits @param before those older than it */
static double log_like(struct pass_fail *pf, uint32_t c, const uint32_t total[2],
		       const uint32_t before[2])
{
	double prior = pf->good_may_fail ? 0.5 : 1;
	double bp = total[0] - before[0] + prior, bf = total[1] - before[1] + prior;
	double gp = before[0] + prior, gf = before[1] + prior;

	pf->bad_fails[c] = bf / (bp + bf);
	pf->good_fails[c] = pf->good_may_fail ? gf / (gp + gf) : 0;
	if (!pf->good_may_fail)
		return before[1] ? -INFINITY : log_beta(bp, bf);
	return log_beta(bp, bf) + log_beta(gp, gf);
}

static void infer(struct pass_fail *pf)
{
	uint32_t total[2] = {0, 0}, before[2] = {0, 0};
	double largest = -INFINITY, sum = 0, like = -INFINITY;
	bool fresh = true;

	for (uint32_t c = 0; c < pf->count; c++) {
		total[0] += pf->passes[c];
		total[1] += pf->fails[c];
	}
	for (uint32_t c = 0; c < pf->count; c++) {
		if (fresh) {
			like = log_like(pf, c, total, before);
		} else {
			pf->bad_fails[c] = pf->bad_fails[c - 1];
			pf->good_fails[c] = pf->good_fails[c - 1];
		}
		pf->weight[c] = like;
		largest = fmax(largest, like);
		fresh = pf->passes[c] || pf->fails[c];
		before[0] += pf->passes[c];
		before[1] += pf->fails[c];
	}
	for (uint32_t c = 0; c < pf->count; c++) {
		bool same = c > 0 && !(pf->passes[c - 1] || pf->fails[c - 1]);

		pf->weight[c] = same ? pf->weight[c - 1] : exp(pf->weight[c] - largest);
		sum += pf->weight[c];
	}
	for (uint32_t c = 0; c < pf->count; c++)
		pf->weight[c] /= sum;
}

static double plogp(double p)
{
	return p > 0 ? p * log(p) : 0;
}

/* The commit whose test leaves the least entropy on average. */
static uint32_t least_entropy(const struct pass_fail *pf)
{
	double mass[2] = {0, 0}, negative[2] = {0, 0}, best = INFINITY;
	uint32_t chosen = 0;

	/* At first no candidate is at or before the tested commit. */
	for (uint32_t c = 0; c < pf->count; c++) {
		double w = pf->weight[c], q = pf->good_fails[c];

		mass[0] += w * (1 - q);
		mass[1] += w * q;
		negative[0] += plogp(w * (1 - q));
		negative[1] += plogp(w * q);
	}
	for (uint32_t x = 0; x + 1 < pf->count; x++) {
		double w = pf->weight[x], g = pf->good_fails[x], b = pf->bad_fails[x];
		double entropy = 0;

		mass[0] += w * (g - b);
		mass[1] += w * (b - g);
		negative[0] += plogp(w * (1 - b)) - plogp(w * (1 - g));
		negative[1] += plogp(w * b) - plogp(w * g);
		for (int outcome = 0; outcome < 2; outcome++)
			entropy += plogp(mass[outcome]) - negative[outcome];
		if (entropy < best) {
			best = entropy;
			chosen = x;
		}
	}
	return chosen;
}

uint32_t sim_run_pass_fail(struct sim_world *w, bool good_may_fail)
{
	struct pass_fail pf = {.count = w->dag.node_count,
			       .good_may_fail = good_may_fail};
	KB_AUTO_FREE uint32_t *votes = kb_calloc(2 * (size_t)pf.count, sizeof(*votes));
	KB_AUTO_FREE double *values = kb_calloc(3 * (size_t)pf.count, sizeof(*values));
	double middle = slow_from(w, good_may_fail);
	uint32_t top = sim_head(w);

	pf.passes = votes;
	pf.fails = votes + pf.count;
	pf.weight = values;
	pf.bad_fails = values + pf.count;
	pf.good_fails = values + 2 * (size_t)pf.count;
	/* The range itself is one failed test of its end. */
	pf.fails[pf.count - 1] = 1;
	for (uint32_t test = 0; test < TESTS_MAX; test++) {
		uint32_t x;

		infer(&pf);
		top = 0;
		for (uint32_t c = 1; c < pf.count; c++)
			top = pf.weight[c] > pf.weight[top] ? c : top;
		if (pf.weight[top] >= 0.95)
			break;
		x = least_entropy(&pf);
		if (sim_boot(w, x) > middle)
			pf.fails[x]++;
		else
			pf.passes[x]++;
	}
	return top;
}
