/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/job.h"

#include <stdlib.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "tests/tap.h"

static int parse(const char *text, struct kb_job *job, struct kb_error *err)
{
	kb_job_init(job);
	return kb_job_parse(text, strlen(text), "t.json", job, err);
}

static char *source_path(const char *name)
{
	const char *src = getenv("KB_SRC");

	return kb_path_join(src && *src ? src : ".", name);
}

static void defaults_are_a_valid_job(void)
{
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err = { 0 };

	is_int(parse("{}", &job, &err), 0, "an empty object is a job");
	is_int(kb_job_check(&job, &err), 0, "and a valid one: %s", err.message);
	is_str(job.mode, "auto", "mode");
	is_str(job.vm_scratch, "auto", "scratch");
	is_int(job.vm_memory_mib, 128, "memory");
	is_int(job.vm_vcpus, 1, "one CPU");
	is_int((long long)job.vm_boot_timeout_ms, 120000, "boot time limit");
	is_int((long long)job.vm_console_max_bytes, 4 << 20, "console limit");
	is_int((long long)job.kernel_fragments.count, 3, "fragments");
	is_str(job.kernel_fragments.items[2], "pmem.config", "the last one");
	is_str(job.fs_mkfs_options, NULL, "mkfs options follow the range");
	is_str(job.fs_mount_options, "", "no mount options");
	is_str(job.workload_name, "trunc", "workload");
	is_str(job.metric, NULL, "its own metric");
	is_double(job.alpha, 0.05, 0, "alpha");
	is_double(job.min_effect_percent, 0.5, 0, "smallest effect");
	is_int(job.calibration_boots, 5, "calibration");
	is_str(job.vm_machine, "q35", "machine");
	is_str(job.kernel_fragments.items[1], "pc.config", "with its drivers");
	ok(!job.force, "not forced");
	is_int(job.calibration_boots_max, 24, "calibration at most");
	is_int(job.commit_boots_min, 2, "boots of a commit");
	is_int(job.commit_boots_max, 12, "at most");
	is_int(job.confirm_boots, 5, "confirmation");
	is_int(job.retries, 2, "retries");
	is_int((long long)job.seed, 1, "seed");
}

static const char full[] =
	"{\"name\": \"full\", \"description\": \"d \\u00e9\", \"mode\": \"exact\", \"metric\": \"read_ns\",\n"
	" \"vm\": {\"uri\": \"test:///default\", \"accel\": \"tcg\", \"machine\": \"q35\",\n"
	"  \"memory_mib\": 256, \"vcpus\": 1, \"scratch\": \"pmem\", \"scratch_mib\": 400,\n"
	"  \"extra_cmdline\": \"quiet a=b\", \"parallel\": 3, \"boot_timeout_ms\": 5000,\n"
	"  \"timeout_ms\": 6000, \"console_max_bytes\": 100000},\n"
	" \"kernel\": {\"fragments\": [\"base.config\", \"/x/y\"], \"required\": [\"XFS_FS\"],\n"
	"  \"make_args\": [\"CC=clang\"], \"jobs\": 5, \"timeout_ms\": 7000},\n"
	" \"fs\": {\"mkfs_options\": \"-m crc=0\", \"mount_options\": \"noatime\"},\n"
	" \"workload\": {\"name\": \"trunc\", \"params\": {\"files\": 8, \"pattern\": \"sequential\"},\n"
	"  \"warmup\": 2},\n"
	" \"expect\": [{\"counter\": \"a\", \"at\": \"stop\", \"min\": -5},\n"
	"  {\"counter\": \"b\", \"max\": 9}],\n"
	" \"decision\": {\"alpha\": 0.01, \"min_effect_percent\": 1, \"calibration_boots\": 6,\n"
	"  \"calibration_boots_max\": 30, \"commit_boots_min\": 3, \"commit_boots_max\": 9,\n"
	"  \"confirm_boots\": 7, \"retries\": 1, \"seed\": 9223372036854775807, \"force\": true}}";

