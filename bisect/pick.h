/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which commit to test next when tests are certain: the halving rule of `git bisect`
 * (maximise min(ancestors, rest) over the real merge DAG), with skips. Pure.
 */
#ifndef KB_BISECT_PICK_H
#define KB_BISECT_PICK_H

#include "bisect/dag.h"

enum kb_mark {
	KB_MARK_CANDIDATE = 0, /* may be the first bad commit */
	KB_MARK_EXCLUDED,      /* an ancestor of a good commit, or not of the bad one */
};

struct kb_pick {
	uint32_t node;	     /* the commit to test; UINT32_MAX: none is left to test */
	uint32_t candidates; /* candidates left, the bad commit itself counted, as git
				does */
	uint32_t steps;	     /* estimated tests left after this one, git's formula */
	bool only_skipped;   /* every test that could narrow it further is skipped */
};

/**
 * Chooses the next commit.
 * @param bad node known bad; candidates are its ancestors not marked excluded (it
 * included)
 * @param excluded node_count bytes: 1 for ancestors-or-self of good commits
 * @param skipped node_count bytes or NULL: 1 for commits that can't be tested
 * @param interesting node_count bytes or NULL: with path limiting, 1 for commits that
 * touch the paths; only those count and are tested Cost: near-linear in practice; must
 * stay usable at 100,000 candidates with 25 % merges.
 */
struct kb_pick kb_pick_next(const struct kb_dag *dag, uint32_t bad,
			    const uint8_t *excluded, const uint8_t *skipped,
			    const uint8_t *interesting);

#endif
