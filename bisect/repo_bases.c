/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merge bases by painting: ancestors of one side get one colour, of the other side
 * another; where the colours meet is a common ancestor, and whatever lies below it is
 * stale. Dates only choose the order: the walk ends when nothing but stale commits is
 * left, whatever the clocks said.
 */
#include <stdlib.h>

#include "bisect/repo_internal.h"
#include "harness/base/mem.h"

enum { ONE = 1, OTHER = 2, STALE = 4, RESULT = 8, QUEUED = 16 };

struct painting {
	struct kb_repo *repo;
	struct kb_queue queue;
	size_t fresh;	 /* queued commits that are not stale */
	uint32_t *bases; /* owned */
	size_t base_count, base_cap;
};

static void painting_free(struct painting *p)
{
	kb_queue_free(&p->queue);
	free(p->bases);
}

static int paint(struct painting *p, uint32_t number, uint32_t colours,
		 struct kb_error *err)
{
	int r = kb_commits_load(p->repo, number, err);
	if (r)
		return r;

	struct kb_commit *commit = &p->repo->commits.items[number];
	uint32_t before = commit->flags;
	if ((before & colours) == colours)
		return 0;
	commit->flags |= colours | QUEUED;
	if (!(before & QUEUED)) {
		kb_queue_push(&p->queue, &p->repo->commits, number);
		p->fresh += !(commit->flags & STALE);
	} else if (!(before & STALE) && (commit->flags & STALE)) {
		p->fresh--;
	}
	return 0;
}

static int paint_parents(struct painting *p, uint32_t number, struct kb_error *err)
{
	struct kb_commits *all = &p->repo->commits;
	struct kb_commit *commit = &all->items[number];
	size_t first = commit->first_parent;
	uint32_t count = commit->parent_count;
	uint32_t colours;
	int r = 0;

	commit->flags &= ~(uint32_t)QUEUED;
	p->fresh -= !(commit->flags & STALE);
	colours = commit->flags & (ONE | OTHER | STALE);
	if ((colours & (ONE | OTHER)) == (ONE | OTHER)) {
		if (!(commit->flags & RESULT)) {
			commit->flags |= RESULT;
			KB_GROW(p->bases, p->base_count, p->base_cap);
			p->bases[p->base_count++] = number;
		}
		colours |= STALE;
	}
	for (uint32_t i = 0; i < count && !r; i++)
		r = paint(p, all->parents[first + i], colours, err);
	return r;
}

static int paint_all(struct painting *p, uint32_t one, const uint32_t *others,
		     size_t other_count, bool stop_at_one, struct kb_error *err)
{
	const struct kb_commits *all = &p->repo->commits;
	int r;

	kb_commits_clear_flags(&p->repo->commits);
	r = paint(p, one, ONE, err);
	for (size_t i = 0; i < other_count && !r; i++)
		r = paint(p, others[i], OTHER, err);
	while (!r && p->fresh > 0) {
		if (stop_at_one && (all->items[one].flags & OTHER))
			break;
		r = paint_parents(p, kb_queue_pop(&p->queue), err);
	}
	return r;
}

/* With bad clocks a base may have been found before a descendant of it was. */
static int drop_redundant(struct kb_repo *repo, uint32_t *bases, size_t *count,
			  struct kb_error *err)
{
	for (size_t i = 0; i<*count && * count> 1;) {
		bool is_ancestor = false;
		uint32_t base = bases[i];
		int r;

		bases[i] = bases[*count - 1];
		r = kb_commits_bases(repo, base, bases, *count - 1, NULL, NULL,
				     &is_ancestor, err);
		if (r)
			return r;
		if (is_ancestor) {
			(*count)--;
			continue;
		}
		bases[*count - 1] = bases[i];
		bases[i++] = base;
	}
	return 0;
}

int kb_commits_bases(struct kb_repo *repo, uint32_t one, const uint32_t *others,
		     size_t other_count, uint32_t **ret_bases, size_t *ret_count,
		     bool *ret_is_ancestor, struct kb_error *err)
{
	KB_AUTO(painting_free) struct painting p = {.repo = repo};
	size_t kept = 0;
	int r = paint_all(&p, one, others, other_count, !ret_bases, err);

	if (r)
		return r;
	if (ret_is_ancestor)
		*ret_is_ancestor = repo->commits.items[one].flags & OTHER;
	if (!ret_bases)
		return 0;
	for (size_t i = 0; i < p.base_count; i++) {
		if (!(repo->commits.items[p.bases[i]].flags & STALE))
			p.bases[kept++] = p.bases[i];
	}
	r = drop_redundant(repo, p.bases, &kept, err);
	if (r)
		return r;
	*ret_count = kept;
	*ret_bases = KB_STEAL(p.bases);
	return 0;
}