static void everything_is_read(void)
{
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err = { 0 };

	is_int(parse(full, &job, &err), 0, "a job with every key: %s", err.message);
	is_int(kb_job_check(&job, &err), 0, "is valid: %s", err.message);
	is_str(job.description, "d \xc3\xa9", "description");
	is_str(job.vm_machine, "q35", "machine");
	ok(job.force, "forced");
	is_int(job.vm_parallel, 3, "parallel");
	is_str(job.kernel_fragments.items[1], "/x/y", "fragment");
	is_int((long long)job.kernel_fragments.count, 2, "a list replaces the default");
	is_int(job.kernel_jobs, 5, "jobs");
	is_str(kb_pairs_get(&job.workload_params, "files"), "8", "an integer parameter");
	is_int((long long)job.expect_count, 2, "preconditions");
	is_str(job.expects[0].point, "stop", "where");
	is_int(job.expects[0].min, -5, "from");
	ok(job.expects[0].max == INT64_MAX, "without an upper end");
	is_str(job.expects[1].point, "start", "start is the default");
	ok(job.expects[1].min == INT64_MIN, "without a lower end");
	ok(job.seed == INT64_MAX, "the largest seed");
	is_double(job.alpha, 0.01, 0, "alpha");
	is_double(job.min_effect_percent, 1, 0, "an integer is a number");
}

static void format_is_read_back_the_same(void)
{
	static const char *const texts[] = { "{}", full };

	for (size_t i = 0; i < KB_COUNT_OF(texts); i++) {
		KB_AUTO(kb_job_free) struct kb_job a, b;
		struct kb_error err = { 0 };
		char ha[65], hb[65];

		is_int(parse(texts[i], &a, &err), 0, "read");
		KB_AUTO_FREE char *first = kb_job_format(&a);
		is_int(parse(first, &b, &err), 0, "what was written is accepted: %s", err.message);
		KB_AUTO_FREE char *second = kb_job_format(&b);
		is_str(second, first, "and written the same again");
		kb_job_measurement_hash(&a, ha);
		kb_job_measurement_hash(&b, hb);
		is_str(hb, ha, "with the same hash");
	}
}

/* A label of a TAP line. */
static char *one_line(const char *text)
{
	char *line = kb_strdup(text);

	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = ' ';
	return line;
}

struct bad {
	const char *text, *message;
};

