/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One commit against the recorded endpoints, for `git bisect run`: the engine is used for the
 * calibration only; git chooses the commits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/session_internal.h"
#include "harness/version.h"

uint32_t session_add_commit(struct session *s, const struct kb_oid *oid)
{
	uint32_t index = session_find(s, oid->hex);

	if (index != UINT32_MAX)
		return index;
	s->commits = kb_realloc(s->commits, s->commit_count + 1, sizeof(*s->commits));
	s->commits[s->commit_count] = (struct session_commit){ .oid = *oid };
	return s->commit_count++;
}

/* @return true with how many boots it still needs; false when *ret_verdict is final */
static bool needs_boots(struct session *s, uint32_t index, uint32_t *ret_count,
			enum kb_verdict *ret_verdict)
{
	const struct session_commit *good = &s->commits[s->good_index];
	const struct session_commit *bad = &s->commits[s->range.bad];
	struct session_commit *c = &s->commits[index];
	struct kb_decide_params p;

	kb_session_decide_params(&s->job, &p);
	*ret_verdict = KB_VERDICT_UNTESTABLE;
	if (index == s->good_index || index == s->range.bad) {
		*ret_verdict = index == s->good_index ? KB_VERDICT_GOOD : KB_VERDICT_BAD;
		return false;
	}
	if (c->untestable || c->failed > p.retries)
		return false;
	*ret_verdict = KB_VERDICT_UNCLEAR;
	if (c->count >= p.commit_boots_min) {
		*ret_verdict = kb_decide_classify(good->ys, good->count, bad->ys, bad->count,
						  c->ys, c->count, &p);
		if (*ret_verdict != KB_VERDICT_UNCLEAR || c->count >= p.commit_boots_max)
			return false;
	}
	*ret_count = c->count < p.commit_boots_min ? p.commit_boots_min - (uint32_t)c->count : 1;
	return true;
}

static int calibrate(struct session *s, struct kb_error *err)
{
	struct kb_decide_result res;
	struct kb_action action;
	uint32_t index;
	int r;

	for (;;) {
		if (s->action.open) {
			r = session_perform(s, err);
			if (r)
				return r;
			continue;
		}
		kb_decide_next(s->decide, &action);
		if (action.phase != KB_PHASE_CALIBRATE)
			break;
		index = session_node_to_index(s, action.node);
		r = session_begin_action(s, index, &action, err);
		if (r)
			return r;
	}
	if (action.phase != KB_PHASE_DONE)
		return 0;
	kb_decide_result(s->decide, &res);
	r = res.outcome == KB_OUTCOME_NOT_REPRODUCIBLE || res.outcome == KB_OUTCOME_INFRASTRUCTURE
		    ? kb_error_set(err, KB_EVM, "the endpoints cannot tell good from bad: %s",
				   res.reason)
		    : 0; /* a range of one commit is decided by its endpoints alone */
	kb_decide_result_free(&res);
	return r;
}

static int judge_one(struct session *s, const struct kb_oid *commit,
		     enum kb_verdict *ret_verdict, struct kb_error *err)
{
	uint32_t index = session_add_commit(s, commit), count;
	struct kb_action action = { .phase = KB_PHASE_SEARCH, .node = KB_NODE_NONE };
	int r;

	snprintf(action.why, sizeof(action.why), "git bisect asks about it");
	while (needs_boots(s, index, &count, ret_verdict)) {
		action.count = count;
		r = session_begin_action(s, index, &action, err);
		if (!r)
			r = session_perform(s, err);
		if (r)
			return r;
	}
	return 0;
}

static void explain(struct session *s, const struct kb_oid *commit, char *ret_why,
		    size_t why_size)
{
	const struct session_commit *c = &s->commits[session_find(s, commit->hex)];
	double sum = 0;

	if (c->why && !c->count) {
		snprintf(ret_why, why_size, "%s", c->why);
		return;
	}
	for (size_t i = 0; i < c->count; i++)
		sum += c->means[i];
	snprintf(ret_why, why_size, "mean %.6g %s over %zu boots", sum / (double)c->count, s->unit,
		 c->count);
}

int kb_session_judge(const char *run_dir, const char *commit_hex,
		     const struct kb_session_observer *observer, enum kb_verdict *ret_verdict,
		     char *ret_why, size_t why_size, struct kb_error *err)
{
	KB_AUTO(session_free) struct session s;
	KB_AUTO_FREE char *journal = kb_path_join(run_dir, "journal.jsonl");
	struct kb_oid commit;
	int r;

	session_init(&s);
	s.observer = observer;
	r = session_load(&s, run_dir, err);
	if (!r)
		r = kb_repo_resolve(s.repo, commit_hex, &commit, err);
	if (!r)
		r = kb_journal_open(journal, &s.journal, err);
	if (!r)
		r = session_replay(&s, err);
	if (!r)
		r = session_open_measure(&s, err);
	while (!r && s.action.open) /* cut short the last time */
		r = session_perform(&s, err);
	if (!r)
		r = calibrate(&s, err);
	if (!r)
		r = judge_one(&s, &commit, ret_verdict, err);
	if (!r)
		explain(&s, &commit, ret_why, why_size);
	return r;
}
