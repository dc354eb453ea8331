/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/record.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "results/json_util.h"

#define RECORD_MAJOR 1
#define RECORD_MINOR 0

/* ---- the four documents as tables ---- */

static const struct kb_json_field build_request_fields[] = {
	KB_JSON_NEEDED(kb_build_request, repo_path, TEXT),
	KB_JSON_NEEDED(kb_build_request, commit, TEXT),
	KB_JSON_NEEDED(kb_build_request, tree, TEXT),
	KB_JSON_NEEDED(kb_build_request, fragments, LIST),
	KB_JSON_FIELD(kb_build_request, required, LIST),
	KB_JSON_FIELD(kb_build_request, make_args, LIST),
	KB_JSON_NEEDED(kb_build_request, cache_dir, TEXT),
	KB_JSON_NEEDED(kb_build_request, slot_dir, TEXT),
	KB_JSON_NEEDED(kb_build_request, jobs, U32),
	KB_JSON_NEEDED(kb_build_request, timeout_ms, U64),
};

static const struct kb_json_field build_record_fields[] = {
	KB_JSON_FIELD(kb_build_record, reason, TEXT),
	KB_JSON_FIELD(kb_build_record, log_excerpt, TEXT),
	KB_JSON_NEEDED(kb_build_record, commit, TEXT),
	KB_JSON_NEEDED(kb_build_record, tree, TEXT),
	KB_JSON_FIELD(kb_build_record, key, TEXT),
	KB_JSON_FIELD(kb_build_record, artifact_dir, TEXT),
	KB_JSON_FIELD(kb_build_record, kernel_sha256, TEXT),
	KB_JSON_FIELD(kb_build_record, config_sha256, TEXT),
	KB_JSON_FIELD(kb_build_record, toolchain, TEXT),
	KB_JSON_FIELD(kb_build_record, missing_symbols, LIST),
	KB_JSON_FIELD(kb_build_record, from_cache, BOOL),
	KB_JSON_FIELD(kb_build_record, wall_ms, U64),
	KB_JSON_FIELD(kb_build_record, cpu_ms, U64),
	KB_JSON_FIELD(kb_build_record, files_changed, U64),
};

static const struct kb_json_field boot_request_fields[] = {
	KB_JSON_NEEDED(kb_boot_request, kernel_path, TEXT),
	KB_JSON_NEEDED(kb_boot_request, kernel_sha256, TEXT),
	KB_JSON_NEEDED(kb_boot_request, image_path, TEXT),
	KB_JSON_NEEDED(kb_boot_request, image_sha256, TEXT),
	KB_JSON_NEEDED(kb_boot_request, mode, TEXT),
	KB_JSON_NEEDED(kb_boot_request, uri, TEXT),
	KB_JSON_NEEDED(kb_boot_request, accel, TEXT),
	KB_JSON_NEEDED(kb_boot_request, machine, TEXT),
	KB_JSON_NEEDED(kb_boot_request, scratch, TEXT),
	KB_JSON_NEEDED(kb_boot_request, memory_mib, U32),
	KB_JSON_NEEDED(kb_boot_request, vcpus, U32),
	KB_JSON_NEEDED(kb_boot_request, scratch_mib, U32),
	KB_JSON_NEEDED(kb_boot_request, perturbation, U32),
	KB_JSON_NEEDED(kb_boot_request, boot_timeout_ms, U64),
	KB_JSON_NEEDED(kb_boot_request, timeout_ms, U64),
	KB_JSON_NEEDED(kb_boot_request, console_max_bytes, U64),
	KB_JSON_FIELD(kb_boot_request, extra_cmdline, TEXT),
	KB_JSON_NEEDED(kb_boot_request, params, PAIRS),
	KB_JSON_FIELD(kb_boot_request, console_deny, LIST),
	KB_JSON_NEEDED(kb_boot_request, work_dir, TEXT),
};

