/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trunc-bench: how long it takes to truncate files whose page cache was filled from holes
 * and partly reclaimed again.
 * Source: Jan Kara, "Truncate regression due to commit 69b6c1319b6", 2019-02-26: stage 1
 * makes sparse files and reads them, stage 2 times truncate(name, 0) of all of them. With
 * files twice as large as memory in total, stage 2 mostly meets shadow entries.
 * Metrics: trunc_ns, the total of stage 2; read_ns, of stage 1; file_q1_ns,
 * file_median_ns, file_q3_ns, the quartiles of the single truncates of a repetition.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest-init/util.h"
#include "guest-init/workload.h"

enum {
	MAX_FILES = 100000,
	NAME_SIZE = 16,
	SEQUENTIAL_READ = 1 << 20, /* as in the original */
	PAGE_READ = 4096,
	STAGE_READ = 1,
	STAGE_TRUNCATE = 2,
};

enum pattern { PATTERN_SEQUENTIAL, PATTERN_RANDOM };

struct trunc {
	uint64_t files, file_bytes, stages, repetitions, hold_open;
	unsigned pattern;
	char (*names)[NAME_SIZE]; /* owned; made before the clock runs */
	int *fds;		  /* owned; -1: closed */
	uint64_t *file_ns;	  /* owned; of each truncate of this repetition */
	char *buffer;		  /* owned */
};

static int read_params(struct kb_wl_ctx *ctx, struct trunc *t)
{
	static const char *const patterns[] = {"sequential", "random", NULL};

	if (kb_wl_u64(ctx, "files", 1, MAX_FILES, 64, &t->files) ||
	    kb_wl_u64(ctx, "file_bytes", 1, INT64_MAX, 1 << 22, &t->file_bytes) ||
	    kb_wl_u64(ctx, "stages", 1, 3, STAGE_READ | STAGE_TRUNCATE, &t->stages) ||
	    kb_wl_choice(ctx, "pattern", patterns, &t->pattern) ||
	    kb_wl_u64(ctx, "hold_open", 0, 1, 1, &t->hold_open) ||
	    kb_wl_u64(ctx, "repetitions", 1, 10000, 3, &t->repetitions))
		return -1;
	return kb_wl_params_done(ctx);
}

static int prepare(struct kb_wl_ctx *ctx, struct trunc *t)
{
	struct rlimit limit = {t->files + 64, t->files + 64};

	t->names = calloc(t->files, sizeof(*t->names));
	t->fds = calloc(t->files, sizeof(*t->fds));
	t->file_ns = malloc(t->files * sizeof(*t->file_ns));
	/* Touched here, or the first repetition alone would pay for its page faults. */
	t->buffer = malloc(SEQUENTIAL_READ);
	if (!t->names || !t->fds || !t->file_ns || !t->buffer)
		return kb_wl_fail(ctx, ENOMEM, "cannot prepare");
	memset(t->buffer, 1, SEQUENTIAL_READ);
	memset(t->file_ns, 1, t->files * sizeof(*t->file_ns));
	for (uint64_t i = 0; i < t->files; i++) {
		snprintf(t->names[i], NAME_SIZE, "trunc%06u", (unsigned)i);
		t->fds[i] = -1;
	}
	if (t->hold_open && t->files + 64 > 1024 && setrlimit(RLIMIT_NOFILE, &limit))
		return kb_wl_fail(ctx, errno, "cannot hold %u files open",
				  (unsigned)t->files);
	return 0;
}

static void close_one(struct trunc *t, uint64_t i)
{
	if (t->fds[i] >= 0)
		close(t->fds[i]);
	t->fds[i] = -1;
}

/* Fills the page cache. The offsets ascend in both patterns: what "random" changes is
 * that the kernel reads no further than it is asked, a page at a time. */
static int read_whole(struct kb_wl_ctx *ctx, struct trunc *t, uint64_t i)
{
	size_t step = t->pattern == PATTERN_RANDOM ? PAGE_READ : SEQUENTIAL_READ;
	uint64_t done = 0;

	if (t->pattern == PATTERN_RANDOM) {
		int r = posix_fadvise(t->fds[i], 0, 0, POSIX_FADV_RANDOM);

		if (r)
			return kb_wl_fail(ctx, r, "posix_fadvise %s", t->names[i]);
	}
	while (done < t->file_bytes) {
		ssize_t n = read(t->fds[i], t->buffer, step);

		if (n < 0)
			return kb_wl_fail(ctx, errno, "read %s", t->names[i]);
		if (n == 0)
			break;
		done += (uint64_t)n;
	}
	if (done != t->file_bytes)
		return kb_wl_fail(ctx, 0, "read %s: %llu bytes instead of %llu",
				  t->names[i], (unsigned long long)done,
				  (unsigned long long)t->file_bytes);
	return 0;
}

