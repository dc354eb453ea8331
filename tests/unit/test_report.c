/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/report.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "tests/tap.h"

#define GOOD "a97e7904c0806309fd77103005bb7820c3f1c5af"
#define BAD "7d92df69de6cd8c8a4a5d17e2d5a0e1d8c7a6b50"
#define CULPRIT "69b6c1319b6d8ec9ab4bed4bb2ad5e7a9a4ac0a1"
#define BROKEN "0123456789abcdef0123456789abcdef01234567"

static struct kb_report_commit commit(const char *id, const char *subject, const char *verdict,
				      uint32_t boots, double mean, double sd)
{
	struct kb_report_commit c = { .commit = kb_strdup(id), .subject = kb_strdup(subject),
				      .verdict = kb_strdup(verdict), .boots = boots,
				      .mean = boots ? mean : NAN, .sd = boots > 1 ? sd : NAN };

	c.values = boots ? kb_calloc(boots, sizeof(double)) : NULL;
	for (uint32_t i = 0; i < boots; i++)
		c.values[i] = mean + (i % 2 ? sd : -sd);
	return c;
}

static void add_argv(struct kb_report *r, const char *words)
{
	kb_strv_free(&r->argv);
	r->argv = (struct kb_strv){ 0 };
	kb_strv_split(&r->argv, words, "|");
}

/* The numbers of seed S1, as if kbisect had measured them. */
static void fill(struct kb_report *r)
{
	*r = (struct kb_report){
		.run_id = kb_strdup("20260102-030405-bisect-ab12"), .command = kb_strdup("bisect"),
		.verdict = kb_strdup("culprit"), .reason = kb_strdup("found and confirmed"),
		.metric = kb_strdup("trunc_ns"), .unit = kb_strdup("ns"), .has_effect = true,
		.effect_ratio = 1.0948029, .effect_low = 1.0934, .effect_high = 1.0962,
		.endpoint_ratio = 1.09101, .confirm_p = 0.00396825396825397, .confirmed = true,
		.builds = 9, .builds_cached = 2, .boots = 71, .boots_cached = 8,
		.range_size = 48, .wall_ms = 1234567, .repo_path = kb_strdup("/src/linux"),
		.good = kb_strdup(GOOD), .bad = kb_strdup(BAD), .mode = kb_strdup("exact"),
		.job_name = kb_strdup("trunc-demo"),
		.image_sha256 = kb_strdup("f00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00d"
					  "feed"),
		.kernel_config = kb_strdup("c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0"
					   "ffee00"),
	};
	add_argv(r, "bisect|--repo|../linux|--good=v4.20~3|--bad|HEAD|--job|trunc-demo|--json|--|mm|fs/it's");
	r->candidates = kb_calloc(2, sizeof(*r->candidates));
	r->candidate_count = 1;
	r->candidates[0] = commit(CULPRIT, "mm: Convert truncate to XArray", "bad", 10,
				  1566944000.0, 2252692.877);
	r->candidates[0].probability = 0.9931;
	r->tested = kb_calloc(4, sizeof(*r->tested));
	r->tested_count = 4;
	r->tested[0] = commit(GOOD, "xfs: tidy up", "good", 10, 1431256500.0, 1489361.759);
	r->tested[0].endpoint = true;
	r->tested[1] = commit(BAD, "Merge branch 'xarray'", "bad", 10, 1561512000.0, 1902111.5);
	r->tested[1].endpoint = true;
	r->tested[2] = commit(BROKEN, "mm: half \"of\" a change\x1b[31m", "untestable", 0, NAN, NAN);
	r->tested[2].reason = kb_strdup("does not build: mm/truncate.c:42: error: implicit "
					"declaration of function 'xas_stor'; did you mean "
					"'xas_store'?");
	r->tested[2].failed = 3;
	r->tested[3] = commit(CULPRIT, "mm: Convert truncate to XArray", "bad", 10, 1566944000.0,
			      2252692.877);
}

static void set_verdict(struct kb_report *r, const char *verdict, const char *reason)
{
	free(r->verdict);
	free(r->reason);
	r->verdict = kb_strdup(verdict);
	r->reason = kb_strdup(reason);
	r->has_effect = r->confirmed = false;
	r->confirm_p = NAN;
}