static void bad_jobs_are_refused(void)
{
	static const struct bad table[] = {
		/* syntax */
		{ "", "t.json:1:0: '[' or '{' expected near end of file" },
		{ "{\n  \"name\": x\n}", "t.json:2:11: invalid token near 'x'" },
		{ "{\"name\": \"a\",\n \"name\": \"b\"}",
		  "t.json:2:7: duplicate object key near '\"name\"'" },
		{ "{\"vm\": {\"vcpus\": 1, \"vcpus\": 1}}",
		  "t.json:1:27: duplicate object key near '\"vcpus\"'" },
		{ "{} x", "t.json:1:4: end of file expected near 'x'" },
		{ "// no\n{}", "t.json:1:1: '[' or '{' expected near '/'" },
		{ "[]", "t.json: the job: must be an object, not an array" },
		/* keys */
		{ "{\"nmae\": 1}", "t.json: nmae: unknown key: did you mean name?" },
		{ "{\"zzzzzz\": 1}", "t.json: zzzzzz: unknown key; docs/job-file.md lists them" },
		{ "{\"vm\": {\"memory\": 1}}",
		  "t.json: vm.memory: unknown key: did you mean vm.memory_mib?" },
		{ "{\"memory_mib\": 1}",
		  "t.json: memory_mib: unknown key: did you mean vm.memory_mib?" },
		{ "{\"vm.vcpus\": 1}", "t.json: vm.vcpus: in a file, sections are objects: {\"vm\": {...}}" },
		{ "{\"vm\": {\"vm\": {}}}", "t.json: vm.vm: unknown key; docs/job-file.md lists them" },
		{ "{\"vm\": 1}", "t.json: vm: must be an object, not an integer" },
		/* types */
		{ "{\"name\": 1}", "t.json: name: must be a string, not an integer" },
		{ "{\"name\": null}", "t.json: name: must be a string, not null" },
		{ "{\"name\": \"\"}", "t.json: name: must not be empty" },
		{ "{\"name\": \"a\\nb\"}",
		  "t.json: name: must be one line of text without control characters" },
		{ "{\"mode\": true}", "t.json: mode: must be a string, not a truth value" },
		{ "{\"mode\": \"fast\"}", "t.json: mode: 'fast' is not one of auto, exact, time" },
		{ "{\"mode\": null}", "t.json: mode: must be a string, not null" },
		{ "{\"vm\": {\"memory_mib\": \"128\"}}",
		  "t.json: vm.memory_mib: must be an integer of MiB, not a string" },
		{ "{\"vm\": {\"memory_mib\": 128.0}}",
		  "t.json: vm.memory_mib: must be an integer of MiB, not a fraction" },
		{ "{\"vm\": {\"vcpus\": []}}", "t.json: vm.vcpus: must be an integer, not an array" },
		{ "{\"vm\": {\"vcpus\": -1}}", "t.json: vm.vcpus: must not be negative" },
		{ "{\"vm\": {\"vcpus\": 9}}", "t.json: vm.vcpus: 9 is not within 1..8" },
		{ "{\"vm\": {\"memory_mib\": 63}}",
		  "t.json: vm.memory_mib: 63 is not within 64..1048576 MiB" },
		{ "{\"vm\": {\"memory_mib\": 4294967424}}",
		  "t.json: vm.memory_mib: 4294967424 is not within 64..1048576 MiB" },
		{ "{\"decision\": {\"alpha\": \"x\"}}",
		  "t.json: decision.alpha: must be a number, not a string" },
		{ "{\"decision\": {\"alpha\": 0}}",
		  "t.json: decision.alpha: 0 is not within 1e-06..0.5" },
		{ "{\"decision\": {\"min_effect_percent\": -1.5}}",
		  "t.json: decision.min_effect_percent: -1.5 is not within 0..1000 %" },
		{ "{\"decision\": {\"force\": 1}}",
		  "t.json: decision.force: must be true or false, not an integer" },
		{ "{\"kernel\": {\"required\": \"XFS_FS\"}}",
		  "t.json: kernel.required: must be an array of strings, not a string" },
		{ "{\"kernel\": {\"required\": [\"A\", 1]}}",
		  "t.json: kernel.required[1]: must be a string, not an integer" },
		{ "{\"kernel\": {\"required\": [\"\"]}}",
		  "t.json: kernel.required[0]: must not be empty" },
		{ "{\"kernel\": {\"fragments\": []}}", "t.json: kernel.fragments: must not be empty" },
		{ "{\"workload\": {\"params\": []}}",
		  "t.json: workload.params: must be an object, not an array" },
		{ "{\"workload\": {\"params\": {\"files\": 1.5}}}",
		  "t.json: workload.params.files: must be a string or an integer, not a fraction" },
		{ "{\"workload\": {\"params\": {\"\": 1}}}",
		  "t.json: workload.params.: a parameter has lower-case letters, digits and '_' in its "
		  "name" },
		{ "{\"workload\": {\"params\": {\"a\": \"x\\ny\"}}}",
		  "t.json: workload.params.a: must be one line of text without control characters" },
		/* expect */
		{ "{\"expect\": {}}", "t.json: expect: must be an array of objects, not an object" },
		{ "{\"expect\": [1]}", "t.json: expect[0]: must be an object, not an integer" },
		{ "{\"expect\": [{\"counter\": \"a\", \"min\": 1}, {\"min\": 1}]}",
		  "t.json: expect[1].counter: is missing" },
		{ "{\"expect\": [{\"counter\": \"\", \"min\": 1}]}",
		  "t.json: expect[0].counter: is missing" },
		{ "{\"expect\": [{\"counter\": 1, \"min\": 1}]}",
		  "t.json: expect[0].counter: must be a string, not an integer" },
		{ "{\"expect\": [{\"counter\": \"a\\tb\", \"min\": 1}]}",
		  "t.json: expect[0].counter: must be one line of text without control characters" },
		{ "{\"expect\": [{\"counter\": \"a\"}]}", "t.json: expect[0]: give min, max or both" },
		{ "{\"expect\": [{\"counter\": \"a\", \"min\": \"1\"}]}",
		  "t.json: expect[0].min: must be an integer, not a string" },
		{ "{\"expect\": [{\"counter\": \"a\", \"max\": 1.5}]}",
		  "t.json: expect[0].max: must be an integer, not a fraction" },
		{ "{\"expect\": [{\"counter\": \"a\", \"min\": 2, \"max\": 1}]}",
		  "t.json: expect[0]: min is larger than max" },
		{ "{\"expect\": [{\"counter\": \"a\", \"at\": \"end\", \"min\": 2}]}",
		  "t.json: expect[0].at: 'end' is not one of start, stop, before, after" },
		{ "{\"expect\": [{\"counter\": \"a\", \"at\": 1, \"min\": 2}]}",
		  "t.json: expect[0].at: must be a string, not an integer" },
		{ "{\"expect\": [{\"counter\": \"a\", \"mim\": 2}]}",
		  "t.json: expect[0].mim: unknown key; there are counter, at, min, max" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_job_free) struct kb_job job;
		struct kb_error err = { 0 };

		KB_AUTO_FREE char *label = one_line(table[i].text);
		is_int(parse(table[i].text, &job, &err), KB_ECONFIG, "refused: %.50s", label);
		is_str(err.message, table[i].message, "with these words");
		is_int(err.code, KB_ECONFIG, "and this code");
	}
}

