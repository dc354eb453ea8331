/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of job options, and what works on it without JSON: defaults, checks, --set. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/job_internal.h"
#include "harness/opts.h"

#define TEXT_MAX_BYTES 4096
#define FIELD(member) offsetof(struct kb_job, member)
#define HOUR_MS UINT64_C(3600000)

const struct job_option job_options[] = {
	{ .key = "name", .type = JOB_TEXT, .offset = FIELD(name), .fallback = "default",
	  .required = true, .help = "stands in reports" },
	{ .key = "description", .type = JOB_TEXT, .offset = FIELD(description), .nullable = true,
	  .help = "free text, for people" },
	{ .key = "mode", .type = JOB_CHOICE, .offset = FIELD(mode), .fallback = "auto",
	  .choices = "auto|exact|time", .measured = true,
	  .help = "`exact` counts instructions under emulation: repeatable to the last digit, one "
		  "CPU, works anywhere; `time` takes the guest's clock and wants KVM; `auto` is "
		  "`time` where the host has KVM, else `exact`" },
	{ .key = "metric", .type = JOB_TEXT, .offset = FIELD(metric), .nullable = true,
	  .measured = true, .help = "the metric that decides; null: the workload's own" },

	{ .key = "vm.uri", .type = JOB_TEXT, .offset = FIELD(vm_uri),
	  .fallback = "qemu:///embed", .required = true,
	  .help = "libvirt connection; `qemu:///embed` needs no daemon" },
	{ .key = "vm.accel", .type = JOB_CHOICE, .offset = FIELD(vm_accel), .fallback = "auto",
	  .choices = "auto|tcg|kvm", .measured = true,
	  .help = "`auto`: KVM in time mode where the host has it, else TCG (emulation)" },
	{ .key = "vm.machine", .type = JOB_CHOICE, .offset = FIELD(vm_machine),
	  .fallback = "q35", .choices = "microvm|q35|pc", .measured = true,
	  .help = "QEMU machine; `q35` and `pc` need `pc.config` among the fragments; `microvm` "
		  "needs `microvm.config` and the least kernel, but has no `pmem` scratch: "
		  "without PCI the kernel does not find that memory" },
	{ .key = "vm.memory_mib", .type = JOB_U32, .offset = FIELD(vm_memory_mib),
	  .fallback = "128", .min = 64, .max = 1 << 20, .unit = "MiB", .measured = true,
	  .help = "memory of the guest, the scratch device not counted" },
	{ .key = "vm.vcpus", .type = JOB_U32, .offset = FIELD(vm_vcpus), .fallback = "1",
	  .min = 1, .max = 8, .measured = true, .help = "exact mode has one" },
	{ .key = "vm.scratch", .type = JOB_CHOICE, .offset = FIELD(vm_scratch),
	  .fallback = "auto", .choices = "auto|pmem|virtio-blk|none", .measured = true,
	  .help = "what the scratch file system is on; `auto`: `pmem` (guest-visible memory) in "
		  "exact mode, `virtio-blk` in time mode" },
	{ .key = "vm.scratch_mib", .type = JOB_U32, .offset = FIELD(vm_scratch_mib),
	  .fallback = "320", .min = 300, .max = 1 << 24, .unit = "MiB", .measured = true,
	  .help = "size of the scratch device; mkfs.xfs wants 300 MiB at least" },
	{ .key = "vm.extra_cmdline", .type = JOB_TEXT, .offset = FIELD(vm_extra_cmdline),
	  .fallback = "", .measured = true, .help = "added to the kernel command line" },
	{ .key = "vm.parallel", .type = JOB_U32, .offset = FIELD(vm_parallel), .fallback = "0",
	  .max = 256, .measured = true,
	  .help = "boots side by side; 0: as many as cores in exact mode, one in time mode" },
	{ .key = "vm.boot_timeout_ms", .type = JOB_U64, .offset = FIELD(vm_boot_timeout_ms),
	  .fallback = "120000", .min = 1000, .max = 24 * HOUR_MS, .unit = "ms",
	  .help = "host time until the guest's init speaks" },
	{ .key = "vm.timeout_ms", .type = JOB_U64, .offset = FIELD(vm_timeout_ms),
	  .fallback = "600000", .min = 1000, .max = 24 * HOUR_MS, .unit = "ms",
	  .help = "host time until the guest has its result" },
	{ .key = "vm.console_max_bytes", .type = JOB_U64, .offset = FIELD(vm_console_max_bytes),
	  .fallback = "4194304", .min = 65536, .max = 1 << 30, .unit = "bytes",
	  .help = "a guest that prints more is stopped" },

	{ .key = "kernel.fragments", .type = JOB_LIST, .offset = FIELD(kernel_fragments),
	  .fallback = "base.config,pc.config,pmem.config", .required = true,
	  .measured = true,
	  .help = "configuration fragments over tinyconfig, in order: paths, or names below "
		  "configs/kernel" },
	{ .key = "kernel.required", .type = JOB_LIST, .offset = FIELD(kernel_required),
	  .fallback = "",
	  .help = "symbols, without CONFIG_, that must survive olddefconfig: a commit that loses "
		  "one is untestable" },
	{ .key = "kernel.make_args", .type = JOB_LIST, .offset = FIELD(kernel_make_args),
	  .fallback = "", .measured = true, .help = "more arguments for make, such as `CC=clang`" },
	{ .key = "kernel.jobs", .type = JOB_U32, .offset = FIELD(kernel_jobs), .fallback = "0",
	  .max = 4096, .help = "make -j; 0: number of cores" },
	{ .key = "kernel.timeout_ms", .type = JOB_U64, .offset = FIELD(kernel_timeout_ms),
	  .fallback = "3600000", .min = 1000, .max = 7 * 24 * HOUR_MS, .unit = "ms",
	  .help = "of one build; a commit over it is untestable" },

	{ .key = "fs.mkfs_options", .type = JOB_TEXT, .offset = FIELD(fs_mkfs_options),
	  .nullable = true, .measured = true,
	  .help = "for mkfs.xfs; null: what the oldest kernel of the range can mount, the same for "
		  "every commit" },
	{ .key = "fs.mount_options", .type = JOB_TEXT, .offset = FIELD(fs_mount_options),
	  .fallback = "", .measured = true, .help = "for mount(2), separated by commas" },

	{ .key = "workload.name", .type = JOB_TEXT, .offset = FIELD(workload_name),
	  .fallback = "trunc", .required = true, .measured = true, .help = "see below" },
	{ .key = "workload.params", .type = JOB_PARAMS, .offset = FIELD(workload_params),
	  .fallback = "", .measured = true, .help = "object of its parameters, see below" },
	{ .key = "workload.warmup", .type = JOB_U32, .offset = FIELD(workload_warmup),
	  .fallback = "0", .max = 999, .unit = "repetitions", .measured = true,
	  .help = "first repetitions of each boot that are left out of its mean" },
	{ .key = "expect", .type = JOB_EXPECTS, .fallback = "[]", .measured = true,
	  .help = "preconditions, see below" },

	{ .key = "decision.alpha", .type = JOB_DOUBLE, .offset = FIELD(alpha),
	  .fallback = "0.05", .low = 1e-6, .high = 0.5, .help = "accepted probability of a wrong answer" },
	{ .key = "decision.min_effect_percent", .type = JOB_DOUBLE,
	  .offset = FIELD(min_effect_percent), .fallback = "0.5", .low = 0, .high = 1000,
	  .unit = "%", .help = "endpoints that differ by less count as equal" },
	{ .key = "decision.calibration_boots", .type = JOB_U32,
	  .offset = FIELD(calibration_boots), .fallback = "5", .min = 2, .max = 1000,
	  .unit = "boots", .help = "of each endpoint before the first look; fewer than 5 count as 5" },
	{ .key = "decision.calibration_boots_max", .type = JOB_U32,
	  .offset = FIELD(calibration_boots_max), .fallback = "24", .min = 2, .max = 10000,
	  .unit = "boots", .help = "of each endpoint before giving up: it does not reproduce" },
	{ .key = "decision.commit_boots_min", .type = JOB_U32, .offset = FIELD(commit_boots_min),
	  .fallback = "2", .min = 1, .max = 1000, .unit = "boots", .help = "of each tested commit" },
	{ .key = "decision.commit_boots_max", .type = JOB_U32, .offset = FIELD(commit_boots_max),
	  .fallback = "12", .min = 1, .max = 10000, .unit = "boots",
	  .help = "of a commit before it is left unclear" },
	{ .key = "decision.confirm_boots", .type = JOB_U32, .offset = FIELD(confirm_boots),
	  .fallback = "5", .min = 2, .max = 1000, .unit = "boots",
	  .help = "fresh ones of the culprit and of each parent" },
	{ .key = "decision.retries", .type = JOB_U32, .offset = FIELD(retries), .fallback = "2",
	  .max = 100, .help = "failed boots of a commit that are tried again before it is untestable" },
	{ .key = "decision.seed", .type = JOB_U64, .offset = FIELD(seed), .fallback = "1",
	  .max = INT64_MAX, .help = "of the random order of boots" },
	{ .key = "decision.force", .type = JOB_BOOL, .offset = FIELD(force), .fallback = "false",
	  .help = "go on although the endpoints are too close together to decide single "
		  "commits" },
};

