/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Path limits: which trees are alike below the given paths. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/repo_internal.h"
#include "harness/base/mem.h"

#define DEPTH_MAX 256 /* folders in folders; a kernel has 12 */

void kb_pathlist_free(struct kb_pathlist *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	free(list->is_pattern);
	*list = (struct kb_pathlist){0};
}

static bool has_dot_dot(const char *path)
{
	for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/') {
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

/* "./a//b/./" -> "a/b" */
static char *normalized(const char *path)
{
	char *out = kb_malloc(strlen(path) + 1);
	size_t len = 0;

	while (*path) {
		size_t part = strcspn(path, "/");

		if (part > 0 && !(part == 1 && path[0] == '.')) {
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, path, part);
			len += part;
		}
		path += part + (path[part] == '/');
	}
	out[len] = '\0';
	return out;
}

int kb_pathlist_init(struct kb_pathlist *list, const struct kb_strv *paths,
		     struct kb_error *err)
{
	*list = (struct kb_pathlist){0};
	list->items = kb_calloc(paths->count, sizeof(*list->items));
	list->is_pattern = kb_calloc(paths->count, sizeof(*list->is_pattern));
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];

		if (path[0] == ':' || path[0] == '/' || has_dot_dot(path) || !path[0])
			return kb_error_set(
				err, KB_EREPO,
				"path '%s': give plain paths or patterns, relative to "
				"the top of the tree",
				path);
		list->items[list->count] = normalized(path);
		list->is_pattern[list->count] = strpbrk(path, "*?[\\") != NULL;
		list->count++;
	}
	return 0;
}

struct comparison {
	struct kb_repo *repo;
	const struct kb_pathlist *list;
	struct kb_error *err;
	int error;
};

/* Whether `path` is the same as or lies below `item`. */
static bool is_at_or_below(const char *path, const char *item)
{
	size_t len = strlen(item);

	return len == 0 ||
	       (strncmp(path, item, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

static bool matches(const struct kb_pathlist *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++) {
		if (is_at_or_below(path, list->items[i]))
			return true;
		/* '*' matches '/' too, as in git's patterns. */
		if (list->is_pattern[i] && fnmatch(list->items[i], path, 0) == 0)
			return true;
	}
	return false;
}

/* Whether something below the folder may match. */
static bool may_match_below(const struct kb_pathlist *list, const char *folder)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->is_pattern[i] || is_at_or_below(folder, list->items[i]) ||
		    is_at_or_below(list->items[i], folder))
			return true;
	}
	return false;
}

static bool trees_same(struct comparison *c, const git_oid *a, const git_oid *b,
		       const char *folder, int depth);

static git_tree *open_tree(struct comparison *c, const git_oid *id)
{
	git_tree *tree = NULL;

	if (id && !c->error && git_tree_lookup(&tree, c->repo->git, id))
		c->error = kb_repo_git_error(c->err, "can't read a tree in %s",
					     c->repo->name);
	return tree;
}

static bool is_folder(const git_tree_entry *entry)
{
	return entry && git_tree_entry_type(entry) == GIT_OBJECT_TREE;
}

/* One name in both trees; either entry may be missing. */
static bool entries_same(struct comparison *c, const git_tree_entry *a,
			 const git_tree_entry *b, const char *folder, int depth)
{
	const char *name = git_tree_entry_name(a ? a : b);
	KB_AUTO_FREE char *path = NULL;

	if (a && b && git_oid_equal(git_tree_entry_id(a), git_tree_entry_id(b)) &&
	    git_tree_entry_filemode_raw(a) == git_tree_entry_filemode_raw(b))
		return true;
	path = folder[0] ? kb_asprintf("%s/%s", folder, name) : kb_strdup(name);
	if ((a && !is_folder(a)) || (b && !is_folder(b))) {
		if (matches(c->list, path))
			return false;
	}
	if ((is_folder(a) || is_folder(b)) && may_match_below(c->list, path))
		return trees_same(c, is_folder(a) ? git_tree_entry_id(a) : NULL,
				  is_folder(b) ? git_tree_entry_id(b) : NULL, path,
				  depth + 1);
	return true;
}

static bool trees_same(struct comparison *c, const git_oid *a, const git_oid *b,
		       const char *folder, int depth)
{
	git_tree *left, *right;
	bool same = true;

	if (a && b && git_oid_equal(a, b))
		return true;
	if (depth > DEPTH_MAX) {
		c->error = kb_error_set(c->err, KB_EREPO,
					"folders nested too deeply: %.200s", folder);
		return true;
	}
	left = open_tree(c, a);
	right = open_tree(c, b);
	for (size_t i = 0; left && same && !c->error && i < git_tree_entrycount(left);
	     i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(left, i);

		same = entries_same(
			c, entry,
			right ? git_tree_entry_byname(right, git_tree_entry_name(entry))
			      : NULL,
			folder, depth);
	}
	for (size_t i = 0; right && same && !c->error && i < git_tree_entrycount(right);
	     i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(right, i);

		if (!left || !git_tree_entry_byname(left, git_tree_entry_name(entry)))
			same = entries_same(c, NULL, entry, folder, depth);
	}
	git_tree_free(left);
	git_tree_free(right);
	return same;
}

int kb_pathlist_same(struct kb_repo *repo, const struct kb_pathlist *list,
		     const git_oid *a, const git_oid *b, bool *ret_same,
		     struct kb_error *err)
{
	struct comparison c = {.repo = repo, .list = list, .err = err};
	bool same = trees_same(&c, a, b, "", 0);

	if (c.error)
		return c.error;
	*ret_same = same;
	return 0;
}
