/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run has found, put into a report; and its `git bisect log`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/stats.h"
#include "harness/base/clock.h"
#include "harness/base/mem.h"
#include "harness/session_internal.h"
#include "harness/workload.h"

static const char *verdict_word(enum kb_verdict v, const struct session_commit *c)
{
	if (c->untestable || v == KB_VERDICT_UNTESTABLE)
		return "untestable";
	switch (v) {
	case KB_VERDICT_GOOD:
		return "good";
	case KB_VERDICT_BAD:
		return "bad";
	case KB_VERDICT_UNCLEAR:
		return "unclear";
	default:
		return c->order ? "unclear" : "candidate";
	}
}

static enum kb_verdict verdict_of(const struct session *s, uint32_t index,
				  double *ret_probability)
{
	struct kb_decide_node st;

	*ret_probability = 0;
	if (index >= s->base_first)
		return s->commits[index].base_verdict;
	if (index == s->good_index)
		return KB_VERDICT_GOOD;
	kb_decide_node_state(s->decide, index, &st);
	*ret_probability = st.probability;
	return index == s->range.bad ? KB_VERDICT_BAD : st.verdict;
}

static void fill_commit(struct session *s, uint32_t index, struct kb_report_commit *ret)
{
	const struct session_commit *c = &s->commits[index];
	double probability;
	enum kb_verdict v = verdict_of(s, index, &probability);

	*ret = (struct kb_report_commit){
		.commit = kb_strdup(c->oid.hex),
		.subject = kb_strdup(session_subject(s, index)),
		.verdict = kb_strdup(verdict_word(v, c)),
		.reason = kb_strdup(c->why),
		.probability = probability,
		.boots = (uint32_t)c->count,
		.failed = c->failed,
		.mean = kb_stats_mean(c->means, c->count),
		.sd = kb_stats_sd(c->means, c->count),
		.endpoint = index == s->good_index || index == s->range.bad,
	};
	if (c->count) {
		ret->values = kb_calloc(c->count, sizeof(double));
		memcpy(ret->values, c->means, c->count * sizeof(double));
	}
}

static void fill_tested(struct session *s, struct kb_report *r)
{
	r->tested = kb_calloc(s->touched ? s->touched : 1, sizeof(*r->tested));
	for (uint32_t want = 1; want <= s->touched; want++)
		for (uint32_t i = 0; i < s->commit_count; i++)
			if (s->commits[i].order == want)
				fill_commit(s, i, &r->tested[r->tested_count++]);
}

static const char *outcome_word(enum kb_outcome o)
{
	switch (o) {
	case KB_OUTCOME_CULPRIT:
		return "culprit";
	case KB_OUTCOME_SET:
		return "set";
	case KB_OUTCOME_NOT_REPRODUCIBLE:
		return "not-reproducible";
	case KB_OUTCOME_MULTI:
		return "multi";
	case KB_OUTCOME_INFRASTRUCTURE:
		return "infrastructure";
	case KB_OUTCOME_NONE:
		break;
	}
	return "interrupted";
}