static const struct kb_json_field boot_record_fields[] = {
	KB_JSON_FIELD(kb_boot_record, reason, TEXT),
	KB_JSON_FIELD(kb_boot_record, kernel_version, TEXT),
	KB_JSON_FIELD(kb_boot_record, workload, TEXT),
	KB_JSON_FIELD(kb_boot_record, params, PAIRS),
	KB_JSON_FIELD(kb_boot_record, notes, LIST),
	KB_JSON_FIELD(kb_boot_record, console_path, TEXT),
	KB_JSON_FIELD(kb_boot_record, console_excerpt, TEXT),
	KB_JSON_FIELD(kb_boot_record, console_bytes, U64),
	KB_JSON_FIELD(kb_boot_record, domain_xml_sha256, TEXT),
	KB_JSON_FIELD(kb_boot_record, qemu_version, TEXT),
	KB_JSON_FIELD(kb_boot_record, libvirt_version, TEXT),
	KB_JSON_FIELD(kb_boot_record, qemu_command, TEXT),
	KB_JSON_FIELD(kb_boot_record, host_load, DOUBLE),
	KB_JSON_NEEDED(kb_boot_record, perturbation, U32),
	KB_JSON_FIELD(kb_boot_record, create_ms, U64),
	KB_JSON_FIELD(kb_boot_record, run_ms, U64),
	KB_JSON_FIELD(kb_boot_record, collect_ms, U64),
	KB_JSON_FIELD(kb_boot_record, total_ms, U64),
	KB_JSON_FIELD(kb_boot_record, started_us, U64),
	KB_JSON_FIELD(kb_boot_record, kernel_sha256, TEXT),
	KB_JSON_FIELD(kb_boot_record, image_sha256, TEXT),
};

static const struct kb_json_field metric_fields[] = {
	KB_JSON_NEEDED(kb_metric, name, TEXT),
	KB_JSON_NEEDED(kb_metric, unit, TEXT),
	KB_JSON_NEEDED(kb_metric, higher_is_better, BOOL),
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
		else if (fields[i].type == KB_JSON_PAIRS)
			kb_pairs_free(at);
	}
}

#define FREE_FIELDS(fields, of) free_fields(fields, KB_COUNT_OF(fields), of)

void kb_build_request_free(struct kb_build_request *r)
{
	if (!r)
		return;
	FREE_FIELDS(build_request_fields, r);
	*r = (struct kb_build_request){ 0 };
}

void kb_build_record_free(struct kb_build_record *r)
{
	if (!r)
		return;
	FREE_FIELDS(build_record_fields, r);
	*r = (struct kb_build_record){ 0 };
}

void kb_boot_request_free(struct kb_boot_request *r)
{
	if (!r)
		return;
	FREE_FIELDS(boot_request_fields, r);
	*r = (struct kb_boot_request){ 0 };
}

void kb_boot_record_free(struct kb_boot_record *r)
{
	if (!r)
		return;
	FREE_FIELDS(boot_record_fields, r);
	for (size_t i = 0; i < r->metric_count; i++) {
		FREE_FIELDS(metric_fields, &r->metrics[i]);
		free(r->metrics[i].values);
	}
	free(r->metrics);
	for (size_t i = 0; i < r->counter_count; i++) {
		free(r->counters[i].point);
		free(r->counters[i].name);
	}
	free(r->counters);
	*r = (struct kb_boot_record){ 0 };
}

/* ---- outcomes ---- */

static const char *const build_outcomes[] = {
	[KB_BUILD_OK] = "ok",
	[KB_BUILD_FAILED] = "failed",
	[KB_BUILD_CONFIG_MISSING] = "config-missing",
	[KB_BUILD_TIMEOUT] = "timeout",
};

static const char *const boot_outcomes[] = {
	[KB_BOOT_OK] = "ok",           [KB_BOOT_INVALID] = "invalid", [KB_BOOT_PANIC] = "panic",
	[KB_BOOT_OOPS] = "oops",       [KB_BOOT_OOM] = "oom",         [KB_BOOT_HANG] = "hang",
	[KB_BOOT_DIED] = "died",       [KB_BOOT_KILLED] = "killed",
	[KB_BOOT_GARBAGE] = "garbage", [KB_BOOT_FLOOD] = "flood",     [KB_BOOT_FAILED] = "failed",
};

static int find_word(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (kb_streq(words[i], word))
			return (int)i;
	return -1;
}

const char *kb_boot_outcome_name(enum kb_boot_outcome o)
{
	return (size_t)o < KB_COUNT_OF(boot_outcomes) ? boot_outcomes[o] : "unknown";
}

int kb_boot_outcome_parse(const char *name, enum kb_boot_outcome *ret_outcome)
{
	int found = find_word(boot_outcomes, KB_COUNT_OF(boot_outcomes), name);

	if (found < 0)
		return -1;
	*ret_outcome = (enum kb_boot_outcome)found;
	return 0;
}

static int get_outcome(const json_t *root, const char *const *words, size_t count,
		       int *ret_outcome, struct kb_error *err)
{
	const json_t *json = json_object_get(root, "outcome");
	const char *word = json_string_value(json);

	if (!word)
		return kb_json_wrong_kind("outcome", "a string", json, err);
	*ret_outcome = find_word(words, count, word);
	if (*ret_outcome < 0)
		return kb_error_set(err, KB_ECONFIG, "outcome: '%.100s' is not known", word);
	return 0;
}

