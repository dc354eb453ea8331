/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings that grow, and the few string helpers that everything needs. */
#ifndef KB_BASE_STR_H
#define KB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"

struct kb_str {
	char *data; /* owned, NUL-terminated once anything was appended; else NULL */
	size_t len;
	size_t cap;
};

void kb_str_free(struct kb_str *s); /* leaves an empty, usable string; NULL is fine */
void kb_str_append(struct kb_str *s, const char *text);
void kb_str_append_bytes(struct kb_str *s, const void *data, size_t len);
void kb_str_appendf(struct kb_str *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *kb_str_get(const struct kb_str *s); /* borrowed, never NULL */
char *kb_str_steal(struct kb_str *s);           /* owned by the caller, never NULL */

bool kb_streq(const char *a, const char *b); /* NULL equals only NULL */
bool kb_starts_with(const char *s, const char *prefix);
bool kb_ends_with(const char *s, const char *suffix);

/** Strips trailing white space in place; returns s. */
char *kb_str_rstrip(char *s);

/**
 * Parses a whole decimal string. No sign, no blanks, no suffix.
 * Errors: KB_ECONFIG when it is not a number or not within [min, max]; `what` names it.
 */
int kb_parse_u64(const char *s, uint64_t min, uint64_t max, const char *what,
		 uint64_t *ret_value, struct kb_error *err);

/** Parses a whole finite decimal floating-point string in the C locale. Errors: KB_ECONFIG. */
int kb_parse_double(const char *s, const char *what, double *ret_value,
		    struct kb_error *err);

/**
 * Copies at most max_len bytes of untrusted text, control characters except tab and newline
 * and bytes that are not valid UTF-8 replaced by '?'. The caller owns the result.
 */
char *kb_str_sanitize(const char *data, size_t len, size_t max_len);

/** A list of owned strings. */
struct kb_strv {
	char **items; /* owned; items[count] is NULL once anything was added */
	size_t count;
	size_t cap;
};

void kb_strv_free(struct kb_strv *v);
void kb_strv_add(struct kb_strv *v, const char *s);
void kb_strv_addf(struct kb_strv *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** Splits at any of the characters in `separators`; empty parts are dropped. */
void kb_strv_split(struct kb_strv *v, const char *s, const char *separators);

#endif
