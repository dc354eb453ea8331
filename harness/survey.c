/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/repo.h"
#include "bisect/stats.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/measure.h"
#include "harness/sample.h"
#include "harness/workload.h"
#include "results/run.h"

struct survey_row {
	struct kb_oid oid;
	char *subject;
	struct kb_build_record build;
	bool usable;
	char *why;
	double *means;
	uint32_t count, failed;
};

struct survey {
	struct kb_run_info info;
	struct kb_job job;
	struct kb_repo *repo;
	struct kb_measure measure;
	bool measure_ready;
	struct survey_row *rows;
	size_t row_count;
	struct survey_row *at_work;
	const struct kb_session_observer *observer;
	uint32_t boots_wanted, boots, boots_cached, builds, builds_cached;
	uint64_t started_ms;
	bool higher_is_better;
	char unit[32];
};

static void survey_free(struct survey *s)
{
	for (size_t i = 0; i < s->row_count; i++) {
		free(s->rows[i].subject);
		free(s->rows[i].why);
		free(s->rows[i].means);
		kb_build_record_free(&s->rows[i].build);
	}
	free(s->rows);
	if (s->measure_ready)
		kb_measure_free(&s->measure);
	kb_repo_free(s->repo);
	kb_job_free(&s->job);
	kb_run_info_free(&s->info);
}

static void tell(struct survey *s, enum kb_step step, const char *text)
{
	struct kb_session_status st = { .step = step, .phase = KB_PHASE_SEARCH, .text = text };

	if (!s->observer || !s->observer->status)
		return;
	st.commit = s->at_work ? s->at_work->oid.hex : NULL;
	st.subject = s->at_work ? s->at_work->subject : NULL;
	st.builds = s->builds;
	st.boots = s->boots;
	st.boots_done = s->at_work ? s->at_work->count + s->at_work->failed : 0;
	st.boots_wanted = s->boots_wanted;
	st.candidates_left = (uint32_t)s->row_count;
	st.elapsed_ms = kb_now_ms() - s->started_ms;
	uint64_t all = (uint64_t)s->row_count * s->boots_wanted;
	if (s->boots)
		st.left_ms = st.elapsed_ms * (all - s->boots) / s->boots;
	s->observer->status(s->observer->ctx, &st);
}

static void tick(void *ctx)
{
	tell(ctx, KB_STEP_BOOT, NULL);
}

static int load(struct survey *s, const char *run_dir, struct kb_error *err)
{
	int r = kb_run_info_read(run_dir, &s->info, err);

	if (!r)
		r = kb_job_parse(s->info.job_text, strlen(s->info.job_text), "the run's job",
				 &s->job, err);
	if (!r)
		r = kb_repo_open(s->info.repo_path, &s->repo, err);
	if (r)
		return r;
	s->row_count = s->info.goods.count;
	s->rows = kb_calloc(s->row_count ? s->row_count : 1, sizeof(*s->rows));
	KB_AUTO_FREE struct kb_oid *ends = kb_calloc(s->row_count + 1, sizeof(*ends));
	for (size_t i = 0; i < s->row_count && !r; i++) {
		r = kb_repo_resolve(s->repo, s->info.goods.items[i], &s->rows[i].oid, err);
		if (!r)
			r = kb_repo_subject(s->repo, &s->rows[i].oid, &s->rows[i].subject, err);
		ends[i] = s->rows[i].oid;
	}
	if (r)
		return r;
	r = kb_measure_init(&s->measure, &s->job, &s->info, s->repo, run_dir, ends, s->row_count,
			    err);
	s->measure_ready = true;
	s->measure.tick = tick;
	s->measure.tick_ctx = s;
	return r;
}

static int build_row(struct survey *s, struct survey_row *row, struct kb_error *err)
{
	KB_AUTO_FREE char *rel = NULL;
	char took[32];
	int r;

	s->at_work = row;
	tell(s, KB_STEP_BUILD, NULL);
	r = kb_measure_build(&s->measure, &row->oid, &row->build, &rel, err);
	if (r)
		return r;
	s->builds++;
	s->builds_cached += row->build.from_cache;
	row->usable = row->build.outcome == KB_BUILD_OK;
	if (!row->usable)
		row->why = kb_asprintf("does not build: %s",
				       row->build.reason ? row->build.reason : "failed");
	KB_AUTO_FREE char *line = kb_asprintf(
		"%.12s %s (%s)", row->oid.hex, row->usable ? "built" : row->why,
		row->build.from_cache ? "from the cache"
				      : kb_duration_string(row->build.wall_ms, took));
	tell(s, KB_STEP_BUILD, line);
	return 0;
}

