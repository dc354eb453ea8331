/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The libgit2 adapter: the only module that includes git2.h. It reads the user's
 * repository and never writes into it.
 */
#ifndef KB_BISECT_REPO_H
#define KB_BISECT_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bisect/dag.h"
#include "harness/base/error.h"
#include "harness/base/str.h"

#define KB_OID_HEX_LEN 40

struct kb_oid {
	char hex[KB_OID_HEX_LEN + 1]; /* lower case, NUL-terminated */
};

struct kb_repo; /* an open repository */

/**
 * Opens the repository at or above `path` (bare, work tree, linked worktree, alternates).
 * Errors: KB_EREPO.
 */
int kb_repo_open(const char *path, struct kb_repo **ret_repo, struct kb_error *err);
void kb_repo_free(struct kb_repo *repo);

/** The repository's git folder (common folder for linked worktrees); borrowed. */
const char *kb_repo_git_dir(const struct kb_repo *repo);
/** The git folder of this very worktree (holds HEAD and BISECT_LOG); borrowed. */
const char *kb_repo_worktree_git_dir(const struct kb_repo *repo);

/** Any revision spec -> commit (tags peeled). Errors: KB_EREPO, naming the spec and the
 * fix. */
int kb_repo_resolve(struct kb_repo *repo, const char *spec, struct kb_oid *ret_commit,
		    struct kb_error *err);

/** First line of the message, sanitized; owned by the caller. */
int kb_repo_subject(struct kb_repo *repo, const struct kb_oid *commit, char **ret_subject,
		    struct kb_error *err);

/** Tree id of a commit. */
int kb_repo_tree(struct kb_repo *repo, const struct kb_oid *commit,
		 struct kb_oid *ret_tree, struct kb_error *err);

/** *ret_count parents into *ret_parents (owned by the caller, free()). */
int kb_repo_parents(struct kb_repo *repo, const struct kb_oid *commit,
		    struct kb_oid **ret_parents, size_t *ret_count, struct kb_error *err);

bool kb_repo_is_ancestor(
	struct kb_repo *repo, const struct kb_oid *ancestor,
	const struct kb_oid *descendant); /* a commit is its own ancestor */

/** Best common ancestors (may be several, criss-cross). Errors: KB_EREPO when unrelated.
 */
int kb_repo_merge_bases(struct kb_repo *repo, const struct kb_oid *a,
			const struct kb_oid *b, struct kb_oid **ret_bases,
			size_t *ret_count, struct kb_error *err);

/**
 * Best common ancestors of `one` and a supposed merge of all the others: what has to be
 * tested first when some good commit is no ancestor of the bad one.
 * Errors: KB_EREPO when there are none.
 */
int kb_repo_merge_bases_many(struct kb_repo *repo, const struct kb_oid *one,
			     const struct kb_oid *others, size_t other_count,
			     struct kb_oid **ret_bases, size_t *ret_count,
			     struct kb_error *err);

/* The range of a bisection: candidates and what is needed to speak about them. */
struct kb_range {
	struct kb_dag dag;    /* candidates only; the bad commit is the last node */
	struct kb_oid *oids;  /* owned; dag.node_count entries */
	uint8_t *interesting; /* owned; node_count bytes; NULL without paths */
	uint32_t bad;	      /* node of the bad commit */
};

void kb_range_init(struct kb_range *range);
void kb_range_free(struct kb_range *range);
/** Node of a commit or UINT32_MAX. */
uint32_t kb_range_find(const struct kb_range *range, const struct kb_oid *oid);

struct kb_range_spec {
	const struct kb_oid *goods; /* borrowed; at least one */
	size_t good_count;
	struct kb_oid bad;
	bool first_parent;
	const struct kb_strv *paths; /* borrowed; NULL or empty: whole tree */
};

/**
 * ancestors(bad) minus ancestors(goods). With first_parent only first parents are
 * followed. Path limiting follows `git bisect -- PATH` (a merge counts only when it
 * differs from every parent, history simplification as rev-list does for bisect): the DAG
 * then holds the simplified parents, and the bad commit is in it even when it does not
 * count. Errors: KB_EREPO: equal endpoints; reversed ones (bad is an ancestor of good);
 * unrelated; no commit touches the paths.
 * @ret_range initialized and empty on entry
 */
int kb_repo_range(struct kb_repo *repo, const struct kb_range_spec *spec,
		  struct kb_range *ret_range, struct kb_error *err);

/**
 * Makes `dir` hold exactly the commit's files. Only files that differ from what the last
 * call left there are written (mtimes of the others stay), and vanished ones are removed.
 * State of the last checkout is kept in `state_path`; when it is missing, stale or
 * doubtful (also after a reboot), the folder is compared file by file. The user's
 * repository is only read, and no filter is applied. A folder that is itself a git work
 * tree is refused. Errors: KB_EIO naming the file; KB_EREPO for unreadable objects and
 * for names that could reach outside of `dir`; KB_EINTERRUPTED.
 * @ret_changed number of files written or removed; NULL allowed
 */
int kb_repo_checkout(struct kb_repo *repo, const struct kb_oid *commit, const char *dir,
		     const char *state_path, uint64_t *ret_changed, struct kb_error *err);

/** One blob's content by path in a commit; *ret_data NULL when there is no such file. */
int kb_repo_read_file(struct kb_repo *repo, const struct kb_oid *commit, const char *path,
		      char **ret_data, size_t *ret_len, struct kb_error *err);

#endif
