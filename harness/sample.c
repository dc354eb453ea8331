/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/str.h"
#include "harness/workload.h"

static bool invalid(struct kb_sample *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool invalid(struct kb_sample *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
	s->valid = false;
	return false;
}

/* Each value of the counter at that point must lie in the range, and there must be as many
 * values as repetitions: a counter that is missing is a precondition that was not seen. */
static bool check_expect(const struct kb_expect *expect, const struct kb_boot_record *r,
			 size_t repetitions, struct kb_sample *s)
{
	bool per_repetition = kb_streq(expect->point, "start") || kb_streq(expect->point, "stop");
	size_t wanted = per_repetition ? repetitions : 1, seen = 0;

	for (size_t i = 0; i < r->counter_count; i++) {
		const struct kb_counter *c = &r->counters[i];

		if (!kb_streq(c->name, expect->counter) || !kb_streq(c->point, expect->point))
			continue;
		seen++;
		if (c->value < expect->min || c->value > expect->max)
			return invalid(s,
				       "precondition: %s at %s of repetition %u is %" PRId64
				       ", the job expects %" PRId64 "..%" PRId64,
				       c->name, c->point, c->repetition, c->value, expect->min,
				       expect->max);
	}
	if (seen != wanted)
		return invalid(s, "precondition: %s at %s was reported %zu times, not %zu",
			       expect->counter, expect->point, seen, wanted);
	return true;
}

static bool mean_of(const struct kb_metric *m, uint32_t warmup, struct kb_sample *s)
{
	double sum = 0;

	if (m->count <= warmup)
		return invalid(s, "metric %s has %zu repetitions, %u of them warm-up", m->name,
			       m->count, warmup);
	for (size_t i = warmup; i < m->count; i++) {
		if (!isfinite(m->values[i]) || m->values[i] <= 0)
			return invalid(s, "metric %s is not a positive number in repetition %zu",
				       m->name, i);
		sum += m->values[i];
	}
	s->mean = sum / (double)(m->count - warmup);
	return true;
}

void kb_sample_from_record(const struct kb_boot_record *record, const struct kb_job *job,
			   struct kb_sample *ret_sample)
{
	const char *name = job->metric ? job->metric
				       : kb_workload_default_metric(job->workload_name);
	struct kb_sample *s = ret_sample;
	const struct kb_metric *m;
	const char *wanted;

	memset(s, 0, sizeof(*s));
	s->mean = s->y = NAN;
	if (record->outcome != KB_BOOT_OK) {
		invalid(s, "%s: %s", kb_boot_outcome_name(record->outcome),
			record->reason ? record->reason : "no reason recorded");
		return;
	}
	m = name ? kb_boot_record_metric(record, name) : NULL;
	if (!m) {
		invalid(s, "the guest reported no metric %s", name ? name : "(none configured)");
		return;
	}
	wanted = kb_pairs_get(&record->params, "repetitions");
	if (wanted) {
		uint64_t n;

		if (kb_parse_u64(wanted, 1, UINT32_MAX, "repetitions", &n, NULL) || n != m->count) {
			invalid(s, "%zu repetitions reported, %s asked for", m->count, wanted);
			return;
		}
	}
	for (size_t i = 0; i < job->expect_count; i++)
		if (!check_expect(&job->expects[i], record, m->count, s))
			return;
	if (!mean_of(m, job->workload_warmup, s))
		return;
	snprintf(s->unit, sizeof(s->unit), "%s", m->unit);
	s->higher_is_better = m->higher_is_better;
	s->y = m->higher_is_better ? -log(s->mean) : log(s->mean);
	s->valid = true;
}