static int boot_done(void *ctx, const struct kb_boot_wish *wish,
		     const struct kb_boot_record *record, const char *record_rel,
		     bool from_cache, struct kb_error *err)
{
	struct survey *s = ctx;
	struct survey_row *row = s->at_work;
	struct kb_sample sample;

	(void)record_rel;
	(void)err;
	kb_sample_from_record(record, &s->job, &sample);
	s->boots++;
	s->boots_cached += from_cache;
	if (sample.valid) {
		row->means[row->count++] = sample.mean;
		s->higher_is_better = sample.higher_is_better;
		memcpy(s->unit, sample.unit, sizeof(s->unit));
	} else {
		row->failed++;
		free(row->why);
		row->why = kb_strdup(sample.reason);
	}
	KB_AUTO_FREE char *line =
		sample.valid ? kb_asprintf("%.12s boot %u: %.6g %s%s", row->oid.hex,
					   wish->perturbation, sample.mean, s->unit,
					   from_cache ? " (known)" : "")
			     : kb_asprintf("%.12s boot %u: %s", row->oid.hex, wish->perturbation,
					   sample.reason);
	tell(s, KB_STEP_BOOT, line);
	return 0;
}

static int boot_rows(struct survey *s, uint32_t boots, struct kb_error *err)
{
	bool turns = !kb_streq(s->info.mode, "exact");
	uint32_t batch = turns ? 1 : boots;
	KB_AUTO_FREE struct kb_boot_wish *wishes = kb_calloc(boots, sizeof(*wishes));

	for (uint32_t first = 0; first < boots; first += batch) {
		for (uint32_t i = 0; i < batch; i++)
			wishes[i] = (struct kb_boot_wish){ first + i, first + i };
		for (size_t i = 0; i < s->row_count; i++) {
			struct survey_row *row = &s->rows[i];

			if (!row->usable)
				continue;
			if (kb_interrupted())
				return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
			s->at_work = row;
			int r = kb_measure_boots(&s->measure, &row->oid, &row->build, wishes, batch,
						 boot_done, s, err);
			if (r)
				return r;
		}
	}
	return 0;
}

static void make_report(struct survey *s, struct kb_report *r)
{
	const struct kb_job *job = &s->job;

	memset(r, 0, sizeof(*r));
	r->run_id = kb_strdup(s->info.id);
	r->command = kb_strdup(s->info.command);
	r->verdict = kb_strdup("measured");
	r->metric = kb_strdup(job->metric ? job->metric
					  : kb_workload_default_metric(job->workload_name));
	r->unit = kb_strdup(s->unit);
	r->higher_is_better = s->higher_is_better;
	r->endpoint_ratio = r->confirm_p = NAN;
	r->effect_ratio = r->effect_low = r->effect_high = NAN;
	r->builds = s->builds;
	r->builds_cached = s->builds_cached;
	r->boots = s->boots;
	r->boots_cached = s->boots_cached;
	r->range_size = (uint32_t)s->row_count;
	r->wall_ms = kb_now_ms() - s->started_ms;
	r->repo_path = kb_strdup(s->info.repo_path);
	r->mode = kb_strdup(s->info.mode);
	r->job_name = kb_strdup(job->name);
	r->image_sha256 = kb_strdup(s->info.image_sha256);
	r->kernel_config = kb_strdup(s->rows[0].build.config_sha256);
	r->tested = kb_calloc(s->row_count, sizeof(*r->tested));
	r->tested_count = s->row_count;
	for (size_t i = 0; i < s->row_count; i++) {
		const struct survey_row *row = &s->rows[i];
		struct kb_report_commit *c = &r->tested[i];

		c->commit = kb_strdup(row->oid.hex);
		c->subject = kb_strdup(row->subject);
		c->verdict = kb_strdup(row->count ? "measured" : "untestable");
		c->reason = kb_strdup(row->why);
		c->boots = row->count;
		c->failed = row->failed;
		c->mean = kb_stats_mean(row->means, row->count);
		c->sd = kb_stats_sd(row->means, row->count);
		c->values = kb_calloc(row->count ? row->count : 1, sizeof(double));
		if (row->count)
			memcpy(c->values, row->means, row->count * sizeof(double));
	}
}

int kb_survey_run(const char *run_dir, uint32_t boots, bool fresh,
		  const struct kb_session_observer *observer, struct kb_report *ret_report,
		  struct kb_error *err)
{
	KB_AUTO(survey_free) struct survey s = { .observer = observer, .boots_wanted = boots };
	KB_AUTO_FREE char *path = kb_path_join(run_dir, "report.json");
	int r;

	kb_job_init(&s.job);
	s.started_ms = kb_now_ms();
	r = load(&s, run_dir, err);
	if (r)
		return r;
	s.measure.fresh = fresh;
	for (size_t i = 0; i < s.row_count && !r; i++) {
		s.rows[i].means = kb_calloc(boots, sizeof(double));
		r = build_row(&s, &s.rows[i], err);
	}
	if (!r)
		r = boot_rows(&s, boots, err);
	if (r)
		return r;
	make_report(&s, ret_report);
	r = kb_report_write(path, ret_report, err);
	if (r)
		kb_report_free(ret_report);
	return r;
}