static void raw_bytes_are_refused(void)
{
	static const char nul[] = "{\"name\": \"a\0b\"}", latin1[] = "{\"name\": \"\xe9\"}",
			  escaped[] = "{\"name\": \"a\\u0000b\"}";
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err;

	kb_job_init(&job);
	is_int(kb_job_parse(nul, sizeof(nul) - 1, "t", &job, &err), KB_ECONFIG, "a NUL byte");
	is_int(kb_job_parse(latin1, sizeof(latin1) - 1, "t", &job, &err), KB_ECONFIG, "not UTF-8");
	is_int(kb_job_parse(escaped, sizeof(escaped) - 1, "t", &job, &err), KB_ECONFIG,
	       "an escaped NUL");
	KB_AUTO_FREE char *big = kb_malloc(KB_JOB_MAX_BYTES + 1);
	memset(big, ' ', KB_JOB_MAX_BYTES + 1);
	is_int(kb_job_parse(big, KB_JOB_MAX_BYTES + 1, "t", &job, &err), KB_ECONFIG, "too long");
	is_str(err.message, "t: a job has at most 1048576 bytes", "and says so");
	is_int(kb_job_set(&job, "name", "\xff", &err), KB_ECONFIG, "not UTF-8 by --set");
}

static void single_keys_are_set(void)
{
	static const struct {
		const char *key, *value, *message; /* NULL: accepted */
	} table[] = {
		{ "vm.memory_mib", "256", NULL },
		{ "mode", "time", NULL },
		{ "metric", "read_ns", NULL },
		{ "metric", "null", NULL },
		{ "kernel.required", "A,B", NULL },
		{ "kernel.required", "", NULL },
		{ "decision.alpha", "1e-3", NULL },
		{ "workload.params.files", "32", NULL },
		{ "workload.params.files", "16", NULL },
		{ "expect", "[{\"counter\": \"x\", \"min\": 1}]", NULL },
		{ "decision.force", "true", NULL },
		{ "decision.force", "yes", "decision.force: 'yes' is not true or false" },
		{ "decision.force", "", "decision.force: '' is not true or false" },
		{ "workload.params.a\xff", "1",
		  "workload.params.a\xff: a parameter has lower-case letters, digits and '_' in its "
		  "name" },
		{ "vm.memory_mib", "256M", "vm.memory_mib: '256M' is not a whole number" },
		{ "vm.memory_mib", "", "vm.memory_mib: '' is not a whole number" },
		{ "vm.memory_mib", "1", "vm.memory_mib: 1 is not within 64..1048576 MiB" },
		{ "decision.alpha", "nan", "decision.alpha: 'nan' is not a number" },
		{ "decision.alpha", "0.6", "decision.alpha: 0.6 is not within 1e-06..0.5" },
		{ "mode", "", "mode: '' is not one of auto, exact, time" },
		{ "name", "", "name: must not be empty" },
		{ "kernel.fragments", "", "kernel.fragments: must not be empty" },
		{ "vm", "1", "vm: name a key below it, such as vm.NAME" },
		{ "vm.memroy_mib", "1", "vm.memroy_mib: unknown key: did you mean vm.memory_mib?" },
		{ "", "1", ": unknown key; docs/job-file.md lists them" },
		{ "workload.params", "1",
		  "workload.params: set one of them, as in workload.params.files=64" },
		{ "workload.params.", "1",
		  "workload.params.: unknown key: did you mean workload.params?" },
		{ "workload.params.files", "a\tb",
		  "workload.params.files: must be one line of text without control characters" },
		{ "expect", "{}", "expect: must be an array of objects, not an object" },
		{ "expect", "[", "expect: not a JSON array: ']' expected near end of file" },
	};
	KB_AUTO(kb_job_free) struct kb_job job;

	kb_job_init(&job);
	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		struct kb_error err = { 0 };
		int r = kb_job_set(&job, table[i].key, table[i].value, &err);

		KB_AUTO_FREE char *key = one_line(table[i].key);
		KB_AUTO_FREE char *value = one_line(table[i].value);
		is_int(r, table[i].message ? KB_ECONFIG : 0, "%s=%s", key, value);
		if (table[i].message)
			is_str(err.message, table[i].message, "says why");
	}
	is_int(job.vm_memory_mib, 256, "a refused value leaves the old one");
	is_str(job.mode, "time", "mode");
	ok(job.force, "a truth value");
	is_str(job.metric, NULL, "null unsets");
	is_int((long long)job.kernel_required.count, 0, "an empty list");
	is_int((long long)job.workload_params.count, 1, "a parameter is replaced");
	is_str(kb_pairs_get(&job.workload_params, "files"), "16", "by the later one");
	is_int((long long)job.expect_count, 1, "a precondition");
}

