/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's workloads as this machine runs them, tiny, in a temporary folder; and
 * whether the controller's reader accepts what they write.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest-init/result.h"
#include "guest-init/run.h"
#include "guest-init/util.h"
#include "harness/guestdoc.h"
#include "tests/tap.h"

#define NONCE "00112233445566778899aabbccddeeff"

static char folder[] = "/tmp/kb-workload-XXXXXX";

/* Params in one string: "files=3 pattern=random". */
static void run(const char *name, const char *params, uint64_t timeout_ms,
		struct kb_run_result *r)
{
	struct kb_wl_param list[16];
	char *copy = strdup(params), *rest = NULL;
	size_t n = 0;

	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(w, '=');

		*value++ = '\0';
		list[n++] = (struct kb_wl_param){w, value};
	}
	kb_run_workload(kb_workload_find(name), list, n, folder, timeout_ms, r);
	free(copy);
}

/* The record that the controller makes of it; false when it refuses. */
static bool read_back(const char *name, const struct kb_run_result *r,
		      struct kb_boot_record *ret)
{
	struct kb_error err = {0};
	struct kb_marker m;
	struct kb_result doc;
	char line[256];

	*ret = (struct kb_boot_record){0};
	if (kb_result_build(NONCE, "6.1|#1", name, "note of init\n", r->body, &doc))
		return false;
	kb_result_marker(NONCE, doc.data, doc.len, line);
	line[strlen(line) - 1] = '\0';
	is_int(kb_marker_parse(line, strlen(line), &m), KB_MARKER_RESULT,
	       "the controller reads the marker");
	int rc = kb_guestdoc_parse(doc.data, doc.len, &m, NONCE, ret, &err);
	is_int(rc, 0, "the controller accepts the document: %s", err.message);
	kb_result_free(&doc);
	return rc == 0;
}

static int counters_at(const struct kb_boot_record *rec, const char *point,
		       uint32_t repetition)
{
	int n = 0;

	for (size_t i = 0; i < rec->counter_count; i++)
		n += !strcmp(rec->counters[i].point, point) &&
		     rec->counters[i].repetition == repetition;
	return n;
}

static void trunc_both_stages(const char *pattern, const char *hold)
{
	struct kb_boot_record rec;
	struct kb_run_result r;
	char params[200];

	snprintf(params, sizeof(params),
		 "files=5 file_bytes=1100000 repetitions=3 pattern=%s hold_open=%s",
		 pattern, hold);
	run("trunc", params, 60000, &r);
	ok(!r.verdict.failed, "trunc %s runs: %s", params, r.verdict.text);
	if (r.verdict.failed || !read_back("trunc", &r, &rec))
		return;
	static const char *const names[] = {"trunc_ns",	      "read_ns",    "file_q1_ns",
					    "file_median_ns", "file_q3_ns", "cpu_ns"};
	for (size_t i = 0; i < 6; i++) {
		const struct kb_metric *m = kb_boot_record_metric(&rec, names[i]);

		ok(m && m->count == 3 && !m->higher_is_better && !strcmp(m->unit, "ns"),
		   "%s: three values, ns, lower is better", names[i]);
		if (m && i < 2)
			ok(m->values[0] > 0 && m->values[2] > 0, "%s is positive",
			   names[i]);
	}
	is_str(kb_pairs_get(&rec.params, "stages"), "3", "defaults are echoed");
	is_str(kb_pairs_get(&rec.params, "pattern"), pattern, "parameters are echoed");
	ok(counters_at(&rec, "start", 1) > 5 && counters_at(&rec, "stop", 3) > 5 &&
		   counters_at(&rec, "start", 4) == 0 &&
		   counters_at(&rec, "start", 0) == 0,
	   "counters at start and stop of repetitions 1 to 3");
	kb_boot_record_free(&rec);
	kb_run_result_free(&r);
	char probe[100];
	snprintf(probe, sizeof(probe), "%s/trunc000000", folder);
	ok(access(probe, F_OK) == -1, "nothing is left behind");
}

static void trunc_stages(void)
{
	struct kb_boot_record rec;
	struct kb_run_result r;

	run("trunc", "files=2 file_bytes=5000 repetitions=1 stages=1", 60000, &r);
	if (read_back("trunc", &r, &rec)) {
		ok(kb_boot_record_metric(&rec, "read_ns") &&
			   !kb_boot_record_metric(&rec, "trunc_ns"),
		   "stage 1 alone reads");
		kb_boot_record_free(&rec);
	}
	kb_run_result_free(&r);
	run("trunc", "files=2 file_bytes=5000 repetitions=1 stages=2", 60000, &r);
	if (read_back("trunc", &r, &rec)) {
		ok(kb_boot_record_metric(&rec, "trunc_ns") != NULL,
		   "stage 2 alone truncates");
		kb_boot_record_free(&rec);
	}
	kb_run_result_free(&r);
}

