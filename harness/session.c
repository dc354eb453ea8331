/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/session.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/session_internal.h"

static int append(struct session *s, enum kb_event_kind kind, uint32_t index,
		  const char *record, const char *text, const struct kb_event *numbers,
		  struct kb_error *err)
{
	struct kb_event e = numbers ? *numbers : (struct kb_event){ 0 };

	e.kind = kind;
	if (index != UINT32_MAX)
		memcpy(e.commit, s->commits[index].oid.hex, sizeof(e.commit));
	e.record = (char *)record; /* only read by append */
	e.text = (char *)text;
	return kb_journal_append(s->journal, &e, err);
}

/* ---- progress ---- */

static uint64_t estimate_left_ms(const struct session *s, const struct kb_decide_progress *p)
{
	uint64_t per_boot = s->boots_timed ? s->boots_wall_ms / s->boots_timed : 0;
	uint64_t per_build = s->builds_timed ? s->builds_wall_ms / s->builds_timed : 0;

	if (!per_boot && !per_build)
		return 0;
	unsigned parallel = s->measure.parallel ? s->measure.parallel : 1;
	return p->boots_left * per_boot / parallel + p->steps_left * per_build;
}

static void tell(struct session *s, enum kb_step step, const char *text)
{
	struct kb_decide_progress p;
	struct kb_session_status st = { .step = step, .text = text };
	const struct session_action *a = &s->action;

	if (!s->observer || !s->observer->status)
		return;
	kb_decide_progress(s->decide, &p);
	st.phase = p.phase;
	if (a->open) {
		st.commit = s->commits[a->index].oid.hex;
		st.subject = session_subject(s, a->index);
		st.why = a->why;
		st.boots_wanted = a->count;
		for (uint32_t i = 0; i < a->count; i++)
			st.boots_done += a->boots[i].done;
	}
	st.builds = s->builds;
	st.boots = s->boots;
	st.candidates_left = p.candidates_left;
	st.steps_left = p.steps_left;
	st.boots_left = p.boots_left;
	st.elapsed_ms = s->replayed_wall_ms + kb_now_ms() - s->started_ms;
	st.left_ms = estimate_left_ms(s, &p);
	if (p.top_node != KB_NODE_NONE) {
		st.top_commit = s->commits[session_node_to_index(s, p.top_node)].oid.hex;
		st.top_probability = p.top_probability;
	}
	s->observer->status(s->observer->ctx, &st);
}

static void tick_build(void *ctx)
{
	tell(ctx, KB_STEP_BUILD, NULL);
}

static void tick_boot(void *ctx)
{
	tell(ctx, KB_STEP_BOOT, NULL);
}

/* ---- doing one action ---- */

static int declare_untestable(struct session *s, uint32_t index, const char *why,
			      struct kb_error *err)
{
	int r = append(s, KB_EVENT_UNTESTABLE, index, NULL, why, NULL, err);

	if (r)
		return r;
	session_take_untestable(s, index, why);
	return 0;
}

/* @return 1 once the verdict is recorded, negative on error */
static int build_failed(struct session *s, uint32_t index, struct kb_error *err)
{
	const char *reason = s->commits[index].build.reason;
	KB_AUTO_FREE char *why = kb_asprintf("does not build: %s", reason ? reason : "failed");
	int r = declare_untestable(s, index, why, err);

	return r ? r : 1;
}

/* @return 0 built, 1 untestable (recorded), negative on error */
static int ensure_built(struct session *s, uint32_t index, struct kb_error *err)
{
	struct session_commit *c = &s->commits[index];
	KB_AUTO_FREE char *rel = NULL;
	uint64_t began = kb_now_ms();
	int r;

	if (c->built) /* or killed between a failed build and its verdict */
		return c->build.outcome == KB_BUILD_OK ? 0 : build_failed(s, index, err);
	tell(s, KB_STEP_BUILD, NULL);
	s->measure.tick = tick_build;
	r = kb_measure_build(&s->measure, &c->oid, &c->build, &rel, err);
	if (r)
		return r;
	c->built = true;
	if (!c->build_counted) {
		c->build_counted = true;
		s->builds++;
		s->builds_cached += c->build.from_cache;
	}
	if (!c->build.from_cache) {
		s->builds_wall_ms += kb_now_ms() - began;
		s->builds_timed++;
	}
	r = append(s, KB_EVENT_BUILD, index, rel, c->build.reason, NULL, err);
	if (r)
		return r;
	char took[32];
	KB_AUTO_FREE char *line = kb_asprintf(
		"%.12s %s (%s)", c->oid.hex,
		c->build.outcome == KB_BUILD_OK ? "built"
						: (c->build.reason ? c->build.reason : "failed"),
		c->build.from_cache ? "from the cache"
				    : kb_duration_string(kb_now_ms() - began, took));
	tell(s, KB_STEP_BUILD, line);
	return c->build.outcome == KB_BUILD_OK ? 0 : build_failed(s, index, err);
}

