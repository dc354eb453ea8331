/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/record.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "tests/tap.h"

static char *dir, *file;

static char *slurp(void)
{
	char *text = NULL;
	size_t len;

	if (kb_read_file(file, 1 << 22, &text, &len, NULL))
		return kb_strdup("(no file)");
	return text;
}

static void spit(const char *text)
{
	FILE *out = fopen(file, "w");

	if (!out || fputs(text, out) < 0 || fclose(out))
		ok(false, "cannot prepare %s", file);
}

/* Replaces the first `from` in the file; a test that changes nothing would prove nothing. */
static void edit(const char *original, const char *from, const char *to)
{
	const char *at = strstr(original, from);
	KB_AUTO(kb_str_free) struct kb_str out = { 0 };

	if (!at) {
		ok(false, "'%s' is not in the document", from);
		return;
	}
	kb_str_append_bytes(&out, original, (size_t)(at - original));
	kb_str_append(&out, to);
	kb_str_append(&out, at + strlen(from));
	spit(kb_str_get(&out));
}

static void build_request_round_trip(void)
{
	KB_AUTO(kb_build_request_free) struct kb_build_request a = {
		.repo_path = kb_strdup("/repo with blank"), .commit = kb_strdup("c"),
		.tree = kb_strdup("t"), .cache_dir = kb_strdup("/c"), .slot_dir = kb_strdup("/s"),
		.jobs = 4, .timeout_ms = UINT64_C(5000000000),
	}, b = { 0 };
	struct kb_error err = { 0 };

	kb_strv_add(&a.fragments, "/f/1");
	kb_strv_add(&a.fragments, "/f/2");
	kb_strv_add(&a.make_args, "CC=clang");
	is_int(kb_build_request_write(file, &a, &err), 0, "build request: %s", err.message);
	is_int(kb_build_request_read(file, &b, &err), 0, "read: %s", err.message);
	is_str(b.repo_path, a.repo_path, "repository");
	is_int((long long)b.fragments.count, 2, "fragments");
	is_str(b.fragments.items[1], "/f/2", "in order");
	is_int((long long)b.required.count, 0, "an empty list");
	is_str(b.make_args.items[0], "CC=clang", "make arguments");
	is_int(b.jobs, 4, "jobs");
	is_int((long long)b.timeout_ms, 5000000000, "more than 32 bits");
}

static void build_record_round_trip(void)
{
	static const enum kb_build_outcome outcomes[] = { KB_BUILD_OK, KB_BUILD_FAILED,
							  KB_BUILD_CONFIG_MISSING,
							  KB_BUILD_TIMEOUT };
	struct kb_error err = { 0 };

	for (size_t i = 0; i < KB_COUNT_OF(outcomes); i++) {
		KB_AUTO(kb_build_record_free) struct kb_build_record a = {
			.outcome = outcomes[i], .commit = kb_strdup("c"), .tree = kb_strdup("t"),
			.log_excerpt = kb_strdup("a.c:1: error: \"x\"\n\tat\xc3\xa9"),
			.from_cache = i % 2, .wall_ms = i, .files_changed = 77,
		}, b = { 0 };

		kb_strv_add(&a.missing_symbols, "XFS_FS");
		is_int(kb_build_record_write(file, &a, &err), 0, "build record");
		is_int(kb_build_record_read(file, &b, &err), 0, "read: %s", err.message);
		is_int(b.outcome, outcomes[i], "outcome");
		is_str(b.log_excerpt, a.log_excerpt, "text with newlines and quotes");
		is_str(b.reason, NULL, "null stays null");
		is_int(b.from_cache, i % 2, "a truth value");
		is_int((long long)b.files_changed, 77, "a number");
		is_str(b.missing_symbols.items[0], "XFS_FS", "missing symbols");
	}
}

