/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The candidates of a bisection: ancestors(bad) minus ancestors(goods).
 *
 * The walk goes from newest to oldest and could stop once every commit in its queue is an
 * ancestor of a good one, were all clocks right: a wrong one may leave a commit in the
 * queue that has a listed candidate among its ancestors. So it goes on until the queue is
 * a month older than the oldest candidate, and then looks some way further below what is
 * left, breadth first, so that a stretch of wildly wrong dates is crossed. Histories
 * smaller than that are exact whatever their dates.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/repo_internal.h"
#include "harness/base/mem.h"

#define CLOCK_SKEW_S (30 * 24 * 3600)
#define LOOK_FURTHER 20000 /* commits */

enum {
	SEEN = 1,
	POPPED = 2,
	HIDDEN = 4,  /* an ancestor of a good commit */
	ENTERED = 8, /* has been on the stack of place_with_parents() */
};

struct walk {
	struct kb_repo *repo;
	bool first_parent;
	struct kb_queue queue;
	size_t open;	  /* commits in the queue that are not hidden */
	int64_t oldest;	  /* date among those listed */
	uint32_t *listed; /* owned; popped while not hidden; some are hidden later */
	size_t listed_count, listed_cap;
	uint32_t *stack; /* owned; scratch of hide() */
	size_t stack_count, stack_cap;
};

static void walk_free(struct walk *w)
{
	kb_queue_free(&w->queue);
	free(w->listed);
	free(w->stack);
}

static int push(struct walk *w, uint32_t number, struct kb_error *err)
{
	int r = kb_commits_load(w->repo, number, err);

	if (r)
		return r;
	w->repo->commits.items[number].flags |= SEEN;
	kb_queue_push(&w->queue, &w->repo->commits, number);
	w->open += !(w->repo->commits.items[number].flags & HIDDEN);
	return 0;
}

/* Hides a commit and all its ancestors met so far; a popped one's parents are all met. */
static void hide(struct walk *w, uint32_t number)
{
	struct kb_commits *all = &w->repo->commits;

	w->stack_count = 0;
	KB_GROW(w->stack, w->stack_count, w->stack_cap);
	w->stack[w->stack_count++] = number;
	while (w->stack_count > 0) {
		struct kb_commit *commit = &all->items[w->stack[--w->stack_count]];

		if (commit->flags & HIDDEN)
			continue;
		commit->flags |= HIDDEN;
		if (!(commit->flags & SEEN))
			continue;
		if (!(commit->flags & POPPED))
			w->open--;
		for (uint32_t i = 0; (commit->flags & POPPED) && i < commit->parent_count;
		     i++) {
			KB_GROW(w->stack, w->stack_count, w->stack_cap);
			w->stack[w->stack_count++] =
				all->parents[commit->first_parent + i];
		}
	}
}

static int visit(struct walk *w, uint32_t number, struct kb_error *err)
{
	struct kb_commits *all = &w->repo->commits;
	struct kb_commit *commit = &all->items[number];
	bool hidden = commit->flags & HIDDEN;
	size_t first = commit->first_parent;
	uint32_t count = commit->parent_count;

	commit->flags |= POPPED;
	if (!hidden) {
		w->open--;
		if (commit->time < w->oldest)
			w->oldest = commit->time;
		KB_GROW(w->listed, w->listed_count, w->listed_cap);
		w->listed[w->listed_count++] = number;
		if (w->first_parent && count > 1)
			count = 1;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t parent = all->parents[first + i];
		int r;

		if (hidden)
			hide(w, parent);
		if (all->items[parent].flags & SEEN)
			continue;
		r = push(w, parent, err);
		if (r)
			return r;
	}
	return 0;
}

/* Breadth first below what is left: dates have proved nothing about it. */
static int look_further(struct walk *w, struct kb_error *err)
{
	KB_AUTO_FREE uint32_t *line = NULL;
	size_t count = 0, cap = 0;
	struct kb_commits *all = &w->repo->commits;
	uint32_t number;

	while ((number = kb_queue_pop(&w->queue)) != KB_COMMIT_NONE) {
		KB_GROW(line, count, cap);
		line[count++] = number;
	}
	for (size_t i = 0; i < count && i < LOOK_FURTHER; i++) {
		const struct kb_commit *commit = &all->items[line[i]];
		size_t first = commit->first_parent;
		uint32_t parents = commit->parent_count;

		all->items[line[i]].flags |= POPPED;
		for (uint32_t p = 0; p < parents; p++) {
			uint32_t parent = all->parents[first + p];
			int r;

			hide(w, parent);
			if (all->items[parent].flags & SEEN)
				continue;
			r = kb_commits_load(w->repo, parent, err);
			if (r)
				return r;
			all->items[parent].flags |= SEEN;
			KB_GROW(line, count, cap);
			line[count++] = parent;
		}
	}
	return 0;
}