const size_t job_option_count = KB_COUNT_OF(job_options);

const struct job_option *job_option_find(const char *key)
{
	for (size_t i = 0; i < job_option_count; i++)
		if (!strcmp(job_options[i].key, key))
			return &job_options[i];
	return NULL;
}

bool job_option_is_section(const char *section)
{
	size_t len = strlen(section);

	for (size_t i = 0; i < job_option_count; i++)
		if (!strncmp(job_options[i].key, section, len) && job_options[i].key[len] == '.')
			return true;
	return false;
}

/* A key that exists in another section is the likeliest mistake after a slip of the pen. */
static const char *same_name_elsewhere(const char *key)
{
	const char *name = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;

	for (size_t i = 0; i < job_option_count; i++) {
		const char *dot = strchr(job_options[i].key, '.');

		if (!strcmp(dot ? dot + 1 : job_options[i].key, name))
			return job_options[i].key;
	}
	return NULL;
}

int job_option_unknown(const char *key, struct kb_error *err)
{
	const char *names[KB_COUNT_OF(job_options)];
	const char *near = same_name_elsewhere(key);

	for (size_t i = 0; i < job_option_count; i++)
		names[i] = job_options[i].key;
	if (!near)
		near = kb_opts_nearest(key, names, job_option_count);
	if (near)
		return kb_error_set(err, KB_ECONFIG, "%.200s: unknown key: did you mean %s?", key,
				    near);
	return kb_error_set(err, KB_ECONFIG, "%.200s: unknown key; docs/job-file.md lists them", key);
}

