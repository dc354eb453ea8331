/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/dag.h"

#include <stdlib.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

static void parents_kept_in_order(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	const uint32_t merge[] = {1, 0, 2};

	kb_dag_init(&dag);
	is_int(dag.node_count, 0, "a new graph is empty");
	is_int(kb_dag_add(&dag, NULL, 0), 0, "the first node is 0");
	is_int(kb_dag_add(&dag, (uint32_t[]){0}, 1), 1, "then 1");
	is_int(kb_dag_add(&dag, NULL, 0), 2, "a second root");
	is_int(kb_dag_add(&dag, merge, 3), 3, "an octopus");
	is_int(kb_dag_parent_count(&dag, 0), 0, "a root has no parents");
	is_int(kb_dag_parent_count(&dag, 3), 3, "the octopus has three");
	is_int(kb_dag_parent(&dag, 3, 0), 1, "first parent");
	is_int(kb_dag_parent(&dag, 3, 1), 0, "second parent");
	is_int(kb_dag_parent(&dag, 3, 2), 2, "third parent");
	is_int(kb_dag_parent(&dag, 1, 0), 0, "only parent");
}

static void ancestors_marked_through_foreign_marks(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	uint8_t marks[6] = {0};

	/* 0 - 1 - 2 - 4 - 5 and 1 - 3 - 5 */
	kb_dag_init(&dag);
	kb_dag_add(&dag, NULL, 0);
	kb_dag_add(&dag, (uint32_t[]){0}, 1);
	kb_dag_add(&dag, (uint32_t[]){1}, 1);
	kb_dag_add(&dag, (uint32_t[]){1}, 1);
	kb_dag_add(&dag, (uint32_t[]){2}, 1);
	kb_dag_add(&dag, (uint32_t[]){4, 3}, 2);

	marks[2] = 1; /* set by someone else, without its ancestors */
	kb_dag_mark_ancestors(&dag, 4, marks);
	ok(marks[4] && marks[2] && marks[1] && marks[0], "all ancestors of 4 are marked");
	ok(!marks[3] && !marks[5], "neither a sibling branch nor a descendant is");
	kb_dag_mark_ancestors(&dag, 5, marks);
	ok(marks[3] && marks[5], "5 adds itself and its second parent");
}

static void many_nodes_survive_growth(void)
{
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	const uint32_t count = 5000;
	uint32_t wrong = 0;

	kb_dag_init(&dag);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t parents[3] = {n - 1, n / 2, n / 3};

		kb_dag_add(&dag, parents, n == 0 ? 0 : n % 3 + 1);
	}
	for (uint32_t n = 1; n < count; n++) {
		wrong += kb_dag_parent_count(&dag, n) != n % 3 + 1;
		wrong += kb_dag_parent(&dag, n, 0) != n - 1;
		wrong += n % 3 > 0 && kb_dag_parent(&dag, n, 1) != n / 2;
	}
	is_int(dag.node_count, count, "all nodes are there");
	is_int(wrong, 0, "with the parents they were given");

	KB_AUTO_FREE uint8_t *marks = kb_calloc(count, 1);
	uint32_t marked = 0;
	kb_dag_mark_ancestors(&dag, count - 1, marks);
	for (uint32_t n = 0; n < count; n++)
		marked += marks[n];
	is_int(marked, count, "the last node descends from all");
}

int main(void)
{
	parents_kept_in_order();
	ancestors_marked_through_foreign_marks();
	many_nodes_survive_growth();
	return tap_done();
}
