/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commits of a repository as a table that walks share. Commit objects are parsed here
 * rather than through git_commit: a walk over a kernel's history needs three fields of
 * each, and a shallow clone's missing parents must not be looked up.
 */
#include <stdlib.h>
#include <string.h>

#include "bisect/repo_internal.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"

#define SHALLOW_MAX_BYTES (64u << 20)

static int compare_oids(const void *a, const void *b)
{
	return git_oid_cmp(a, b);
}

int kb_commits_init(struct kb_commits *commits, const char *git_dir, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(git_dir, "shallow");
	KB_AUTO_FREE char *text = NULL;
	KB_AUTO(kb_strv_free) struct kb_strv lines = {0};
	size_t len;
	int r;

	*commits = (struct kb_commits){0};
	/* Never NULL, so that there is an address to start a root's empty list from. */
	KB_GROW(commits->parents, commits->parent_count, commits->parent_cap);
	if (!kb_path_exists(path))
		return 0;
	r = kb_read_file(path, SHALLOW_MAX_BYTES, &text, &len, err);
	if (r)
		return r;
	kb_strv_split(&lines, text, "\n");
	commits->shallow = kb_calloc(lines.count, sizeof(*commits->shallow));
	for (size_t i = 0; i < lines.count; i++) {
		if (!git_oid_fromstr(&commits->shallow[commits->shallow_count],
				     lines.items[i]))
			commits->shallow_count++;
	}
	qsort(commits->shallow, commits->shallow_count, sizeof(*commits->shallow),
	      compare_oids);
	return 0;
}

void kb_commits_free(struct kb_commits *commits)
{
	free(commits->items);
	free(commits->parents);
	free(commits->slots);
	free(commits->shallow);
	*commits = (struct kb_commits){0};
}

/* Ids are hashes already: their first bytes spread well enough. */
static size_t slot_of(const struct kb_commits *commits, const git_oid *id)
{
	uint64_t start;

	memcpy(&start, id->id, sizeof(start));
	return (size_t)start & (commits->slot_count - 1);
}

static void grow_slots(struct kb_commits *commits)
{
	commits->slot_count = commits->slot_count ? commits->slot_count * 2 : 1024;
	free(commits->slots);
	commits->slots = kb_calloc(commits->slot_count, sizeof(*commits->slots));
	for (size_t i = 0; i < commits->slot_count; i++)
		commits->slots[i] = KB_COMMIT_NONE;
	for (size_t n = 0; n < commits->count; n++) {
		size_t slot = slot_of(commits, &commits->items[n].id);

		while (commits->slots[slot] != KB_COMMIT_NONE)
			slot = (slot + 1) & (commits->slot_count - 1);
		commits->slots[slot] = (uint32_t)n;
	}
}

uint32_t kb_commits_number(struct kb_commits *commits, const git_oid *id)
{
	if (commits->count * 2 >= commits->slot_count)
		grow_slots(commits);

	size_t slot = slot_of(commits, id);
	while (commits->slots[slot] != KB_COMMIT_NONE) {
		if (git_oid_equal(&commits->items[commits->slots[slot]].id, id))
			return commits->slots[slot];
		slot = (slot + 1) & (commits->slot_count - 1);
	}
	KB_GROW(commits->items, commits->count, commits->cap);
	commits->items[commits->count] = (struct kb_commit){.id = *id};
	commits->slots[slot] = (uint32_t)commits->count;
	return (uint32_t)commits->count++;
}

/* Takes "NAME <40 digits>\n" from the front of the text. */
static bool take_id(const char **text, const char *end, const char *name, git_oid *ret_id)
{
	size_t name_len = strlen(name);
	size_t line_len = name_len + KB_OID_HEX_LEN + 1;

	if ((size_t)(end - *text) < line_len || memcmp(*text, name, name_len) != 0 ||
	    (*text)[line_len - 1] != '\n' ||
	    git_oid_fromstrn(ret_id, *text + name_len, 40))
		return false;
	*text += line_len;
	return true;
}

