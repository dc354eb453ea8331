/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History simplification for `-- PATH`, in agreement with git's default one: a commit
 * that is like a parent in the paths does not count, and a merge that is like one parent
 * is taken as a child of that parent alone.
 *
 * What git answers depends in corner cases on when its walk learns that a commit is an
 * ancestor of a good one: a merge is not led away along such a parent, so that the other
 * side is kept, but only if this is known by then. The walk here learns it at the same
 * moments, so that both speak about the same candidates. It decides about nothing else:
 * what is a candidate at all is decided exactly in repo_range.c.
 */
#include <stdlib.h>

#include "bisect/repo_internal.h"
#include "harness/base/mem.h"

/* Hidden commits popped after the last one of interest before git stops. */
#define SLOP 5

enum {
	SEEN = 1,
	HIDDEN = 2,
	BOTTOM = 4, /* a good commit itself */
	SAME = 8,
	LISTED = 16,
	PARSED = 32, /* git would have its parents in memory */
};

struct simplifier {
	struct kb_repo *repo;
	const struct kb_pathlist *paths;
	bool first_parent;
	struct kb_queue queue;
	size_t open;	       /* queued and not hidden */
	uint32_t *only_parent; /* owned; by commit number */
	size_t only_count, only_cap;
	uint32_t *listed; /* owned; in the order of the walk */
	size_t listed_count, listed_cap;
	uint32_t *stack; /* owned */
	size_t stack_count, stack_cap;
};

static void simplifier_free(struct simplifier *s)
{
	kb_queue_free(&s->queue);
	free(s->only_parent);
	free(s->listed);
	free(s->stack);
}

static struct kb_commit *commit_at(const struct simplifier *s, uint32_t number)
{
	return &s->repo->commits.items[number];
}

static void grow_only_parent(struct simplifier *s)
{
	size_t count = s->repo->commits.count;

	if (!s->only_parent || s->only_cap < count) {
		s->only_cap = count * 2;
		s->only_parent =
			kb_realloc(s->only_parent, s->only_cap, sizeof(*s->only_parent));
	}
	while (s->only_count < count)
		s->only_parent[s->only_count++] = KB_COMMIT_NONE;
}

static uint32_t parent_count(const struct simplifier *s, uint32_t number)
{
	return s->only_parent[number] != KB_COMMIT_NONE
		       ? 1
		       : commit_at(s, number)->parent_count;
}

static uint32_t parent_at(const struct simplifier *s, uint32_t number, uint32_t which)
{
	if (s->only_parent[number] != KB_COMMIT_NONE)
		return s->only_parent[number];
	return s->repo->commits.parents[commit_at(s, number)->first_parent + which];
}

static int parse(struct simplifier *s, uint32_t number, struct kb_error *err)
{
	int r = kb_commits_load(s->repo, number, err);

	grow_only_parent(s);
	if (!r)
		commit_at(s, number)->flags |= PARSED;
	return r;
}

static void enqueue(struct simplifier *s, uint32_t number)
{
	commit_at(s, number)->flags |= SEEN;
	kb_queue_push(&s->queue, &s->repo->commits, number);
	s->open += !(commit_at(s, number)->flags & HIDDEN);
}

/* A queued commit is the only kind that counts in s->open. */
static void set_hidden(struct simplifier *s, uint32_t number)
{
	struct kb_commit *commit = commit_at(s, number);

	if ((commit->flags & (HIDDEN | SEEN | LISTED)) == SEEN)
		s->open--;
	commit->flags |= HIDDEN;
}

/* Hides the parents and whatever below them is in memory. */
static void hide_parents(struct simplifier *s, uint32_t number)
{
	s->stack_count = 0;
	KB_GROW(s->stack, s->stack_count, s->stack_cap);
	s->stack[s->stack_count++] = number;
	while (s->stack_count > 0) {
		uint32_t child = s->stack[--s->stack_count];

		if (!(commit_at(s, child)->flags & PARSED))
			continue;
		for (uint32_t i = 0; i < parent_count(s, child); i++) {
			uint32_t parent = parent_at(s, child, i);

			if (commit_at(s, parent)->flags & HIDDEN)
				continue;
			set_hidden(s, parent);
			KB_GROW(s->stack, s->stack_count, s->stack_cap);
			s->stack[s->stack_count++] = parent;
		}
	}
}

static int visit_hidden(struct simplifier *s, uint32_t number, struct kb_error *err)
{
	for (uint32_t i = 0; i < parent_count(s, number); i++) {
		uint32_t parent = parent_at(s, number, i);
		int r;

		set_hidden(s, parent);
		r = parse(s, parent, err);
		if (r)
			return r;
		hide_parents(s, parent);
		if (!(commit_at(s, parent)->flags & SEEN))
			enqueue(s, parent);
	}
	return 0;
}

/* A good commit's side of a merge matters; what merely lies below a good commit does not.
 */
static bool is_relevant(const struct simplifier *s, uint32_t number)
{
	return (commit_at(s, number)->flags & (HIDDEN | BOTTOM)) != HIDDEN;
}

