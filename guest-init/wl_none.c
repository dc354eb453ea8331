/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does nothing at all: to try a kernel or an image. Its figure is the time since boot. */
#include "guest-init/util.h"
#include "guest-init/workload.h"

static int run_none(struct kb_wl_ctx *ctx)
{
	if (kb_wl_params_done(ctx))
		return -1;
	kb_wl_metric(ctx, "boot_ns", "ns", KB_LOWER, (double)kb_util_mono_ns());
	kb_wl_start(ctx);
	kb_wl_metric(ctx, "elapsed_ns", "ns", KB_LOWER, (double)kb_wl_stop(ctx));
	return 0;
}

const struct kb_workload kb_wl_none = {.name = "none", .run = run_none};
