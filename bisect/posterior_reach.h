/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums of a weight over the ancestors of every node: pure. Lines of history are folded
 * into segments first; then only merges need a look at the graph, 64 of them in one sweep
 * from children to parents, one bit each.
 */
#ifndef KB_BISECT_POSTERIOR_REACH_H
#define KB_BISECT_POSTERIOR_REACH_H

#include "bisect/dag.h"

struct kb_reach;

/** @param dag borrowed for the life of the result @param head only its ancestors count */
struct kb_reach *kb_reach_new(const struct kb_dag *dag, uint32_t head);
void kb_reach_free(struct kb_reach *r);

/**
 * For each ancestor of the head (itself counted): the sum of `weight` over it and its
 * ancestors. Entries of other nodes are left alone.
 * @param weight node_count, >= 0
 * @param tolerance sums known to within this are not computed further
 */
void kb_reach_sums(const struct kb_reach *r, const double *weight, double tolerance,
		   double *ret_sums);

#endif