/* ---- metrics and counters ---- */

static void put_metrics(json_t *root, const struct kb_boot_record *r)
{
	json_t *array = json_array();

	for (size_t i = 0; i < r->metric_count; i++) {
		const struct kb_metric *m = &r->metrics[i];
		json_t *item = json_object();

		kb_json_put(item, metric_fields, KB_COUNT_OF(metric_fields), m);
		json_object_set_new(item, "values", kb_json_doubles(m->values, m->count));
		json_array_append_new(array, item);
	}
	json_object_set_new(root, "metrics", array);
}

static int get_metrics(const json_t *root, struct kb_boot_record *r, struct kb_error *err)
{
	json_t *array, *item;
	size_t i;
	int rc = kb_json_get_array(root, "metrics", true, &array, err);

	if (rc)
		return rc;
	r->metrics = kb_calloc(json_array_size(array) + 1, sizeof(*r->metrics));
	json_array_foreach(array, i, item) {
		struct kb_metric *m = &r->metrics[i];
		char key[48];

		r->metric_count = i + 1; /* so that a half-read one is freed as well */
		snprintf(key, sizeof(key), "metrics[%zu].", i);
		rc = kb_json_get(item, metric_fields, KB_COUNT_OF(metric_fields), key, m, err);
		strcat(key, "values");
		if (!rc)
			rc = kb_json_get_doubles(json_object_get(item, "values"), key, &m->values,
						 &m->count, err);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * There are hundreds of counters: those of one point and repetition share one object,
 * {"point", "repetition", "values": {NAME: NUMBER}}. A name that comes twice begins a new
 * object, so that nothing is lost.
 */
static void put_counters(json_t *root, const struct kb_boot_record *r)
{
	json_t *array = json_array(), *values = NULL;
	const struct kb_counter *first = NULL;

	for (size_t i = 0; i < r->counter_count; i++) {
		const struct kb_counter *c = &r->counters[i];
		KB_AUTO_FREE char *name = kb_str_sanitize(c->name, strlen(c->name), strlen(c->name));

		if (!first || !kb_streq(first->point, c->point) ||
		    first->repetition != c->repetition || json_object_get(values, name)) {
			json_t *group = json_object();

			first = c;
			values = json_object();
			json_object_set_new(group, "point", kb_json_text(c->point));
			json_object_set_new(group, "repetition", json_integer(c->repetition));
			json_object_set_new(group, "values", values);
			json_array_append_new(array, group);
		}
		json_object_set_new(values, name, json_integer(c->value));
	}
	json_object_set_new(root, "counters", array);
}

static int get_counter_group(json_t *group, const char *key, struct kb_boot_record *r,
			     size_t *cap, struct kb_error *err)
{
	const char *point = json_string_value(json_object_get(group, "point"));
	const json_t *repetition = json_object_get(group, "repetition");
	json_t *values = json_object_get(group, "values"), *value;
	const char *name;

	if (!point || !json_is_integer(repetition) || !json_is_object(values) ||
	    json_integer_value(repetition) < 0 || json_integer_value(repetition) > UINT32_MAX)
		return kb_error_set(err, KB_ECONFIG, "%s: must have point, repetition and values",
				    key);
	json_object_foreach(values, name, value) {
		if (!json_is_integer(value)) {
			KB_AUTO_FREE char *path = kb_asprintf("%s.values.%s", key, name);

			return kb_json_wrong_kind(path, "an integer", value, err);
		}
		KB_GROW(r->counters, r->counter_count, *cap);
		r->counters[r->counter_count++] = (struct kb_counter){
			.point = kb_strdup(point),
			.repetition = (uint32_t)json_integer_value(repetition),
			.name = kb_strdup(name),
			.value = json_integer_value(value),
		};
	}
	return 0;
}

static int get_counters(const json_t *root, struct kb_boot_record *r, struct kb_error *err)
{
	json_t *array, *group;
	size_t i, cap = 0;
	int rc = kb_json_get_array(root, "counters", true, &array, err);

	if (rc)
		return rc;
	json_array_foreach(array, i, group) {
		char key[48];

		snprintf(key, sizeof(key), "counters[%zu]", i);
		rc = get_counter_group(group, key, r, &cap, err);
		if (rc)
			return rc;
	}
	return 0;
}

const struct kb_metric *kb_boot_record_metric(const struct kb_boot_record *r, const char *name)
{
	for (size_t i = 0; i < r->metric_count; i++)
		if (kb_streq(r->metrics[i].name, name))
			return &r->metrics[i];
	return NULL;
}

/* ---- files ---- */

/* Puts the file's name before a message that begins with a key. */
static int in_file(int r, const char *path, struct kb_error *err)
{
	if (r)
		kb_error_prefix(err, "%s", path);
	return r;
}

int kb_build_request_write(const char *path, const struct kb_build_request *r,
			   struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root =
		kb_json_document("kbisect-build-request", RECORD_MAJOR, RECORD_MINOR);

	kb_json_put(root, build_request_fields, KB_COUNT_OF(build_request_fields), r);
	return kb_json_write(path, root, KB_JSON_EXACT, err);
}

int kb_build_request_read(const char *path, struct kb_build_request *ret, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_build_request_free) struct kb_build_request r = { 0 };
	int rc = kb_json_load(path, "kbisect-build-request", RECORD_MAJOR, &root, err);

	if (rc)
		return rc;
	rc = kb_json_get(root, build_request_fields, KB_COUNT_OF(build_request_fields), "", &r,
			 err);
	if (rc)
		return in_file(rc, path, err);
	*ret = r;
	r = (struct kb_build_request){ 0 };
	return 0;
}

int kb_build_record_write(const char *path, const struct kb_build_record *r,
			  struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root =
		kb_json_document("kbisect-build", RECORD_MAJOR, RECORD_MINOR);

	json_object_set_new(root, "outcome", kb_json_text(build_outcomes[r->outcome]));
	kb_json_put(root, build_record_fields, KB_COUNT_OF(build_record_fields), r);
	return kb_json_write(path, root, KB_JSON_EXACT, err);
}

int kb_build_record_read(const char *path, struct kb_build_record *ret, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_build_record_free) struct kb_build_record r = { 0 };
	int outcome = 0, rc = kb_json_load(path, "kbisect-build", RECORD_MAJOR, &root, err);

	if (rc)
		return rc;
	rc = get_outcome(root, build_outcomes, KB_COUNT_OF(build_outcomes), &outcome, err);
	if (!rc)
		rc = kb_json_get(root, build_record_fields, KB_COUNT_OF(build_record_fields), "",
				 &r, err);
	if (rc)
		return in_file(rc, path, err);
	r.outcome = (enum kb_build_outcome)outcome;
	*ret = r;
	r = (struct kb_build_record){ 0 };
	return 0;
}

