/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/json_util.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "results/record.h"

#define DOCUMENT_MAX_BYTES (64u << 20)

void kb_json_auto_free(json_t **json)
{
	json_decref(*json);
}

/* ---- writing ---- */

json_t *kb_json_document(const char *format, int major, int minor)
{
	return json_pack("{s:{s:s, s:i, s:i}}", "format", "name", format, "major", major, "minor",
			 minor);
}

json_t *kb_json_text(const char *text)
{
	json_t *json;

	if (!text)
		return json_null();
	json = json_string(text);
	if (!json) {
		KB_AUTO_FREE char *clean = kb_str_sanitize(text, strlen(text), strlen(text));

		json = json_string(clean);
	}
	return json;
}

json_t *kb_json_double(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *kb_json_doubles(const double *values, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, kb_json_double(values[i]));
	return array;
}

static json_t *list_json(const struct kb_strv *v)
{
	json_t *array = json_array();

	for (size_t i = 0; i < v->count; i++)
		json_array_append_new(array, kb_json_text(v->items[i]));
	return array;
}

static json_t *pairs_json(const struct kb_pairs *p)
{
	json_t *object = json_object();

	for (size_t i = 0; i < p->count; i++) {
		const char *name = p->items[i].name;
		KB_AUTO_FREE char *clean = kb_str_sanitize(name, strlen(name), strlen(name));

		json_object_set_new(object, clean, kb_json_text(p->items[i].value));
	}
	return object;
}

static json_t *u64_json(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *field_json(const struct kb_json_field *f, const void *at)
{
	switch (f->type) {
	case KB_JSON_TEXT:
		return kb_json_text(*(char *const *)at);
	case KB_JSON_WORD:
		return kb_json_text(*(const char *)at ? at : NULL);
	case KB_JSON_U32:
		return json_integer(*(const uint32_t *)at);
	case KB_JSON_U64:
		return u64_json(*(const uint64_t *)at);
	case KB_JSON_BOOL:
		return json_boolean(*(const bool *)at);
	case KB_JSON_FLAG:
		return json_boolean(*(const int *)at);
	case KB_JSON_DOUBLE:
		return kb_json_double(*(const double *)at);
	case KB_JSON_LIST:
		return list_json(at);
	case KB_JSON_PAIRS:
		break;
	}
	return pairs_json(at);
}

void kb_json_put(json_t *object, const struct kb_json_field *fields, size_t count,
		 const void *from)
{
	for (size_t i = 0; i < count; i++)
		json_object_set_new(object, fields[i].key,
				    field_json(&fields[i], (const char *)from + fields[i].offset));
}

char *kb_json_dump(const json_t *json, int digits)
{
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	KB_AUTO_FREE char *dump =
		json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION((size_t)digits));

	kb_str_append(&text, dump ? dump : "");
	kb_str_append(&text, "\n");
	return kb_str_steal(&text);
}

int kb_json_write(const char *path, const json_t *json, int digits, struct kb_error *err)
{
	KB_AUTO_FREE char *text = kb_json_dump(json, digits);

	return kb_write_file_atomic(path, text, strlen(text), err);
}

/* ---- reading ---- */

int kb_json_wrong_kind(const char *key, const char *want, const json_t *got,
		       struct kb_error *err)
{
	static const char *const kinds[] = {
		[JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",    [JSON_INTEGER] = "an integer",
		[JSON_REAL] = "a fraction",    [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",        [JSON_NULL] = "null",
	};

	return kb_error_set(err, KB_ECONFIG, "%.200s: must be %s, not %s", key, want,
			    got ? kinds[json_typeof(got)] : "missing");
}

static int get_text(const json_t *json, const struct kb_json_field *f, const char *key,
		    void *at, struct kb_error *err)
{
	bool is_null = json_is_null(json) && !f->required;

	if (!json_is_string(json) && !is_null)
		return kb_json_wrong_kind(key, f->required ? "a string" : "a string or null", json,
					  err);
	if (f->type == KB_JSON_TEXT) {
		free(*(char **)at);
		*(char **)at = kb_strdup(json_string_value(json));
		return 0;
	}
	const char *word = is_null ? "" : json_string_value(json);
	if (strlen(word) >= KB_JSON_WORD_SIZE)
		return kb_error_set(err, KB_ECONFIG, "%s: longer than %d characters", key,
				    KB_JSON_WORD_SIZE - 1);
	memset(at, 0, KB_JSON_WORD_SIZE);
	memcpy(at, word, strlen(word));
	return 0;
}

static int get_number(const json_t *json, const struct kb_json_field *f, const char *key,
		      void *at, struct kb_error *err)
{
	if (!json_is_integer(json))
		return kb_json_wrong_kind(key, "an integer", json, err);
	json_int_t value = json_integer_value(json);
	if (value < 0 || (f->type == KB_JSON_U32 && value > UINT32_MAX))
		return kb_error_set(err, KB_ECONFIG, "%s: out of range", key);
	if (f->type == KB_JSON_U32)
		*(uint32_t *)at = (uint32_t)value;
	else
		*(uint64_t *)at = (uint64_t)value;
	return 0;
}

static int get_list(const json_t *json, const char *key, struct kb_strv *at,
		    struct kb_error *err)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(json))
		return kb_json_wrong_kind(key, "an array of strings", json, err);
	json_array_foreach(json, i, item) {
		if (!json_is_string(item))
			return kb_json_wrong_kind(key, "an array of strings", item, err);
		kb_strv_add(at, json_string_value(item));
	}
	return 0;
}

