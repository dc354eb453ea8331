/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bisect/repo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/repo_internal.h"
#include "harness/base/mem.h"

#define SUBJECT_MAX_BYTES 512

void kb_oid_from_git(const git_oid *id, struct kb_oid *ret_oid)
{
	git_oid_tostr(ret_oid->hex, sizeof(ret_oid->hex), id);
}

int kb_oid_to_git(const struct kb_oid *oid, git_oid *ret_id, struct kb_error *err)
{
	if (strnlen(oid->hex, sizeof(oid->hex)) != KB_OID_HEX_LEN ||
	    git_oid_fromstr(ret_id, oid->hex))
		return kb_error_set(err, KB_EREPO, "'%.40s' is not a full commit id",
				    oid->hex);
	return 0;
}

int kb_repo_git_error(struct kb_error *err, const char *fmt, ...)
{
	const git_error *git = git_error_last();
	KB_AUTO_FREE char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return kb_error_set(err, KB_EREPO, "%s: %s", text ? text : "git",
			    git && git->message ? git->message : "unknown libgit2 error");
}

static char *without_trailing_slash(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return kb_strndup(path, len);
}

static int open_failed(const char *path, int code, struct kb_error *err)
{
	if (code == GIT_ENOTFOUND)
		return kb_error_set(err, KB_EREPO, "no git repository at or above %s",
				    path);
	if (code == GIT_EOWNER)
		return kb_error_set(
			err, KB_EREPO,
			"the repository at %s belongs to another user; if you trust "
			"it: git config --global --add safe.directory %s",
			path, path);
	return kb_repo_git_error(err, "can't open the repository at %s", path);
}

int kb_repo_open(const char *path, struct kb_repo **ret_repo, struct kb_error *err)
{
	struct kb_repo *repo = kb_calloc(1, sizeof(*repo));
	const char *work_dir;
	int code;

	git_libgit2_init();
	/* As git itself: reading does not hash again what zlib has already checked. */
	git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 0);
	code = git_repository_open_ext(&repo->git, path, 0, NULL);
	if (!code)
		code = git_repository_odb(&repo->odb, repo->git);
	if (code) {
		open_failed(path, code, err);
		kb_repo_free(repo);
		return KB_EREPO;
	}
	work_dir = git_repository_workdir(repo->git);
	repo->git_dir = without_trailing_slash(git_repository_commondir(repo->git));
	repo->worktree_git_dir = without_trailing_slash(git_repository_path(repo->git));
	repo->name =
		work_dir ? without_trailing_slash(work_dir) : kb_strdup(repo->git_dir);
	code = kb_commits_init(&repo->commits, repo->git_dir, err);
	if (code) {
		kb_repo_free(repo);
		return code;
	}
	*ret_repo = repo;
	return 0;
}

void kb_repo_free(struct kb_repo *repo)
{
	if (!repo)
		return;
	kb_commits_free(&repo->commits);
	git_odb_free(repo->odb);
	git_repository_free(repo->git);
	free(repo->git_dir);
	free(repo->worktree_git_dir);
	free(repo->name);
	free(repo);
	git_libgit2_shutdown();
}

const char *kb_repo_git_dir(const struct kb_repo *repo)
{
	return repo->git_dir;
}

const char *kb_repo_worktree_git_dir(const struct kb_repo *repo)
{
	return repo->worktree_git_dir;
}

int kb_repo_resolve(struct kb_repo *repo, const char *spec, struct kb_oid *ret_commit,
		    struct kb_error *err)
{
	git_object *found = NULL, *commit = NULL;
	int code = git_revparse_single(&found, repo->git, spec), r = 0;

	if (code == GIT_EAMBIGUOUS)
		r = kb_error_set(
			err, KB_EREPO,
			"revision '%s' is ambiguous in %s: give more digits or a full "
			"name such as refs/tags/%s",
			spec, repo->name, spec);
	else if (code == GIT_EINVALIDSPEC)
		r = kb_error_set(
			err, KB_EREPO,
			"'%s' is not a revision; name one commit, e.g. v6.1, a branch or "
			"an id",
			spec);
	else if (code)
		r = kb_error_set(
			err, KB_EREPO,
			"revision '%s' not found in %s; is the tag or branch fetched? "
			"(git fetch --tags)",
			spec, repo->name);
	else if (git_object_peel(&commit, found, GIT_OBJECT_COMMIT))
		r = kb_error_set(
			err, KB_EREPO, "revision '%s' in %s is a %s, not a commit", spec,
			repo->name, git_object_type2string(git_object_type(found)));
	else
		kb_oid_from_git(git_object_id(commit), ret_commit);
	git_object_free(commit);
	git_object_free(found);
	return r;
}

static int lookup_commit(struct kb_repo *repo, const struct kb_oid *oid,
			 git_commit **ret_commit, struct kb_error *err)
{
	git_oid id;
	int r = kb_oid_to_git(oid, &id, err);

	if (!r && git_commit_lookup(ret_commit, repo->git, &id))
		r = kb_repo_git_error(err, "can't read commit %s", oid->hex);
	return r;
}