static void boot_request_round_trip(void)
{
	KB_AUTO(kb_boot_request_free) struct kb_boot_request a = {
		.kernel_path = kb_strdup("/k"), .kernel_sha256 = kb_strdup("ks"),
		.image_path = kb_strdup("/i"), .image_sha256 = kb_strdup("is"),
		.mode = kb_strdup("exact"), .uri = kb_strdup("qemu:///embed"),
		.accel = kb_strdup("tcg"), .machine = kb_strdup("microvm"),
		.scratch = kb_strdup("pmem"), .memory_mib = 128, .vcpus = 1, .scratch_mib = 320,
		.perturbation = UINT32_MAX, .boot_timeout_ms = 1, .timeout_ms = 2,
		.console_max_bytes = 3, .work_dir = kb_strdup("/w"),
	}, b = { 0 };
	struct kb_error err = { 0 };

	kb_pairs_add(&a.params, "workload", "trunc");
	kb_pairs_add(&a.params, "param.files", "64");
	kb_strv_add(&a.console_deny, "lockdep");
	is_int(kb_boot_request_write(file, &a, &err), 0, "boot request: %s", err.message);
	is_int(kb_boot_request_read(file, &b, &err), 0, "read: %s", err.message);
	is_str(b.machine, "microvm", "machine");
	ok(b.perturbation == UINT32_MAX, "the largest perturbation");
	is_str(b.extra_cmdline, NULL, "no command line");
	is_int((long long)b.params.count, 2, "parameters");
	is_str(b.params.items[0].name, "workload", "in order");
	is_str(kb_pairs_get(&b.params, "param.files"), "64", "by name");
	is_str(kb_pairs_get(&b.params, "nope"), NULL, "or not");
	is_str(b.console_deny.items[0], "lockdep", "patterns");
}

static void add_counter(struct kb_boot_record *r, const char *point, uint32_t repetition,
			const char *name, int64_t value)
{
	r->counters = kb_realloc(r->counters, r->counter_count + 1, sizeof(*r->counters));
	r->counters[r->counter_count++] = (struct kb_counter){
		.point = kb_strdup(point), .repetition = repetition, .name = kb_strdup(name),
		.value = value,
	};
}

static void fill_boot(struct kb_boot_record *r)
{
	static const double values[] = { 49260123.0, 0.1, 1e300, 5e-324, -0.0 };

	*r = (struct kb_boot_record){ .outcome = KB_BOOT_OK, .workload = kb_strdup("trunc"),
				      .kernel_version = kb_strdup("6.1.0|#1 SMP"),
				      .host_load = 0.3, .perturbation = 3,
				      .started_us = UINT64_C(1700000000123456) };
	r->metrics = kb_calloc(2, sizeof(*r->metrics));
	r->metric_count = 2;
	r->metrics[0] = (struct kb_metric){ .name = kb_strdup("trunc_ns"),
					    .unit = kb_strdup("ns"),
					    .values = kb_calloc(5, sizeof(double)), .count = 5 };
	memcpy(r->metrics[0].values, values, sizeof(values));
	r->metrics[1] = (struct kb_metric){ .name = kb_strdup("ops"), .unit = kb_strdup("op/s"),
					    .higher_is_better = true };
	kb_pairs_add(&r->params, "files", "64");
	kb_strv_add(&r->notes, "mkfs: crc=1");
	add_counter(r, "before", 0, "nr_free_pages", 1000);
	add_counter(r, "before", 0, "workingset_nodes", 0);
	add_counter(r, "start", 1, "workingset_nodes", 640);
	add_counter(r, "start", 2, "workingset_nodes", 641);
	add_counter(r, "start", 2, "workingset_nodes", 642); /* twice: nothing may be lost */
	add_counter(r, "stop", 1, "a", INT64_MIN);
	add_counter(r, "stop", 1, "b", INT64_MAX);
}

static bool same_counters(const struct kb_boot_record *a, const struct kb_boot_record *b)
{
	bool same = a->counter_count == b->counter_count;

	for (size_t i = 0; same && i < a->counter_count; i++)
		same = kb_streq(a->counters[i].point, b->counters[i].point) &&
		       a->counters[i].repetition == b->counters[i].repetition &&
		       kb_streq(a->counters[i].name, b->counters[i].name) &&
		       a->counters[i].value == b->counters[i].value;
	return same;
}

static void boot_record_round_trip(void)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a, b = { 0 };
	struct kb_error err = { 0 };

	fill_boot(&a);
	is_int(kb_boot_record_write(file, &a, &err), 0, "boot record: %s", err.message);
	is_int(kb_boot_record_read(file, &b, &err), 0, "read: %s", err.message);
	is_int((long long)b.metric_count, 2, "metrics");
	const struct kb_metric *m = kb_boot_record_metric(&b, "trunc_ns");
	ok(m && m->count == 5 && !memcmp(m->values, a.metrics[0].values, 5 * sizeof(double)),
	   "values come back bit by bit");
	m = kb_boot_record_metric(&b, "ops");
	ok(m && m->higher_is_better && m->count == 0 && !m->values, "a metric without values");
	ok(!kb_boot_record_metric(&b, "nope"), "no such metric");
	ok(same_counters(&a, &b), "counters come back in order, none lost");
	is_double(b.host_load, 0.3, 0, "load");
	ok(b.started_us == a.started_us, "time");
	is_str(b.notes.items[0], "mkfs: crc=1", "notes");
}