static int boot_done(void *ctx, const struct kb_boot_wish *wish,
		     const struct kb_boot_record *record, const char *record_rel,
		     bool from_cache, struct kb_error *err)
{
	struct session *s = ctx;
	struct session_action *a = &s->action;
	struct kb_event numbers = { .perturbation = wish->perturbation, .slot = wish->slot };
	const struct session_boot *b = &a->boots[wish->slot];

	session_take_boot(s, wish->slot, record, from_cache);
	if (!from_cache) {
		s->boots_wall_ms += record->total_ms;
		s->boots_timed++;
	}
	int r = append(s, KB_EVENT_BOOT, a->index, record_rel,
		       b->valid ? (from_cache ? "cached" : NULL) : b->reason, &numbers, err);
	if (r)
		return r;
	KB_AUTO_FREE char *line =
		b->valid ? kb_asprintf("%.12s boot %u: %.6g %s%s", s->commits[a->index].oid.hex,
				       wish->perturbation, b->mean, s->unit,
				       from_cache ? " (known)" : "")
			 : kb_asprintf("%.12s boot %u: %s", s->commits[a->index].oid.hex,
				       wish->perturbation, b->reason);
	tell(s, KB_STEP_BOOT, line);
	return 0;
}

static int run_boots(struct session *s, struct kb_error *err)
{
	struct session_action *a = &s->action;
	struct session_commit *c = &s->commits[a->index];
	KB_AUTO_FREE struct kb_boot_wish *wishes = kb_calloc(a->count, sizeof(*wishes));
	size_t n = 0;

	for (uint32_t i = 0; i < a->count; i++)
		if (!a->boots[i].done)
			wishes[n++] = (struct kb_boot_wish){ a->first_perturbation + i, i };
	tell(s, KB_STEP_BOOT, NULL);
	s->measure.tick = tick_boot;
	return kb_measure_boots(&s->measure, &c->oid, &c->build, wishes, n, boot_done, s, err);
}

int session_perform(struct session *s, struct kb_error *err)
{
	if (kb_interrupted())
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	int r = ensure_built(s, s->action.index, err);
	if (r)
		return r < 0 ? r : 0;
	r = run_boots(s, err);
	if (r)
		return r;
	session_close_if_complete(s);
	return 0;
}

int session_begin_action(struct session *s, uint32_t index, const struct kb_action *action,
			 struct kb_error *err)
{
	struct kb_event numbers = { .count = action->count,
				    .perturbation = s->commits[index].next_perturbation };
	int r = append(s, KB_EVENT_ACTION, index, NULL, action->why, &numbers, err);

	if (r)
		return r;
	session_open_action(s, index, action->count, numbers.perturbation, action->why);
	return 0;
}

/* Once a tested commit has its verdict: what it is, and what that leaves. */
static void tell_verdict(struct session *s, uint32_t index)
{
	static const char *const words[] = { [KB_VERDICT_GOOD] = "good",
					     [KB_VERDICT_BAD] = "bad",
					     [KB_VERDICT_UNCLEAR] = "unclear",
					     [KB_VERDICT_UNTESTABLE] = "untestable" };
	struct kb_decide_progress p;
	struct kb_decide_node node;
	struct session_commit *c = &s->commits[index];

	kb_decide_progress(s->decide, &p);
	if (index >= s->good_index || p.phase != KB_PHASE_SEARCH || c->told)
		return;
	kb_decide_node_state(s->decide, index, &node);
	if (node.verdict == KB_VERDICT_NONE || index == s->range.bad)
		return;
	c->told = true;
	KB_AUTO_FREE char *line = kb_asprintf("%.12s is %s: %u candidates left, about %u steps",
					      c->oid.hex, words[node.verdict],
					      p.candidates_left, p.steps_left);
	tell(s, KB_STEP_DECIDED, line);
}

