/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "results/json_util.h"

#define REPORT_FORMAT "kbisect-report"
#define REPORT_MAJOR 1
#define REPORT_MINOR 0

static const struct kb_json_field commit_fields[] = {
	KB_JSON_NEEDED(kb_report_commit, commit, TEXT),
	KB_JSON_FIELD(kb_report_commit, subject, TEXT),
	KB_JSON_NEEDED(kb_report_commit, verdict, TEXT),
	KB_JSON_FIELD(kb_report_commit, reason, TEXT),
	KB_JSON_FIELD(kb_report_commit, probability, DOUBLE),
	KB_JSON_FIELD(kb_report_commit, boots, U32),
	KB_JSON_FIELD(kb_report_commit, failed, U32),
	KB_JSON_FIELD(kb_report_commit, mean, DOUBLE),
	KB_JSON_FIELD(kb_report_commit, sd, DOUBLE),
	KB_JSON_FIELD(kb_report_commit, endpoint, BOOL),
};

static const struct kb_json_field report_fields[] = {
	KB_JSON_FIELD(kb_report, run_id, TEXT),
	KB_JSON_FIELD(kb_report, command, TEXT),
	KB_JSON_NEEDED(kb_report, verdict, TEXT),
	KB_JSON_FIELD(kb_report, reason, TEXT),
	KB_JSON_FIELD(kb_report, confirmed, BOOL),
	KB_JSON_FIELD(kb_report, confirm_p, DOUBLE),
	KB_JSON_FIELD(kb_report, endpoint_ratio, DOUBLE),
	KB_JSON_FIELD(kb_report, metric, TEXT),
	KB_JSON_FIELD(kb_report, unit, TEXT),
	KB_JSON_FIELD(kb_report, higher_is_better, BOOL),
	KB_JSON_FIELD(kb_report, builds, U32),
	KB_JSON_FIELD(kb_report, builds_cached, U32),
	KB_JSON_FIELD(kb_report, boots, U32),
	KB_JSON_FIELD(kb_report, boots_cached, U32),
	KB_JSON_FIELD(kb_report, pruned, U32),
	KB_JSON_FIELD(kb_report, range_size, U32),
	KB_JSON_FIELD(kb_report, wall_ms, U64),
	KB_JSON_FIELD(kb_report, repo_path, TEXT),
	KB_JSON_FIELD(kb_report, good, TEXT),
	KB_JSON_FIELD(kb_report, bad, TEXT),
	KB_JSON_FIELD(kb_report, mode, TEXT),
	KB_JSON_FIELD(kb_report, job_name, TEXT),
	KB_JSON_FIELD(kb_report, image_sha256, TEXT),
	KB_JSON_FIELD(kb_report, kernel_config, TEXT),
	KB_JSON_FIELD(kb_report, argv, LIST),
};

struct effect {
	double ratio, ci_low, ci_high;
};

static const struct kb_json_field effect_fields[] = {
	KB_JSON_NEEDED(effect, ratio, DOUBLE),
	KB_JSON_NEEDED(effect, ci_low, DOUBLE),
	KB_JSON_NEEDED(effect, ci_high, DOUBLE),
};

/* ---- freeing ---- */

static void free_fields(const struct kb_json_field *fields, size_t count, void *of)
{
	for (size_t i = 0; i < count; i++) {
		void *at = (char *)of + fields[i].offset;

		if (fields[i].type == KB_JSON_TEXT)
			free(*(char **)at);
		else if (fields[i].type == KB_JSON_LIST)
			kb_strv_free(at);
	}
}

static void free_commits(struct kb_report_commit *commits, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free_fields(commit_fields, KB_COUNT_OF(commit_fields), &commits[i]);
		free(commits[i].values);
	}
	free(commits);
}

void kb_report_drop_candidates(struct kb_report *r)
{
	free_commits(r->candidates, r->candidate_count);
	r->candidates = NULL;
	r->candidate_count = 0;
}

void kb_report_free(struct kb_report *r)
{
	if (!r)
		return;
	free_fields(report_fields, KB_COUNT_OF(report_fields), r);
	free_commits(r->candidates, r->candidate_count);
	free_commits(r->tested, r->tested_count);
	*r = (struct kb_report){ 0 };
}

/* ---- writing ---- */

static json_t *commits_json(const struct kb_report_commit *commits, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct kb_report_commit *c = &commits[i];
		json_t *item = json_object();

		kb_json_put(item, commit_fields, KB_COUNT_OF(commit_fields), c);
		json_object_set_new(item, "values",
				    kb_json_doubles(c->values, c->values ? c->boots : 0));
		json_array_append_new(array, item);
	}
	return array;
}

