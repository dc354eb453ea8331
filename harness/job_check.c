/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must fit together in a job, and which part of it is the measurement. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/job_internal.h"
#include "harness/workload.h"

/* ---- checks ---- */

static int check_exact(const struct kb_job *job, struct kb_error *err)
{
	if (!kb_streq(job->mode, "exact"))
		return 0;
	if (job->vm_vcpus != 1)
		return kb_error_set(err, KB_ECONFIG,
				    "vm.vcpus: exact mode has one CPU, not %u; lock contention "
				    "needs mode time on a KVM host",
				    job->vm_vcpus);
	if (kb_streq(job->vm_scratch, "virtio-blk"))
		return kb_error_set(err, KB_ECONFIG,
				    "vm.scratch: virtio-blk completes in host time, which exact mode "
				    "must not see; use pmem, or auto");
	if (kb_streq(job->vm_accel, "kvm"))
		return kb_error_set(err, KB_ECONFIG,
				    "vm.accel: exact mode counts instructions, which only tcg can; "
				    "use auto or tcg");
	return 0;
}

/* Both ways to say it: exact mode resolves `auto` to pmem. */
static bool has_pmem(const struct kb_job *job)
{
	return kb_streq(job->vm_scratch, "pmem") ||
	       (kb_streq(job->vm_scratch, "auto") && kb_streq(job->mode, "exact"));
}

static int check_pmem(const struct kb_job *job, struct kb_error *err)
{
	if (!has_pmem(job) || !kb_streq(job->vm_machine, "microvm"))
		return 0;
	return kb_error_set(err, KB_ECONFIG,
			    "vm.machine: microvm has no PCI, without which the kernel does not find "
			    "the memory of vm.scratch pmem; use q35 with pc.config in "
			    "kernel.fragments");
}

static bool has_fragment(const struct kb_job *job, const char *name)
{
	for (size_t i = 0; i < job->kernel_fragments.count; i++)
		if (kb_streq(job->kernel_fragments.items[i], name))
			return true;
	return false;
}

/* Only where all fragments are the shipped ones is it known what they hold. A kernel without
 * its machine's drivers would cost a build and a time limit to find out. */
static int check_fragments(const struct kb_job *job, struct kb_error *err)
{
	const char *needed = kb_streq(job->vm_machine, "microvm") ? "microvm.config" : "pc.config";

	for (size_t i = 0; i < job->kernel_fragments.count; i++)
		if (strchr(job->kernel_fragments.items[i], '/'))
			return 0;
	if (!has_fragment(job, needed))
		return kb_error_set(err, KB_ECONFIG, "kernel.fragments: vm.machine %s needs %s",
				    job->vm_machine, needed);
	if (has_pmem(job) && !has_fragment(job, "pmem.config"))
		return kb_error_set(err, KB_ECONFIG,
				    "kernel.fragments: vm.scratch pmem needs pmem.config");
	return 0;
}

static int check_workload(const struct kb_job *job, struct kb_error *err)
{
	KB_AUTO(kb_pairs_free) struct kb_pairs params = { 0 };
	uint64_t repetitions = 1;
	int r = kb_workload_resolve(job->workload_name, &job->workload_params, job->vm_memory_mib,
				    &params, err);

	if (r)
		return r;
	const char *text = kb_pairs_get(&params, "repetitions");
	if (text)
		r = kb_parse_u64(text, 1, UINT32_MAX, "workload.params.repetitions", &repetitions,
				 err);
	if (r)
		return r;
	if (job->workload_warmup >= repetitions)
		return kb_error_set(err, KB_ECONFIG,
				    "workload.warmup: %u of %" PRIu64
				    " repetitions are warm-up; none is left to measure",
				    job->workload_warmup, repetitions);
	if (kb_streq(job->workload_name, "trunc") && kb_streq(job->vm_scratch, "none"))
		return kb_error_set(err, KB_ECONFIG,
				    "vm.scratch: workload trunc needs a scratch file system");
	const char *stages = kb_pairs_get(&params, "stages");
	if (stages && !kb_streq(stages, "3") && !kb_streq(stages, "2") && !job->metric)
		return kb_error_set(err, KB_ECONFIG,
				    "metric: without stage 2 nothing is truncated, so %s does not "
				    "exist; name a metric",
				    kb_workload_default_metric(job->workload_name));
	return 0;
}

/* The smallest p that n boots against n can give is 1 / C(2n, n). */
static bool can_be_significant(uint32_t n, double alpha)
{
	double ways = 1;

	for (uint32_t i = 1; i <= n && ways < 1e12; i++)
		ways = ways * (n + i) / i;
	return 1 / ways <= alpha;
}

