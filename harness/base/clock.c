/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

uint64_t kb_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t kb_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

char *kb_utc_string(uint64_t wall_us, char *buf)
{
	time_t seconds = (time_t)(wall_us / 1000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(buf, 21, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(buf, 21, "invalid time");
	return buf;
}

void kb_sleep_ms(uint64_t ms)
{
	struct timespec left = { .tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000) * 1000000 };

	/* a signal ends the sleep: whoever waits looks at kb_interrupted() */
	nanosleep(&left, NULL);
}

char *kb_duration_string(uint64_t ms, char *buf)
{
	uint64_t s = ms / 1000;

	if (s >= 3600)
		snprintf(buf, 32, "%" PRIu64 "h%02um", s / 3600, (unsigned)(s % 3600 / 60));
	else if (s >= 60)
		snprintf(buf, 32, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(buf, 32, "%us", (unsigned)s);
	return buf;
}
