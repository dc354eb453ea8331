/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guestdoc.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "guest-init/proto.h"
#include "harness/base/mem.h"

enum {
	MAX_METRICS = 256,
	MAX_VALUES = 100000, /* of one metric: a value for each file is possible */
	MAX_COUNTERS = 200000,
	MAX_PARAMS = 256,
	MAX_NOTES = 256,
	MAX_NAME = 63,
	MAX_TEXT = 1000,
};

static bool is_hex(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	return len > 0;
}

/* NAME of the grammar: metrics, counters, parameters, phases. */
static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr("_.-", s[i])))
			return false;
	return len > 0 && len <= MAX_NAME;
}

/* ---- console markers ---- */

/* The next blank-separated word of [*p, end). */
static bool next_word(const char **p, const char *end, const char **ret_word,
		      size_t *ret_len)
{
	const char *s = *p;

	while (s < end && *s == ' ')
		s++;
	if (s == end)
		return false;
	*ret_word = s;
	while (s < end && *s != ' ')
		s++;
	*ret_len = (size_t)(s - *ret_word);
	*p = s;
	return true;
}

/* "key=value" as the next word; the value is copied if it fits `size`. */
static bool take_value(const char **p, const char *end, const char *key, char *dest,
		       size_t size)
{
	size_t key_len = strlen(key), len;
	const char *word;

	if (!next_word(p, end, &word, &len) || len <= key_len + 1 ||
	    memcmp(word, key, key_len) != 0 || word[key_len] != '=')
		return false;
	len -= key_len + 1;
	if (len >= size)
		return false;
	memcpy(dest, word + key_len + 1, len);
	dest[len] = '\0';
	return true;
}

static bool take_u64(const char **p, const char *end, const char *key, uint64_t max,
		     uint64_t *ret)
{
	char text[24];

	return take_value(p, end, key, text, sizeof(text)) &&
	       kb_parse_u64(text, 0, max, key, ret, NULL) == 0;
}

static bool take_nonce(const char **p, const char *end, struct kb_marker *m)
{
	return take_value(p, end, "nonce", m->nonce, sizeof(m->nonce)) &&
	       is_hex(m->nonce, strlen(m->nonce));
}

static bool at_end(const char **p, const char *end)
{
	const char *word;
	size_t len;

	return !next_word(p, end, &word, &len);
}

static bool parse_start(const char *p, const char *end, struct kb_marker *m)
{
	uint64_t version;

	if (!take_nonce(&p, end, m) || !take_u64(&p, end, "version", 1000000, &version))
		return false;
	m->version = (unsigned)version;
	return true; /* a later version may add keys */
}

static bool parse_phase(const char *p, const char *end, struct kb_marker *m)
{
	const char *word;
	size_t len;

	if (!next_word(&p, end, &word, &len) || !is_name(word, len))
		return false;
	memcpy(m->name, word, len);
	m->name[len] = '\0';
	return at_end(&p, end);
}

static bool parse_fail(const char *p, const char *end, struct kb_marker *m)
{
	uint64_t number = 0;

	if (!take_value(&p, end, "step", m->name, sizeof(m->name)) ||
	    !is_name(m->name, strlen(m->name)) ||
	    !take_u64(&p, end, "errno", 4095, &number))
		return false;
	m->errno_value = (int)number;
	while (p < end && *p == ' ')
		p++;
	if ((size_t)(end - p) >= 5 && !memcmp(p, "text=", 5)) {
		KB_AUTO_FREE char *clean = kb_str_sanitize(p + 5, (size_t)(end - p) - 5,
							   sizeof(m->text) - 1);
		size_t len = strnlen(clean, sizeof(m->text) - 1);

		memcpy(m->text, clean, len);
		m->text[len] = '\0';
	}
	return true;
}

static bool parse_result(const char *p, const char *end, struct kb_marker *m)
{
	return take_nonce(&p, end, m) &&
	       take_u64(&p, end, "bytes", UINT64_MAX / 2, &m->bytes) &&
	       take_value(&p, end, "sha256", m->sha256, sizeof(m->sha256)) &&
	       strlen(m->sha256) == KB_HASH_HEX_LEN &&
	       is_hex(m->sha256, KB_HASH_HEX_LEN) && at_end(&p, end);
}