static int walk_range(struct walk *w, uint32_t bad, const uint32_t *goods,
		      size_t good_count, struct kb_error *err)
{
	int r;

	kb_commits_clear_flags(&w->repo->commits);
	w->oldest = INT64_MAX;
	r = push(w, bad, err);
	for (size_t i = 0; i < good_count && !r; i++) {
		hide(w, goods[i]);
		if (!(w->repo->commits.items[goods[i]].flags & SEEN))
			r = push(w, goods[i], err);
	}
	while (!r && w->queue.count > 0) {
		if (w->open == 0 && w->queue.items[0].time < w->oldest - CLOCK_SKEW_S)
			break;
		r = visit(w, kb_queue_pop(&w->queue), err);
	}
	return r ? r : look_further(w, err);
}

/* Adds a node whose parents are all placed. node_of is by commit number. */
static void place(struct kb_range *range, const struct kb_commits *all, uint32_t number,
		  const uint32_t *parents, uint32_t count, uint32_t *node_of)
{
	KB_AUTO_FREE uint32_t *nodes = kb_calloc(count, sizeof(*nodes));
	uint32_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (node_of[parents[i]] != KB_COMMIT_NONE)
			nodes[used++] = node_of[parents[i]];
	}
	node_of[number] = kb_dag_add(&range->dag, nodes, used);
	kb_oid_from_git(&all->items[number].id, &range->oids[node_of[number]]);
}

static void followed_parents(const struct walk *w, const struct kb_simplified *simple,
			     uint32_t number, const uint32_t **ret_parents,
			     uint32_t *ret_count)
{
	const struct kb_commits *all = &w->repo->commits;
	const struct kb_commit *commit = &all->items[number];

	*ret_parents = &all->parents[commit->first_parent];
	*ret_count = commit->parent_count;
	if (simple && simple->only_parent[number] != KB_COMMIT_NONE) {
		*ret_parents = &simple->only_parent[number];
		*ret_count = 1;
	} else if (w->first_parent && commit->parent_count > 1) {
		*ret_count = 1;
	}
}

static bool is_candidate(const struct walk *w, const struct kb_simplified *simple,
			 uint32_t number)
{
	uint32_t flags = w->repo->commits.items[number].flags;

	return (flags & POPPED) && !(flags & HIDDEN) &&
	       (!simple ||
		(number < simple->count && (simple->state[number] & KB_SIMPLE_LISTED)));
}

/* Places a commit after all of its parents. */
static void place_with_parents(struct walk *w, uint32_t number,
			       const struct kb_simplified *simple, struct kb_range *range,
			       uint32_t *node_of)
{
	struct kb_commits *all = &w->repo->commits;

	w->stack_count = 0;
	KB_GROW(w->stack, w->stack_count, w->stack_cap);
	w->stack[w->stack_count++] = number;
	while (w->stack_count > 0) {
		uint32_t top = w->stack[w->stack_count - 1], count;
		const uint32_t *parents;

		followed_parents(w, simple, top, &parents, &count);
		if (all->items[top].flags & ENTERED) {
			w->stack_count--;
			if (node_of[top] == KB_COMMIT_NONE)
				place(range, all, top, parents, count, node_of);
			continue;
		}
		all->items[top].flags |= ENTERED;
		for (uint32_t i = count; i-- > 0;) {
			if ((all->items[parents[i]].flags & ENTERED) ||
			    !is_candidate(w, simple, parents[i]))
				continue;
			KB_GROW(w->stack, w->stack_count, w->stack_cap);
			w->stack[w->stack_count++] = parents[i];
		}
	}
}

/* Oldest first; where dates are right this is git's own order. Bad is the last. */
static void number_nodes(struct walk *w, const struct kb_simplified *simple,
			 struct kb_range *range)
{
	size_t count = w->repo->commits.count;
	const uint32_t *listed = simple ? simple->listed : w->listed;
	KB_AUTO_FREE uint32_t *node_of = kb_calloc(count, sizeof(*node_of));

	for (size_t i = 0; i < count; i++)
		node_of[i] = KB_COMMIT_NONE;
	for (size_t i = simple ? simple->listed_count : w->listed_count; i-- > 0;) {
		if (is_candidate(w, simple, listed[i]))
			place_with_parents(w, listed[i], simple, range, node_of);
	}
}

