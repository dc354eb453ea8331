/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the libgit2 adapter (bisect/repo*.c) only. */
#ifndef KB_BISECT_REPO_INTERNAL_H
#define KB_BISECT_REPO_INTERNAL_H

#include <git2.h>

#include "bisect/repo.h"

#define KB_COMMIT_NONE UINT32_MAX

/* Commits met so far, numbered in order of meeting. Grows during walks: hold numbers. */
struct kb_commit {
	git_oid id;
	git_oid tree;
	int64_t time;	     /* of the committer */
	size_t first_parent; /* index into kb_commits.parents */
	uint32_t parent_count;
	uint32_t flags; /* meaning is the current walk's; cleared when one begins */
	bool is_loaded; /* all but id and flags are valid */
};

struct kb_commits {
	struct kb_commit *items; /* owned, as all below */
	size_t count, cap;
	uint32_t *parents;
	size_t parent_count, parent_cap;
	uint32_t *slots; /* hash table of numbers; slot_count is a power of two */
	size_t slot_count;
	git_oid *shallow; /* sorted; commits whose parents were not fetched */
	size_t shallow_count;
};

struct kb_repo {
	git_repository *git;
	git_odb *odb;
	char *git_dir, *worktree_git_dir; /* owned, without trailing slash */
	char *name;			  /* owned; what people call the repository */
	struct kb_commits commits;
};

void kb_oid_from_git(const git_oid *id, struct kb_oid *ret_oid);
/** Errors: KB_EREPO when the text is not a full id. */
int kb_oid_to_git(const struct kb_oid *oid, git_oid *ret_id, struct kb_error *err);

/** Fills err with the formatted text and libgit2's last message; returns KB_EREPO. */
int kb_repo_git_error(struct kb_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** Reads the list of shallow commits; a repository without one is fine. */
int kb_commits_init(struct kb_commits *commits, const char *git_dir,
		    struct kb_error *err);
void kb_commits_free(struct kb_commits *commits);
/** Number of a commit, new or known. It is not loaded yet. */
uint32_t kb_commits_number(struct kb_commits *commits, const git_oid *id);
/** Reads a commit's parents, date and tree once. Errors: KB_EREPO. */
int kb_commits_load(struct kb_repo *repo, uint32_t number, struct kb_error *err);
/** Takes a loaded commit by its hexadecimal id. */
int kb_commits_get(struct kb_repo *repo, const struct kb_oid *oid, uint32_t *ret_number,
		   struct kb_error *err);
void kb_commits_clear_flags(struct kb_commits *commits);

/* A priority queue of commits, newest first; equal dates in order of insertion. */
struct kb_queue_item {
	int64_t time;
	uint64_t order;
	uint32_t number;
};
struct kb_queue {
	struct kb_queue_item *items; /* owned; a binary heap */
	size_t count, cap;
	uint64_t order;
};
void kb_queue_free(struct kb_queue *queue);
void kb_queue_push(struct kb_queue *queue, const struct kb_commits *commits,
		   uint32_t number);
/** @return KB_COMMIT_NONE when empty */
uint32_t kb_queue_pop(struct kb_queue *queue);

/**
 * Paints ancestors: of `one` and of the `others`. Stops when `one` is found to be an
 * ancestor of one of the others and `ret_bases` is NULL.
 * @ret_bases owned numbers of the best common ancestors; may be NULL
 * @ret_is_ancestor whether `one` is an ancestor of one of the others; may be NULL
 */
int kb_commits_bases(struct kb_repo *repo, uint32_t one, const uint32_t *others,
		     size_t other_count, uint32_t **ret_bases, size_t *ret_count,
		     bool *ret_is_ancestor, struct kb_error *err);

/*
 * Path limiting. After kb_simplify() the history of the range as git's default
 * simplification sees it is described per commit number.
 */
struct kb_simplified {
	size_t count;	       /* commits known when it was made; others are not listed */
	uint8_t *state;	       /* owned; KB_SIMPLE_* bits */
	uint32_t *only_parent; /* owned; the parent followed alone or KB_COMMIT_NONE */
	uint32_t *listed;      /* owned; newest first */
	size_t listed_count;
};
enum {
	KB_SIMPLE_LISTED = 1, /* walked as part of the range */
	KB_SIMPLE_SAME = 2,   /* as its parents in the given paths: it does not count */
};
void kb_simplified_free(struct kb_simplified *s);
/** The endpoints must be loaded. Errors: KB_EREPO. */
int kb_simplify(struct kb_repo *repo, uint32_t bad, const uint32_t *goods,
		size_t good_count, bool first_parent, const struct kb_strv *paths,
		struct kb_simplified *ret_simplified, struct kb_error *err);

/* A compiled list of paths. */
struct kb_pathlist {
	char **items;	  /* owned; without leading "./" and trailing slashes */
	bool *is_pattern; /* owned */
	size_t count;
};
void kb_pathlist_free(struct kb_pathlist *list);
/** Errors: KB_EREPO for what git would understand and we do not (":(magic)"), and "..".
 */
int kb_pathlist_init(struct kb_pathlist *list, const struct kb_strv *paths,
		     struct kb_error *err);
/** Whether the trees are alike below the paths; `a` NULL means the empty tree. */
int kb_pathlist_same(struct kb_repo *repo, const struct kb_pathlist *list,
		     const git_oid *a, const git_oid *b, bool *ret_same,
		     struct kb_error *err);

#endif