enum kb_marker_kind kb_marker_parse(const char *line, size_t len,
				    struct kb_marker *ret_marker)
{
	static const struct {
		const char *word;
		enum kb_marker_kind kind;
		bool (*parse)(const char *p, const char *end, struct kb_marker *m);
	} kinds[] = {
		{"start", KB_MARKER_START, parse_start},
		{"phase", KB_MARKER_PHASE, parse_phase},
		{"fail", KB_MARKER_FAIL, parse_fail},
		{"result", KB_MARKER_RESULT, parse_result},
	};
	const size_t prefix_len = sizeof(KB_PROTO_CONSOLE_PREFIX) - 1;
	const char *p = line, *end = line + len, *word;
	size_t word_len;

	memset(ret_marker, 0, sizeof(*ret_marker));
	while (end > p && end[-1] == '\r')
		end--;
	if (p < end && *p == '[') { /* "[    1.234567] " */
		const char *close = memchr(p, ']', (size_t)(end - p));

		if (close && close + 1 < end && close[1] == ' ')
			p = close + 2;
	}
	if ((size_t)(end - p) < prefix_len ||
	    memcmp(p, KB_PROTO_CONSOLE_PREFIX, prefix_len) != 0)
		return KB_MARKER_NONE;
	p += prefix_len;
	ret_marker->kind = KB_MARKER_BROKEN;
	if (!next_word(&p, end, &word, &word_len))
		return KB_MARKER_BROKEN;
	for (size_t i = 0; i < KB_COUNT_OF(kinds); i++) {
		if (word_len != strlen(kinds[i].word) ||
		    memcmp(word, kinds[i].word, word_len) != 0)
			continue;
		if (kinds[i].parse(p, end, ret_marker))
			ret_marker->kind = kinds[i].kind;
		return ret_marker->kind;
	}
	return KB_MARKER_BROKEN;
}

/* ---- the result document ---- */

struct doc {
	struct kb_boot_record *record;
	const char *nonce;
	size_t line_number; /* of the line at work, from 1 */
	bool has_nonce, has_kernel, has_workload;
	size_t metric_cap, counter_cap;
	struct kb_error *err;
};

static int bad(struct doc *d, const char *what)
{
	return kb_error_set(d->err, KB_EGUEST, "result line %zu: %s", d->line_number,
			    what);
}

/* Cuts the next word off a NUL-terminated line with single blanks; NULL at the end. */
static char *cut(char **rest)
{
	char *word = *rest;

	if (!word)
		return NULL;
	char *blank = strchr(word, ' ');
	if (blank)
		*blank++ = '\0';
	*rest = blank;
	return word;
}

static bool word_is_name(const char *word)
{
	return word && is_name(word, strlen(word));
}

/* Digits, sign, point, exponent only: no "inf", "nan", hexadecimal or blanks. */
static bool parse_value(const char *word, double *ret)
{
	if (strlen(word) > 40 || word[strspn(word, "0123456789+-.eE")])
		return false;
	return kb_parse_double(word, "value", ret, NULL) == 0 && isfinite(*ret);
}

static int do_nonce(struct doc *d, char *rest)
{
	if (d->has_nonce || !kb_streq(rest, d->nonce))
		return bad(d, "the nonce is not this boot's");
	d->has_nonce = true;
	return 0;
}

static int do_kernel(struct doc *d, char *rest)
{
	if (d->has_kernel || !rest || strlen(rest) > MAX_TEXT)
		return bad(d, "kernel: once, with a short text");
	d->has_kernel = true;
	d->record->kernel_version = kb_strdup(rest);
	return 0;
}

static int do_workload(struct doc *d, char *rest)
{
	if (d->has_workload || !word_is_name(rest))
		return bad(d, "workload: once, with a name");
	d->has_workload = true;
	d->record->workload = kb_strdup(rest);
	return 0;
}