/* Makes the sparse files, and reads them when stage 1 is wanted. */
static int fill(struct kb_wl_ctx *ctx, struct trunc *t)
{
	for (uint64_t i = 0; i < t->files; i++) {
		t->fds[i] =
			open(t->names[i], O_RDWR | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
		if (t->fds[i] < 0)
			return kb_wl_fail(ctx, errno, "open %s", t->names[i]);
		if (ftruncate(t->fds[i], (off_t)t->file_bytes))
			return kb_wl_fail(ctx, errno, "ftruncate %s", t->names[i]);
		if ((t->stages & STAGE_READ) && read_whole(ctx, t, i))
			return -1;
		if (!t->hold_open)
			close_one(t, i);
	}
	return 0;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Some files were reclaimed as a whole, some are cached as a whole. How many there are of
 * each depends on where kswapd stopped, which moves the total by some per cent and the
 * quartiles hardly at all. */
static void report_files(struct kb_wl_ctx *ctx, struct trunc *t)
{
	static const char *const names[] = {"file_q1_ns", "file_median_ns", "file_q3_ns"};

	qsort(t->file_ns, t->files, sizeof(*t->file_ns), compare_ns);
	for (unsigned q = 1; q <= 3; q++)
		kb_wl_metric(ctx, names[q - 1], "ns", KB_LOWER,
			     (double)t->file_ns[(t->files - 1) * q / 4]);
}

static int truncate_all(struct kb_wl_ctx *ctx, struct trunc *t)
{
	uint64_t i, last, now;
	int error = 0;

	kb_wl_start(ctx);
	last = kb_util_mono_ns();
	for (i = 0; i < t->files; i++) {
		if (truncate(t->names[i], 0)) {
			error = errno;
			break;
		}
		now = kb_util_mono_ns();
		t->file_ns[i] = now - last;
		last = now;
	}
	uint64_t elapsed = kb_wl_stop(ctx);

	if (error)
		return kb_wl_fail(ctx, error, "truncate %s", t->names[i]);
	kb_wl_metric(ctx, "trunc_ns", "ns", KB_LOWER, (double)elapsed);
	report_files(ctx, t);
	return 0;
}

/* Back to an empty, clean file system with nothing of ours in memory: what a repetition
 * leaves behind (dirty log, inodes waiting to be inactivated) would be paid by the next.
 */
static int clean_up(struct kb_wl_ctx *ctx, struct trunc *t)
{
	for (uint64_t i = 0; i < t->files; i++) {
		close_one(t, i);
		if (unlink(t->names[i]))
			return kb_wl_fail(ctx, errno, "unlink %s", t->names[i]);
	}
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || syncfs(dir)) {
		int saved = errno;

		if (dir >= 0)
			close(dir);
		return kb_wl_fail(ctx, saved, "syncfs");
	}
	close(dir);
	return 0;
}

static int repeat(struct kb_wl_ctx *ctx, struct trunc *t)
{
	uint64_t begin_ns = kb_util_mono_ns();

	if (fill(ctx, t))
		return -1;
	kb_wl_metric(ctx, "read_ns", "ns", KB_LOWER,
		     (double)(kb_util_mono_ns() - begin_ns));
	if ((t->stages & STAGE_TRUNCATE) && truncate_all(ctx, t))
		return -1;
	return clean_up(ctx, t);
}

static int run_trunc(struct kb_wl_ctx *ctx)
{
	struct trunc t = {0};
	int r = read_params(ctx, &t);

	if (!r)
		r = prepare(ctx, &t);
	for (uint64_t i = 0; !r && i < t.repetitions; i++)
		r = repeat(ctx, &t);
	free(t.names);
	free(t.fds);
	free(t.file_ns);
	free(t.buffer);
	return r;
}

const struct kb_workload kb_wl_trunc = {.name = "trunc", .run = run_trunc};