static char *text_of(const struct kb_report *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	kb_report_text(r, out);
	fclose(out);
	return text;
}

static void is_golden(const struct kb_report *r, const char *name)
{
	const char *src = getenv("KB_SRC");
	KB_AUTO_FREE char *path =
		kb_asprintf("%s/tests/golden/report-%s.txt", src && *src ? src : ".", name);
	KB_AUTO_FREE char *got = text_of(r);
	KB_AUTO_FREE char *want = NULL;
	size_t len;
	struct kb_error err = { 0 };

	if (getenv("REGENERATE"))
		is_int(kb_write_file_atomic(path, got, strlen(got), &err), 0, "written: %s",
		       err.message);
	is_int(kb_read_file(path, 1 << 20, &want, &len, &err), 0, "%s: %s", path, err.message);
	is_str(got, want, "text of '%s' (REGENERATE=1 writes it anew)", name);
}

static void texts_are_as_agreed(void)
{
	KB_AUTO(kb_report_free) struct kb_report r;

	fill(&r);
	is_golden(&r, "culprit");

	r.confirmed = false;
	r.confirm_p = 0.21;
	r.effect_low = r.effect_high = NAN;
	r.effect_ratio = 1.004;
	free(r.mode);
	r.mode = kb_strdup("time");
	free(r.job_name);
	r.job_name = kb_strdup("default");
	r.candidates[1] = commit(BROKEN, "mm: half a change", "untestable", 0, NAN, NAN);
	r.candidates[1].probability = 0.31;
	r.candidate_count = 2;
	r.pruned = 12;
	add_argv(&r, ""); /* as in documents that do not have it */
	is_golden(&r, "unconfirmed");

	set_verdict(&r, "set", "the rest could not be tested");
	is_golden(&r, "set");

	kb_report_free(&r);
	fill(&r);
	set_verdict(&r, "not-reproducible",
		    "after 24 boots of each endpoint, p = 0.4; a difference of 0.9% would have been "
		    "seen");
	r.endpoint_ratio = NAN;
	is_golden(&r, "not-reproducible");
}

static void measured_and_odd_reports_are_printed(void)
{
	KB_AUTO(kb_report_free) struct kb_report r = {
		.verdict = kb_strdup("measured"), .command = kb_strdup("measure"),
		.metric = kb_strdup("ops"), .unit = kb_strdup("op/s"), .higher_is_better = true,
		.endpoint_ratio = NAN, .confirm_p = NAN,
	};
	static const char *const verdicts[] = { "multi", "infrastructure", "interrupted",
						"fixed-on-good-side", "something-new" };

	r.tested = kb_calloc(1, sizeof(*r.tested));
	r.tested[0] = commit(GOOD, "xfs: tidy up", "measured", 1, 600.25, 0);
	r.tested_count = 1;
	is_golden(&r, "measured");
	for (size_t i = 0; i < KB_COUNT_OF(verdicts); i++) {
		set_verdict(&r, verdicts[i], "because of this");
		KB_AUTO_FREE char *text = text_of(&r);
		ok(strstr(text, "because of this"), "'%s' gives its reason", verdicts[i]);
	}
	/* nothing at all is known */
	KB_AUTO(kb_report_free) struct kb_report empty = { .verdict = kb_strdup("culprit"),
							   .endpoint_ratio = NAN };
	KB_AUTO_FREE char *text = text_of(&empty);
	ok(strstr(text, "Result: culprit"), "a culprit without candidates is no culprit");
}

static void text_does_no_harm(void)
{
	KB_AUTO(kb_report_free) struct kb_report r;
	size_t long_lines = 0, control = 0;

	fill(&r);
	KB_AUTO_FREE char *text = text_of(&r);
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");

		for (size_t i = 0; i < n; i++)
			control += (unsigned char)at[i] < ' ';
		long_lines += n > 76;
		at += n + (at[n] == '\n');
	}
	is_int((long long)control, 0, "no control characters");
	is_int((long long)long_lines, 0, "no line over 76 columns");
}

