/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "results/json_util.h"

#define JOURNAL_FORMAT "kbisect-journal"
#define JOURNAL_MAJOR 1
#define JOURNAL_MINOR 0
#define JOURNAL_MAX_BYTES (256u << 20)

struct kb_journal {
	int fd; /* locked */
	char *path;
	off_t size; /* whole lines */
};

static const char *const kinds[] = {
	[KB_EVENT_START] = "start",   [KB_EVENT_RESUME] = "resume",
	[KB_EVENT_ACTION] = "action", [KB_EVENT_BUILD] = "build",
	[KB_EVENT_BOOT] = "boot",     [KB_EVENT_UNTESTABLE] = "untestable",
	[KB_EVENT_NOTE] = "note",     [KB_EVENT_DONE] = "done",
};

static const struct kb_json_field event_fields[] = {
	KB_JSON_NEEDED(kb_event, at_us, U64),
	KB_JSON_FIELD(kb_event, commit, WORD),
	KB_JSON_FIELD(kb_event, record, TEXT),
	KB_JSON_FIELD(kb_event, text, TEXT),
	KB_JSON_FIELD(kb_event, perturbation, U32),
	KB_JSON_FIELD(kb_event, count, U32),
	KB_JSON_FIELD(kb_event, slot, U32),
};

void kb_event_free(struct kb_event *e)
{
	if (!e)
		return;
	free(e->record);
	free(e->text);
	*e = (struct kb_event){ 0 };
}

/* ---- lines ---- */

struct event_list {
	struct kb_event *items;
	size_t count, cap;
};

static void event_list_free(struct event_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		kb_event_free(&list->items[i]);
	free(list->items);
}

static int parse_kind(const json_t *json, enum kb_event_kind *ret_kind, struct kb_error *err)
{
	const char *word = json_string_value(json_object_get(json, "event"));

	for (size_t i = 0; i < KB_COUNT_OF(kinds); i++) {
		if (kb_streq(kinds[i], word)) {
			*ret_kind = (enum kb_event_kind)i;
			return 0;
		}
	}
	return kb_error_set(err, KB_ECONFIG, "event: unknown or missing");
}

static int parse_event(const char *line, size_t len, struct kb_event *ret_event,
		       struct kb_error *err)
{
	json_error_t why;
	KB_AUTO(kb_json_auto_free) json_t *json = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	KB_AUTO(kb_event_free) struct kb_event e = { 0 };
	int r;

	if (!json)
		return kb_error_set(err, KB_ECONFIG, "%s", why.text);
	r = parse_kind(json, &e.kind, err);
	if (!r)
		r = kb_json_get(json, event_fields, KB_COUNT_OF(event_fields), "", &e, err);
	if (!r && *e.commit && strspn(e.commit, "0123456789abcdef") != 40)
		r = kb_error_set(err, KB_ECONFIG, "commit: is not a commit id");
	if (r)
		return r;
	*ret_event = e;
	e = (struct kb_event){ 0 };
	return 0;
}

static int damaged(const char *path, size_t line, const struct kb_error *why,
		   struct kb_error *err)
{
	return kb_error_set(err, KB_EIO, "%s:%zu: the journal is damaged: %s", path, line,
			    why->message);
}

/* @param ret_whole bytes of whole lines; what follows is a line that a crash cut short */
static int parse_all(const char *text, size_t len, const char *path, struct event_list *list,
		     size_t *ret_whole, struct kb_error *err)
{
	size_t at = 0, line = 1;
	const char *end;

	for (; (end = memchr(text + at, '\n', len - at)); line++) {
		size_t n = (size_t)(end - (text + at));
		struct kb_error why;
		int r;

		if (line == 1) {
			KB_AUTO(kb_json_auto_free) json_t *header = NULL;

			r = kb_json_parse(text, n, "header", JOURNAL_FORMAT, JOURNAL_MAJOR, &header,
					  &why);
		} else {
			KB_GROW(list->items, list->count, list->cap);
			r = parse_event(text + at, n, &list->items[list->count], &why);
			list->count += !r;
		}
		if (r)
			return damaged(path, line, &why, err);
		at += n + 1;
	}
	*ret_whole = at;
	return 0;
}

