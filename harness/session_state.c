/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a run: loading it, and what actions bring to it. No measuring here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/sample.h"
#include "harness/session_internal.h"

void session_init(struct session *s)
{
	memset(s, 0, sizeof(*s));
	kb_job_init(&s->job);
	kb_range_init(&s->range);
	s->started_ms = kb_now_ms();
}

void session_free(struct session *s)
{
	for (uint32_t i = 0; i < s->commit_count; i++) {
		struct session_commit *c = &s->commits[i];

		free(c->subject);
		free(c->why);
		free(c->means);
		free(c->ys);
		kb_build_record_free(&c->build);
	}
	free(s->commits);
	free(s->action.boots);
	free(s->parents_outside);
	kb_decide_free(s->decide);
	if (s->measure_ready)
		kb_measure_free(&s->measure);
	kb_journal_close(s->journal);
	kb_range_free(&s->range);
	kb_repo_free(s->repo);
	kb_job_free(&s->job);
	kb_run_info_free(&s->info);
	free(s->run_dir);
}

void kb_session_decide_params(const struct kb_job *job, struct kb_decide_params *ret_params)
{
	*ret_params = (struct kb_decide_params){
		.alpha = job->alpha,
		.calibration_boots = job->calibration_boots,
		.calibration_boots_max = job->calibration_boots_max,
		.commit_boots_min = job->commit_boots_min,
		.commit_boots_max = job->commit_boots_max,
		.confirm_boots = job->confirm_boots,
		.retries = job->retries,
		.min_effect = log1p(job->min_effect_percent / 100),
		.seed = job->seed,
		.force = job->force,
		.exact = kb_streq(job->mode, "exact"),
	};
}

uint32_t session_node_to_index(const struct session *s, uint32_t node)
{
	return node == KB_NODE_GOOD ? s->good_index : node;
}

/* Does the engine want to hear about it? Merge bases are the session's own business, and so
 * is what `git bisect run` asks after the calibration. */
static bool for_engine(const struct session *s, uint32_t index)
{
	struct kb_action next;

	if (index >= s->base_first)
		return false;
	if (!s->judge)
		return true;
	kb_decide_next(s->decide, &next);
	return next.phase == KB_PHASE_CALIBRATE;
}

static uint32_t index_to_node(const struct session *s, uint32_t index)
{
	return index == s->good_index ? KB_NODE_GOOD : index;
}

uint32_t session_find(const struct session *s, const char *hex)
{
	struct kb_oid oid;

	if (strlen(hex) != KB_OID_HEX_LEN)
		return UINT32_MAX;
	memcpy(oid.hex, hex, sizeof(oid.hex));
	uint32_t node = kb_range_find(&s->range, &oid);
	if (node != UINT32_MAX)
		return node;
	for (uint32_t i = s->good_index; i < s->commit_count; i++)
		if (kb_streq(s->commits[i].oid.hex, hex))
			return i;
	return UINT32_MAX;
}

const char *session_subject(struct session *s, uint32_t index)
{
	struct session_commit *c = &s->commits[index];

	if (!c->subject && kb_repo_subject(s->repo, &c->oid, &c->subject, NULL))
		c->subject = kb_strdup("(the subject cannot be read)");
	return c->subject;
}

/* ---- loading ---- */

static int find_parents_outside(struct session *s, struct kb_error *err)
{
	s->parents_outside = kb_calloc(s->range.dag.node_count, 1);
	for (uint32_t n = 0; n < s->range.dag.node_count; n++) {
		KB_AUTO_FREE struct kb_oid *parents = NULL;
		size_t count = 0;
		int r = kb_repo_parents(s->repo, &s->range.oids[n], &parents, &count, err);

		if (r)
			return r;
		if (s->info.first_parent && count > 1)
			count = 1;
		s->parents_outside[n] = count > kb_dag_parent_count(&s->range.dag, n);
	}
	return 0;
}

/* Merge bases of bad and a good that is not its ancestor: tested first, as git does. */
static int find_bases(struct session *s, const struct kb_oid *good, struct kb_oid **ret_bases,
		      size_t *ret_count, struct kb_error *err)
{
	const struct kb_oid *bad = &s->range.oids[s->range.bad];

	*ret_count = 0;
	if (kb_repo_is_ancestor(s->repo, good, bad))
		return 0;
	return kb_repo_merge_bases(s->repo, good, bad, ret_bases, ret_count, err);
}