/* What is printed can be pasted, and measures the same commits again. */
static void command_is_the_one_that_was_given(void)
{
	static const struct {
		const char *argv, *want;
	} table[] = {
		{ "bisect|--good|v1|--bad|v2",
		  "bisect \\\n      --repo /src/linux \\\n      --good " GOOD " \\\n      --bad " BAD "\n" },
		{ "bisect|--repo=.|--good|v1|--bad=v2|--first-parent|--set|vm.memory_mib=256",
		  "bisect \\\n      --repo /src/linux \\\n      --good " GOOD " \\\n      --bad " BAD
		  " \\\n      --first-parent \\\n      --set vm.memory_mib=256\n" },
		{ "bisect|--repo|.|--good|v1|--good|v0|--bad|v2",
		  "bisect \\\n      --repo /src/linux \\\n      --good v1 \\\n      --good v0 \\\n"
		  "      --bad " BAD "\n" },
		{ "bisect|--repo|.|--good|v1|--bad|v2|--job|/a b/$c|--|a;b|--json",
		  "bisect \\\n      --repo /src/linux \\\n      --good " GOOD " \\\n      --bad " BAD
		  " \\\n      --job '/a b/$c' \\\n      -- 'a;b' --json\n" },
		{ "bisect|--bad", "bisect \\\n      --repo /src/linux \\\n      --bad\n" },
		{ "bisect|--repo|.|--", "bisect \\\n      --repo /src/linux \\\n      --\n" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_report_free) struct kb_report r;
		KB_AUTO_FREE char *want =
			kb_asprintf("To reproduce:\n  kbisect %sEvery boot", table[i].want);

		fill(&r);
		add_argv(&r, table[i].argv);
		KB_AUTO_FREE char *text = text_of(&r);
		ok(strstr(text, want), "%s", table[i].argv);
	}
}

static bool same_commit(const struct kb_report_commit *a, const struct kb_report_commit *b)
{
	return kb_streq(a->commit, b->commit) && kb_streq(a->verdict, b->verdict) &&
	       kb_streq(a->reason, b->reason) && a->boots == b->boots &&
	       a->failed == b->failed && a->endpoint == b->endpoint &&
	       (a->mean == b->mean || (isnan(a->mean) && isnan(b->mean))) &&
	       (!a->boots || !memcmp(a->values, b->values, a->boots * sizeof(double)));
}

static void json_round_trip(void)
{
	char template[] = "/tmp/kb-test-report-XXXXXX", *dir = mkdtemp(template);
	KB_AUTO_FREE char *path = kb_path_join(dir ? dir : "/nonexistent", "report.json");
	KB_AUTO(kb_report_free) struct kb_report a, b = { 0 };
	struct kb_error err = { 0 };

	fill(&a);
	is_int(kb_report_write(path, &a, &err), 0, "written: %s", err.message);
	is_int(kb_report_read(path, &b, &err), 0, "read: %s", err.message);
	is_str(b.verdict, "culprit", "verdict");
	is_double(b.effect_ratio, a.effect_ratio, 1e-12, "effect");
	is_double(b.confirm_p, a.confirm_p, 1e-12, "p");
	ok(b.has_effect && b.confirmed, "truth values");
	is_int((long long)b.wall_ms, 1234567, "time");
	is_int((long long)b.tested_count, 4, "tested commits");
	is_int((long long)b.argv.count, 12, "arguments");
	is_str(b.argv.items[11], "fs/it's", "the last one");
	bool same = b.tested_count == 4 && b.candidate_count == 1;
	for (size_t i = 0; same && i < 4; i++)
		same = same_commit(&a.tested[i], &b.tested[i]) || i == 2;
	ok(same && same_commit(&a.candidates[0], &b.candidates[0]), "come back");
	KB_AUTO_FREE char *one = text_of(&a);
	KB_AUTO_FREE char *two = text_of(&b);
	is_str(two, one, "with the same text");
	a.has_effect = false;
	is_int(kb_report_write(path, &a, &err), 0, "without an effect");
	kb_report_free(&b);
	is_int(kb_report_read(path, &b, &err), 0, "read: %s", err.message);
	ok(!b.has_effect && isnan(b.effect_ratio), "there is none");

	KB_AUTO_FREE char *json = kb_report_json(&a);
	KB_AUTO_FREE char *stored = NULL;
	size_t len;
	is_int(kb_read_file(path, 1 << 20, &stored, &len, &err), 0, "the file");
	is_str(stored, json, "is the document that is printed");
	kb_remove_tree(dir, NULL);
}

