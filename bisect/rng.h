/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small deterministic generator for random order and simulation: the same seed gives
 * the same numbers on every machine and in every version. Not for secrets. Source:
 * splitmix64 (Steele, Lea, Flood 2014): a Weyl sequence through a bijective mixer.
 */
#ifndef KB_BISECT_RNG_H
#define KB_BISECT_RNG_H

#include <stdint.h>

struct kb_rng {
	uint64_t state;
};

static inline uint64_t kb_rng_next(struct kb_rng *rng)
{
	uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/** Uniform in [0, bound); bound > 0. The bias is below bound / 2^32. */
static inline uint32_t kb_rng_below(struct kb_rng *rng, uint32_t bound)
{
	return (uint32_t)(((kb_rng_next(rng) >> 32) * bound) >> 32);
}

/** Uniform in [0, 1). */
static inline double kb_rng_unit(struct kb_rng *rng)
{
	return (double)(kb_rng_next(rng) >> 11) * 0x1p-53;
}

/** A generator of its own for the `index`-th draw of a stream: order without state. */
static inline struct kb_rng kb_rng_at(uint64_t seed, uint64_t stream, uint64_t index)
{
	struct kb_rng rng = {seed};

	rng.state = kb_rng_next(&rng) ^ stream;
	rng.state = kb_rng_next(&rng) ^ index;
	rng.state = kb_rng_next(&rng);
	return rng;
}

#endif