static void what_is_not_finite_is_null(void)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a, b = { 0 };
	struct kb_error err = { 0 };

	fill_boot(&a);
	a.metrics[0].values[1] = NAN;
	a.metrics[0].values[2] = INFINITY;
	a.host_load = -INFINITY;
	is_int(kb_boot_record_write(file, &a, &err), 0, "not a number is written");
	KB_AUTO_FREE char *text = slurp();
	ok(!strcasestr(text, "nan") && !strcasestr(text, "inf"), "but not as such");
	ok(strstr(text, "\"host_load\": null"), "but as null");
	is_int(kb_boot_record_read(file, &b, &err), 0, "read: %s", err.message);
	ok(isnan(b.metrics[0].values[1]) && isnan(b.metrics[0].values[2]) && isnan(b.host_load),
	   "null is NAN again");
	is_double(b.metrics[0].values[0], 49260123.0, 0, "its neighbour is not touched");
}

static void text_that_is_not_utf8_is_kept_readable(void)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a, b = { 0 };
	struct kb_error err = { 0 };

	fill_boot(&a);
	a.reason = kb_strdup("bad \xff byte");
	kb_strv_add(&a.notes, "\xc3");
	kb_pairs_add(&a.params, "n\xff", "v\xfe");
	add_counter(&a, "after", 0, "c\xff", 1);
	is_int(kb_boot_record_write(file, &a, &err), 0, "written");
	is_int(kb_boot_record_read(file, &b, &err), 0, "read: %s", err.message);
	is_str(b.reason, "bad ? byte", "reason");
	is_str(b.notes.items[1], "?", "note");
	is_str(kb_pairs_get(&b.params, "n?"), "v?", "parameter");
	is_str(b.counters[b.counter_count - 1].name, "c?", "counter");
}

static void damaged_documents_are_refused(void)
{
	static const struct {
		const char *from, *to, *message; /* message: after "FILE: " */
	} table[] = {
		{ "\"kbisect-boot\"", "\"kbisect-bood\"",
		  "format.name: is 'kbisect-bood', not 'kbisect-boot'" },
		{ "\"major\": 1", "\"major\": 2",
		  "format.major: is 2; this kbisect understands up to 1" },
		{ "\"major\": 1", "\"major\": 0",
		  "format.major: is 0; this kbisect understands up to 1" },
		{ "\"format\"", "\"formal\"",
		  "format: a document of kbisect has name and major here" },
		{ "\"outcome\": \"ok\"", "\"outcome\": \"fine\"", "outcome: 'fine' is not known" },
		{ "\"outcome\": \"ok\"", "\"outcome\": 1",
		  "outcome: must be a string, not an integer" },
		{ "\"outcome\"", "\"outcoma\"", "outcome: must be a string, not missing" },
		{ "\"perturbation\": 3", "\"perturbation\": -3", "perturbation: out of range" },
		{ "\"perturbation\": 3", "\"perturbation\": 4294967296",
		  "perturbation: out of range" },
		{ "\"perturbation\": 3", "\"perturbation\": 3.0",
		  "perturbation: must be an integer, not a fraction" },
		{ "\"perturbation\"", "\"perturbacion\"", "perturbation: is missing" },
		{ "\"workload\": \"trunc\"", "\"workload\": []",
		  "workload: must be a string or null, not an array" },
		{ "\"host_load\": 0.", "\"host_load\": \"x\", \"y\": 0.",
		  "host_load: must be a number or null, not a string" },
		{ "\"params\": {", "\"params\": 1, \"x\": {",
		  "params: must be an object of strings, not an integer" },
		{ "\"files\": \"64\"", "\"files\": 64",
		  "params: must be an object of strings, not an integer" },
		{ "\"notes\": [", "\"notes\": [null, ",
		  "notes: must be an array of strings, not null" },
		{ "\"name\": \"trunc_ns\"", "\"name\": null",
		  "metrics[0].name: must be a string, not null" },
		{ "\"higher_is_better\": true", "\"higher_is_better\": 1",
		  "metrics[1].higher_is_better: must be true or false, not an integer" },
		{ "\"values\": []", "\"values\": [\"1\"]",
		  "metrics[1].values: must be an array of numbers, not a string" },
		{ "\"metrics\": [", "\"metrics\": [1, ",
		  "metrics[0].name: is missing" },
		{ "\"metrics\"", "\"metrica\"", "metrics: is missing" },
		{ "\"counters\": [", "\"counters\": [3, ",
		  "counters[0]: must have point, repetition and values" },
		{ "\"counters\": [", "\"counters\": {}, \"x\": [",
		  "counters: must be an array, not an object" },
		{ "\"nr_free_pages\": 1000", "\"nr_free_pages\": 1000.5",
		  "counters[0].values.nr_free_pages: must be an integer, not a fraction" },
		{ "\"repetition\": 2", "\"repetition\": -2",
		  "counters[2]: must have point, repetition and values" },
	};
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a;
	struct kb_error err = { 0 };

	fill_boot(&a);
	is_int(kb_boot_record_write(file, &a, &err), 0, "a good one");
	KB_AUTO_FREE char *good = slurp();
	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		struct kb_boot_record b = { .perturbation = 99 };
		KB_AUTO_FREE char *want = kb_asprintf("%s: %s", file, table[i].message);

		edit(good, table[i].from, table[i].to);
		is_int(kb_boot_record_read(file, &b, &err), KB_ECONFIG, "refused: %s",
		       table[i].message);
		is_str(err.message, want, "by file and key");
		ok(b.perturbation == 99 && !b.metrics && !b.workload, "and gives nothing");
	}
}