static void fill_range(struct walk *w, const struct kb_simplified *simple,
		       struct kb_range *range)
{
	range->oids = kb_calloc(w->listed_count, sizeof(*range->oids));
	number_nodes(w, simple, range);
	range->bad = range->dag.node_count - 1;
	if (!simple)
		return;
	range->interesting = kb_calloc(range->dag.node_count, 1);
	for (uint32_t n = 0; n < range->dag.node_count; n++) {
		git_oid id;

		if (!kb_oid_to_git(&range->oids[n], &id, NULL))
			range->interesting[n] = !(
				simple->state[kb_commits_number(&w->repo->commits, &id)] &
				KB_SIMPLE_SAME);
	}
}

static int check_endpoints(struct kb_repo *repo, const struct kb_range_spec *spec,
			   struct kb_error *err)
{
	for (size_t i = 0; i < spec->good_count; i++) {
		const char *good = spec->goods[i].hex;
		KB_AUTO_FREE struct kb_oid *bases = NULL;
		size_t count = 0;
		int r;

		if (kb_streq(good, spec->bad.hex))
			return kb_error_set(err, KB_EREPO,
					    "good and bad are the same commit %.12s",
					    good);
		r = kb_repo_merge_bases(repo, &spec->bad, &spec->goods[i], &bases, &count,
					err);
		if (r)
			return r;
		if (kb_streq(bases[0].hex, spec->bad.hex))
			return kb_error_set(
				err, KB_EREPO,
				"bad %.12s is an ancestor of good %.12s: swap them "
				"(good is the older, faster one)",
				spec->bad.hex, good);
	}
	return 0;
}

static int refuse_empty(const struct kb_range *range, const struct kb_range_spec *spec,
			struct kb_error *err)
{
	for (uint32_t n = 0; n < range->dag.node_count; n++) {
		if (range->interesting[n])
			return 0;
	}
	return kb_error_set(
		err, KB_EREPO,
		"no commit between %.12s and %.12s touches %s%s; paths are relative "
		"to the top of the tree",
		spec->goods[0].hex, spec->bad.hex, spec->paths->items[0],
		spec->paths->count > 1 ? " or the other paths" : "");
}

int kb_repo_range(struct kb_repo *repo, const struct kb_range_spec *spec,
		  struct kb_range *ret_range, struct kb_error *err)
{
	KB_AUTO(walk_free)
	struct walk w = {.repo = repo, .first_parent = spec->first_parent};
	KB_AUTO_FREE uint32_t *goods = kb_calloc(spec->good_count, sizeof(*goods));
	KB_AUTO(kb_simplified_free) struct kb_simplified simple = {0};
	KB_AUTO(kb_range_free) struct kb_range range;
	bool has_paths = spec->paths && spec->paths->count > 0;
	uint32_t bad;
	int r;

	kb_range_init(&range);
	if (spec->good_count == 0)
		return kb_error_set(err, KB_EUSAGE, "at least one good commit is needed");
	r = kb_commits_get(repo, &spec->bad, &bad, err);
	for (size_t i = 0; i < spec->good_count && !r; i++)
		r = kb_commits_get(repo, &spec->goods[i], &goods[i], err);
	if (!r)
		r = check_endpoints(repo, spec, err);
	if (!r && has_paths)
		r = kb_simplify(repo, bad, goods, spec->good_count, spec->first_parent,
				spec->paths, &simple, err);
	if (!r)
		r = walk_range(&w, bad, goods, spec->good_count, err);
	if (r)
		return r;
	fill_range(&w, has_paths ? &simple : NULL, &range);
	if (has_paths)
		r = refuse_empty(&range, spec, err);
	if (r)
		return r;
	*ret_range = range;
	kb_range_init(&range);
	return 0;
}

void kb_range_init(struct kb_range *range)
{
	*range = (struct kb_range){0};
	kb_dag_init(&range->dag);
}

void kb_range_free(struct kb_range *range)
{
	if (!range)
		return;
	kb_dag_free(&range->dag);
	free(range->oids);
	free(range->interesting);
	kb_range_init(range);
}

uint32_t kb_range_find(const struct kb_range *range, const struct kb_oid *oid)
{
	for (uint32_t n = 0; n < range->dag.node_count; n++) {
		if (memcmp(range->oids[n].hex, oid->hex, KB_OID_HEX_LEN) == 0)
			return n;
	}
	return UINT32_MAX;
}
