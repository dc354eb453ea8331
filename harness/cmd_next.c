/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect next: the choice of the next commit as plumbing, without any state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/pick.h"
#include "bisect/repo.h"
#include "harness/base/mem.h"
#include "harness/cmd.h"
#include "harness/opts.h"

struct next_opts {
	const char *repo, *bad;
	struct kb_strv goods, skips, paths;
	bool first_parent, ancestors_ok;
};

static void next_opts_free(struct next_opts *o)
{
	kb_strv_free(&o->goods);
	kb_strv_free(&o->skips);
	kb_strv_free(&o->paths);
}

static void free_repo(struct kb_repo **repo)
{
	kb_repo_free(*repo);
}

static int resolve_all(struct kb_repo *repo, const struct kb_strv *specs,
		       struct kb_oid *ret_oids, struct kb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < specs->count && !r; i++)
		r = kb_repo_resolve(repo, specs->items[i], &ret_oids[i], err);
	return r;
}

static bool is_among(const struct kb_oid *oids, size_t count, const struct kb_oid *oid)
{
	for (size_t i = 0; i < count; i++) {
		if (kb_streq(oids[i].hex, oid->hex))
			return true;
	}
	return false;
}

/*
 * When a good commit lies on another branch, good and bad only mean something once their
 * common ancestor is known to be good.
 * @return 1 when there is one to test (*ret_base), 0 when not
 */
static int find_base(struct kb_repo *repo, const struct kb_range_spec *spec,
		     const struct kb_oid *skips, size_t skip_count,
		     struct kb_oid *ret_base, struct kb_error *err)
{
	KB_AUTO_FREE struct kb_oid *bases = NULL;
	size_t count = 0;
	bool all_ancestors = true;

	for (size_t i = 0; i < spec->good_count; i++)
		all_ancestors &= kb_repo_is_ancestor(repo, &spec->goods[i], &spec->bad);
	if (all_ancestors)
		return 0;

	int r = kb_repo_merge_bases_many(repo, &spec->bad, spec->goods, spec->good_count,
					 &bases, &count, err);
	for (size_t i = 0; i < count && !r; i++) {
		if (is_among(spec->goods, spec->good_count, &bases[i]))
			continue;
		if (is_among(skips, skip_count, &bases[i])) {
			fprintf(stderr,
				"kbisect next: the common ancestor %.12s is skipped: it "
				"is taken "
				"for good, untested\n",
				bases[i].hex);
			continue;
		}
		*ret_base = bases[i];
		r = 1;
	}
	return r;
}

static void print_pick(const struct kb_range *range, const uint8_t *excluded,
		       struct kb_pick pick)
{
	if (pick.only_skipped) {
		for (uint32_t n = 0; n < range->dag.node_count; n++) {
			if (!excluded[n] &&
			    (!range->interesting || range->interesting[n]))
				printf("candidate %s\n", range->oids[n].hex);
		}
		printf("candidates %u\n", pick.candidates);
		return;
	}

	uint32_t node = pick.node;
	/* A single candidate is the answer, which need not be the bad commit given. */
	for (uint32_t n = 0; n < range->dag.node_count && node == UINT32_MAX; n++) {
		if (!range->interesting || range->interesting[n])
			node = n;
	}
	printf("commit %s\ncandidates %u\nsteps %u\n", range->oids[node].hex,
	       pick.candidates, pick.steps);
}

