/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/dag.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/base/mem.h"

void kb_dag_init(struct kb_dag *dag)
{
	*dag = (struct kb_dag){0};
}

void kb_dag_free(struct kb_dag *dag)
{
	if (!dag)
		return;
	free(dag->parent_start);
	free(dag->parents);
	kb_dag_init(dag);
}

uint32_t kb_dag_add(struct kb_dag *dag, const uint32_t *parents, uint32_t count)
{
	uint32_t node = dag->node_count;

	/* One spare entry: parent_start[node_count] closes the last list. */
	if (dag->node_cap < node + 2) {
		dag->node_cap = dag->node_cap ? dag->node_cap * 2 : 64;
		dag->parent_start = kb_realloc(dag->parent_start, dag->node_cap,
					       sizeof(*dag->parent_start));
		if (node == 0)
			dag->parent_start[0] = 0;
	}

	size_t used = dag->parent_start[node];
	if (dag->parent_cap < used + count) {
		dag->parent_cap = dag->parent_cap * 2 + count + 64;
		dag->parents =
			kb_realloc(dag->parents, dag->parent_cap, sizeof(*dag->parents));
	}
	for (uint32_t i = 0; i < count; i++) {
		assert(parents[i] < node);
		dag->parents[used + i] = parents[i];
	}
	assert(used + count <= UINT32_MAX);
	dag->parent_start[node + 1] = (uint32_t)(used + count);
	return dag->node_count++;
}

uint32_t kb_dag_parent_count(const struct kb_dag *dag, uint32_t node)
{
	assert(node < dag->node_count);
	return dag->parent_start[node + 1] - dag->parent_start[node];
}

uint32_t kb_dag_parent(const struct kb_dag *dag, uint32_t node, uint32_t which)
{
	assert(which < kb_dag_parent_count(dag, node));
	return dag->parents[dag->parent_start[node] + which];
}

void kb_dag_mark_ancestors(const struct kb_dag *dag, uint32_t node, uint8_t *marks)
{
	assert(node < dag->node_count);

	/*
	 * Marks of others may already be there without their ancestors', so they can't
	 * say where to stop: a bitmap of our own does.
	 */
	KB_AUTO_FREE uint8_t *reached = kb_calloc(node + (size_t)1, 1);

	reached[node] = 1;
	for (uint32_t n = node + 1; n-- > 0;) {
		if (!reached[n])
			continue;
		marks[n] = 1;
		for (uint32_t i = dag->parent_start[n]; i < dag->parent_start[n + 1]; i++)
			reached[dag->parents[i]] = 1;
	}
}