/* The date stands behind the last '>' of the committer line; git takes odd ones as 0. */
static int64_t committer_time(const char *text, const char *end)
{
	static const char name[] = "\ncommitter ";
	const char *line = memmem(text, (size_t)(end - text), name, sizeof(name) - 1);
	const char *line_end, *p;
	int64_t time = 0;

	if (!line)
		return 0;
	line += sizeof(name) - 1;
	line_end = memchr(line, '\n', (size_t)(end - line));
	p = line_end ? memrchr(line, '>', (size_t)(line_end - line)) : NULL;
	if (!p)
		return 0;
	for (p++; p < line_end && *p == ' '; p++)
		;
	for (; p < line_end && *p >= '0' && *p <= '9'; p++) {
		if (time > INT64_MAX / 10 - 1)
			return 0;
		time = time * 10 + (*p - '0');
	}
	return time;
}

static bool is_shallow(const struct kb_commits *commits, const git_oid *id)
{
	return commits->shallow_count &&
	       bsearch(id, commits->shallow, commits->shallow_count,
		       sizeof(*commits->shallow), compare_oids);
}

int kb_commits_load(struct kb_repo *repo, uint32_t number, struct kb_error *err)
{
	struct kb_commits *all = &repo->commits;
	git_oid id = all->items[number].id, tree, parent;
	uint32_t parent_count = 0;
	size_t first_parent = all->parent_count;
	git_odb_object *object;
	const char *text, *end;
	struct kb_oid oid;

	if (all->items[number].is_loaded)
		return 0;
	kb_oid_from_git(&id, &oid);
	if (git_odb_read(&object, repo->odb, &id))
		return kb_repo_git_error(err, "can't read commit %s in %s", oid.hex,
					 repo->name);
	text = git_odb_object_data(object);
	end = text + git_odb_object_size(object);
	if (git_odb_object_type(object) != GIT_OBJECT_COMMIT ||
	    !take_id(&text, end, "tree ", &tree)) {
		git_odb_object_free(object);
		return kb_error_set(err, KB_EREPO,
				    "object %s in %s is not a sound commit", oid.hex,
				    repo->name);
	}
	while (take_id(&text, end, "parent ", &parent)) {
		uint32_t parent_number;

		if (is_shallow(all, &id))
			continue;
		parent_number = kb_commits_number(all, &parent);
		KB_GROW(all->parents, all->parent_count, all->parent_cap);
		all->parents[all->parent_count++] = parent_number;
		parent_count++;
	}

	struct kb_commit *commit = &all->items[number];
	commit->tree = tree;
	commit->time = committer_time(text - 1, end); /* with the newline before */
	commit->first_parent = first_parent;
	commit->parent_count = parent_count;
	commit->is_loaded = true;
	git_odb_object_free(object);
	return 0;
}

int kb_commits_get(struct kb_repo *repo, const struct kb_oid *oid, uint32_t *ret_number,
		   struct kb_error *err)
{
	git_oid id;
	int r = kb_oid_to_git(oid, &id, err);

	if (r)
		return r;
	uint32_t number = kb_commits_number(&repo->commits, &id);
	r = kb_commits_load(repo, number, err);
	if (!r)
		*ret_number = number;
	return r;
}

void kb_commits_clear_flags(struct kb_commits *commits)
{
	for (size_t i = 0; i < commits->count; i++)
		commits->items[i].flags = 0;
}

void kb_queue_free(struct kb_queue *queue)
{
	free(queue->items);
	*queue = (struct kb_queue){0};
}

static bool comes_first(const struct kb_queue_item *a, const struct kb_queue_item *b)
{
	return a->time != b->time ? a->time > b->time : a->order < b->order;
}

void kb_queue_push(struct kb_queue *queue, const struct kb_commits *commits,
		   uint32_t number)
{
	struct kb_queue_item item = {commits->items[number].time, queue->order++, number};
	size_t i = queue->count;

	KB_GROW(queue->items, queue->count, queue->cap);
	queue->count++;
	for (; i > 0 && comes_first(&item, &queue->items[(i - 1) / 2]); i = (i - 1) / 2)
		queue->items[i] = queue->items[(i - 1) / 2];
	queue->items[i] = item;
}

uint32_t kb_queue_pop(struct kb_queue *queue)
{
	if (queue->count == 0)
		return KB_COMMIT_NONE;

	uint32_t number = queue->items[0].number;
	struct kb_queue_item last = queue->items[--queue->count];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= queue->count)
			break;
		if (child + 1 < queue->count &&
		    comes_first(&queue->items[child + 1], &queue->items[child]))
			child++;
		if (!comes_first(&queue->items[child], &last))
			break;
		queue->items[i] = queue->items[child];
		i = child;
	}
	queue->items[i] = last;
	return number;
}