static int next(const struct next_opts *o, bool *ret_only_skipped, struct kb_error *err)
{
	KB_AUTO(free_repo) struct kb_repo *repo = NULL;
	KB_AUTO(kb_range_free) struct kb_range range;
	KB_AUTO_FREE struct kb_oid *goods = kb_calloc(o->goods.count, sizeof(*goods));
	KB_AUTO_FREE struct kb_oid *skips = kb_calloc(o->skips.count, sizeof(*skips));
	struct kb_range_spec spec = {.goods = goods,
				     .good_count = o->goods.count,
				     .first_parent = o->first_parent,
				     .paths = &o->paths};
	struct kb_oid base;
	int r;

	kb_range_init(&range);
	r = kb_repo_open(o->repo, &repo, err);
	if (!r)
		r = resolve_all(repo, &o->goods, goods, err);
	if (!r)
		r = kb_repo_resolve(repo, o->bad, &spec.bad, err);
	if (!r)
		r = resolve_all(repo, &o->skips, skips, err);
	if (!r)
		r = kb_repo_range(repo, &spec, &range, err);
	if (!r && !o->ancestors_ok)
		r = find_base(repo, &spec, skips, o->skips.count, &base, err);
	if (r < 0)
		return r;

	uint32_t count = range.dag.node_count;
	KB_AUTO_FREE uint8_t *excluded = kb_calloc(count, 1);
	KB_AUTO_FREE uint8_t *skipped = kb_calloc(count, 1);
	for (size_t i = 0; i < o->skips.count; i++) {
		uint32_t node = kb_range_find(&range, &skips[i]);

		if (node != UINT32_MAX)
			skipped[node] = 1;
	}
	struct kb_pick pick =
		kb_pick_next(&range.dag, range.bad, excluded, skipped, range.interesting);
	if (r == 1) {
		printf("commit %s\ncandidates %u\nsteps %u\nmerge-base 1\n", base.hex,
		       pick.candidates, pick.steps);
		return 0;
	}
	print_pick(&range, excluded, pick);
	*ret_only_skipped = pick.only_skipped;
	return 0;
}

int kb_cmd_next(int argc, char **argv)
{
	KB_AUTO(next_opts_free) struct next_opts o = {.repo = "."};
	bool only_skipped = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{.name = "repo",
		 .short_name = 'C',
		 .type = KB_OPT_STRING,
		 .target = &o.repo,
		 .arg_name = "DIR",
		 .help = "git repository (default: .)"},
		{.name = "good",
		 .short_name = 'g',
		 .type = KB_OPT_LIST,
		 .target = &o.goods,
		 .arg_name = "REV",
		 .help = "a good commit; may be repeated"},
		{.name = "bad",
		 .short_name = 'b',
		 .type = KB_OPT_STRING,
		 .target = &o.bad,
		 .arg_name = "REV",
		 .help = "the bad commit"},
		{.name = "skip",
		 .type = KB_OPT_LIST,
		 .target = &o.skips,
		 .arg_name = "REV",
		 .help = "a commit that can't be tested; may be repeated"},
		{.name = "first-parent",
		 .type = KB_OPT_FLAG,
		 .target = &o.first_parent,
		 .help = "follow only the first parent of merges"},
		{.name = "ancestors-ok",
		 .type = KB_OPT_FLAG,
		 .target = &o.ancestors_ok,
		 .help = "do not ask for a common ancestor of good and bad: this was "
			 "settled "
			 "before (git bisect asks once, at its start)"},
		{0},
	};
	const struct kb_command cmd = {
		.name = "next",
		.summary = "print the commit to test next (plumbing)",
		.usage =
			"--repo DIR --good REV... --bad REV [--skip REV]... [-- PATH...]",
		.description =
			"Prints, one `key value` per line: `commit` to test, "
			"`candidates` left (the "
			"bad commit counts) and the estimated `steps` after this one. "
			"With one "
			"candidate left, `commit` is the answer. `merge-base 1` says "
			"that the commit "
			"is the common ancestor of good and bad, to be tested first.\n\n"
			"When everything left to test is skipped, each remaining commit "
			"is printed "
			"as `candidate` and the exit code is 3.",
		.opts = opts,
		.takes_paths = true,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, &o.paths, &err);

	if (r == 1)
		return KB_EXIT_OK;
	if (!r && (o.goods.count == 0 || !o.bad))
		r = kb_error_set(&err, KB_EUSAGE, "--good and --bad are both needed");
	if (!r)
		r = next(&o, &only_skipped, &err);
	if (r)
		return kb_cmd_fail("next", &err);
	return only_skipped ? KB_EXIT_SET : KB_EXIT_OK;
}
