/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "harness/base/clock.h"
#include "harness/base/error.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "tests/tap.h"

static void strings_grow(void)
{
	struct kb_str s = { 0 };

	is_str(kb_str_get(&s), "", "an empty string reads as \"\"");
	for (int i = 0; i < 1000; i++)
		kb_str_appendf(&s, "%d,", i);
	is_int(s.len, 10 * 2 + 90 * 3 + 900 * 4, "1000 appends: length");
	ok(kb_ends_with(kb_str_get(&s), "998,999,"), "1000 appends: end");
	kb_str_free(&s);
	kb_str_append_bytes(&s, "a\0b", 3);
	is_int(s.len, 3, "NUL bytes are kept");
	ok(memcmp(s.data, "a\0b", 4) == 0, "and a NUL is added");
	char *taken = kb_str_steal(&s);
	is_str(taken, "a", "stolen");
	ok(s.data == NULL && s.len == 0, "nothing is left after a steal");
	free(taken);
	taken = kb_str_steal(&s);
	is_str(taken, "", "stealing nothing gives an empty string");
	free(taken);
}

static void helpers(void)
{
	char buf[] = "x y \n\t ";

	ok(kb_streq(NULL, NULL) && !kb_streq(NULL, "") && kb_streq("a", "a"), "kb_streq");
	ok(kb_starts_with("abc", "ab") && !kb_starts_with("ab", "abc"), "kb_starts_with");
	ok(kb_ends_with("abc", "bc") && !kb_ends_with("bc", "abc"), "kb_ends_with");
	is_str(kb_str_rstrip(buf), "x y", "kb_str_rstrip");
	is_str(kb_duration_string(14999, buf), "14s", "seconds");
	char longer[32];
	is_str(kb_duration_string(200000, longer), "3m20s", "minutes");
	is_str(kb_duration_string(3720000, longer), "1h02m", "hours");
	is_str(kb_utc_string(1767323045000000u, longer), "2026-01-02T03:04:05Z", "UTC");
}

static void u64_cases(void)
{
	static const struct {
		const char *text;
		uint64_t min, max;
		int result;
		uint64_t value;
	} rows[] = {
		{ "0", 0, UINT64_MAX, 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", 0, UINT64_MAX, KB_ECONFIG, 0 },
		{ "99999999999999999999999", 0, UINT64_MAX, KB_ECONFIG, 0 },
		{ "007", 0, 10, 0, 7 },
		{ "", 0, 10, KB_ECONFIG, 0 },
		{ "-1", 0, UINT64_MAX, KB_ECONFIG, 0 },
		{ "+1", 0, 10, KB_ECONFIG, 0 },
		{ " 1", 0, 10, KB_ECONFIG, 0 },
		{ "1 ", 0, 10, KB_ECONFIG, 0 },
		{ "1k", 0, 10, KB_ECONFIG, 0 },
		{ "0x1", 0, 10, KB_ECONFIG, 0 },
		{ "4", 5, 10, KB_ECONFIG, 0 },
		{ "11", 5, 10, KB_ECONFIG, 0 },
		{ "5", 5, 10, 0, 5 },
		{ "10", 5, 10, 0, 10 },
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		uint64_t value = 77;
		struct kb_error err = { 0 };
		int r = kb_parse_u64(rows[i].text, rows[i].min, rows[i].max, "limit", &value,
				     &err);

		is_int(r, rows[i].result, "u64 '%s': result", rows[i].text);
		ok(value == (rows[i].result ? 77 : rows[i].value), "u64 '%s': value",
		   rows[i].text);
		ok(!r || kb_starts_with(err.message, "limit: "), "u64 '%s': names it",
		   rows[i].text);
	}
}

static void double_cases(void)
{
	static const struct {
		const char *text;
		int result;
		double value;
	} rows[] = {
		{ "1.5", 0, 1.5 },	  { "-2e3", 0, -2000 },	     { ".5", 0, 0.5 },
		{ "1e999", KB_ECONFIG, 0 }, { "nan", KB_ECONFIG, 0 }, { "inf", KB_ECONFIG, 0 },
		{ "0x10", KB_ECONFIG, 0 },  { "", KB_ECONFIG, 0 },    { "1,5", KB_ECONFIG, 0 },
		{ "1.5x", KB_ECONFIG, 0 },  { " 1", KB_ECONFIG, 0 },  { "--1", KB_ECONFIG, 0 },
		{ "e5", KB_ECONFIG, 0 },    { ".", KB_ECONFIG, 0 },
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		double value = -7;
		int r = kb_parse_double(rows[i].text, "x", &value, NULL);

		is_int(r, rows[i].result, "double '%s': result", rows[i].text);
		is_double(value, r ? -7 : rows[i].value, 0, "double '%s': value", rows[i].text);
	}
}

static void sanitize_cases(void)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{ "plain\ttext\n", "plain\ttext\n" },
		{ "\x1b[31mred\r", "?[31mred?" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		  "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xc2\x9b" "31m", "??31m" },            /* C1 control */
		{ "\xc0\xaf", "??" },                       /* overlong */
		{ "\xe0\x80\xaf", "???" },
		{ "\xed\xa0\x80", "???" },                  /* surrogate */
		{ "\xf4\x90\x80\x80", "????" },             /* beyond the last code point */
		{ "\xff\x7f", "??" },
		{ "cut\xe2\x82", "cut??" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		KB_AUTO_FREE char *got =
			kb_str_sanitize(rows[i].in, strlen(rows[i].in), 1000);

		is_str(got, rows[i].want, "sanitize row %zu", i);
	}
	KB_AUTO_FREE char *cut = kb_str_sanitize("ab\0cd", 5, 4);
	is_str(cut, "ab?c", "sanitize: NUL replaced, cut at max_len");
}

static void lists(void)
{
	struct kb_strv v = { 0 };

	kb_strv_split(&v, "  a, b,,c ", " ,");
	is_int(v.count, 3, "split drops empty parts");
	for (int i = 0; i < 20; i++)
		kb_strv_addf(&v, "n%d", i);
	is_str(v.items[2], "c", "split part");
	is_str(v.items[22], "n19", "added");
	ok(v.items[v.count] == NULL, "the list ends in NULL");
	kb_strv_free(&v);
	kb_strv_free(&v);
	is_int(v.count, 0, "freeing twice is harmless");
}

static void errors(void)
{
	struct kb_error err = { 0 };
	char big[3000];

	is_int(kb_error_set(NULL, KB_EVM, "x"), KB_EVM, "a NULL error is fine");
	kb_error_set(&err, KB_EGUEST, "says %s", "a\nb\x1b[0m");
	is_str(err.message, "says a?b?[0m", "control characters do not get through");
	kb_error_set(&err, KB_EIO, "outer: %s", err.message);
	is_str(err.message, "outer: says a?b?[0m", "its own message may be an argument");
	kb_error_prefix(&err, "in %s", "front");
	is_str(err.message, "in front: outer: says a?b?[0m", "prefix");
	is_int(err.code, KB_EIO, "prefix keeps the code");
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	kb_error_errno(&err, KB_EIO, ENOSPC, "%s", big);
	ok(kb_ends_with(err.message, ": No space left on device"),
	   "the reason survives a very long path");
	kb_error_prefix(&err, "%s", big);
	is_int(strlen(err.message), sizeof(err.message) - 1, "long prefixes are cut");
	is_str(kb_errno_name(KB_ETIMEOUT), "timeout", "name of a code");
}

int main(void)
{
	strings_grow();
	helpers();
	u64_cases();
	double_cases();
	sanitize_cases();
	lists();
	errors();
	return tap_done();
}