static int load_range(struct session *s, struct kb_error *err)
{
	KB_AUTO_FREE struct kb_oid *goods = kb_calloc(s->info.goods.count, sizeof(*goods));
	struct kb_range_spec spec = { .goods = goods,
				      .good_count = s->info.goods.count,
				      .first_parent = s->info.first_parent,
				      .paths = &s->info.paths };
	KB_AUTO_FREE struct kb_oid *bases = NULL;
	size_t base_count = 0;
	int r = 0;

	for (size_t i = 0; i < s->info.goods.count && !r; i++)
		r = kb_repo_resolve(s->repo, s->info.goods.items[i], &goods[i], err);
	if (!r)
		r = kb_repo_resolve(s->repo, s->info.bad, &spec.bad, err);
	if (!r)
		r = kb_repo_range(s->repo, &spec, &s->range, err);
	if (!r)
		r = find_bases(s, &goods[0], &bases, &base_count, err);
	if (r)
		return r;
	s->good_index = s->range.dag.node_count;
	s->base_first = s->good_index + 1;
	s->commits = kb_calloc(s->base_first + base_count, sizeof(*s->commits));
	s->commit_count = s->base_first + (uint32_t)base_count;
	for (uint32_t n = 0; n < s->range.dag.node_count; n++)
		s->commits[n].oid = s->range.oids[n];
	s->commits[s->good_index].oid = goods[0];
	for (size_t i = 0; i < base_count; i++)
		s->commits[s->base_first + i].oid = bases[i];
	return find_parents_outside(s, err);
}

static int load_engine(struct session *s, struct kb_error *err)
{
	struct kb_decide_params params;

	kb_session_decide_params(&s->job, &params);
	s->decide = kb_decide_new(&params, &s->range.dag, s->range.bad, s->range.interesting,
				  s->parents_outside);
	for (size_t i = 0; i < s->info.skips.count; i++) {
		struct kb_oid oid;
		int r = kb_repo_resolve(s->repo, s->info.skips.items[i], &oid, err);

		if (r)
			return r;
		uint32_t index = session_find(s, oid.hex);
		if (index == UINT32_MAX || index == s->good_index)
			continue; /* a skip outside the range changes nothing, as in git */
		if (index == s->range.bad)
			return kb_error_set(err, KB_EUSAGE,
					    "--skip names the bad endpoint, without which nothing "
					    "can be compared");
		session_take_untestable(s, index, "skipped by the user");
	}
	return 0;
}

int session_load(struct session *s, const char *run_dir, struct kb_error *err)
{
	int r = kb_run_info_read(run_dir, &s->info, err);

	if (r)
		return r;
	s->run_dir = kb_strdup(run_dir);
	s->judge = kb_streq(s->info.command, "judge");
	if (!s->info.bad)
		return kb_error_set(err, KB_EUSAGE,
				    "run %s is a `kbisect %s`, not a bisection, and was cut short: "
				    "there is nothing to report or resume",
				    s->info.id, s->info.command);
	r = kb_job_parse(s->info.job_text, strlen(s->info.job_text), "the run's job", &s->job, err);
	if (!r)
		r = kb_repo_open(s->info.repo_path, &s->repo, err);
	if (!r)
		r = load_range(s, err);
	if (!r)
		r = load_engine(s, err);
	return r;
}

/* ---- actions and what they bring ---- */

void session_open_action(struct session *s, uint32_t index, uint32_t count,
			 uint32_t first_perturbation, const char *why)
{
	struct session_action *a = &s->action;
	struct session_commit *c = &s->commits[index];

	free(a->boots);
	*a = (struct session_action){ .open = true,
				      .index = index,
				      .count = count,
				      .first_perturbation = first_perturbation,
				      .boots = kb_calloc(count ? count : 1,
							 sizeof(struct session_boot)) };
	snprintf(a->why, sizeof(a->why), "%s", why ? why : "");
	c->next_perturbation = first_perturbation + count;
	if (!c->order)
		c->order = ++s->touched;
}

void session_take_boot(struct session *s, uint32_t slot, const struct kb_boot_record *record,
		       bool from_cache)
{
	struct session_boot *b = &s->action.boots[slot];
	struct kb_sample sample;

	kb_sample_from_record(record, &s->job, &sample);
	*b = (struct session_boot){ .done = true, .valid = sample.valid, .mean = sample.mean,
				    .y = sample.y };
	memcpy(b->reason, sample.reason, sizeof(b->reason));
	if (sample.valid) {
		s->higher_is_better = sample.higher_is_better;
		memcpy(s->unit, sample.unit, sizeof(s->unit));
	}
	s->boots++;
	s->boots_cached += from_cache;
}

