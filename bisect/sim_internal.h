/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by sim*.c only. */
#ifndef KB_BISECT_SIM_INTERNAL_H
#define KB_BISECT_SIM_INTERNAL_H

#include "bisect/decide.h"
#include "bisect/sim.h"

/* One history with its culprit, and the boots that were taken of it. */
struct sim_world {
	const struct kb_sim_cell *cell;
	struct kb_dag dag;
	uint8_t *outside;		 /* owned */
	uint8_t *untestable;		 /* owned */
	uint32_t first, second;		 /* the changes; the same when there is one */
	uint8_t *has_first, *has_second; /* owned; per node */
	uint32_t *boots_of;		 /* owned; per node, then the good endpoint */
	uint64_t seed;
	uint32_t builds, boots;
};

void sim_world_init(struct sim_world *w, const struct kb_sim_cell *cell,
		    uint32_t candidates, uint64_t seed, uint32_t trial);
void sim_world_free(struct sim_world *w);

/** The next boot of a node (or KB_NODE_GOOD), counted. */
double sim_boot(struct sim_world *w, uint32_t node);
/** Boots per endpoint that baselines get: max(20, 40 / d^2). */
uint32_t sim_calibration(const struct kb_sim_cell *cell);

static inline uint32_t sim_head(const struct sim_world *w)
{
	return w->dag.node_count - 1;
}

uint32_t sim_run_plain(struct sim_world *w, uint32_t boots);
uint32_t sim_run_pass_fail(struct sim_world *w, bool good_may_fail);

#endif
