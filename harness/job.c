/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs as JSON: strict reading, and writing the effective job. */
#include "harness/job.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/job_internal.h"

static void json_auto_free(json_t **json)
{
	json_decref(*json);
}

static const char *kind_of(const json_t *json)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a truth value";
	case JSON_NULL:
		return "null";
	}
	return "something else";
}

static int wrong_kind(const char *key, const char *want, const json_t *got, struct kb_error *err)
{
	return kb_error_set(err, KB_ECONFIG, "%.200s: must be %s, not %s", key, want, kind_of(got));
}

/* ---- values ---- */

static int read_number(struct kb_job *job, const struct job_option *o, const json_t *json,
		       struct kb_error *err)
{
	char want[64];

	if (o->type == JOB_DOUBLE) {
		if (!json_is_number(json))
			return wrong_kind(o->key, "a number", json, err);
		return job_put_double(job, o, json_number_value(json), err);
	}
	snprintf(want, sizeof(want), "an integer%s%s", o->unit ? " of " : "",
		 o->unit ? o->unit : "");
	if (!json_is_integer(json))
		return wrong_kind(o->key, want, json, err);
	if (json_integer_value(json) < 0)
		return kb_error_set(err, KB_ECONFIG, "%s: must not be negative", o->key);
	return job_put_u64(job, o, (uint64_t)json_integer_value(json), err);
}

static int read_bool(struct kb_job *job, const struct job_option *o, const json_t *json,
		     struct kb_error *err)
{
	if (!json_is_boolean(json))
		return wrong_kind(o->key, "true or false", json, err);
	*(bool *)job_field(job, o) = json_is_true(json);
	return 0;
}

static int read_list(struct kb_job *job, const struct job_option *o, const json_t *json,
		     struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv list = { 0 };
	const json_t *item;
	size_t i;

	if (!json_is_array(json))
		return wrong_kind(o->key, "an array of strings", json, err);
	json_array_foreach(json, i, item) {
		KB_AUTO_FREE char *key = kb_asprintf("%s[%zu]", o->key, i);

		if (!json_is_string(item))
			return wrong_kind(key, "a string", item, err);
		kb_strv_add(&list, json_string_value(item));
	}
	return job_put_list(job, o, &list, err);
}

static int read_params(struct kb_job *job, json_t *json, struct kb_error *err)
{
	struct kb_pairs params = { 0 };
	const char *name;
	json_t *value;
	int r = 0;

	if (!json_is_object(json))
		return wrong_kind("workload.params", "an object", json, err);
	json_object_foreach(json, name, value) {
		KB_AUTO_FREE char *key = kb_asprintf("workload.params.%s", name);
		KB_AUTO_FREE char *number = NULL;
		const char *text = NULL;

		if (json_is_string(value))
			text = json_string_value(value);
		else if (json_is_integer(value))
			text = number = kb_asprintf("%" JSON_INTEGER_FORMAT,
						    json_integer_value(value));
		r = text ? job_put_param(&params, name, text, err)
			 : wrong_kind(key, "a string or an integer", value, err);
		if (r)
			break;
	}
	if (r) {
		kb_pairs_free(&params);
		return r;
	}
	kb_pairs_free(&job->workload_params);
	job->workload_params = params;
	return 0;
}

/* ---- expect ---- */

static int read_limit(const char *base, const char *name, json_t *json, int64_t *ret_value,
		      struct kb_error *err)
{
	KB_AUTO_FREE char *key = kb_asprintf("%s.%s", base, name);

	if (!json_is_integer(json))
		return wrong_kind(key, "an integer", json, err);
	*ret_value = json_integer_value(json);
	return 0;
}

static int read_expect_key(struct kb_expect *e, const char *base, const char *name,
			   json_t *json, struct kb_error *err)
{
	KB_AUTO_FREE char *key = kb_asprintf("%s.%.100s", base, name);
	bool is_counter = !strcmp(name, "counter");

	if (!strcmp(name, "min"))
		return read_limit(base, name, json, &e->min, err);
	if (!strcmp(name, "max"))
		return read_limit(base, name, json, &e->max, err);
	if (!is_counter && !kb_streq(name, "at"))
		return kb_error_set(err, KB_ECONFIG,
				    "%s: unknown key; there are counter, at, min, max", key);
	if (!json_is_string(json))
		return wrong_kind(key, "a string", json, err);
	char **field = is_counter ? &e->counter : &e->point;
	free(*field);
	*field = kb_strdup(json_string_value(json));
	return job_check_text(key, *field, err);
}

