/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a workload in a child process, with a time limit. */
#ifndef KB_GUEST_RUN_H
#define KB_GUEST_RUN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "guest-init/wl.h"

struct kb_run_result {
	struct kb_wl_verdict
		verdict; /* also says so when the child died or was too slow */
	char *body;	 /* owned; result lines, whole; NULL when it failed */
	size_t body_len;
	struct rusage usage; /* of the child and what it waited for */
};

/**
 * @param timeout_ms guest time; then the child's process group is killed
 * A workload that fails is not an error: look at ret_result->verdict. Always returns,
 * even if the child can't be killed (stuck in the kernel).
 */
void kb_run_workload(const struct kb_workload *w, const struct kb_wl_param *params,
		     size_t param_count, const char *dir, uint64_t timeout_ms,
		     struct kb_run_result *ret_result);

void kb_run_result_free(struct kb_run_result *r);

#endif