/* A merge base is judged as its boots come, so that replay knows it as well. */
static void classify_base(const struct session *s, struct session_commit *c)
{
	const struct session_commit *good = &s->commits[s->good_index];
	const struct session_commit *bad = &s->commits[s->range.bad];
	struct kb_decide_params params;

	kb_session_decide_params(&s->job, &params);
	if (c->count >= params.commit_boots_min)
		c->base_verdict = kb_decide_classify(good->ys, good->count, bad->ys, bad->count,
						     c->ys, c->count, &params);
}

static void feed(struct session *s, uint32_t index, const struct session_boot *b)
{
	struct session_commit *c = &s->commits[index];
	bool tell_engine = for_engine(s, index);

	if (!b->valid) {
		c->failed++;
		free(c->why);
		c->why = kb_strdup(b->reason);
		if (tell_engine)
			kb_decide_feed_failed_boot(s->decide, index_to_node(s, index));
		return;
	}
	if (c->count == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 8;
		c->means = kb_realloc(c->means, c->cap, sizeof(*c->means));
		c->ys = kb_realloc(c->ys, c->cap, sizeof(*c->ys));
	}
	c->means[c->count] = b->mean;
	c->ys[c->count++] = b->y;
	if (tell_engine)
		kb_decide_feed_boot(s->decide, index_to_node(s, index), b->y);
	else if (index >= s->base_first && !s->judge)
		classify_base(s, c);
}

bool session_close_if_complete(struct session *s)
{
	struct session_action *a = &s->action;

	if (!a->open)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!a->boots[i].done)
			return false;
	for (uint32_t i = 0; i < a->count; i++)
		feed(s, a->index, &a->boots[i]);
	a->open = false;
	return true;
}

void session_take_untestable(struct session *s, uint32_t index, const char *why)
{
	struct session_commit *c = &s->commits[index];

	c->untestable = true;
	free(c->why);
	c->why = kb_strdup(why);
	if (!c->order)
		c->order = ++s->touched;
	s->action.open = false;
	if (for_engine(s, index))
		kb_decide_feed_untestable(s->decide, index_to_node(s, index));
}

/* ---- what comes next ---- */

/* @return true with an action when a merge base still needs boots */
static bool next_base(struct session *s, uint32_t *ret_index, struct kb_action *ret_action)
{
	struct kb_decide_params params;

	kb_session_decide_params(&s->job, &params);
	for (uint32_t i = s->base_first; i < s->commit_count; i++) {
		struct session_commit *c = &s->commits[i];
		uint32_t tried = (uint32_t)c->count + c->failed;

		if (c->untestable || c->failed > params.retries ||
		    tried >= params.commit_boots_max + params.retries)
			continue; /* git goes on with a warning when a merge base is skipped */
		if (c->base_verdict == KB_VERDICT_GOOD || c->base_verdict == KB_VERDICT_BAD)
			continue;
		*ret_index = i;
		*ret_action = (struct kb_action){ .phase = KB_PHASE_SEARCH, .node = KB_NODE_NONE,
						  .count = c->count ? 1 : params.commit_boots_min };
		snprintf(ret_action->why, sizeof(ret_action->why),
			 "merge base of the endpoints: must be good before the search means "
			 "anything");
		return true;
	}
	return false;
}

uint32_t session_bad_base(const struct session *s)
{
	for (uint32_t i = s->base_first; i < s->commit_count; i++)
		if (s->commits[i].base_verdict == KB_VERDICT_BAD)
			return i;
	return UINT32_MAX;
}

bool session_next(struct session *s, uint32_t *ret_index, struct kb_action *ret_action)
{
	kb_decide_next(s->decide, ret_action);
	if (ret_action->phase == KB_PHASE_SEARCH && s->commit_count > s->base_first) {
		struct kb_action base;

		if (next_base(s, ret_index, &base)) {
			*ret_action = base;
			return true;
		}
		if (session_bad_base(s) != UINT32_MAX)
			return false;
	}
	if (ret_action->phase == KB_PHASE_DONE)
		return false;
	*ret_index = session_node_to_index(s, ret_action->node);
	return true;
}
