/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guestdoc.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

#define NONCE "0123456789abcdef"
#define HEAD "kbisect-result 1\nnonce " NONCE "\nkernel 6.1.0|#1 SMP\nworkload trunc\n"
#define SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static enum kb_marker_kind mark(const char *line, struct kb_marker *m)
{
	return kb_marker_parse(line, strlen(line), m);
}

static void markers_are_parsed(void)
{
	struct kb_marker m;

	is_int(mark("@kb start nonce=" NONCE " version=1", &m), KB_MARKER_START, "start");
	is_str(m.nonce, NONCE, "its nonce");
	is_int(m.version, 1, "its version");
	is_int(mark("[    1.234567] @kb phase mkfs\r", &m), KB_MARKER_PHASE,
	       "phase, stamped");
	is_str(m.name, "mkfs", "its name");
	is_int(mark("@kb fail step=mount errno=22 text=mount /dev/pmem0: \x01 no", &m),
	       KB_MARKER_FAIL, "fail");
	is_str(m.name, "mount", "its step");
	is_int(m.errno_value, 22, "its errno");
	is_str(m.text, "mount /dev/pmem0: ? no", "its text, cleaned");
	is_int(mark("@kb result nonce=" NONCE " bytes=0 sha256=" SUM, &m),
	       KB_MARKER_RESULT, "result");
	is_int(m.bytes, 0, "its length");
	is_str(m.sha256, SUM, "its checksum");
}

static void broken_markers_are_told_from_other_lines(void)
{
	static const char *const broken[] = {
		"@kb ",
		"@kb wat",
		"@kb start nonce=XYZ version=1",
		"@kb start version=1",
		"@kb phase",
		"@kb phase a b",
		"@kb phase a;b",
		"@kb fail step=x errno=abc text=",
		"@kb result nonce=" NONCE " bytes=-1 sha256=" SUM,
		"@kb result nonce=" NONCE " bytes=1 sha256=abc",
		"@kb result nonce=" NONCE " bytes=1 sha256=" SUM " more",
		"@kb result nonce=" NONCE " bytes=99999999999999999999 sha256=" SUM,
		"@kb result nonce=" NONCE NONCE NONCE NONCE "0 bytes=1 sha256=" SUM,
	};
	struct kb_marker m;

	for (size_t i = 0; i < KB_COUNT_OF(broken); i++)
		is_int(mark(broken[i], &m), KB_MARKER_BROKEN, "%s", broken[i]);
	is_int(mark("kb start", &m), KB_MARKER_NONE, "not a marker");
	is_int(mark("text @kb start", &m), KB_MARKER_NONE,
	       "not at the start of the line");
	is_int(mark("@kb", &m), KB_MARKER_NONE, "too short");
	is_int(mark("", &m), KB_MARKER_NONE, "empty");
}

static int parse(const char *text, struct kb_boot_record *r, struct kb_error *err)
{
	return kb_guestdoc_parse_text(text, strlen(text), NONCE, r, err);
}

static void good_document_is_read(void)
{
	static const char text[] = HEAD "param files 64\n"
					"metric trunc_ns ns lower 100 200.5 3e2\n"
					"metric rate MiB higher 1\n"
					"counter start 1 workingset_nodes 630\n"
					"counter before 0 meminfo.MemFree -5\n"
					"note mkfs: version 5.18\n"
					"end 10\n";
	struct kb_boot_record r = {0};
	struct kb_error err = {0};

	is_int(parse(text, &r, &err), 0, "accepted %s", err.message);
	is_str(r.kernel_version, "6.1.0|#1 SMP", "kernel");
	is_str(r.workload, "trunc", "workload");
	is_str(kb_pairs_get(&r.params, "files"), "64", "param");
	is_int(r.metric_count, 2, "metrics");
	is_int(r.metrics[0].count, 3, "values");
	is_double(r.metrics[0].values[1], 200.5, 0, "a value");
	ok(!r.metrics[0].higher_is_better && r.metrics[1].higher_is_better, "directions");
	is_int(r.counter_count, 2, "counters");
	is_int(r.counters[0].value, 630, "a counter");
	is_int(r.counters[1].value, -5, "a negative one");
	is_int(r.notes.count, 1, "notes");
	is_int(r.outcome, KB_BOOT_OK, "valid");
	kb_boot_record_free(&r);
}

static void disowned_values_are_invalid(void)
{
	struct kb_boot_record r = {0};

	is_int(parse(HEAD "metric m ns lower 1\ninvalid no shadow nodes\nend 6\n", &r,
		     NULL),
	       0, "accepted");
	is_int(r.outcome, KB_BOOT_INVALID, "but invalid");
	is_str(r.reason, "no shadow nodes", "and why");
	kb_boot_record_free(&r);
}

