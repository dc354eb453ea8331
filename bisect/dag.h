/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commit graph of a bisection as integers: pure, no git. Node numbers are topological
 * (every parent has a smaller number than its child).
 */
#ifndef KB_BISECT_DAG_H
#define KB_BISECT_DAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_dag {
	uint32_t node_count;
	uint32_t *parent_start; /* owned; node_count + 1 entries; parents of n are */
	uint32_t *parents; /* owned; parents[parent_start[n] .. parent_start[n + 1]) */
	size_t parent_cap;
	uint32_t node_cap;
};

void kb_dag_init(struct kb_dag *dag);
void kb_dag_free(struct kb_dag *dag);

/**
 * Appends a node. @param parents numbers of nodes added earlier (asserted), in git's
 * order; parents outside the graph are left out by the caller.
 * @return the new node's number
 */
uint32_t kb_dag_add(struct kb_dag *dag, const uint32_t *parents, uint32_t count);

uint32_t kb_dag_parent_count(const struct kb_dag *dag, uint32_t node);
uint32_t kb_dag_parent(const struct kb_dag *dag, uint32_t node, uint32_t which);

/**
 * Marks `node` and all its ancestors within the graph.
 * @param marks node_count bytes, caller-owned; set to 1 where marked, others left alone
 */
void kb_dag_mark_ancestors(const struct kb_dag *dag, uint32_t node, uint8_t *marks);

#endif