static void failures(void)
{
	static const struct {
		const char *workload, *params;
		int errno_value;
		const char *text;
	} rows[] = {
		{"trunc", "files=0", 0, "param.files is \"0\""},
		{"trunc", "files=4KiB", 0, "param.files is \"4KiB\""},
		{"trunc", "pattern=odd", 0, "param.pattern can't be \"odd\""},
		{"trunc", "stages=4", 0, "param.stages"},
		{"trunc", "fils=4", 0, "no parameter \"fils\""},
		{"none", "x=1", 0, "no parameter \"x\""},
		{"trunc", "files=1 file_bytes=9223372036854775807 pattern=random", EFBIG,
		 "ftruncate"},
		{"fault", "kind=fail", EIO, "failing on request"},
		{"fault", "kind=segv", 0, "ended by signal 11"},
		{"fault", "kind=stall", ETIMEDOUT, "exceeded its limit"},
		{"fault", "kind=nonsense", 0, "can't be"},
		{"fault", "kind=panic", 0, "only for guests"},
		{"fault", "kind=die", 0, "only for guests"},
		{"fault", "kind=flood", 0, "only for guests"},
		{"fault", "kind=garbage", 0, "only for guests"},
		{"fault", "kind=oom", 0, "only for guests"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kb_run_result r;

		run(rows[i].workload, rows[i].params,
		    strstr(rows[i].params, "stall") ? 200 : 60000, &r);
		ok(r.verdict.failed && !r.body && strstr(r.verdict.text, rows[i].text),
		   "%s %s: \"%s\"", rows[i].workload, rows[i].params, r.verdict.text);
		is_int(r.verdict.errno_value, rows[i].errno_value, "and its errno");
		kb_run_result_free(&r);
	}
}

static void oddities(void)
{
	static const struct {
		const char *kind;
		enum kb_wl_order order;
	} orders[] = {
		{"kind=hang", KB_ORDER_HANG},
		{"kind=spin", KB_ORDER_SPIN},
		{"kind=lie-checksum", KB_ORDER_LIE_CHECKSUM},
		{"kind=lie-nonce", KB_ORDER_LIE_NONCE},
		{"kind=lie-truncated", KB_ORDER_LIE_TRUNCATED},
	};
	struct kb_run_result r;

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		run("fault", orders[i].kind, 60000, &r);
		ok(!r.verdict.failed && r.verdict.order == orders[i].order,
		   "%s is passed to init", orders[i].kind);
		kb_run_result_free(&r);
	}
	run("fault", "kind=invalid", 60000, &r);
	ok(!r.verdict.failed && strstr(r.body, "\ninvalid invalid on request\n"),
	   "an invalid line is written");
	kb_run_result_free(&r);
	ok(!kb_workload_find("nonesuch"), "an unknown workload is not found");
}

static void none_runs(void)
{
	struct kb_boot_record rec;
	struct kb_run_result r;

	run("none", "", 60000, &r);
	if (read_back("none", &r, &rec)) {
		ok(kb_boot_record_metric(&rec, "boot_ns") != NULL, "none has boot_ns");
		kb_boot_record_free(&rec);
	}
	kb_run_result_free(&r);
}

/* Through a workload of the test's own: what the reporting functions do with odd values.
 */
static int run_odd(struct kb_wl_ctx *ctx)
{
	kb_wl_metric(ctx, "big", "ns", KB_LOWER, 123456789012345.0);
	kb_wl_metric(ctx, "fraction", "MB_s", KB_HIGHER, 0.1);
	kb_wl_metric(ctx, "fraction", "MB_s", KB_HIGHER, -2.5e-7);
	kb_wl_note(ctx, "two\nlines");
	for (int i = 0; i < 500; i++)
		kb_wl_note(ctx, "note %d", i);
	return 0;
}

static int run_nan(struct kb_wl_ctx *ctx)
{
	kb_wl_metric(ctx, "x", "ns", KB_LOWER, NAN);
	return 0;
}

static int run_mute(struct kb_wl_ctx *ctx)
{
	(void)ctx;
	return -1;
}

static int run_gone(struct kb_wl_ctx *ctx)
{
	(void)ctx;
	_exit(0);
}

static void reporting(void)
{
	static const struct kb_workload odd = {"odd", run_odd},
					not_a_number = {"nan", run_nan},
					mute = {"mute", run_mute},
					gone = {"gone", run_gone};
	struct kb_boot_record rec;
	struct kb_run_result r;

	kb_run_workload(&odd, NULL, 0, folder, 60000, &r);
	if (read_back("odd", &r, &rec)) {
		const struct kb_metric *m = kb_boot_record_metric(&rec, "big");

		ok(m && m->values[0] == 123456789012345.0,
		   "whole numbers keep every digit");
		m = kb_boot_record_metric(&rec, "fraction");
		ok(m && m->higher_is_better && m->count == 2, "direction");
		is_double(m->values[1], -2.5e-7, 1e-15, "small fractions");
		ok(rec.notes.count >= 2 && rec.notes.count < 256, "notes are limited");
		kb_boot_record_free(&rec);
	}
	kb_run_result_free(&r);
	kb_run_workload(&not_a_number, NULL, 0, folder, 60000, &r);
	ok(r.verdict.failed, "NaN is a failure: %s", r.verdict.text);
	kb_run_result_free(&r);
	kb_run_workload(&mute, NULL, 0, folder, 60000, &r);
	ok(r.verdict.failed && *r.verdict.text, "failing without a word: %s",
	   r.verdict.text);
	kb_run_result_free(&r);
	kb_run_workload(&gone, NULL, 0, folder, 60000, &r);
	ok(r.verdict.failed && !r.body, "exiting early: %s", r.verdict.text);
	kb_run_result_free(&r);
}

int main(void)
{
	if (!mkdtemp(folder))
		abort();
	trunc_both_stages("random", "1");
	trunc_both_stages("random", "0");
	trunc_both_stages("sequential", "1");
	trunc_stages();
	failures();
	oddities();
	none_runs();
	reporting();
	ok(rmdir(folder) == 0 || errno == ENOTEMPTY, "the folder goes");
	return tap_done();
}
