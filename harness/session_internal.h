/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by session*.c only. */
#ifndef KB_HARNESS_SESSION_INTERNAL_H
#define KB_HARNESS_SESSION_INTERNAL_H

#include "bisect/decide.h"
#include "bisect/repo.h"
#include "harness/job.h"
#include "harness/measure.h"
#include "harness/session.h"
#include "results/journal.h"
#include "results/run.h"

/* One measured revision: a candidate, the good endpoint, or a merge base. */
struct session_commit {
	struct kb_oid oid;
	char *subject;             /* owned; NULL until asked for */
	bool built, build_counted, told;
	struct kb_build_record build;
	bool untestable;
	char *why;                 /* owned; last failure or why it is untestable */
	uint32_t next_perturbation; /* also: boots asked for so far */
	uint32_t failed;
	double *means, *ys;        /* owned; one per valid boot */
	size_t count, cap;
	uint32_t order;            /* 1, 2, ... in the order first touched; 0 never */
	enum kb_verdict base_verdict; /* merge bases only */
};

/* A boot of the action at work, kept until all are there and can be fed in order. */
struct session_boot {
	bool done;
	bool valid;
	double mean, y;
	char reason[256];
};

struct session_action {
	bool open;
	uint32_t index;            /* into commits */
	uint32_t count;
	uint32_t first_perturbation;
	struct session_boot *boots; /* owned; count of them */
	char why[160];
};

struct session {
	char *run_dir;
	bool read_only;            /* reporting: no journal lock, nothing is measured */
	bool judge;                /* git chooses the commits: the engine only calibrates */
	struct kb_run_info info;
	struct kb_job job;
	struct kb_repo *repo;
	struct kb_range range;
	uint8_t *parents_outside;  /* owned */
	struct kb_journal *journal;
	struct kb_decide *decide;
	struct kb_measure measure;
	bool measure_ready;
	struct session_commit *commits; /* nodes, then good, then merge bases */
	uint32_t commit_count, good_index, base_first;
	struct session_action action;
	const struct kb_session_observer *observer;
	uint32_t builds, builds_cached, boots, boots_cached, touched;
	uint64_t started_ms, replayed_wall_ms;
	uint64_t boots_wall_ms, builds_wall_ms, boots_timed, builds_timed; /* for time left */
	bool higher_is_better;
	char unit[32];
	char done_text[64];        /* outcome word of the journal's DONE event */
};

void session_init(struct session *s);
void session_free(struct session *s);

/** Loads run.json, repository, range, engine. */
int session_load(struct session *s, const char *run_dir, struct kb_error *err);
/** Feeds the journal's events to the engine; leaves an unfinished action open. */
int session_replay(struct session *s, struct kb_error *err);

/** Index of a commit among commits, UINT32_MAX if it is not of this run. */
uint32_t session_find(const struct session *s, const char *hex);
uint32_t session_node_to_index(const struct session *s, uint32_t node);
/** Subject of a commit, read once; borrowed, never NULL. */
const char *session_subject(struct session *s, uint32_t index);

/** Records one finished boot in the action at work (not yet fed). */
void session_take_boot(struct session *s, uint32_t slot, const struct kb_boot_record *record,
		       bool from_cache);
/** Once all boots of the action are there: feeds them and closes it. @return closed */
bool session_close_if_complete(struct session *s);
void session_open_action(struct session *s, uint32_t index, uint32_t count,
			 uint32_t first_perturbation, const char *why);
void session_take_untestable(struct session *s, uint32_t index, const char *why);

/** The next action: the engine's, or a merge base that must be tested first.
 * @return false when everything is decided */
bool session_next(struct session *s, uint32_t *ret_index, struct kb_action *ret_action);
/** A merge base that turned out bad, or UINT32_MAX. */
uint32_t session_bad_base(const struct session *s);

/** Opens the measuring context; session_free() closes it. */
int session_open_measure(struct session *s, struct kb_error *err);
/** Writes an action into the journal and opens it. */
int session_begin_action(struct session *s, uint32_t index, const struct kb_action *action,
			 struct kb_error *err);
/** Builds and boots what the open action asks for, and closes it. */
int session_perform(struct session *s, struct kb_error *err);
/** Index of a commit, added behind the others when it is new to the run. */
uint32_t session_add_commit(struct session *s, const struct kb_oid *oid);

void session_make_report(struct session *s, struct kb_report *ret_report);

#endif
