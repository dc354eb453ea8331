/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/host.h"

#include <stdlib.h>

#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/doctor.h"

int kb_host_settle_job(struct kb_job *job, struct kb_error *err)
{
	KB_AUTO_FREE char *why = NULL;
	bool kvm = kb_doctor_kvm_usable(&why);
	const char *mode = job->mode, *accel;
	int r;

	/* A host elsewhere is taken to be a proper one; it will say so if it is not. */
	if (!kb_starts_with(job->vm_uri, "qemu:///"))
		kvm = true;
	if (kb_streq(mode, "auto"))
		mode = kvm && !kb_streq(job->vm_accel, "tcg") ? "time" : "exact";
	accel = kb_streq(mode, "exact") ? "tcg"
		: kb_streq(job->vm_accel, "auto") ? (kvm ? "kvm" : "tcg")
						  : job->vm_accel;
	if (kb_streq(accel, "kvm") && !kvm)
		return kb_error_set(err, KB_ECONFIG,
				    "the job asks for KVM, but %s; use --mode exact, which needs "
				    "none",
				    why ? why : "there is none here");
	if (kb_streq(job->vm_accel, "kvm") && kb_streq(mode, "exact"))
		return kb_error_set(err, KB_ECONFIG,
				    "exact mode counts instructions, which KVM cannot; drop "
				    "vm.accel or use --mode time");
	if (kb_streq(mode, "time") && !kb_streq(accel, "kvm"))
		kb_warn("time mode without KVM: wall-clock times under emulation are too noisy to "
			"find small regressions (docs/decisions/exact-mode.md); --mode exact is not");
	KB_AUTO_FREE char *mode_copy = kb_strdup(mode);
	KB_AUTO_FREE char *accel_copy = kb_strdup(accel);
	r = kb_job_set(job, "mode", mode_copy, err);
	if (!r)
		r = kb_job_set(job, "vm.accel", accel_copy, err);
	if (!r && kb_streq(job->vm_scratch, "auto"))
		r = kb_job_set(job, "vm.scratch",
			       kb_streq(job->mode, "exact") ? "pmem" : "virtio-blk", err);
	return r ? r : kb_job_check(job, err);
}