static int read_expect(struct kb_expect *e, const char *base, json_t *json, struct kb_error *err)
{
	const char *name;
	json_t *value;
	int r;

	*e = (struct kb_expect){ .point = kb_strdup("start"), .min = INT64_MIN, .max = INT64_MAX };
	if (!json_is_object(json))
		return wrong_kind(base, "an object", json, err);
	json_object_foreach(json, name, value) {
		r = read_expect_key(e, base, name, value, err);
		if (r)
			return r;
	}
	if (!e->counter || !*e->counter)
		return kb_error_set(err, KB_ECONFIG, "%s.counter: is missing", base);
	if (!kb_streq(e->point, "start") && !kb_streq(e->point, "stop") &&
	    !kb_streq(e->point, "before") && !kb_streq(e->point, "after"))
		return kb_error_set(err, KB_ECONFIG,
				    "%s.at: '%.100s' is not one of start, stop, before, after", base,
				    e->point);
	if (e->min == INT64_MIN && e->max == INT64_MAX)
		return kb_error_set(err, KB_ECONFIG, "%s: give min, max or both", base);
	if (e->min > e->max)
		return kb_error_set(err, KB_ECONFIG, "%s: min is larger than max", base);
	return 0;
}

static int read_expects(struct kb_job *job, const json_t *json, struct kb_error *err)
{
	size_t count = json_array_size(json), i;
	struct kb_expect *list;
	json_t *item;
	int r = 0;

	if (!json_is_array(json))
		return wrong_kind("expect", "an array of objects", json, err);
	list = kb_calloc(count ? count : 1, sizeof(*list));
	json_array_foreach(json, i, item) {
		char base[40];

		snprintf(base, sizeof(base), "expect[%zu]", i);
		r = read_expect(&list[i], base, item, err);
		if (r)
			break;
	}
	if (r) {
		job_expects_free(list, count);
		return r;
	}
	job_expects_free(job->expects, job->expect_count);
	job->expects = list;
	job->expect_count = count;
	return 0;
}

int job_set_expects(struct kb_job *job, const char *json_text, struct kb_error *err)
{
	json_error_t why;
	KB_AUTO(json_auto_free) json_t *json = json_loads(json_text, JSON_REJECT_DUPLICATES, &why);

	if (!json)
		return kb_error_set(err, KB_ECONFIG, "expect: not a JSON array: %s", why.text);
	return read_expects(job, json, err);
}

/* ---- objects ---- */

static int read_option(struct kb_job *job, const struct job_option *o, json_t *json,
		       struct kb_error *err)
{
	switch (o->type) {
	case JOB_TEXT:
	case JOB_CHOICE:
		if (!json_is_string(json) && !json_is_null(json))
			return wrong_kind(o->key, "a string", json, err);
		return job_put_text(job, o, json_string_value(json), err); /* NULL for null */
	case JOB_U32:
	case JOB_U64:
	case JOB_DOUBLE:
		return read_number(job, o, json, err);
	case JOB_BOOL:
		return read_bool(job, o, json, err);
	case JOB_LIST:
		return read_list(job, o, json, err);
	case JOB_PARAMS:
		return read_params(job, json, err);
	case JOB_EXPECTS:
		break;
	}
	return read_expects(job, json, err);
}

static int read_section(struct kb_job *job, const char *section, json_t *object,
			struct kb_error *err)
{
	const char *name;
	json_t *value;
	int r;