static int do_param(struct doc *d, char *rest)
{
	char *name = cut(&rest);

	if (!word_is_name(name) || !rest || strlen(rest) > MAX_TEXT)
		return bad(d, "param: a name and a short value");
	if (d->record->params.count >= MAX_PARAMS ||
	    kb_pairs_get(&d->record->params, name))
		return bad(d, "param: too many, or twice the same");
	kb_pairs_add(&d->record->params, name, rest);
	return 0;
}

static int take_values(struct doc *d, struct kb_metric *m, char *rest)
{
	size_t cap = 0;

	for (char *word; (word = cut(&rest));) {
		double value;

		if (m->count >= MAX_VALUES || !parse_value(word, &value))
			return bad(d,
				   "metric: a value is not a finite number, or too many");
		KB_GROW(m->values, m->count, cap);
		m->values[m->count++] = value;
	}
	return m->count ? 0 : bad(d, "metric: no values");
}

static int do_metric(struct doc *d, char *rest)
{
	struct kb_boot_record *r = d->record;
	char *name = cut(&rest), *unit = cut(&rest), *direction = cut(&rest);

	if (!word_is_name(name) || !word_is_name(unit) || !direction)
		return bad(d, "metric: name, unit, lower|higher, values");
	if (!kb_streq(direction, "lower") && !kb_streq(direction, "higher"))
		return bad(d, "metric: neither lower nor higher is better");
	if (r->metric_count >= MAX_METRICS || kb_boot_record_metric(r, name))
		return bad(d, "metric: too many, or twice the same");
	KB_GROW(r->metrics, r->metric_count, d->metric_cap);
	struct kb_metric *m = &r->metrics[r->metric_count++];
	*m = (struct kb_metric){.name = kb_strdup(name),
				.unit = kb_strdup(unit),
				.higher_is_better = kb_streq(direction, "higher")};
	return take_values(d, m, rest);
}

static int do_counter(struct doc *d, char *rest)
{
	struct kb_boot_record *r = d->record;
	char *point = cut(&rest), *rep = cut(&rest), *name = cut(&rest),
	     *value = cut(&rest);
	uint64_t repetition = 0, magnitude = 0;

	if (!point || !rep || !word_is_name(name) || !value || rest)
		return bad(d, "counter: point, repetition, name, value");
	if (!kb_streq(point, "before") && !kb_streq(point, "after") &&
	    !kb_streq(point, "start") && !kb_streq(point, "stop"))
		return bad(d, "counter: unknown point");
	bool negative = value[0] == '-';
	if (kb_parse_u64(rep, 0, 1000000, "repetition", &repetition, NULL) ||
	    kb_parse_u64(value + negative, 0, INT64_MAX, "value", &magnitude, NULL))
		return bad(d, "counter: a number is out of range");
	if (r->counter_count >= MAX_COUNTERS)
		return bad(d, "counter: too many");
	KB_GROW(r->counters, r->counter_count, d->counter_cap);
	r->counters[r->counter_count++] = (struct kb_counter){
		.point = kb_strdup(point),
		.repetition = (uint32_t)repetition,
		.name = kb_strdup(name),
		.value = negative ? -(int64_t)magnitude : (int64_t)magnitude,
	};
	return 0;
}

static int do_note(struct doc *d, char *rest)
{
	if (!rest || strlen(rest) > MAX_TEXT || d->record->notes.count >= MAX_NOTES)
		return bad(d, "note: too long or too many");
	kb_strv_add(&d->record->notes, rest);
	return 0;
}

/* The guest disowns its own values: they are kept, the outcome says not to judge by them.
 */
static int do_invalid(struct doc *d, char *rest)
{
	if (!rest || strlen(rest) > MAX_TEXT)
		return bad(d, "invalid: needs a short text");
	if (!d->record->reason) {
		d->record->outcome = KB_BOOT_INVALID;
		d->record->reason = kb_strdup(rest);
	}
	return 0;
}

static int do_line(struct doc *d, char *line)
{
	static const struct {
		const char *word;
		int (*run)(struct doc *d, char *rest);
	} verbs[] = {
		{"nonce", do_nonce}, {"kernel", do_kernel},   {"workload", do_workload},
		{"param", do_param}, {"metric", do_metric},   {"counter", do_counter},
		{"note", do_note},   {"invalid", do_invalid},
	};
	char *rest = line;
	char *verb = cut(&rest);

	for (size_t i = 0; i < KB_COUNT_OF(verbs); i++)
		if (kb_streq(verb, verbs[i].word))
			return verbs[i].run(d, rest);
	return bad(d, "unknown kind of line");
}