/* What lies ahead, before it begins. */
static void tell_forecast(struct session *s)
{
	struct kb_decide_progress p;

	kb_decide_progress(s->decide, &p);
	KB_AUTO_FREE char *line = kb_asprintf(
		"%u candidates, %s mode; ahead: about %u commits to build and %u boots, %u side "
		"by side",
		p.candidates_left, s->info.mode,
		p.steps_left + (p.phase == KB_PHASE_CALIBRATE ? 2 : 0), p.boots_left,
		s->measure.parallel);
	tell(s, KB_STEP_REPLAYED, line);
}

static int loop(struct session *s, struct kb_error *err)
{
	uint32_t index;
	struct kb_action action;
	int r = 0;

	while (!r) {
		if (!s->action.open) {
			if (!session_next(s, &index, &action))
				return 0;
			r = session_begin_action(s, index, &action, err);
			if (r)
				return r;
		}
		index = s->action.index;
		r = session_perform(s, err);
		if (!r)
			tell_verdict(s, index);
	}
	return r;
}

/* Samples of two images cannot be mixed. */
static int check_image(const struct session *s, struct kb_error *err)
{
	char hex[KB_HASH_HEX_LEN + 1];
	int r = kb_hash_file(s->info.image_path, hex, err);

	if (!r && !kb_streq(hex, s->info.image_sha256))
		r = kb_error_set(err, KB_ECONFIG,
				 "the guest image %s is not the one this run began with: start a "
				 "new run",
				 s->info.image_path);
	return r;
}

int session_open_measure(struct session *s, struct kb_error *err)
{
	KB_AUTO_FREE struct kb_oid *ends = kb_calloc(s->commit_count, sizeof(*ends));
	size_t n = 0;

	ends[n++] = s->commits[s->good_index].oid;
	ends[n++] = s->range.oids[s->range.bad];
	for (uint32_t i = s->base_first; i < s->commit_count; i++)
		ends[n++] = s->commits[i].oid;
	int r = check_image(s, err);
	if (r)
		return r;
	r = kb_measure_init(&s->measure, &s->job, &s->info, s->repo, s->run_dir, ends, n, err);

	s->measure_ready = true;
	s->measure.tick_ctx = s;
	return r;
}

static int run_to_end(struct session *s, bool fresh, struct kb_report *ret_report,
		      struct kb_error *err)
{
	KB_AUTO_FREE char *report_path = kb_path_join(s->run_dir, "report.json");
	int r = session_open_measure(s, err);

	if (r)
		return r;
	s->measure.fresh = fresh;
	tell_forecast(s);
	r = loop(s, err);
	if (r)
		return r;
	session_make_report(s, ret_report);
	/* The report first: a run that says DONE has one. */
	r = kb_report_write(report_path, ret_report, err);
	if (!r)
		r = append(s, KB_EVENT_DONE, UINT32_MAX, NULL, ret_report->verdict, NULL, err);
	if (r)
		kb_report_free(ret_report);
	return r;
}

int kb_session_run(const char *run_dir, bool fresh, const struct kb_session_observer *observer,
		   struct kb_report *ret_report, struct kb_error *err)
{
	KB_AUTO(session_free) struct session s;
	KB_AUTO_FREE char *journal = kb_path_join(run_dir, "journal.jsonl");
	bool resumed = kb_path_exists(journal);
	int r;

	session_init(&s);
	s.observer = observer;
	r = session_load(&s, run_dir, err);
	if (!r)
		r = kb_journal_open(journal, &s.journal, err);
	if (!r)
		r = session_replay(&s, err);
	if (r)
		return r;
	if (*s.done_text) {
		session_make_report(&s, ret_report);
		return 0;
	}
	r = append(&s, resumed ? KB_EVENT_RESUME : KB_EVENT_START, UINT32_MAX, NULL,
		   s.info.version, NULL, err);
	return r ? r : run_to_end(&s, fresh, ret_report, err);
}

int kb_session_report(const char *run_dir, struct kb_report *ret_report, struct kb_error *err)
{
	KB_AUTO(session_free) struct session s;
	int r;

	session_init(&s);
	s.read_only = true;
	r = session_load(&s, run_dir, err);
	if (!r)
		r = session_replay(&s, err);
	if (!r)
		session_make_report(&s, ret_report);
	return r;
}
