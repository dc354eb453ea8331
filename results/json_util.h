/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structs to JSON objects and back by one table of fields, so that writing and reading can't
 * drift apart. Shared within results/ only: nobody else there or above sees jansson.
 */
#ifndef KB_RESULTS_JSON_UTIL_H
#define KB_RESULTS_JSON_UTIL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/error.h"

enum kb_json_type {
	KB_JSON_TEXT,   /* char *, owned; NULL is null */
	KB_JSON_WORD,   /* char[41], "" is null */
	KB_JSON_U32,
	KB_JSON_U64,    /* up to INT64_MAX */
	KB_JSON_BOOL,   /* bool */
	KB_JSON_FLAG,   /* int used as bool */
	KB_JSON_DOUBLE, /* not finite is null; null is NAN */
	KB_JSON_LIST,   /* struct kb_strv */
	KB_JSON_PAIRS,  /* struct kb_pairs; an object */
};

struct kb_json_field {
	const char *key;
	enum kb_json_type type;
	size_t offset;
	bool required; /* must be there when read, and a text must not be null */
};

/* Table rows for a member whose key is its name in the struct. */
#define KB_JSON_FIELD(struct_tag, member, kind)                                    \
	{                                                                          \
		.key = #member, .type = KB_JSON_##kind,                            \
		.offset = offsetof(struct struct_tag, member), .required = false   \
	}
#define KB_JSON_NEEDED(struct_tag, member, kind)                                   \
	{                                                                          \
		.key = #member, .type = KB_JSON_##kind,                            \
		.offset = offsetof(struct struct_tag, member), .required = true    \
	}

#define KB_JSON_WORD_SIZE 41

/** For KB_AUTO(kb_json_auto_free) json_t *. */
void kb_json_auto_free(json_t **json);

/** A new object with its "format" member. */
json_t *kb_json_document(const char *format, int major, int minor);

/** Adds members. Text that is not valid UTF-8 is sanitized: no key is ever lost. */
void kb_json_put(json_t *object, const struct kb_json_field *fields, size_t count,
		 const void *from);
json_t *kb_json_text(const char *text); /* NULL: null */
json_t *kb_json_double(double value);   /* not finite: null */
json_t *kb_json_doubles(const double *values, size_t count);

/**
 * Reads members into a zeroed struct; absent ones that are not required stay zero (doubles:
 * NAN). After an error the struct holds what was read so far and must be freed.
 * @param prefix key path of the object with a dot at its end, or ""
 * Errors: KB_ECONFIG, the message beginning with the key path.
 */
int kb_json_get(const json_t *object, const struct kb_json_field *fields, size_t count,
		const char *prefix, void *into, struct kb_error *err);
/** An array member; *ret_array borrowed, NULL when it is absent and not required. */
int kb_json_get_array(const json_t *object, const char *key, bool required,
		      json_t **ret_array, struct kb_error *err);
/** An array of numbers or nulls. @ret_values owned, NULL for an empty one */
int kb_json_get_doubles(const json_t *array, const char *key, double **ret_values,
			size_t *ret_count, struct kb_error *err);
/** "KEY: must be WANT, not KIND". */
int kb_json_wrong_kind(const char *key, const char *want, const json_t *got,
		       struct kb_error *err);

/**
 * Parses a document and checks its format's name and major version.
 * Errors: KB_ECONFIG naming `name` (a file, usually).
 */
int kb_json_parse(const char *text, size_t len, const char *name, const char *format, int major,
		  json_t **ret_json, struct kb_error *err);
/** The same from a file of at most 64 MiB. Errors: also KB_EIO. */
int kb_json_load(const char *path, const char *format, int major, json_t **ret_json,
		 struct kb_error *err);
/** Indented text with a newline at the end; owned. @param digits of fractions, see below */
char *kb_json_dump(const json_t *json, int digits);
/** The same into a file, atomically. Errors: KB_EIO. */
int kb_json_write(const char *path, const json_t *json, int digits, struct kb_error *err);

/* Digits of fractions: so that samples come back bit by bit, or so that people can read them. */
#define KB_JSON_EXACT 17
#define KB_JSON_READABLE 15

#endif
