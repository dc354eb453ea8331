/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KB_BASE_CLOCK_H
#define KB_BASE_CLOCK_H

#include <stdint.h>

/** Milliseconds of CLOCK_MONOTONIC. */
uint64_t kb_now_ms(void);

/** Microseconds since the epoch. */
uint64_t kb_wall_us(void);

/** "2026-01-02T03:04:05Z" into a buffer of at least 21 bytes; returns buf. */
char *kb_utc_string(uint64_t wall_us, char *buf);

void kb_sleep_ms(uint64_t ms);

/** "1h02m", "3m20s", "14s" into a buffer of at least 32 bytes; returns buf. */
char *kb_duration_string(uint64_t ms, char *buf);

#endif
