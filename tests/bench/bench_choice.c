/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-choice: how long choosing the next commit takes among many candidates with many
 * merges, beside `git rev-list --bisect` on a repository of the same shape. A quarter of
 * all commits merges two of the branches that grow side by side.
 *
 * usage: bench_choice [CANDIDATES [BRANCHES [GIT_LIMIT_S]]]; GIT_LIMIT_S 0 leaves git out
 */
#include <inttypes.h>
#include <sys/resource.h>
#include <time.h>

#include "bisect/pick.h"
#include "tests/component/gitfix.h"

static uint64_t rng_state = 5;

static uint32_t rng_below(uint32_t n)
{
	uint64_t z = (rng_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) % n);
}

static void branchy_dag(struct kb_dag *dag, uint32_t count, uint32_t width)
{
	KB_AUTO_FREE uint32_t *heads = kb_calloc(width, sizeof(*heads));
	uint32_t open = 1;

	kb_dag_init(dag);
	kb_dag_add(dag, NULL, 0);
	while (dag->node_count < count) {
		uint32_t left = count - dag->node_count, i = rng_below(open);

		if (open > 1 && (open > left || rng_below(4) == 0)) {
			uint32_t j = (i + 1 + rng_below(open - 1)) % open;

			heads[i] = kb_dag_add(dag, (uint32_t[]){heads[i], heads[j]}, 2);
			heads[j] = heads[--open];
		} else if (open < width && rng_below(3) == 0) {
			heads[open++] = kb_dag_add(dag, &heads[i], 1);
		} else {
			heads[i] = kb_dag_add(dag, &heads[i], 1);
		}
	}
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double peak_mib(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)usage.ru_maxrss / 1024;
}

/* The graph as a repository: mark n + 1 is node n. */
static void import_dag(const struct kb_dag *dag)
{
	FILE *in = import_begin("bench.git");

	for (uint32_t n = 0; n < dag->node_count; n++) {
		fprintf(in, "commit refs/heads/main\nmark :%u\n", n + 1);
		fprintf(in, "committer t <t@example.org> %u +0000\ndata 2\nc\n",
			1000000000 + n * 60);
		for (uint32_t i = 0; i < kb_dag_parent_count(dag, n); i++)
			fprintf(in, "%s :%u\n", i ? "merge" : "from",
				kb_dag_parent(dag, n, i) + 1);
	}
	fprintf(in, "reset refs/heads/first\nfrom :1\n");
	import_end(in);
}

static void bench_range(void)
{
	struct kb_repo *repo = open_repo("bench.git");
	struct kb_oid good = rev(repo, "first");
	struct kb_range_spec spec = {
		.goods = &good, .good_count = 1, .bad = rev(repo, "main")};
	KB_AUTO(kb_range_free) struct kb_range range;
	struct kb_error err;
	double start = now_s();

	kb_range_init(&range);
	if (kb_repo_range(repo, &spec, &range, &err)) {
		printf("%s\n", err.message);
		exit(1);
	}
	double walked = now_s();
	KB_AUTO_FREE uint8_t *excluded = kb_calloc(range.dag.node_count, 1);
	struct kb_pick pick = kb_pick_next(&range.dag, range.bad, excluded, NULL, NULL);
	printf("kbisect, from a repository: range %.3f s, choice %.3f s, peak %.0f MiB "
	       "(%u "
	       "candidates)\n",
	       walked - start, now_s() - walked, peak_mib(RUSAGE_SELF), pick.candidates);
	kb_repo_free(repo);
}

static uint64_t argument(int argc, char **argv, int which, uint64_t min,
			 uint64_t otherwise)
{
	uint64_t value = otherwise;
	struct kb_error err;

	if (which < argc &&
	    kb_parse_u64(argv[which], min, 10000000, "argument", &value, &err)) {
		fprintf(stderr,
			"%s\nusage: bench_choice [CANDIDATES [BRANCHES [GIT_LIMIT_S]]]\n",
			err.message);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	uint32_t count = (uint32_t)argument(argc, argv, 1, 3, 100000);
	uint32_t width = (uint32_t)argument(argc, argv, 2, 1, 64);
	int git_limit_s = (int)argument(argc, argv, 3, 0, 120);
	KB_AUTO(kb_dag_free) struct kb_dag dag;
	uint32_t merges = 0;

	branchy_dag(&dag, count, width);
	for (uint32_t n = 0; n < dag.node_count; n++)
		merges += kb_dag_parent_count(&dag, n) > 1;
	printf("%u candidates, %u merges, up to %u branches\n", count, merges, width);

	KB_AUTO_FREE uint8_t *excluded = kb_calloc(count, 1);
	double start = now_s();
	struct kb_pick pick = kb_pick_next(&dag, count - 1, excluded, NULL, NULL);
	printf("kbisect: choice %.3f s, peak %.0f MiB (node %u)\n", now_s() - start,
	       peak_mib(RUSAGE_SELF), pick.node);
	fflush(stdout);
	if (git_limit_s <= 0)
		return 0;

	gitfix_begin();
	import_dag(&dag);
	bench_range();
	fflush(stdout);
	start = now_s();
	sh("timeout %d git --git-dir=bench.git rev-list --bisect main ^first > chosen || "
	   "echo 'git: stopped at its limit'",
	   git_limit_s);
	printf("git rev-list --bisect: %.3f s, peak of children %.0f MiB\n",
	       now_s() - start, peak_mib(RUSAGE_CHILDREN));
	gitfix_end();
	return 0;
}