static int check_decision(const struct kb_job *job, struct kb_error *err)
{
	if (job->calibration_boots > job->calibration_boots_max)
		return kb_error_set(err, KB_ECONFIG,
				    "decision.calibration_boots: %u is larger than "
				    "decision.calibration_boots_max, %u",
				    job->calibration_boots, job->calibration_boots_max);
	if (job->commit_boots_min > job->commit_boots_max)
		return kb_error_set(err, KB_ECONFIG,
				    "decision.commit_boots_min: %u is larger than "
				    "decision.commit_boots_max, %u",
				    job->commit_boots_min, job->commit_boots_max);
	if (!can_be_significant(job->calibration_boots_max, job->alpha))
		return kb_error_set(err, KB_ECONFIG,
				    "decision.calibration_boots_max: %u boots of each endpoint can "
				    "never be significant at decision.alpha %g",
				    job->calibration_boots_max, job->alpha);
	if (!can_be_significant(job->confirm_boots, job->alpha))
		return kb_error_set(err, KB_ECONFIG,
				    "decision.confirm_boots: %u boots of culprit and parent can "
				    "never be significant at decision.alpha %g",
				    job->confirm_boots, job->alpha);
	return 0;
}

int kb_job_check(const struct kb_job *job, struct kb_error *err)
{
	int r = check_exact(job, err);

	if (!r)
		r = check_pmem(job, err);
	if (!r && job->vm_boot_timeout_ms > job->vm_timeout_ms)
		r = kb_error_set(err, KB_ECONFIG,
				 "vm.boot_timeout_ms: %" PRIu64
				 " is larger than vm.timeout_ms, %" PRIu64,
				 job->vm_boot_timeout_ms, job->vm_timeout_ms);
	if (!r)
		r = check_fragments(job, err);
	if (!r)
		r = check_workload(job, err);
	if (!r)
		r = check_decision(job, err);
	return r;
}

/* ---- identity ---- */

static void hash_u64(struct kb_hash *h, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	kb_hash_update_str(h, text);
}

static void hash_params(struct kb_hash *h, const struct kb_job *job)
{
	KB_AUTO(kb_pairs_free) struct kb_pairs resolved = { 0 };
	const struct kb_pairs *params = &resolved;

	/* An invalid job is measured by nobody, but still has one hash. */
	if (kb_workload_resolve(job->workload_name, &job->workload_params, job->vm_memory_mib,
				&resolved, NULL))
		params = &job->workload_params;
	hash_u64(h, params->count);
	for (size_t i = 0; i < params->count; i++) {
		kb_hash_update_str(h, params->items[i].name);
		kb_hash_update_str(h, params->items[i].value);
	}
}

static void hash_expects(struct kb_hash *h, const struct kb_job *job)
{
	hash_u64(h, job->expect_count);
	for (size_t i = 0; i < job->expect_count; i++) {
		const struct kb_expect *e = &job->expects[i];

		kb_hash_update_str(h, e->counter);
		kb_hash_update_str(h, e->point);
		hash_u64(h, (uint64_t)e->min);
		hash_u64(h, (uint64_t)e->max);
	}
}

static void hash_text(struct kb_hash *h, const struct kb_job *job, const struct job_option *o)
{
	const char *text = *(char *const *)job_field_const(job, o);

	if (!strcmp(o->key, "metric") && !text)
		text = kb_workload_default_metric(job->workload_name);
	hash_u64(h, text != NULL);
	kb_hash_update_str(h, text ? text : "");
}

void kb_job_measurement_hash(const struct kb_job *job, char hex[65])
{
	struct kb_hash *h = kb_hash_new();

	kb_hash_update_str(h, "kbisect measurement 1");
	for (size_t i = 0; i < job_option_count; i++) {
		const struct job_option *o = &job_options[i];
		const void *field = job_field_const(job, o);

		if (!o->measured)
			continue;
		kb_hash_update_str(h, o->key);
		if (o->type == JOB_TEXT || o->type == JOB_CHOICE) {
			hash_text(h, job, o);
		} else if (o->type == JOB_U32) {
			hash_u64(h, *(const uint32_t *)field);
		} else if (o->type == JOB_PARAMS) {
			hash_params(h, job);
		} else if (o->type == JOB_EXPECTS) {
			hash_expects(h, job);
		} else if (o->type == JOB_LIST) {
			const struct kb_strv *v = field;

			hash_u64(h, v->count);
			for (size_t j = 0; j < v->count; j++)
				kb_hash_update_str(h, v->items[j]);
		}
	}
	kb_hash_finish(h, hex);
}
