/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal of a run: JSON lines, append-only, each synced before anything acts on it.
 * Replaying it rebuilds the decision state exactly.
 */
#ifndef KB_RESULTS_JOURNAL_H
#define KB_RESULTS_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"

enum kb_event_kind {
	KB_EVENT_START,      /* run opened; text: kbisect version */
	KB_EVENT_RESUME,     /* opened again */
	KB_EVENT_ACTION,     /* decision: commit, count = boots wanted, first perturbation, text = why */
	KB_EVENT_BUILD,      /* build finished; record = path below the run folder */
	KB_EVENT_BOOT,       /* boot finished and counted; record, perturbation, slot = order in its action */
	KB_EVENT_UNTESTABLE, /* text = why */
	KB_EVENT_NOTE,       /* text */
	KB_EVENT_DONE,       /* text = outcome word */
};

struct kb_event {
	enum kb_event_kind kind;
	uint64_t at_us;
	char commit[41];       /* "" when it does not apply */
	char *record;          /* owned; NULL when it does not apply */
	char *text;            /* owned; NULL when it does not apply */
	uint32_t perturbation;
	uint32_t count;
	uint32_t slot;
};

void kb_event_free(struct kb_event *e);

struct kb_journal;

/**
 * Opens for appending (made if missing), with a lock: a journal that another process has
 * open is an error that says so. A half-written last line (no newline: a crash) is cut off.
 * Any other damage is KB_EIO naming file:line, and nothing is changed.
 */
int kb_journal_open(const char *path, struct kb_journal **ret_journal, struct kb_error *err);
void kb_journal_close(struct kb_journal *j);

/** Appends one event (at_us filled when 0) and fsyncs. Errors: KB_EIO. */
int kb_journal_append(struct kb_journal *j, const struct kb_event *event, struct kb_error *err);

/** Reads all events without opening for append. @ret_events owned array, free each. */
int kb_journal_read(const char *path, struct kb_event **ret_events, size_t *ret_count,
		    struct kb_error *err);

#endif
