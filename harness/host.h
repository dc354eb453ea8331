/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this host can do, as far as a job's "auto" settings depend on it. */
#ifndef KB_HARNESS_HOST_H
#define KB_HARNESS_HOST_H

#include "harness/base/error.h"
#include "harness/job.h"

/**
 * Turns "auto" into what this host gives: mode (time with KVM, exact without) and
 * accelerator, and then checks the job as a whole.
 * Errors: KB_ECONFIG: the job asks for what the host or the mode cannot do.
 */
int kb_host_settle_job(struct kb_job *job, struct kb_error *err);

#endif
