/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rebuilds the state of a run from its journal: the same events, the same state. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/session_internal.h"

static int damaged(const struct session *s, size_t number, const char *what,
		   struct kb_error *err)
{
	return kb_error_set(err, KB_EIO,
			    "%s/journal.jsonl:%zu: %s; the run cannot be continued, but its boot "
			    "records are whole (boots/): start a new run, known boots are reused",
			    s->run_dir, number, what);
}

static int replay_action(struct session *s, const struct kb_event *e, uint32_t index,
			 size_t number, struct kb_error *err)
{
	struct kb_action action;
	uint32_t wanted;

	if (s->action.open)
		return damaged(s, number, "an action begins before the last one ended", err);
	kb_decide_next(s->decide, &action);
	if (s->judge && action.phase != KB_PHASE_CALIBRATE) {
		session_open_action(s, index, e->count, e->perturbation, e->text);
		return 0;
	}
	if (!session_next(s, &wanted, &action) || wanted != index || action.count != e->count ||
	    e->perturbation != s->commits[index].next_perturbation)
		return damaged(s, number,
			       "the decision rule of this kbisect would not have done this", err);
	session_open_action(s, index, e->count, e->perturbation, e->text);
	return 0;
}

static int replay_build(struct session *s, const struct kb_event *e, uint32_t index,
			size_t number, struct kb_error *err)
{
	struct session_commit *c = &s->commits[index];

	if (!e->record)
		return damaged(s, number, "a build without a record", err);
	kb_build_record_free(&c->build); /* built again after its artifact was trimmed */
	c->build = (struct kb_build_record){ 0 };
	KB_AUTO_FREE char *path = kb_path_join(s->run_dir, e->record);
	int r = kb_build_record_read(path, &c->build, err);
	if (r)
		return r;
	/* The artifact may have been trimmed since; then it is simply built again. */
	KB_AUTO_FREE char *kernel = c->build.artifact_dir
					    ? kb_path_join(c->build.artifact_dir, "bzImage")
					    : NULL;
	if (c->build.outcome == KB_BUILD_OK && !s->read_only &&
	    (!kernel || !kb_path_exists(kernel))) {
		kb_build_record_free(&c->build);
		c->build = (struct kb_build_record){ 0 };
		return 0;
	}
	c->built = true;
	if (!c->build_counted) {
		c->build_counted = true;
		s->builds++;
		s->builds_cached += c->build.from_cache;
		if (!c->build.from_cache) {
			s->builds_wall_ms += c->build.wall_ms;
			s->builds_timed++;
		}
	}
	return 0;
}

static int replay_boot(struct session *s, const struct kb_event *e, uint32_t index,
		       size_t number, struct kb_error *err)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record record = { 0 };

	if (!s->action.open || s->action.index != index || e->slot >= s->action.count ||
	    s->action.boots[e->slot].done || !e->record)
		return damaged(s, number, "a boot that no action asked for", err);
	KB_AUTO_FREE char *path = kb_path_join(s->run_dir, e->record);
	int r = kb_boot_record_read(path, &record, err);
	if (r)
		return r;
	session_take_boot(s, e->slot, &record, kb_streq(e->text, "cached"));
	if (!kb_streq(e->text, "cached")) {
		s->boots_wall_ms += record.total_ms;
		s->boots_timed++;
	}
	session_close_if_complete(s);
	return 0;
}

static int replay_event(struct session *s, const struct kb_event *e, size_t number,
			struct kb_error *err)
{
	uint32_t index = *e->commit ? session_find(s, e->commit) : UINT32_MAX;
	bool about_commit = e->kind == KB_EVENT_ACTION || e->kind == KB_EVENT_BUILD ||
			    e->kind == KB_EVENT_BOOT || e->kind == KB_EVENT_UNTESTABLE;

	if (s->judge && about_commit && index == UINT32_MAX) {
		struct kb_oid oid;

		memcpy(oid.hex, e->commit, sizeof(oid.hex));
		index = session_add_commit(s, &oid);
	}
	if (about_commit && index == UINT32_MAX)
		return damaged(s, number, "a commit that is not in the range", err);
	switch (e->kind) {
	case KB_EVENT_ACTION:
		return replay_action(s, e, index, number, err);
	case KB_EVENT_BUILD:
		return replay_build(s, e, index, number, err);
	case KB_EVENT_BOOT:
		return replay_boot(s, e, index, number, err);
	case KB_EVENT_UNTESTABLE:
		if (!s->action.open || s->action.index != index)
			return damaged(s, number, "a verdict that no action led to", err);
		session_take_untestable(s, index, e->text ? e->text : "untestable");
		return 0;
	case KB_EVENT_DONE:
		snprintf(s->done_text, sizeof(s->done_text), "%s", e->text ? e->text : "done");
		return 0;
	case KB_EVENT_START:
	case KB_EVENT_RESUME:
	case KB_EVENT_NOTE:
		return 0;
	}
	return damaged(s, number, "an event of an unknown kind", err);
}

/* Wall time spent so far: gaps between a stop and its resumption are not counted. */
static void add_wall(struct session *s, const struct kb_event *before,
		     const struct kb_event *now)
{
	if (before && now->kind != KB_EVENT_RESUME && now->at_us > before->at_us)
		s->replayed_wall_ms += (now->at_us - before->at_us) / 1000;
}

int session_replay(struct session *s, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(s->run_dir, "journal.jsonl");
	KB_AUTO_FREE struct kb_event *events = NULL;
	size_t count = 0;
	int r = 0;

	if (!kb_path_exists(path))
		return 0;
	r = kb_journal_read(path, &events, &count, err);
	if (r)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (!r)
			r = replay_event(s, &events[i], i + 2, err); /* after the header */
		add_wall(s, i ? &events[i - 1] : NULL, &events[i]);
	}
	for (size_t i = 0; i < count; i++)
		kb_event_free(&events[i]);
	return r;
}