static int get_pairs(json_t *json, const char *key, struct kb_pairs *at, struct kb_error *err)
{
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		return kb_json_wrong_kind(key, "an object of strings", json, err);
	json_object_foreach(json, name, value) {
		if (!json_is_string(value))
			return kb_json_wrong_kind(key, "an object of strings", value, err);
		kb_pairs_add(at, name, json_string_value(value));
	}
	return 0;
}

static int get_field(json_t *json, const struct kb_json_field *f, const char *key, void *at,
		     struct kb_error *err)
{
	switch (f->type) {
	case KB_JSON_TEXT:
	case KB_JSON_WORD:
		return get_text(json, f, key, at, err);
	case KB_JSON_U32:
	case KB_JSON_U64:
		return get_number(json, f, key, at, err);
	case KB_JSON_LIST:
		return get_list(json, key, at, err);
	case KB_JSON_PAIRS:
		return get_pairs(json, key, at, err);
	case KB_JSON_DOUBLE:
		if (!json_is_number(json) && !json_is_null(json))
			return kb_json_wrong_kind(key, "a number or null", json, err);
		*(double *)at = json_is_null(json) ? NAN : json_number_value(json);
		return 0;
	case KB_JSON_BOOL:
	case KB_JSON_FLAG:
		break;
	}
	if (!json_is_boolean(json))
		return kb_json_wrong_kind(key, "true or false", json, err);
	if (f->type == KB_JSON_BOOL)
		*(bool *)at = json_is_true(json);
	else
		*(int *)at = json_is_true(json);
	return 0;
}

int kb_json_get(const json_t *object, const struct kb_json_field *fields, size_t count,
		const char *prefix, void *into, struct kb_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct kb_json_field *f = &fields[i];
		void *at = (char *)into + f->offset;
		json_t *json = json_object_get(object, f->key);
		KB_AUTO_FREE char *key = kb_asprintf("%s%s", prefix, f->key);

		if (!json && f->type == KB_JSON_DOUBLE)
			*(double *)at = NAN;
		if (!json && f->required)
			return kb_error_set(err, KB_ECONFIG, "%s: is missing", key);
		int r = json ? get_field(json, f, key, at, err) : 0;
		if (r)
			return r;
	}
	return 0;
}

int kb_json_get_array(const json_t *object, const char *key, bool required,
		      json_t **ret_array, struct kb_error *err)
{
	json_t *json = json_object_get(object, key);

	if (!json && required)
		return kb_error_set(err, KB_ECONFIG, "%s: is missing", key);
	if (json && !json_is_array(json))
		return kb_json_wrong_kind(key, "an array", json, err);
	*ret_array = json;
	return 0;
}

int kb_json_get_doubles(const json_t *array, const char *key, double **ret_values,
			size_t *ret_count, struct kb_error *err)
{
	size_t count = json_array_size(array), i;
	KB_AUTO_FREE double *values = NULL;
	const json_t *item;

	if (!json_is_array(array))
		return kb_json_wrong_kind(key, "an array of numbers", array, err);
	if (!count) {
		*ret_values = NULL;
		*ret_count = 0;
		return 0;
	}
	values = kb_calloc(count, sizeof(*values));
	json_array_foreach(array, i, item) {
		if (!json_is_number(item) && !json_is_null(item))
			return kb_json_wrong_kind(key, "an array of numbers", item, err);
		values[i] = json_is_null(item) ? NAN : json_number_value(item);
	}
	*ret_values = KB_STEAL(values);
	*ret_count = count;
	return 0;
}

/* ---- documents ---- */

static int check_format(const json_t *root, const char *name, const char *format, int major,
			struct kb_error *err)
{
	const json_t *f = json_object_get(root, "format");
	const char *got = json_string_value(json_object_get(f, "name"));
	const json_t *version = json_object_get(f, "major");

	if (!got || !json_is_integer(version))
		return kb_error_set(err, KB_ECONFIG,
				    "%s: format: a document of kbisect has name and major here", name);
	if (!kb_streq(got, format))
		return kb_error_set(err, KB_ECONFIG, "%s: format.name: is '%.100s', not '%s'", name,
				    got, format);
	if (json_integer_value(version) < 1 || json_integer_value(version) > major)
		return kb_error_set(err, KB_ECONFIG,
				    "%s: format.major: is %" JSON_INTEGER_FORMAT
				    "; this kbisect understands up to %d",
				    name, json_integer_value(version), major);
	return 0;
}

int kb_json_parse(const char *text, size_t len, const char *name, const char *format, int major,
		  json_t **ret_json, struct kb_error *err)
{
	json_error_t why;
	KB_AUTO(kb_json_auto_free) json_t *root =
		json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	int r;

	if (!root)
		return kb_error_set(err, KB_ECONFIG, "%s:%d:%d: %s", name, why.line, why.column,
				    why.text);
	r = check_format(root, name, format, major, err);
	if (!r)
		*ret_json = KB_STEAL(root);
	return r;
}

int kb_json_load(const char *path, const char *format, int major, json_t **ret_json,
		 struct kb_error *err)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	int r = kb_read_file(path, DOCUMENT_MAX_BYTES, &text, &len, err);

	return r ? r : kb_json_parse(text, len, path, format, major, ret_json, err);
}
