/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/wl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "guest-init/counters.h"
#include "guest-init/util.h"

enum { MAX_METRICS = 64, MAX_NOTES = 100, MAX_LINE = 900 };

struct metric {
	char name[KB_PROTO_NAME_MAX + 1], unit[KB_PROTO_NAME_MAX + 1];
	enum kb_better better;
	double *values; /* owned */
	size_t count, cap;
};

struct usage {
	struct rusage ru;
	uint64_t cpu_ns, mono_ns;
};

struct kb_wl_ctx {
	const struct kb_wl_param *params;
	size_t param_count;
	bool param_used[KB_PARAMS_WL_MAX];
	const char *dir;
	FILE *out;
	struct metric metrics[MAX_METRICS];
	size_t metric_count;
	unsigned repetition, notes;
	struct usage start;
	struct kb_wl_verdict *verdict;
};

/* ---- saying things ---- */

int kb_wl_fail(struct kb_wl_ctx *ctx, int errno_value, const char *fmt, ...)
{
	char text[MAX_LINE];
	va_list ap;

	if (ctx->verdict->failed)
		return -1; /* the first cause is the one to tell */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ctx->verdict->failed = true;
	ctx->verdict->errno_value = errno_value;
	kb_util_clean(ctx->verdict->text, sizeof(ctx->verdict->text), text);
	return -1;
}

static void say(struct kb_wl_ctx *ctx, const char *word, const char *fmt, va_list ap)
{
	char text[MAX_LINE], clean[MAX_LINE];

	if (ctx->notes++ >= MAX_NOTES)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	kb_util_clean(clean, sizeof(clean), text);
	fprintf(ctx->out, "%s %s\n", word, *clean ? clean : "-");
}

void kb_wl_note(struct kb_wl_ctx *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(ctx, "note", fmt, ap);
	va_end(ap);
}

void kb_wl_invalid(struct kb_wl_ctx *ctx, const char *fmt, ...)
{
	va_list ap;

	if (ctx->notes >= MAX_NOTES) /* must not be lost among notes */
		ctx->notes = MAX_NOTES - 1;
	va_start(ap, fmt);
	say(ctx, "invalid", fmt, ap);
	va_end(ap);
}

void kb_wl_set_order(struct kb_wl_ctx *ctx, enum kb_wl_order order)
{
	ctx->verdict->order = order;
}

const char *kb_wl_dir(const struct kb_wl_ctx *ctx)
{
	return ctx->dir;
}

/* ---- parameters ---- */

static const char *lookup(struct kb_wl_ctx *ctx, const char *name)
{
	for (size_t i = 0; i < ctx->param_count; i++) {
		if (strcmp(ctx->params[i].name, name))
			continue;
		ctx->param_used[i] = true;
		return ctx->params[i].value;
	}
	return NULL;
}

const char *kb_wl_str(struct kb_wl_ctx *ctx, const char *name, const char *fallback)
{
	const char *given = lookup(ctx, name), *value = given ? given : fallback;

	fprintf(ctx->out, "param %s %s\n", name, value);
	return value;
}

int kb_wl_u64(struct kb_wl_ctx *ctx, const char *name, uint64_t min, uint64_t max,
	      uint64_t fallback, uint64_t *ret_value)
{
	const char *given = lookup(ctx, name);
	uint64_t value = fallback;

	if (given && !kb_util_u64(given, min, max, &value))
		return kb_wl_fail(
			ctx, 0, "param.%s is \"%s\", not a number from %llu to %llu",
			name, given, (unsigned long long)min, (unsigned long long)max);
	fprintf(ctx->out, "param %s %llu\n", name, (unsigned long long)value);
	*ret_value = value;
	return 0;
}

int kb_wl_choice(struct kb_wl_ctx *ctx, const char *name, const char *const *words,
		 unsigned *ret_index)
{
	const char *given = kb_wl_str(ctx, name, words[0]);

	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(words[i], given))
			continue;
		*ret_index = i;
		return 0;
	}
	return kb_wl_fail(ctx, 0, "param.%s can't be \"%s\"", name, given);
}

int kb_wl_params_done(struct kb_wl_ctx *ctx)
{
	for (size_t i = 0; i < ctx->param_count; i++)
		if (!ctx->param_used[i])
			return kb_wl_fail(ctx, 0, "the workload has no parameter \"%s\"",
					  ctx->params[i].name);
	return ctx->verdict->failed ? -1 : 0;
}

/* ---- measuring ---- */