/* What docs/cli.md promises to scripts. */
static void json_has_the_promised_keys(void)
{
	static const char *const keys[] = {
		"\"format\": {\n  \"name\": \"kbisect-report\",\n  \"major\": 1,\n  \"minor\": 0\n }",
		"\n \"verdict\": \"culprit\"", "\n \"candidates\": [",
		"\n   \"commit\": \"" CULPRIT "\"",
		"\n   \"subject\": \"mm: Convert truncate to XArray\"",
		"\n   \"probability\": 0.9931", "\n \"effect\": {", "\n  \"ratio\": 1.0948029",
		"\n  \"ci_low\": 1.0934", "\n  \"ci_high\": 1.0962", "\n  \"metric\": \"trunc_ns\"",
		"\n \"confirmed\": true", "\n \"builds\": 9", "\n \"boots\": 71", "\n \"pruned\": 0",
		"\n \"tested\": [", "\n   \"verdict\": \"good\"", "\n   \"boots\": 10",
		"\n   \"mean\": 1431256500.0", "\n   \"sd\": 1489361.759", "\n   \"mean\": null",
	};
	KB_AUTO(kb_report_free) struct kb_report r;

	fill(&r);
	KB_AUTO_FREE char *json = kb_report_json(&r);
	for (size_t i = 0; i < KB_COUNT_OF(keys); i++)
		ok(strstr(json, keys[i]), "document key %zu", i + 1);
	ok(!strcasestr(json, "nan,") && !strcasestr(json, "inf,"), "and no number that is none");
}

static void damaged_reports_are_refused(void)
{
	char template[] = "/tmp/kb-test-report-XXXXXX", *dir = mkdtemp(template);
	KB_AUTO_FREE char *path = kb_path_join(dir ? dir : "/nonexistent", "report.json");
	static const struct {
		const char *body, *message;
	} table[] = {
		{ "", "verdict: is missing" },
		{ "\"verdict\": \"x\"", "candidates: is missing" },
		{ "\"verdict\": \"x\", \"candidates\": [], \"tested\": [{}]",
		  "tested[0].commit: is missing" },
		{ "\"verdict\": \"x\", \"candidates\": [], \"tested\": [1]",
		  "tested[0]: must be an object, not an integer" },
		{ "\"verdict\": \"x\", \"candidates\": [], \"tested\": [{\"commit\": \"c\","
		  "\"verdict\": \"v\", \"boots\": 2, \"values\": [1]}]",
		  "tested[0].values: 1 values of 2 boots" },
		{ "\"verdict\": \"x\", \"effect\": 1", "effect: must be an object or null, not an integer" },
		{ "\"verdict\": \"x\", \"effect\": {}", "effect.ratio: is missing" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_report_free) struct kb_report r = { 0 };
		KB_AUTO_FREE char *text =
			kb_asprintf("{%s%s\"format\": {\"name\": \"kbisect-report\", \"major\": 1}}",
				    table[i].body, *table[i].body ? ", " : "");
		KB_AUTO_FREE char *want = kb_asprintf("%s: %s", path, table[i].message);
		struct kb_error err = { 0 };

		if (kb_write_file_atomic(path, text, strlen(text), &err))
			ok(false, "cannot prepare");
		is_int(kb_report_read(path, &r, &err), KB_ECONFIG, "refused");
		is_str(err.message, want, "by file and key");
	}
	kb_remove_tree(dir, NULL);
}

int main(void)
{
	texts_are_as_agreed();
	measured_and_odd_reports_are_printed();
	text_does_no_harm();
	command_is_the_one_that_was_given();
	json_round_trip();
	json_has_the_promised_keys();
	damaged_reports_are_refused();
	return tap_done();
}