#define MICROVM "vm.machine=microvm;kernel.fragments=base.config,microvm.config,pmem.config"
#define NO_PMEM                                                                           \
	"vm.machine: microvm has no PCI, without which the kernel does not find the "     \
	"memory of vm.scratch pmem; use q35 with pc.config in kernel.fragments"

static void what_does_not_fit_is_refused(void)
{
	static const struct {
		const char *sets, *message; /* sets: KEY=VALUE;KEY=VALUE */
	} table[] = {
		{ "mode=exact", NULL },
		{ "mode=time;vm.vcpus=4;vm.scratch=virtio-blk;vm.accel=kvm", NULL },
		{ "mode=auto;vm.vcpus=4", NULL },
		{ "mode=exact;vm.vcpus=2",
		  "vm.vcpus: exact mode has one CPU, not 2; lock contention needs mode time on a KVM "
		  "host" },
		{ "mode=exact;vm.scratch=virtio-blk",
		  "vm.scratch: virtio-blk completes in host time, which exact mode must not see; use "
		  "pmem, or auto" },
		{ "mode=exact;vm.accel=kvm",
		  "vm.accel: exact mode counts instructions, which only tcg can; use auto or tcg" },
		{ "vm.boot_timeout_ms=9000;vm.timeout_ms=8000",
		  "vm.boot_timeout_ms: 9000 is larger than vm.timeout_ms, 8000" },
		{ "mode=exact;vm.scratch=none;workload.name=none", NULL },
		{ "mode=exact;" MICROVM, NO_PMEM },
		{ "mode=time;vm.scratch=pmem;" MICROVM, NO_PMEM },
		{ "mode=exact;vm.machine=microvm;kernel.fragments=/my/own", NO_PMEM },
		{ "mode=time;vm.scratch=virtio-blk;" MICROVM, NULL },
		{ "mode=auto;" MICROVM, NULL }, /* known once the host is */
		{ "mode=exact;vm.scratch=none;workload.name=none;" MICROVM, NULL },
		{ "vm.machine=microvm", "kernel.fragments: vm.machine microvm needs microvm.config" },
		{ "vm.machine=pc", NULL },
		{ "vm.machine=pc;kernel.fragments=/my/own", NULL },
		{ "kernel.fragments=base.config,pc.config", NULL },
		{ "kernel.fragments=base.config,microvm.config",
		  "kernel.fragments: vm.machine q35 needs pc.config" },
		{ "vm.scratch=pmem;kernel.fragments=base.config,pc.config",
		  "kernel.fragments: vm.scratch pmem needs pmem.config" },
		{ "mode=exact;kernel.fragments=base.config,pc.config",
		  "kernel.fragments: vm.scratch pmem needs pmem.config" },
		{ "workload.name=nope",
		  "workload.name: no workload 'nope'; there are trunc, none, fault" },
		{ "workload.params.files=0", "workload.params.files: 0 is not between 1 and 65536" },
		{ "workload.warmup=3",
		  "workload.warmup: 3 of 3 repetitions are warm-up; none is left to measure" },
		{ "workload.warmup=3;workload.params.repetitions=4", NULL },
		{ "vm.scratch=none",
		  "vm.scratch: workload trunc needs a scratch file system" },
		{ "vm.scratch=none;workload.name=none", NULL },
		{ "workload.params.stages=1",
		  "metric: without stage 2 nothing is truncated, so trunc_ns does not exist; name a "
		  "metric" },
		{ "workload.params.stages=1;metric=read_ns", NULL },
		{ "decision.calibration_boots=6;decision.calibration_boots_max=4",
		  "decision.calibration_boots: 6 is larger than decision.calibration_boots_max, 4" },
		{ "decision.commit_boots_min=5;decision.commit_boots_max=4",
		  "decision.commit_boots_min: 5 is larger than decision.commit_boots_max, 4" },
		{ "decision.calibration_boots=2;decision.calibration_boots_max=2",
		  "decision.calibration_boots_max: 2 boots of each endpoint can never be significant "
		  "at decision.alpha 0.05" },
		{ "decision.calibration_boots=3;decision.calibration_boots_max=3", NULL },
		{ "decision.alpha=0.001;decision.confirm_boots=5",
		  "decision.confirm_boots: 5 boots of culprit and parent can never be significant at "
		  "decision.alpha 0.001" },
		{ "decision.alpha=0.004;decision.confirm_boots=5", NULL },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_job_free) struct kb_job job;
		KB_AUTO(kb_strv_free) struct kb_strv sets = { 0 };
		struct kb_error err = { 0 };
		int r = 0;

		kb_job_init(&job);
		kb_strv_split(&sets, table[i].sets, ";");
		for (size_t j = 0; j < sets.count && !r; j++) {
			char *eq = strchr(sets.items[j], '=');

			*eq = '\0';
			r = kb_job_set(&job, sets.items[j], eq + 1, &err);
		}
		is_int(r, 0, "set %s", table[i].sets);
		is_int(kb_job_check(&job, &err), table[i].message ? KB_ECONFIG : 0, "check: %s",
		       err.message);
		if (table[i].message)
			is_str(err.message, table[i].message, "says why");
	}
}