static int load(const char *path, struct event_list *list, size_t *ret_whole,
		struct kb_error *err)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	int r = kb_read_file(path, JOURNAL_MAX_BYTES, &text, &len, err);

	return r ? r : parse_all(text, len, path, list, ret_whole, err);
}

int kb_journal_read(const char *path, struct kb_event **ret_events, size_t *ret_count,
		    struct kb_error *err)
{
	KB_AUTO(event_list_free) struct event_list list = { 0 };
	size_t whole;
	int r = load(path, &list, &whole, err);

	if (r)
		return r;
	*ret_events = KB_STEAL(list.items);
	*ret_count = list.count;
	list.count = 0;
	return 0;
}

/* ---- appending ---- */

/* One line, synced. After a failure the file ends with the last whole line again. */
static int append_line(struct kb_journal *j, const json_t *json, struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str line = { 0 };
	KB_AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);
	int r;

	kb_str_append(&line, text ? text : "{}");
	kb_str_append(&line, "\n");
	r = kb_write_all(j->fd, line.data, line.len, err);
	if (!r && fdatasync(j->fd))
		r = kb_error_errno(err, KB_EIO, errno, "cannot sync");
	if (r) {
		kb_error_prefix(err, "%s", j->path);
		if (ftruncate(j->fd, j->size))
			kb_error_prefix(err, "and could not be repaired");
		return r;
	}
	j->size += (off_t)line.len;
	return 0;
}

static void sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	KB_AUTO_FREE char *dir = slash ? kb_strndup(path, (size_t)(slash - path) + 1)
				       : kb_strdup(".");
	KB_AUTO(kb_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* Not all file systems can; the journal's own sync is what resuming relies on. */
	if (fd >= 0 && fsync(fd) == 0)
		return;
}

static int cut_and_begin(struct kb_journal *j, size_t whole, struct kb_error *err)
{
	struct stat st;

	if (fstat(j->fd, &st))
		return kb_error_errno(err, KB_EIO, errno, "cannot look at %s", j->path);
	j->size = (off_t)whole;
	if (st.st_size > j->size && (ftruncate(j->fd, j->size) || fdatasync(j->fd)))
		return kb_error_errno(err, KB_EIO, errno, "cannot cut the torn end off %s", j->path);
	if (j->size > 0)
		return 0;
	KB_AUTO(kb_json_auto_free) json_t *header =
		kb_json_document(JOURNAL_FORMAT, JOURNAL_MAJOR, JOURNAL_MINOR);
	int r = append_line(j, header, err);
	if (!r)
		sync_folder_of(j->path);
	return r;
}

int kb_journal_open(const char *path, struct kb_journal **ret_journal, struct kb_error *err)
{
	KB_AUTO(event_list_free) struct event_list list = { 0 };
	KB_AUTO(kb_close) int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	size_t whole = 0;
	int r;

	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot open the journal %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno == EWOULDBLOCK)
			return kb_error_set(err, KB_EIO,
					    "%s is in use: another kbisect is working on this run",
					    path);
		return kb_error_errno(err, KB_EIO, errno, "cannot lock %s", path);
	}
	r = load(path, &list, &whole, err);
	if (r)
		return r;
	struct kb_journal *j = kb_calloc(1, sizeof(*j));
	j->fd = fd;
	fd = -1;
	j->path = kb_strdup(path);
	r = cut_and_begin(j, whole, err);
	if (r) {
		kb_journal_close(j);
		return r;
	}
	*ret_journal = j;
	return 0;
}

void kb_journal_close(struct kb_journal *j)
{
	if (!j)
		return;
	kb_close(&j->fd);
	free(j->path);
	free(j);
}

int kb_journal_append(struct kb_journal *j, const struct kb_event *event, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *json = json_object();
	struct kb_event e = *event; /* borrows its texts */

	if (!e.at_us)
		e.at_us = kb_wall_us();
	json_object_set_new(json, "event", json_string(kinds[e.kind]));
	kb_json_put(json, event_fields, KB_COUNT_OF(event_fields), &e);
	for (size_t i = 0; i < KB_COUNT_OF(event_fields); i++)
		if (json_is_null(json_object_get(json, event_fields[i].key)))
			json_object_del(json, event_fields[i].key);
	return append_line(j, json, err);
}