int kb_repo_subject(struct kb_repo *repo, const struct kb_oid *commit, char **ret_subject,
		    struct kb_error *err)
{
	git_commit *found;
	int r = lookup_commit(repo, commit, &found, err);

	if (r)
		return r;
	const char *summary = git_commit_summary(found);
	char *text = kb_str_sanitize(summary ? summary : "",
				     summary ? strlen(summary) : 0, SUBJECT_MAX_BYTES);
	/* Reports are lines and columns. */
	for (char *p = text; *p; p++) {
		if (*p == '\t' || *p == '\n')
			*p = ' ';
	}
	*ret_subject = text;
	git_commit_free(found);
	return 0;
}

int kb_repo_tree(struct kb_repo *repo, const struct kb_oid *commit,
		 struct kb_oid *ret_tree, struct kb_error *err)
{
	uint32_t number;
	int r = kb_commits_get(repo, commit, &number, err);

	if (!r)
		kb_oid_from_git(&repo->commits.items[number].tree, ret_tree);
	return r;
}

int kb_repo_parents(struct kb_repo *repo, const struct kb_oid *commit,
		    struct kb_oid **ret_parents, size_t *ret_count, struct kb_error *err)
{
	const struct kb_commits *all = &repo->commits;
	uint32_t number;
	int r = kb_commits_get(repo, commit, &number, err);

	if (r)
		return r;
	const struct kb_commit *found = &all->items[number];
	struct kb_oid *parents = kb_calloc(found->parent_count, sizeof(*parents));
	for (uint32_t i = 0; i < found->parent_count; i++)
		kb_oid_from_git(&all->items[all->parents[found->first_parent + i]].id,
				&parents[i]);
	*ret_parents = parents;
	*ret_count = found->parent_count;
	return 0;
}

bool kb_repo_is_ancestor(struct kb_repo *repo, const struct kb_oid *ancestor,
			 const struct kb_oid *descendant)
{
	uint32_t one, other;
	bool is_ancestor = false;

	if (kb_commits_get(repo, ancestor, &one, NULL) ||
	    kb_commits_get(repo, descendant, &other, NULL) ||
	    kb_commits_bases(repo, one, &other, 1, NULL, NULL, &is_ancestor, NULL))
		return false;
	return is_ancestor;
}

int kb_repo_merge_bases_many(struct kb_repo *repo, const struct kb_oid *one,
			     const struct kb_oid *others, size_t other_count,
			     struct kb_oid **ret_bases, size_t *ret_count,
			     struct kb_error *err)
{
	KB_AUTO_FREE uint32_t *numbers = kb_calloc(other_count, sizeof(*numbers));
	KB_AUTO_FREE uint32_t *bases = NULL;
	size_t count = 0;
	uint32_t number;
	int r = kb_commits_get(repo, one, &number, err);

	for (size_t i = 0; i < other_count && !r; i++)
		r = kb_commits_get(repo, &others[i], &numbers[i], err);
	if (!r)
		r = kb_commits_bases(repo, number, numbers, other_count, &bases, &count,
				     NULL, err);
	if (r)
		return r;
	if (count == 0)
		return kb_error_set(
			err, KB_EREPO,
			"%.12s and %.12s have no common history in %s; is the clone "
			"shallow? (git fetch --unshallow)",
			one->hex, other_count ? others[0].hex : "nothing", repo->name);

	struct kb_oid *oids = kb_calloc(count, sizeof(*oids));
	for (size_t i = 0; i < count; i++)
		kb_oid_from_git(&repo->commits.items[bases[i]].id, &oids[i]);
	*ret_bases = oids;
	*ret_count = count;
	return 0;
}

int kb_repo_merge_bases(struct kb_repo *repo, const struct kb_oid *a,
			const struct kb_oid *b, struct kb_oid **ret_bases,
			size_t *ret_count, struct kb_error *err)
{
	return kb_repo_merge_bases_many(repo, a, b, 1, ret_bases, ret_count, err);
}

int kb_repo_read_file(struct kb_repo *repo, const struct kb_oid *commit, const char *path,
		      char **ret_data, size_t *ret_len, struct kb_error *err)
{
	git_commit *found = NULL;
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	git_blob *blob = NULL;
	int r = lookup_commit(repo, commit, &found, err), code;

	if (r)
		return r;
	code = git_commit_tree(&tree, found);
	if (!code)
		code = git_tree_entry_bypath(&entry, tree, path);
	if (code == GIT_ENOTFOUND ||
	    (!code && git_tree_entry_type(entry) != GIT_OBJECT_BLOB)) {
		*ret_data = NULL;
		*ret_len = 0;
	} else if (code || git_blob_lookup(&blob, repo->git, git_tree_entry_id(entry))) {
		r = kb_repo_git_error(err, "can't read %s of commit %s", path,
				      commit->hex);
	} else {
		size_t len = (size_t)git_blob_rawsize(blob);
		char *data = kb_malloc(len + 1);

		memcpy(data, git_blob_rawcontent(blob), len);
		data[len] = '\0';
		*ret_data = data;
		*ret_len = len;
	}
	git_blob_free(blob);
	git_tree_entry_free(entry);
	git_tree_free(tree);
	git_commit_free(found);
	return r;
}