/* What must change the identity of a measurement, and what must not. */
static void hash_follows_the_measurement(void)
{
	static const struct {
		const char *key, *value;
		bool changes;
	} table[] = {
		{ "name", "other", false },
		{ "description", "other", false },
		{ "vm.uri", "qemu:///system", false },
		{ "vm.boot_timeout_ms", "5000", false },
		{ "vm.timeout_ms", "5000000", false },
		{ "vm.console_max_bytes", "70000", false },
		{ "kernel.jobs", "3", false },
		{ "kernel.timeout_ms", "5000", false },
		{ "kernel.required", "XFS_FS", false },
		{ "decision.alpha", "0.01", false },
		{ "decision.seed", "7", false },
		{ "metric", "trunc_ns", false }, /* the default, spelled out */
		{ "workload.params.total_bytes", "256MiB", false }, /* the same work */
		{ "workload.params.file_bytes", "4MiB", false },
		{ "mode", "exact", true },
		{ "metric", "read_ns", true },
		{ "vm.accel", "tcg", true },
		{ "vm.machine", "pc", true },
		{ "decision.force", "true", false },
		{ "vm.memory_mib", "129", true },
		{ "vm.vcpus", "2", true },
		{ "vm.scratch", "pmem", true },
		{ "vm.scratch_mib", "400", true },
		{ "vm.extra_cmdline", "quiet", true },
		{ "vm.parallel", "2", true },
		{ "kernel.fragments", "base.config", true },
		{ "kernel.make_args", "CC=clang", true },
		{ "fs.mkfs_options", "", true }, /* not the same as "follow the range" */
		{ "fs.mount_options", "noatime", true },
		{ "workload.name", "none", true },
		{ "workload.params.files", "32", true },
		{ "workload.warmup", "1", true },
		{ "expect", "[{\"counter\": \"x\", \"min\": 1}]", true },
	};
	KB_AUTO(kb_job_free) struct kb_job base;
	char before[65], after[65];

	kb_job_init(&base);
	kb_job_measurement_hash(&base, before);
	is_int((long long)strlen(before), 64, "64 digits");
	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_job_free) struct kb_job job;
		struct kb_error err = { 0 };

		kb_job_init(&job);
		is_int(kb_job_set(&job, table[i].key, table[i].value, &err), 0, "set %s=%s",
		       table[i].key, table[i].value);
		kb_job_measurement_hash(&job, after);
		is_int(strcmp(before, after) != 0, table[i].changes, "%s the hash",
		       table[i].changes ? "changes" : "leaves");
	}
}