void *job_field(struct kb_job *job, const struct job_option *o)
{
	return (char *)job + o->offset;
}

const void *job_field_const(const struct kb_job *job, const struct job_option *o)
{
	return (const char *)job + o->offset;
}

/* ---- storing checked values ---- */

/* Texts end up in line-based files and on command lines: one line of valid UTF-8 each. */
int job_check_text(const char *key, const char *value, struct kb_error *err)
{
	size_t len = strlen(value);

	if (len > TEXT_MAX_BYTES)
		return kb_error_set(err, KB_ECONFIG, "%s: longer than %d bytes", key,
				    TEXT_MAX_BYTES);
	KB_AUTO_FREE char *clean = kb_str_sanitize(value, len, len);
	if (!kb_streq(clean, value) || strpbrk(value, "\t\n"))
		return kb_error_set(err, KB_ECONFIG,
				    "%s: must be one line of text without control characters", key);
	return 0;
}

static int check_choice(const struct job_option *o, const char *value, struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv choices = { 0 };
	KB_AUTO(kb_str_free) struct kb_str known = { 0 };

	kb_strv_split(&choices, o->choices, "|");
	for (size_t i = 0; i < choices.count; i++) {
		if (!strcmp(choices.items[i], value))
			return 0;
		kb_str_appendf(&known, "%s%s", i ? ", " : "", choices.items[i]);
	}
	return kb_error_set(err, KB_ECONFIG, "%s: '%.100s' is not one of %s", o->key, value,
			    kb_str_get(&known));
}