static bool is_printable_text(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != '\n' && (data[i] < ' ' || data[i] > '~'))
			return false;
	return true;
}

/* Walks the lines of a private copy. */
static int parse_lines(struct doc *d, char *text, size_t len)
{
	char *line = text, *end = text + len;
	bool ended = false;

	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		*newline = '\0'; /* the text is known to end in one */
		d->line_number++;
		if (ended)
			return bad(d, "something follows the end");
		if (d->line_number == 1) {
			if (!kb_streq(line, KB_PROTO_RESULT_MAGIC))
				return bad(d,
					   "does not begin with \"" KB_PROTO_RESULT_MAGIC
					   "\"");
		} else if (kb_starts_with(line, "end ")) {
			uint64_t lines = 0;

			if (kb_parse_u64(line + 4, 0, SIZE_MAX / 2, "end", &lines,
					 NULL) ||
			    lines != d->line_number - 1)
				return bad(d,
					   "the end does not give the number of lines");
			ended = true;
		} else {
			int r = do_line(d, line);

			if (r)
				return r;
		}
		line = newline + 1;
	}
	if (!ended)
		return bad(d, "the end is missing");
	if (!d->has_nonce || !d->has_kernel || !d->has_workload)
		return bad(d, "nonce, kernel or workload is missing");
	return 0;
}

static void forget(struct kb_boot_record *r)
{
	for (size_t i = 0; i < r->metric_count; i++) {
		free(r->metrics[i].name);
		free(r->metrics[i].unit);
		free(r->metrics[i].values);
	}
	for (size_t i = 0; i < r->counter_count; i++) {
		free(r->counters[i].point);
		free(r->counters[i].name);
	}
	free(r->metrics);
	free(r->counters);
	free(r->kernel_version);
	free(r->workload);
	free(r->reason);
	r->reason = NULL;
	r->outcome = KB_BOOT_OK;
	r->metrics = NULL;
	r->counters = NULL;
	r->metric_count = r->counter_count = 0;
	r->kernel_version = r->workload = NULL;
	kb_pairs_free(&r->params);
	r->params = (struct kb_pairs){0};
	kb_strv_free(&r->notes);
	r->notes = (struct kb_strv){0};
}

int kb_guestdoc_parse_text(const char *data, size_t len, const char *nonce,
			   struct kb_boot_record *ret_record, struct kb_error *err)
{
	struct doc d = {.record = ret_record, .nonce = nonce, .err = err};

	if (len == 0 || len > KB_PROTO_RESULT_MAX_BYTES)
		return kb_error_set(err, KB_EGUEST,
				    "the result is empty or too long (%zu bytes)", len);
	if (data[len - 1] != '\n' || !is_printable_text(data, len))
		return kb_error_set(
			err, KB_EGUEST,
			"the result is cut off or contains bytes that are not text");
	KB_AUTO_FREE char *copy = kb_strndup(data, len);
	int r = parse_lines(&d, copy, len);
	if (r)
		forget(ret_record);
	return r;
}

int kb_guestdoc_parse(const char *data, size_t len, const struct kb_marker *marker,
		      const char *nonce, struct kb_boot_record *ret_record,
		      struct kb_error *err)
{
	char hex[KB_HASH_HEX_LEN + 1];

	if (!kb_streq(marker->nonce, nonce))
		return kb_error_set(err, KB_EGUEST,
				    "the end marker does not carry this boot's nonce");
	if (marker->bytes != len)
		return kb_error_set(err, KB_EGUEST,
				    "the result has %zu bytes, its marker says %" PRIu64,
				    len, marker->bytes);
	kb_hash_bytes(data, len, hex);
	if (!kb_streq(hex, marker->sha256))
		return kb_error_set(err, KB_EGUEST,
				    "the result does not have its marker's SHA-256");
	return kb_guestdoc_parse_text(data, len, nonce, ret_record, err);
}