int kb_boot_request_write(const char *path, const struct kb_boot_request *r,
			  struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root =
		kb_json_document("kbisect-boot-request", RECORD_MAJOR, RECORD_MINOR);

	kb_json_put(root, boot_request_fields, KB_COUNT_OF(boot_request_fields), r);
	return kb_json_write(path, root, KB_JSON_EXACT, err);
}

int kb_boot_request_read(const char *path, struct kb_boot_request *ret, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_boot_request_free) struct kb_boot_request r = { 0 };
	int rc = kb_json_load(path, "kbisect-boot-request", RECORD_MAJOR, &root, err);

	if (rc)
		return rc;
	rc = kb_json_get(root, boot_request_fields, KB_COUNT_OF(boot_request_fields), "", &r, err);
	if (rc)
		return in_file(rc, path, err);
	*ret = r;
	r = (struct kb_boot_request){ 0 };
	return 0;
}

int kb_boot_record_write(const char *path, const struct kb_boot_record *r,
			 struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root =
		kb_json_document("kbisect-boot", RECORD_MAJOR, RECORD_MINOR);

	json_object_set_new(root, "outcome", kb_json_text(kb_boot_outcome_name(r->outcome)));
	put_metrics(root, r);
	kb_json_put(root, boot_record_fields, KB_COUNT_OF(boot_record_fields), r);
	put_counters(root, r);
	return kb_json_write(path, root, KB_JSON_EXACT, err);
}

int kb_boot_record_read(const char *path, struct kb_boot_record *ret, struct kb_error *err)
{
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_boot_record_free) struct kb_boot_record r = { 0 };
	int outcome = 0, rc = kb_json_load(path, "kbisect-boot", RECORD_MAJOR, &root, err);

	if (rc)
		return rc;
	rc = get_outcome(root, boot_outcomes, KB_COUNT_OF(boot_outcomes), &outcome, err);
	if (!rc)
		rc = kb_json_get(root, boot_record_fields, KB_COUNT_OF(boot_record_fields), "", &r,
				 err);
	if (!rc)
		rc = get_metrics(root, &r, err);
	if (!rc)
		rc = get_counters(root, &r, err);
	if (rc)
		return in_file(rc, path, err);
	r.outcome = (enum kb_boot_outcome)outcome;
	*ret = r;
	r = (struct kb_boot_record){ 0 };
	return 0;
}