static json_t *to_json(const struct kb_report *r)
{
	json_t *root = kb_json_document(REPORT_FORMAT, REPORT_MAJOR, REPORT_MINOR);
	json_t *effect = json_null();

	if (r->has_effect) {
		struct effect e = { r->effect_ratio, r->effect_low, r->effect_high };

		effect = json_object();
		kb_json_put(effect, effect_fields, KB_COUNT_OF(effect_fields), &e);
		json_object_set_new(effect, "metric", kb_json_text(r->metric));
	}
	kb_json_put(root, report_fields, KB_COUNT_OF(report_fields), r);
	json_object_set_new(root, "effect", effect);
	json_object_set_new(root, "candidates", commits_json(r->candidates, r->candidate_count));
	json_object_set_new(root, "tested", commits_json(r->tested, r->tested_count));
	return root;
}

char *kb_report_json(const struct kb_report *r)
{
	KB_AUTO(kb_json_auto_free) json_t *root = to_json(r);

	return kb_json_dump(root, KB_JSON_READABLE);
}

int kb_report_write(const char *path, const struct kb_report *r, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = to_json(r);

	return kb_json_write(path, root, KB_JSON_READABLE, err);
}

/* ---- reading ---- */

static int get_commit(const json_t *item, const char *key, struct kb_report_commit *c,
		      struct kb_error *err)
{
	KB_AUTO_FREE char *prefix = kb_asprintf("%s.", key);
	KB_AUTO_FREE char *values_key = kb_asprintf("%s.values", key);
	size_t count = 0;
	int r;

	if (!json_is_object(item))
		return kb_json_wrong_kind(key, "an object", item, err);
	r = kb_json_get(item, commit_fields, KB_COUNT_OF(commit_fields), prefix, c, err);
	if (!r)
		r = kb_json_get_doubles(json_object_get(item, "values"), values_key, &c->values,
					&count, err);
	if (!r && count != c->boots)
		r = kb_error_set(err, KB_ECONFIG, "%s: %zu values of %u boots", values_key, count,
				 c->boots);
	return r;
}

static int get_commits(const json_t *root, const char *name, struct kb_report_commit **ret,
		       size_t *ret_count, struct kb_error *err)
{
	json_t *array, *item;
	size_t i;
	int r = kb_json_get_array(root, name, true, &array, err);

	if (r)
		return r;
	*ret = kb_calloc(json_array_size(array) + 1, sizeof(**ret));
	json_array_foreach(array, i, item) {
		KB_AUTO_FREE char *key = kb_asprintf("%s[%zu]", name, i);

		*ret_count = i + 1; /* so that a half-read one is freed as well */
		r = get_commit(item, key, &(*ret)[i], err);
		if (r)
			return r;
	}
	return 0;
}

static int get_effect(const json_t *root, struct kb_report *r, struct kb_error *err)
{
	const json_t *json = json_object_get(root, "effect");
	struct effect e;
	int rc;

	r->effect_ratio = r->effect_low = r->effect_high = NAN;
	if (!json || json_is_null(json))
		return 0;
	if (!json_is_object(json))
		return kb_json_wrong_kind("effect", "an object or null", json, err);
	rc = kb_json_get(json, effect_fields, KB_COUNT_OF(effect_fields), "effect.", &e, err);
	if (rc)
		return rc;
	r->has_effect = true;
	r->effect_ratio = e.ratio;
	r->effect_low = e.ci_low;
	r->effect_high = e.ci_high;
	return 0;
}

int kb_report_read(const char *path, struct kb_report *ret, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_report_free) struct kb_report r = { 0 };
	int rc = kb_json_load(path, REPORT_FORMAT, REPORT_MAJOR, &root, err);

	if (rc)
		return rc;
	rc = kb_json_get(root, report_fields, KB_COUNT_OF(report_fields), "", &r, err);
	if (!rc)
		rc = get_effect(root, &r, err);
	if (!rc)
		rc = get_commits(root, "candidates", &r.candidates, &r.candidate_count, err);
	if (!rc)
		rc = get_commits(root, "tested", &r.tested, &r.tested_count, err);
	if (rc) {
		kb_error_prefix(err, "%s", path);
		return rc;
	}
	*ret = r;
	r = (struct kb_report){ 0 };
	return 0;
}