static void anything_off_is_refused(void)
{
	static const char *const bad[] = {
		"",
		"kbisect-result 1",
		"kbisect-result 2\nnonce " NONCE
		"\nkernel k\nworkload w\nmetric m ns lower 1\nend 5\n",
		HEAD "metric m ns lower 1\n",	     /* no end */
		HEAD "metric m ns lower 1\nend 4\n", /* wrong count */
		HEAD "metric m ns lower 1\nend 6\n",
		HEAD "metric m ns lower 1\nend 5\nnote x\n", /* after the end */
		HEAD "metric m ns lower 1\nend 5\n\n",
		HEAD "metric m ns lower 1\nend 5", /* cut off */
		HEAD "metric m ns lower nan\nend 5\n",
		HEAD "metric m ns lower inf\nend 5\n",
		HEAD "metric m ns lower 0x10\nend 5\n",
		HEAD "metric m ns lower 1e999\nend 5\n",
		HEAD "metric m ns lower 1  2\nend 5\n", /* an empty word */
		HEAD "metric m ns lower 1 \nend 5\n",
		HEAD "metric m ns lower\nend 5\n",
		HEAD "metric m ns sideways 1\nend 5\n",
		HEAD "metric m<script> ns lower 1\nend 5\n",
		HEAD "metric m ns lower 1\nmetric m ns lower 2\nend 6\n",
		HEAD "metric m ns lower 1\ncounter never 0 n 1\nend 6\n",
		HEAD "metric m ns lower 1\ncounter start x n 1\nend 6\n",
		HEAD "metric m ns lower 1\ncounter start 0 n 1.5\nend 6\n",
		HEAD
		"metric m ns lower 1\ncounter start 0 n 99999999999999999999\nend 6\n",
		HEAD "metric m ns lower 1\ncounter start 0 n --1\nend 6\n",
		HEAD "metric m ns lower 1\ncounter start 0 n 1 2\nend 6\n",
		HEAD "metric m ns lower 1\nsurprise\nend 6\n",
		HEAD "metric m ns lower 1\nnote caf\xc3\xa9\nend 6\n",
		HEAD "nonce " NONCE "\nmetric m ns lower 1\nend 6\n",
		"kbisect-result 1\nnonce ffff\nkernel k\nworkload w\nmetric m ns lower "
		"1\nend 5\n",
		"kbisect-result 1\nkernel k\nworkload w\nmetric m ns lower 1\nend 4\n",
		"kbisect-result 1\nnonce " NONCE
		"\nworkload w\nmetric m ns lower 1\nend 4\n",
	};

	for (size_t i = 0; i < KB_COUNT_OF(bad); i++) {
		struct kb_boot_record r = {0};
		struct kb_error err = {0};

		is_int(parse(bad[i], &r, &err), KB_EGUEST, "refused: %zu: %s", i,
		       err.message);
		ok(!r.metrics && !r.counters && !r.kernel_version && !r.params.count,
		   "and nothing is left of it");
		kb_boot_record_free(&r);
	}
	static const char nul[] = HEAD "metric m ns lower 1\0\nend 5\n";
	struct kb_boot_record r = {0};
	is_int(kb_guestdoc_parse_text(nul, sizeof(nul) - 1, NONCE, &r, NULL), KB_EGUEST,
	       "a NUL byte is refused");
}

static void document_must_fit_its_marker(void)
{
	static const char text[] = HEAD "metric m ns lower 1\nend 5\n";
	size_t len = sizeof(text) - 1;
	struct kb_marker m = {.kind = KB_MARKER_RESULT, .bytes = len, .nonce = NONCE};
	struct kb_boot_record r = {0};

	kb_hash_bytes(text, len, m.sha256);
	is_int(kb_guestdoc_parse(text, len, &m, NONCE, &r, NULL), 0, "fits");
	kb_boot_record_free(&r);
	r = (struct kb_boot_record){0};
	is_int(kb_guestdoc_parse(text, len, &m, "ffff", &r, NULL), KB_EGUEST,
	       "other nonce");
	m.bytes--;
	is_int(kb_guestdoc_parse(text, len, &m, NONCE, &r, NULL), KB_EGUEST,
	       "other length");
	m.bytes++;
	m.sha256[0] = m.sha256[0] == '0' ? '1' : '0';
	is_int(kb_guestdoc_parse(text, len, &m, NONCE, &r, NULL), KB_EGUEST,
	       "other checksum");
}

int main(void)
{
	markers_are_parsed();
	broken_markers_are_told_from_other_lines();
	good_document_is_read();
	disowned_values_are_invalid();
	anything_off_is_refused();
	document_must_fit_its_marker();
	return tap_done();
}
