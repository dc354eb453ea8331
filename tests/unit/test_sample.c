/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

static double values[3] = { 900, 1000, 1100 };
static struct kb_metric metric = { .name = (char *)"trunc_ns", .unit = (char *)"ns",
				   .values = values, .count = 3 };
static struct kb_counter counters[3];

static struct kb_boot_record good_record(void)
{
	struct kb_boot_record r = { .outcome = KB_BOOT_OK, .metrics = &metric, .metric_count = 1,
				    .counters = counters, .counter_count = 3 };

	for (uint32_t i = 0; i < 3; i++)
		counters[i] = (struct kb_counter){ .point = (char *)"start", .repetition = i,
						   .name = (char *)"workingset_nodes",
						   .value = 600 };
	values[0] = 900;
	values[1] = 1000;
	values[2] = 1100;
	metric.higher_is_better = false;
	metric.count = 3;
	return r;
}

static struct kb_expect nodes = { .counter = (char *)"workingset_nodes",
				  .point = (char *)"start", .min = 500, .max = 700 };

static struct kb_job job_with(struct kb_expect *expect)
{
	return (struct kb_job){ .workload_name = (char *)"trunc", .metric = (char *)"trunc_ns",
				.expects = expect, .expect_count = expect ? 1 : 0 };
}

static void valid_boot_gives_the_log_of_the_mean(void)
{
	struct kb_boot_record r = good_record();
	struct kb_job job = job_with(&nodes);
	struct kb_sample s;

	kb_sample_from_record(&r, &job, &s);
	ok(s.valid, "a boot that keeps every promise is valid: %s", s.reason);
	is_double(s.mean, 1000, 1e-9, "mean over the repetitions");
	is_double(s.y, log(1000), 1e-12, "y is its logarithm");
	is_str(s.unit, "ns", "with the unit");
	job.workload_warmup = 1;
	kb_sample_from_record(&r, &job, &s);
	is_double(s.mean, 1050, 1e-9, "warm-up repetitions are dropped");
	metric.higher_is_better = true;
	kb_sample_from_record(&r, &job, &s);
	is_double(s.y, -log(1050), 1e-12, "higher is better: the sign turns, larger y is worse");
}

static void is_invalid(const struct kb_boot_record *r, const struct kb_job *job,
		       const char *needle, const char *what)
{
	struct kb_sample s;

	kb_sample_from_record(r, job, &s);
	ok(!s.valid && strstr(s.reason, needle), "%s (%s)", what, s.reason);
	ok(isnan(s.y), "%s: no number", what);
}

static void whatever_is_wrong_makes_it_invalid(void)
{
	struct kb_boot_record r = good_record();
	struct kb_job job = job_with(&nodes);
	struct kb_pair echoed = { (char *)"repetitions", (char *)"4" };

	r.outcome = KB_BOOT_PANIC;
	r.reason = (char *)"it fell over";
	is_invalid(&r, &job, "it fell over", "another outcome than ok");
	r = good_record();
	counters[1].value = 499;
	is_invalid(&r, &job, "repetition 1 is 499", "one repetition below the expected range");
	r = good_record();
	counters[2].value = 701;
	is_invalid(&r, &job, "701", "one repetition above it");
	r = good_record();
	r.counter_count = 2;
	is_invalid(&r, &job, "2 times, not 3", "a repetition whose counter is missing");
	r = good_record();
	r.counter_count = 0;
	is_invalid(&r, &job, "0 times", "a precondition that was not seen at all");
	r = good_record();
	values[1] = NAN;
	is_invalid(&r, &job, "not a positive number", "NaN");
	r = good_record();
	values[1] = 0;
	is_invalid(&r, &job, "not a positive number", "zero");
	r = good_record();
	job.metric = (char *)"read_ns";
	is_invalid(&r, &job, "no metric read_ns", "the deciding metric is missing");
	job = job_with(NULL);
	r.params.items = &echoed;
	r.params.count = 1;
	is_invalid(&r, &job, "3 repetitions reported, 4 asked for", "repetitions lost");
	r = good_record();
	job.workload_warmup = 3;
	is_invalid(&r, &job, "warm-up", "nothing left after warm-up");
}

int main(void)
{
	valid_boot_gives_the_log_of_the_mean();
	whatever_is_wrong_makes_it_invalid();
	return tap_done();
}