static void future_minor_versions_are_read(void)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a, b = { 0 };
	struct kb_error err = { 0 };

	fill_boot(&a);
	is_int(kb_boot_record_write(file, &a, &err), 0, "written");
	KB_AUTO_FREE char *good = slurp();
	edit(good, "\"minor\": 0", "\"minor\": 9, \"flavour\": [1]");
	KB_AUTO_FREE char *minor = slurp();
	edit(minor, "\"outcome\"", "\"new_key\": {\"a\": 1}, \"outcome\"");
	is_int(kb_boot_record_read(file, &b, &err), 0, "a later minor with new keys: %s",
	       err.message);
	ok(same_counters(&a, &b), "gives all that is known");
}

/* Whatever is cut off: an error, never half a record. */
static void truncated_documents_are_refused(void)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a;
	struct kb_error err = { 0 };
	size_t refused = 0, tried = 0;

	fill_boot(&a);
	is_int(kb_boot_record_write(file, &a, &err), 0, "written");
	KB_AUTO_FREE char *good = slurp();
	size_t len = strlen(good);
	for (size_t cut = 0; cut + 1 < len; cut += 7, tried++) {
		struct kb_boot_record b = { 0 };
		KB_AUTO_FREE char *head = kb_strndup(good, cut);

		spit(head);
		refused += kb_boot_record_read(file, &b, &err) == KB_ECONFIG;
		kb_boot_record_free(&b);
	}
	ok(tried > 50 && refused == tried, "%zu of %zu truncated documents refused", refused, tried);
	unlink(file);
	struct kb_boot_record b = { 0 };
	is_int(kb_boot_record_read(file, &b, &err), KB_EIO, "a missing file: %s", err.message);
}

static void outcome_names_are_unique(void)
{
	for (int i = KB_BOOT_OK; i <= KB_BOOT_FAILED; i++) {
		enum kb_boot_outcome o = KB_BOOT_OK;
		const char *name = kb_boot_outcome_name((enum kb_boot_outcome)i);

		is_int(kb_boot_outcome_parse(name, &o), 0, "outcome '%s'", name);
		is_int(o, i, "is its own");
	}
	enum kb_boot_outcome o = KB_BOOT_HANG;
	is_int(kb_boot_outcome_parse("nope", &o), -1, "an unknown word");
	is_int(o, KB_BOOT_HANG, "changes nothing");
}

int main(void)
{
	/* thousands of small files, each synced: in memory where there is such a place */
	bool has_shm = access("/dev/shm", W_OK) == 0;
	char in_memory[] = "/dev/shm/kb-test-record-XXXXXX", in_tmp[] = "/tmp/kb-test-record-XXXXXX";

	dir = mkdtemp(has_shm ? in_memory : in_tmp);
	if (!dir)
		return 99;
	file = kb_path_join(dir, "document.json");
	build_request_round_trip();
	build_record_round_trip();
	boot_request_round_trip();
	boot_record_round_trip();
	what_is_not_finite_is_null();
	text_that_is_not_utf8_is_kept_readable();
	damaged_documents_are_refused();
	future_minor_versions_are_read();
	truncated_documents_are_refused();
	outcome_names_are_unique();
	kb_remove_tree(dir, NULL);
	free(file);
	return tap_done();
}