void kb_wl_metric(struct kb_wl_ctx *ctx, const char *name, const char *unit,
		  enum kb_better better, double value)
{
	struct metric *m = NULL;

	if (!__builtin_isfinite(value) || !kb_util_is_name(name) ||
	    !kb_util_is_name(unit)) {
		kb_wl_fail(ctx, 0, "metric \"%s\": malformed, or not a finite number",
			   name);
		return;
	}
	for (size_t i = 0; i < ctx->metric_count; i++)
		if (!strcmp(ctx->metrics[i].name, name))
			m = &ctx->metrics[i];
	if (!m) {
		if (ctx->metric_count == MAX_METRICS) {
			kb_wl_fail(ctx, 0, "too many metrics");
			return;
		}
		m = &ctx->metrics[ctx->metric_count++];
		strcpy(m->name, name);
		strcpy(m->unit, unit);
		m->better = better;
	}
	if (m->count == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 64;
		double *values = reallocarray(m->values, cap, sizeof(*values));

		if (!values) {
			kb_wl_fail(ctx, ENOMEM, "metric \"%s\"", name);
			return;
		}
		m->values = values;
		m->cap = cap;
	}
	m->values[m->count++] = value;
}

static void look(struct usage *u)
{
	struct timespec ts;

	getrusage(RUSAGE_SELF, &u->ru);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	u->cpu_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	u->mono_ns = kb_util_mono_ns();
}

void kb_wl_start(struct kb_wl_ctx *ctx)
{
	ctx->repetition++;
	kb_counters_write(ctx->out, "start", ctx->repetition, false);
	look(&ctx->start);
	kb_wl_marker();
}

static double tv_ns(const struct timeval *from, const struct timeval *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e9 +
	       (double)(to->tv_usec - from->tv_usec) * 1e3;
}

uint64_t kb_wl_stop(struct kb_wl_ctx *ctx)
{
	kb_wl_marker();
	uint64_t end_ns = kb_util_mono_ns();
	struct usage stop;
	look(&stop);

	const struct rusage *a = &ctx->start.ru, *b = &stop.ru;
	const struct {
		const char *name, *unit;
		double value;
	} used[] = {
		{"user_ns", "ns", tv_ns(&a->ru_utime, &b->ru_utime)},
		{"sys_ns", "ns", tv_ns(&a->ru_stime, &b->ru_stime)},
		{"cpu_ns", "ns", (double)(stop.cpu_ns - ctx->start.cpu_ns)},
		{"minor_faults", "count", (double)(b->ru_minflt - a->ru_minflt)},
		{"major_faults", "count", (double)(b->ru_majflt - a->ru_majflt)},
		{"voluntary_switches", "count", (double)(b->ru_nvcsw - a->ru_nvcsw)},
		{"involuntary_switches", "count", (double)(b->ru_nivcsw - a->ru_nivcsw)},
	};
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		kb_wl_metric(ctx, used[i].name, used[i].unit, KB_LOWER, used[i].value);
	kb_counters_write(ctx->out, "stop", ctx->repetition, false);
	return end_ns - ctx->start.mono_ns;
}

/* ---- execution ---- */

static void write_metrics(struct kb_wl_ctx *ctx)
{
	for (size_t i = 0; i < ctx->metric_count; i++) {
		struct metric *m = &ctx->metrics[i];

		fprintf(ctx->out, "metric %s %s %s", m->name, m->unit,
			m->better == KB_LOWER ? "lower" : "higher");
		for (size_t j = 0; j < m->count; j++) {
			double v = m->values[j];

			/* Whole numbers in full: nanoseconds must not lose digits. */
			bool whole = v > -9e15 && v < 9e15 && (double)(int64_t)v == v;
			fprintf(ctx->out, whole ? " %.0f" : " %.9g", v);
		}
		fputc('\n', ctx->out);
		free(m->values);
	}
}

void kb_wl_execute(const struct kb_workload *w, const struct kb_wl_param *params,
		   size_t param_count, const char *dir, FILE *out,
		   struct kb_wl_verdict *ret_verdict)
{
	struct kb_wl_ctx ctx = {
		.params = params,
		.param_count = param_count,
		.dir = dir,
		.out = out,
		.verdict = ret_verdict,
	};

	*ret_verdict = (struct kb_wl_verdict){0};
	if (chdir(dir))
		kb_wl_fail(&ctx, errno, "cannot enter %s", dir);
	else if (w->run(&ctx) && !ret_verdict->failed)
		kb_wl_fail(&ctx, 0, "the workload failed without saying why");
	write_metrics(&ctx);
}