/* A parent outside the range was not booted: the good endpoint stood in for it. */
static void remark_stand_in(struct session *s, uint32_t culprit, struct kb_report *r)
{
	KB_AUTO_FREE struct kb_oid *parents = NULL;
	size_t count = 0;

	if (!s->parents_outside[culprit] ||
	    kb_repo_parents(s->repo, &s->range.oids[culprit], &parents, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		if (kb_range_find(&s->range, &parents[i]) != UINT32_MAX ||
		    kb_streq(parents[i].hex, s->commits[s->good_index].oid.hex))
			continue;
		char *more = kb_asprintf("%s%sthe good endpoint stood in for the parent %.12s, "
					 "which is outside the range",
					 r->reason ? r->reason : "",
					 r->reason && *r->reason ? "; " : "", parents[i].hex);
		free(r->reason);
		r->reason = more;
	}
}

static void fill_answer(struct session *s, struct kb_report *r)
{
	struct kb_decide_result res;
	uint32_t bad_base = session_bad_base(s);
	double sign = s->higher_is_better ? -1.0 : 1.0;

	kb_decide_result(s->decide, &res);
	r->verdict = kb_strdup(outcome_word(res.outcome));
	r->reason = kb_strdup(res.reason);
	r->confirmed = res.confirmed;
	r->confirm_p = res.confirm_p;
	/* y grows as things get worse; ratios are of the metric itself. */
	r->endpoint_ratio = exp(sign * res.endpoint_effect);
	r->has_effect = isfinite(res.effect);
	r->effect_ratio = exp(sign * res.effect);
	r->effect_low = exp(sign * (sign > 0 ? res.effect_low : res.effect_high));
	r->effect_high = exp(sign * (sign > 0 ? res.effect_high : res.effect_low));
	r->candidates = kb_calloc(res.candidate_count ? res.candidate_count : 1,
				  sizeof(*r->candidates));
	for (size_t i = 0; i < res.candidate_count; i++)
		fill_commit(s, res.candidates[i], &r->candidates[r->candidate_count++]);
	if (res.outcome == KB_OUTCOME_CULPRIT && res.candidate_count)
		remark_stand_in(s, res.candidates[0], r);
	kb_decide_result_free(&res);
	if (bad_base != UINT32_MAX) {
		free(r->verdict);
		free(r->reason);
		r->verdict = kb_strdup("fixed-on-good-side");
		r->reason = kb_asprintf(
			"the merge base %.12s is as slow as the bad endpoint: the regression is "
			"older than it, and the good side repaired it. Compare with an ancestor "
			"of the bad endpoint that is fast, as --good",
			s->commits[bad_base].oid.hex);
		kb_report_drop_candidates(r);
	}
}

void session_make_report(struct session *s, struct kb_report *ret_report)
{
	const struct kb_job *job = &s->job;
	struct kb_report *r = ret_report;

	memset(r, 0, sizeof(*r));
	r->run_id = kb_strdup(s->info.id);
	r->command = kb_strdup(s->info.command);
	r->metric = kb_strdup(job->metric ? job->metric
					  : kb_workload_default_metric(job->workload_name));
	r->unit = kb_strdup(*s->unit ? s->unit : "");
	r->higher_is_better = s->higher_is_better;
	r->builds = s->builds;
	r->builds_cached = s->builds_cached;
	r->boots = s->boots;
	r->boots_cached = s->boots_cached;
	r->range_size = s->range.dag.node_count;
	r->wall_ms = s->replayed_wall_ms + (s->read_only ? 0 : kb_now_ms() - s->started_ms);
	r->repo_path = kb_strdup(s->info.repo_path);
	r->good = kb_strdup(s->commits[s->good_index].oid.hex);
	r->bad = kb_strdup(s->range.oids[s->range.bad].hex);
	r->mode = kb_strdup(s->info.mode);
	r->job_name = kb_strdup(job->name);
	r->image_sha256 = kb_strdup(s->info.image_sha256);
	r->kernel_config = kb_strdup(s->commits[s->good_index].build.config_sha256);
	for (size_t i = 0; i < s->info.argv.count; i++)
		kb_strv_add(&r->argv, s->info.argv.items[i]);
	fill_tested(s, r);
	fill_answer(s, r);
}

/* git reads the words of this line back as shell words in quotes, and only those. */
static void append_quoted(struct kb_str *out, const char *word)
{
	kb_str_append(out, " '");
	for (const char *p = word; *p; p++) {
		if (*p == '\'')
			kb_str_append(out, "'\\''");
		else
			kb_str_append_bytes(out, p, 1);
	}
	kb_str_append(out, "'");
}

static void log_line(struct session *s, struct kb_str *out, const char *word, uint32_t index)
{
	const char *hex = s->commits[index].oid.hex;

	kb_str_appendf(out, "# %s: [%s] %s\ngit bisect %s %s\n", word, hex,
		       session_subject(s, index), word, hex);
}

int kb_session_git_log(const char *run_dir, char **ret_text, struct kb_error *err)
{
	KB_AUTO(session_free) struct session s;
	KB_AUTO(kb_str_free) struct kb_str out = { 0 };
	int r;

	session_init(&s);
	s.read_only = true;
	r = session_load(&s, run_dir, err);
	if (!r)
		r = session_replay(&s, err);
	if (r)
		return r;
	kb_str_append(&out, "git bisect start");
	if (s.info.first_parent)
		append_quoted(&out, "--first-parent");
	if (s.info.paths.count)
		append_quoted(&out, "--");
	for (size_t i = 0; i < s.info.paths.count; i++)
		append_quoted(&out, s.info.paths.items[i]);
	kb_str_append(&out, "\n");
	log_line(&s, &out, "bad", s.range.bad);
	log_line(&s, &out, "good", s.good_index);
	for (size_t i = 1; i < s.info.goods.count; i++)
		kb_str_appendf(&out, "git bisect good %s\n", s.info.goods.items[i]);
	for (uint32_t want = 1; want <= s.touched; want++) {
		for (uint32_t i = 0; i < s.commit_count; i++) {
			double p;
			enum kb_verdict v = verdict_of(&s, i, &p);

			if (s.commits[i].order != want || i == s.good_index || i == s.range.bad)
				continue;
			if (s.commits[i].untestable || v == KB_VERDICT_UNTESTABLE ||
			    v == KB_VERDICT_UNCLEAR)
				log_line(&s, &out, "skip", i);
			else if (v == KB_VERDICT_GOOD || v == KB_VERDICT_BAD)
				log_line(&s, &out, v == KB_VERDICT_GOOD ? "good" : "bad", i);
		}
	}
	*ret_text = kb_str_steal(&out);
	return 0;
}