	json_object_foreach(object, name, value) {
		KB_AUTO_FREE char *key = *section ? kb_asprintf("%s.%s", section, name)
						  : kb_strdup(name);
		const struct job_option *o = strchr(name, '.') ? NULL : job_option_find(key);

		if (o)
			r = read_option(job, o, value, err);
		else if (!*section && job_option_find(name))
			r = kb_error_set(err, KB_ECONFIG,
					 "%s: in a file, sections are objects: {\"%.*s\": {...}}",
					 name, (int)strcspn(name, "."), name);
		else if (*section || !job_option_is_section(name))
			r = job_option_unknown(key, err);
		else if (!json_is_object(value))
			r = wrong_kind(key, "an object", value, err);
		else
			r = read_section(job, name, value, err);
		if (r)
			return r;
	}
	return 0;
}

int kb_job_parse(const char *text, size_t len, const char *name, struct kb_job *job,
		 struct kb_error *err)
{
	json_error_t why;
	KB_AUTO(json_auto_free) json_t *root = NULL;

	if (len > KB_JOB_MAX_BYTES)
		return kb_error_set(err, KB_ECONFIG, "%s: a job has at most %u bytes", name,
				    KB_JOB_MAX_BYTES);
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return kb_error_set(err, KB_ECONFIG, "%s:%d:%d: %s", name, why.line, why.column,
				    why.text);
	if (!json_is_object(root)) {
		wrong_kind("the job", "an object", root, err);
	} else if (!read_section(job, "", root, err)) {
		return 0;
	}
	kb_error_prefix(err, "%s", name);
	return KB_ECONFIG;
}

int kb_job_load(const char *path, struct kb_job *job, struct kb_error *err)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len;

	if (kb_read_file(path, KB_JOB_MAX_BYTES, &text, &len, err)) {
		kb_error_prefix(err, "job file");
		if (err)
			err->code = KB_ECONFIG;
		return KB_ECONFIG;
	}
	return kb_job_parse(text, len, path, job, err);
}

/* ---- writing ---- */

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *format_expects(const struct kb_job *job)
{
	json_t *list = json_array();

	for (size_t i = 0; i < job->expect_count; i++) {
		const struct kb_expect *e = &job->expects[i];
		json_t *item = json_pack("{s:s, s:s}", "counter", e->counter, "at", e->point);

		if (e->min != INT64_MIN)
			json_object_set_new(item, "min", json_integer(e->min));
		if (e->max != INT64_MAX)
			json_object_set_new(item, "max", json_integer(e->max));
		json_array_append_new(list, item);
	}
	return list;
}

static json_t *format_list(const struct kb_strv *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->count; i++)
		json_array_append_new(list, json_string(v->items[i]));
	return list;
}

static json_t *format_params(const struct kb_pairs *params)
{
	json_t *object = json_object();

	for (size_t i = 0; i < params->count; i++)
		json_object_set_new(object, params->items[i].name,
				    json_string(params->items[i].value));
	return object;
}

static json_t *format_option(const struct kb_job *job, const struct job_option *o)
{
	const void *field = job_field_const(job, o);

	switch (o->type) {
	case JOB_TEXT:
	case JOB_CHOICE:
		return text_or_null(*(char *const *)field);
	case JOB_U32:
		return json_integer(*(const uint32_t *)field);
	case JOB_U64:
		return json_integer((json_int_t) * (const uint64_t *)field);
	case JOB_DOUBLE:
		return json_real(*(const double *)field);
	case JOB_BOOL:
		return json_boolean(*(const bool *)field);
	case JOB_LIST:
		return format_list(field);
	case JOB_PARAMS:
		return format_params(field);
	case JOB_EXPECTS:
		break;
	}
	return format_expects(job);
}

char *kb_job_format(const struct kb_job *job)
{
	KB_AUTO(json_auto_free) json_t *root = json_object();
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };

	for (size_t i = 0; i < job_option_count; i++) {
		const struct job_option *o = &job_options[i];
		const char *dot = strchr(o->key, '.');
		json_t *into = root;

		if (dot) {
			KB_AUTO_FREE char *section = kb_strndup(o->key, (size_t)(dot - o->key));

			into = json_object_get(root, section);
			if (!into) {
				into = json_object();
				json_object_set_new(root, section, into);
			}
		}
		json_object_set_new(into, dot ? dot + 1 : o->key, format_option(job, o));
	}
	KB_AUTO_FREE char *dump = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	kb_str_append(&text, dump ? dump : "");
	kb_str_append(&text, "\n");
	return kb_str_steal(&text);
}
