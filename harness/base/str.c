/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

void kb_str_free(struct kb_str *s)
{
	if (!s)
		return;
	free(s->data);
	*s = (struct kb_str){ 0 };
}

static void reserve(struct kb_str *s, size_t more)
{
	size_t need = s->len + more + 1;

	if (need <= s->cap)
		return;
	size_t cap = s->cap ? s->cap : 64;
	while (cap < need)
		cap *= 2;
	s->data = kb_realloc(s->data, cap, 1);
	s->cap = cap;
}

void kb_str_append_bytes(struct kb_str *s, const void *data, size_t len)
{
	reserve(s, len);
	if (len)
		memcpy(s->data + s->len, data, len);
	s->len += len;
	s->data[s->len] = '\0';
}

void kb_str_append(struct kb_str *s, const char *text)
{
	kb_str_append_bytes(s, text, strlen(text));
}

__attribute__((format(printf, 2, 0))) static void append_v(struct kb_str *s, const char *fmt,
							   va_list ap)
{
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return;
	reserve(s, (size_t)n);
	vsnprintf(s->data + s->len, (size_t)n + 1, fmt, ap);
	s->len += (size_t)n;
}

void kb_str_appendf(struct kb_str *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	append_v(s, fmt, ap);
	va_end(ap);
}

const char *kb_str_get(const struct kb_str *s)
{
	return s->data ? s->data : "";
}

char *kb_str_steal(struct kb_str *s)
{
	char *data = s->data ? s->data : kb_strdup("");

	*s = (struct kb_str){ 0 };
	return data;
}

bool kb_streq(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool kb_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool kb_ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

char *kb_str_rstrip(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

int kb_parse_u64(const char *s, uint64_t min, uint64_t max, const char *what,
		 uint64_t *ret_value, struct kb_error *err)
{
	uint64_t value = 0;
	bool in_range = true;

	if (*s == '\0' || s[strspn(s, "0123456789")] != '\0')
		return kb_error_set(err, KB_ECONFIG, "%s: '%.64s' is not a whole number", what,
				    s);
	for (const char *p = s; *p; p++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			in_range = false;
	if (!in_range || value < min || value > max)
		return kb_error_set(err, KB_ECONFIG,
				    "%s: %.64s is not between %" PRIu64 " and %" PRIu64, what,
				    s, min, max);
	*ret_value = value;
	return 0;
}

int kb_parse_double(const char *s, const char *what, double *ret_value,
		    struct kb_error *err)
{
	char *end = NULL;

	/* the character set keeps out blanks, hexadecimal, "inf" and "nan" */
	if (*s == '\0' || s[strspn(s, "0123456789+-.eE")] != '\0')
		return kb_error_set(err, KB_ECONFIG, "%s: '%.64s' is not a number", what, s);
	locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double value = strtod_l(s, &end, c_locale);
	freelocale(c_locale);
	if (end == s || *end != '\0' || !isfinite(value))
		return kb_error_set(err, KB_ECONFIG, "%s: '%.64s' is not a finite number", what,
				    s);
	*ret_value = value;
	return 0;
}

/* Length of the valid, printable UTF-8 sequence at p, or 0. RFC 3629, C1 controls refused. */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	uint32_t code, least = n == 4 ? 0x10000 : n == 3 ? 0x800 : 0xa0;

	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	code = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

char *kb_str_sanitize(const char *data, size_t len, size_t max_len)
{
	const unsigned char *in = (const unsigned char *)data;
	size_t n = len < max_len ? len : max_len;
	char *out = kb_malloc(n + 1);

	for (size_t i = 0; i < n;) {
		unsigned char c = in[i];
		size_t seq = 1;

		if (c >= 0x80)
			seq = utf8_sequence(in + i, n - i);
		else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
			seq = 0;
		if (seq == 0)
			out[i++] = '?';
		while (seq-- > 0 && i < n) {
			out[i] = data[i];
			i++;
		}
	}
	out[n] = '\0';
	return out;
}

void kb_strv_free(struct kb_strv *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->count; i++)
		free(v->items[i]);
	free(v->items);
	*v = (struct kb_strv){ 0 };
}

static void add_owned(struct kb_strv *v, char *s)
{
	if (v->count + 1 >= v->cap) {
		v->cap = v->cap ? v->cap * 2 : 8;
		v->items = kb_realloc(v->items, v->cap, sizeof(*v->items));
	}
	v->items[v->count++] = s;
	v->items[v->count] = NULL;
}

void kb_strv_add(struct kb_strv *v, const char *s)
{
	add_owned(v, kb_strdup(s));
}

void kb_strv_addf(struct kb_strv *v, const char *fmt, ...)
{
	struct kb_str s = { 0 };
	va_list ap;

	va_start(ap, fmt);
	append_v(&s, fmt, ap);
	va_end(ap);
	add_owned(v, kb_str_steal(&s));
}

void kb_strv_split(struct kb_strv *v, const char *s, const char *separators)
{
	for (;;) {
		s += strspn(s, separators);
		if (*s == '\0')
			return;
		size_t n = strcspn(s, separators);
		add_owned(v, kb_strndup(s, n));
		s += n;
	}
}