int job_put_text(struct kb_job *job, const struct job_option *o, const char *value,
		 struct kb_error *err)
{
	char **field = job_field(job, o);
	int r = 0;

	if (!value && !o->nullable)
		return kb_error_set(err, KB_ECONFIG, "%s: must be a string, not null", o->key);
	if (value)
		r = o->type == JOB_CHOICE ? check_choice(o, value, err)
					  : job_check_text(o->key, value, err);
	if (!r && o->required && value && !*value)
		r = kb_error_set(err, KB_ECONFIG, "%s: must not be empty", o->key);
	if (r)
		return r;
	free(*field);
	*field = kb_strdup(value);
	return 0;
}

static const char *unit_suffix(const struct job_option *o, char buf[32])
{
	snprintf(buf, 32, "%s%s", o->unit ? " " : "", o->unit ? o->unit : "");
	return buf;
}

int job_put_u64(struct kb_job *job, const struct job_option *o, uint64_t value,
		struct kb_error *err)
{
	char unit[32];

	if (value < o->min || value > o->max)
		return kb_error_set(err, KB_ECONFIG,
				    "%s: %" PRIu64 " is not within %" PRIu64 "..%" PRIu64 "%s",
				    o->key, value, o->min, o->max, unit_suffix(o, unit));
	if (o->type == JOB_U32)
		*(uint32_t *)job_field(job, o) = (uint32_t)value;
	else
		*(uint64_t *)job_field(job, o) = value;
	return 0;
}

int job_put_double(struct kb_job *job, const struct job_option *o, double value,
		   struct kb_error *err)
{
	char unit[32];

	if (!(value >= o->low && value <= o->high))
		return kb_error_set(err, KB_ECONFIG, "%s: %g is not within %g..%g%s", o->key, value,
				    o->low, o->high, unit_suffix(o, unit));
	*(double *)job_field(job, o) = value;
	return 0;
}

int job_put_list(struct kb_job *job, const struct job_option *o, const struct kb_strv *value,
		 struct kb_error *err)
{
	struct kb_strv *field = job_field(job, o);

	for (size_t i = 0; i < value->count; i++) {
		KB_AUTO_FREE char *key = kb_asprintf("%s[%zu]", o->key, i);
		int r = job_check_text(key, value->items[i], err);

		if (!r && !*value->items[i])
			r = kb_error_set(err, KB_ECONFIG, "%s: must not be empty", key);
		if (r)
			return r;
	}
	if (o->required && !value->count)
		return kb_error_set(err, KB_ECONFIG, "%s: must not be empty", o->key);
	kb_strv_free(field);
	*field = (struct kb_strv){ 0 };
	for (size_t i = 0; i < value->count; i++)
		kb_strv_add(field, value->items[i]);
	return 0;
}

/* Names go the same way as values, and messages repeat them. */
static bool is_param_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

int job_put_param(struct kb_pairs *params, const char *name, const char *value,
		  struct kb_error *err)
{
	KB_AUTO_FREE char *key = kb_asprintf("workload.params.%.100s", name);
	int r;

	if (!is_param_name(name))
		return kb_error_set(err, KB_ECONFIG,
				    "%s: a parameter has lower-case letters, digits and '_' in its "
				    "name",
				    key);
	r = job_check_text(key, value, err);
	if (r)
		return r;
	for (size_t i = 0; i < params->count; i++) {
		if (!kb_streq(params->items[i].name, name))
			continue;
		free(params->items[i].value);
		params->items[i].value = kb_strdup(value);
		return 0;
	}
	kb_pairs_add(params, name, value);
	return 0;
}