static int check_sample_job(const char *name, void *ctx)
{
	KB_AUTO_FREE char *path = kb_path_join(ctx, name);
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err = { 0 };

	kb_job_init(&job);
	is_int(kb_job_load(path, &job, &err), 0, "configs/jobs/%s: %s", name, err.message);
	is_int(kb_job_check(&job, &err), 0, "is valid: %s", err.message);
	KB_AUTO_FREE char *stem = kb_asprintf("%s.json", job.name);
	is_str(stem, name, "and called as its file");
	return 0;
}

static void files_are_loaded(void)
{
	KB_AUTO_FREE char *jobs = source_path("configs/jobs");
	KB_AUTO(kb_job_free) struct kb_job job;
	struct kb_error err = { 0 };
	int before = tap_count;

	is_int(kb_list_dir(jobs, check_sample_job, jobs, &err), 0, "sample jobs");
	ok(tap_count >= before + 7, "there are at least two");
	kb_job_init(&job);
	is_int(kb_job_load("/nonexistent/job.json", &job, &err), KB_ECONFIG, "a missing file");
	ok(kb_starts_with(err.message, "job file: ") &&
		   strstr(err.message, "/nonexistent/job.json") &&
		   strstr(err.message, "No such file"),
	   "is named: %s", err.message);
	is_int(err.code, KB_ECONFIG, "as a mistake in the configuration");
}

static void reference_is_not_stale(void)
{
	KB_AUTO_FREE char *path = source_path("docs/job-file.md");
	KB_AUTO_FREE char *stored = NULL;
	char *text = NULL;
	size_t len = 0, stored_len = 0;
	struct kb_error err = { 0 };
	FILE *out = open_memstream(&text, &len);

	kb_job_write_reference(out);
	fclose(out);
	if (getenv("REGENERATE"))
		is_int(kb_write_file_atomic(path, text, len, &err), 0, "written: %s", err.message);
	is_int(kb_read_file(path, 1 << 20, &stored, &stored_len, &err), 0, "docs/job-file.md: %s",
	       err.message);
	is_str(stored, text, "docs/job-file.md is what the table says (else: make docs)");
	free(text);
}

int main(void)
{
	defaults_are_a_valid_job();
	everything_is_read();
	format_is_read_back_the_same();
	bad_jobs_are_refused();
	raw_bytes_are_refused();
	single_keys_are_set();
	what_does_not_fit_is_refused();
	hash_follows_the_measurement();
	files_are_loaded();
	reference_is_not_stale();
	return tap_done();
}
