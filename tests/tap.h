/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Test Anything Protocol in one header. The plan is printed at the end, by tap_done(). */
#ifndef KB_TESTS_TAP_H
#define KB_TESTS_TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed, tap_skipped;

__attribute__((format(printf, 4, 0), unused)) static bool
tap_result(bool passed, const char *file, int line, const char *fmt, va_list ap)
{
	printf("%s %d - ", passed ? "ok" : "not ok", ++tap_count);
	vprintf(fmt, ap);
	putchar('\n');
	if (!passed) {
		tap_failed++;
		fflush(stdout);
		fprintf(stderr, "# failed at %s:%d: ", file, line);
	}
	fflush(stdout);
	return passed;
}

__attribute__((format(printf, 4, 5), unused)) static bool
tap_ok(bool passed, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(passed, file, line, fmt, ap))
		fprintf(stderr, "condition is false\n");
	va_end(ap);
	return passed;
}

__attribute__((format(printf, 5, 6), unused)) static bool
tap_is_int(long long got, long long want, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(got == want, file, line, fmt, ap))
		fprintf(stderr, "got %lld, want %lld\n", got, want);
	va_end(ap);
	return got == want;
}

__attribute__((format(printf, 5, 6), unused)) static bool
tap_is_str(const char *got, const char *want, const char *file, int line, const char *fmt, ...)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(same, file, line, fmt, ap))
		fprintf(stderr, "got  \"%s\"\n# want \"%s\"\n", got ? got : "(null)",
			want ? want : "(null)");
	va_end(ap);
	return same;
}

/* NAN equals NAN; an infinity equals itself. */
__attribute__((format(printf, 6, 7), unused)) static bool
tap_is_double(double got, double want, double tol, const char *file, int line,
	      const char *fmt, ...)
{
	bool same = (isnan(got) && isnan(want)) ||
		    (isinf(got) && isinf(want) && (got > 0) == (want > 0)) ||
		    fabs(got - want) <= tol;
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(same, file, line, fmt, ap))
		fprintf(stderr, "got %.17g, want %.17g within %g\n", got, want, tol);
	va_end(ap);
	return same;
}

/* A skipped test is counted and named on stderr: it must not pass for a silent success. */
__attribute__((unused)) static void tap_skip(const char *why)
{
	tap_skipped++;
	printf("ok %d # SKIP %s\n", ++tap_count, why);
	fflush(stdout);
	fprintf(stderr, "# SKIPPED: %s\n", why);
}

__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	if (tap_skipped)
		printf("# skipped %d of %d\n", tap_skipped, tap_count);
	if (tap_failed)
		printf("# failed %d of %d\n", tap_failed, tap_count);
	fflush(stdout);
	return tap_failed || tap_count == 0;
}

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...) \
	tap_is_int((long long)(got), (long long)(want), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...) tap_is_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define is_double(got, want, tol, ...) \
	tap_is_double((got), (want), (tol), __FILE__, __LINE__, __VA_ARGS__)
#define skip(why) tap_skip(why)

#endif