/* ---- from text ---- */

static int set_number(struct kb_job *job, const struct job_option *o, const char *value,
		      struct kb_error *err)
{
	uint64_t number;
	double real;

	if (o->type == JOB_DOUBLE) {
		if (kb_parse_double(value, o->key, &real, NULL))
			return kb_error_set(err, KB_ECONFIG, "%s: '%.100s' is not a number", o->key,
					    value);
		return job_put_double(job, o, real, err);
	}
	if (kb_parse_u64(value, 0, UINT64_MAX, o->key, &number, NULL))
		return kb_error_set(err, KB_ECONFIG, "%s: '%.100s' is not a whole number", o->key,
				    value);
	return job_put_u64(job, o, number, err);
}

static int set_bool(struct kb_job *job, const struct job_option *o, const char *value,
		    struct kb_error *err)
{
	if (!kb_streq(value, "true") && !kb_streq(value, "false"))
		return kb_error_set(err, KB_ECONFIG, "%s: '%.100s' is not true or false", o->key,
				    value);
	*(bool *)job_field(job, o) = !strcmp(value, "true");
	return 0;
}

static int set_list(struct kb_job *job, const struct job_option *o, const char *value,
		    struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv list = { 0 };

	kb_strv_split(&list, value, ",");
	return job_put_list(job, o, &list, err);
}

int kb_job_set(struct kb_job *job, const char *key, const char *value, struct kb_error *err)
{
	static const char params[] = "workload.params.";
	const struct job_option *o = job_option_find(key);

	if (kb_starts_with(key, params) && key[strlen(params)])
		return job_put_param(&job->workload_params, key + strlen(params), value, err);
	if (!o && job_option_is_section(key))
		return kb_error_set(err, KB_ECONFIG, "%s: name a key below it, such as %s.NAME", key,
				    key);
	if (!o)
		return job_option_unknown(key, err);
	switch (o->type) {
	case JOB_TEXT:
	case JOB_CHOICE:
		return job_put_text(job, o, o->nullable && kb_streq(value, "null") ? NULL : value,
				    err);
	case JOB_U32:
	case JOB_U64:
	case JOB_DOUBLE:
		return set_number(job, o, value, err);
	case JOB_BOOL:
		return set_bool(job, o, value, err);
	case JOB_LIST:
		return set_list(job, o, value, err);
	case JOB_EXPECTS:
		return job_set_expects(job, value, err);
	case JOB_PARAMS:
		break;
	}
	return kb_error_set(err, KB_ECONFIG, "%s: set one of them, as in %s.files=64", key, key);
}

/* ---- life ---- */

void kb_job_init(struct kb_job *job)
{
	memset(job, 0, sizeof(*job));
	for (size_t i = 0; i < job_option_count; i++) {
		const struct job_option *o = &job_options[i];
		struct kb_error err;

		if (!o->fallback || o->type == JOB_PARAMS)
			continue;
		if (kb_job_set(job, o->key, o->fallback, &err)) {
			/* a wrong row of the table above, caught by every test */
			kb_error_log("default of %s", err.message);
			abort();
		}
	}
}

void job_expects_free(struct kb_expect *expects, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(expects[i].counter);
		free(expects[i].point);
	}
	free(expects);
}

void kb_job_free(struct kb_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job_option_count; i++) {
		const struct job_option *o = &job_options[i];

		if (o->type == JOB_TEXT || o->type == JOB_CHOICE)
			free(*(char **)job_field(job, o));
		else if (o->type == JOB_LIST)
			kb_strv_free(job_field(job, o));
	}
	kb_pairs_free(&job->workload_params);
	job_expects_free(job->expects, job->expect_count);
	memset(job, 0, sizeof(*job));
}
