/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random histories with merges, for tests of the decision engine. */
#ifndef KB_TESTS_UNIT_RANDOM_DAG_H
#define KB_TESTS_UNIT_RANDOM_DAG_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/dag.h"
#include "bisect/rng.h"
#include "harness/base/mem.h"

/* Every node has recent parents, some have two, few have none but the last joins all. */
__attribute__((unused)) static void random_dag(struct kb_rng *rng, uint32_t count,
					       uint32_t window, struct kb_dag *ret_dag)
{
	KB_AUTO_FREE uint8_t *has_child = kb_calloc(count, 1);

	kb_dag_init(ret_dag);
	for (uint32_t n = 0; n + 1 < count; n++) {
		uint32_t reach = n < window ? n : window, parents[2], k = 0;
		uint32_t dice = kb_rng_below(rng, 20);

		if (n > 0 && dice != 0)
			parents[k++] = n - 1 - kb_rng_below(rng, reach);
		if (n > 1 && dice > 13)
			parents[k++] = n - 1 - kb_rng_below(rng, reach);
		for (uint32_t i = 0; i < k; i++)
			has_child[parents[i]] = 1;
		kb_dag_add(ret_dag, parents, k);
	}

	KB_AUTO_FREE uint32_t *heads = kb_calloc(count, sizeof(*heads));
	uint32_t head_count = 0;
	for (uint32_t n = 0; n + 1 < count; n++) {
		if (!has_child[n])
			heads[head_count++] = n;
	}
	kb_dag_add(ret_dag, heads, head_count);
}

/* Another topological order. @param new_of node_count, filled */
__attribute__((unused)) static void renumbered_dag(const struct kb_dag *dag,
						   struct kb_rng *rng, uint32_t *new_of,
						   struct kb_dag *ret_dag)
{
	uint32_t count = dag->node_count;
	KB_AUTO_FREE uint32_t *parents = kb_calloc(count, sizeof(*parents));

	kb_dag_init(ret_dag);
	memset(new_of, 0xff, count * sizeof(*new_of));
	while (ret_dag->node_count < count) {
		uint32_t n = kb_rng_below(rng, count), k = kb_dag_parent_count(dag, n);
		bool ready = new_of[n] == UINT32_MAX;

		for (uint32_t i = 0; i < k && ready; i++) {
			parents[i] = new_of[kb_dag_parent(dag, n, i)];
			ready = parents[i] != UINT32_MAX;
		}
		if (ready)
			new_of[n] = kb_dag_add(ret_dag, parents, k);
	}
}

__attribute__((unused)) static double gaussian(struct kb_rng *rng)
{
	double u = 1 - kb_rng_unit(rng), v = kb_rng_unit(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

#endif
