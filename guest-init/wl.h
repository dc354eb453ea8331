/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a workload in this process and collects what it says. run.c is its only caller. */
#ifndef KB_GUEST_WL_H
#define KB_GUEST_WL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "guest-init/params.h"
#include "guest-init/workload.h"

#define KB_WL_TEXT_MAX 240

struct kb_wl_verdict {
	bool failed;
	int errno_value;
	char text[KB_WL_TEXT_MAX]; /* clean, one line */
	enum kb_wl_order order;
};

/**
 * Calls w->run() and writes param, metric, counter, note and invalid lines to `out`.
 * @param dir must exist; becomes the current directory
 */
void kb_wl_execute(const struct kb_workload *w, const struct kb_wl_param *params,
		   size_t param_count, const char *dir, FILE *out,
		   struct kb_wl_verdict *ret_verdict);

#endif