static int compare(struct simplifier *s, uint32_t number, uint32_t parent, bool *ret_same,
		   struct kb_error *err)
{
	git_oid tree = commit_at(s, number)->tree, parent_tree;

	if (parent == KB_COMMIT_NONE)
		return kb_pathlist_same(s->repo, s->paths, NULL, &tree, ret_same, err);
	parent_tree = commit_at(s, parent)->tree;
	return kb_pathlist_same(s->repo, s->paths, &parent_tree, &tree, ret_same, err);
}

static int simplify(struct simplifier *s, uint32_t number, struct kb_error *err)
{
	uint32_t count = parent_count(s, number), relevant = 0;
	bool relevant_differs = false, other_differs = false, same;
	int r;

	if (count == 0) {
		r = compare(s, number, KB_COMMIT_NONE, &same, err);
		if (!r && same)
			commit_at(s, number)->flags |= SAME;
		return r;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t parent = parent_at(s, number, i);

		relevant += is_relevant(s, parent);
		if (i == 1 && s->first_parent)
			break;
		r = parse(s, parent, err);
		if (!r)
			r = compare(s, number, parent, &same, err);
		if (r)
			return r;
		if (same && is_relevant(s, parent)) {
			s->only_parent[number] = parent;
			commit_at(s, number)->flags |= SAME;
			return 0;
		}
		if (!same && is_relevant(s, parent))
			relevant_differs = true;
		else if (!same)
			other_differs = true;
	}
	if (relevant ? !relevant_differs : !other_differs)
		commit_at(s, number)->flags |= SAME;
	return 0;
}

static int visit_listed(struct simplifier *s, uint32_t number, struct kb_error *err)
{
	int r = simplify(s, number, err);

	for (uint32_t i = 0; !r && i < parent_count(s, number); i++) {
		uint32_t parent = parent_at(s, number, i);

		r = parse(s, parent, err);
		if (!r && !(commit_at(s, parent)->flags & SEEN))
			enqueue(s, parent);
		if (s->first_parent)
			break;
	}
	return r;
}

static int walk(struct simplifier *s, struct kb_error *err)
{
	int64_t last = INT64_MAX;
	int slop = SLOP;
	uint32_t number;

	while ((number = kb_queue_pop(&s->queue)) != KB_COMMIT_NONE) {
		bool hidden = commit_at(s, number)->flags & HIDDEN;
		int r;

		if (!hidden) {
			s->open--;
			commit_at(s, number)->flags |= LISTED;
			KB_GROW(s->listed, s->listed_count, s->listed_cap);
			s->listed[s->listed_count++] = number;
			r = visit_listed(s, number, err);
			last = commit_at(s, number)->time;
		} else {
			r = visit_hidden(s, number, err);
		}
		if (r)
			return r;
		if (!hidden)
			continue;
		if (s->queue.count == 0)
			break;
		if (last <= s->queue.items[0].time || s->open > 0)
			slop = SLOP;
		else if (--slop == 0)
			break;
	}
	return 0;
}

static void export_state(struct simplifier *s, struct kb_simplified *ret)
{
	size_t count = s->repo->commits.count;

	grow_only_parent(s);
	ret->count = count;
	ret->state = kb_calloc(count, 1);
	for (size_t n = 0; n < count; n++) {
		uint32_t flags = s->repo->commits.items[n].flags;

		ret->state[n] = (uint8_t)(((flags & LISTED) ? KB_SIMPLE_LISTED : 0) |
					  ((flags & SAME) ? KB_SIMPLE_SAME : 0));
		/* What git found to be hidden after having listed it. */
		if (flags & HIDDEN)
			ret->state[n] = 0;
	}
	ret->only_parent = KB_STEAL(s->only_parent);
	ret->listed_count = s->listed_count;
	ret->listed = KB_STEAL(s->listed);
}

int kb_simplify(struct kb_repo *repo, uint32_t bad, const uint32_t *goods,
		size_t good_count, bool first_parent, const struct kb_strv *paths,
		struct kb_simplified *ret_simplified, struct kb_error *err)
{
	KB_AUTO(kb_pathlist_free) struct kb_pathlist list = {0};
	KB_AUTO(simplifier_free)
	struct simplifier s = {
		.repo = repo, .paths = &list, .first_parent = first_parent};
	int r = kb_pathlist_init(&list, paths, err);

	if (r)
		return r;
	kb_commits_clear_flags(&repo->commits);
	r = parse(&s, bad, err);
	for (size_t i = 0; i < good_count && !r; i++) {
		r = parse(&s, goods[i], err);
		commit_at(&s, goods[i])->flags |= HIDDEN | BOTTOM;
		if (!r)
			hide_parents(&s, goods[i]);
	}
	if (r)
		return r;
	enqueue(&s, bad);
	for (size_t i = 0; i < good_count; i++) {
		if (!(commit_at(&s, goods[i])->flags & SEEN))
			enqueue(&s, goods[i]);
	}
	r = walk(&s, err);
	if (!r)
		export_state(&s, ret_simplified);
	return r;
}

void kb_simplified_free(struct kb_simplified *s)
{
	free(s->state);
	free(s->only_parent);
	free(s->listed);
	*s = (struct kb_simplified){0};
}
