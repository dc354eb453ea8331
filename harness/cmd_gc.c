/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect gc: trims the caches to a size. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/cache.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/workload.h"
#include "results/run.h"

#define MIB(bytes) ((bytes) / 1048576.0)

static void print_removed(void *ctx, const char *kind, const char *key, uint64_t bytes)
{
	const bool *dry_run = ctx;

	printf("%s %s/%.12s, %.1f MiB\n", *dry_run ? "would remove" : "removed", kind, key,
	       MIB((double)bytes));
}

/* A size as in job files, but 0 is fine and memory has no meaning here. */
static int parse_max_size(const char *text, uint64_t *ret_bytes, struct kb_error *err)
{
	if (kb_streq(text, "0")) {
		*ret_bytes = 0;
		return 0;
	}
	if (!strchr(text, 'x') && kb_size_parse(text, 0, "--max-size", ret_bytes, NULL) == 0)
		return 0;
	return kb_error_set(err, KB_EUSAGE,
			    "--max-size: '%s' is not a size: write 0, 512MiB or 20GiB", text);
}

static void print_totals(const struct kb_cache_totals *t, bool dry_run)
{
	printf("%s %.1f MiB in %" PRIu32 " entries; %.1f MiB in %" PRIu32 " entries are left\n",
	       dry_run ? "would free" : "freed", MIB((double)t->bytes_freed), t->entries_removed,
	       MIB((double)(t->bytes_before - t->bytes_freed)),
	       t->entries_before - t->entries_removed);
	if (t->entries_in_use)
		printf("%" PRIu32 " entries are in use and stay\n", t->entries_in_use);
}

int kb_cmd_gc(int argc, char **argv)
{
	KB_AUTO_FREE char *cache = kb_cache_dir();
	const char *max_size = "20GiB";
	struct kb_cache_totals totals = { 0 };
	bool dry_run = false, slots = false;
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "max-size", .type = KB_OPT_STRING, .target = &max_size,
		  .arg_name = "SIZE", .help = "keep at most this much, e.g. 5GiB (default 20GiB)" },
		{ .name = "slots", .type = KB_OPT_FLAG, .target = &slots,
		  .help = "also count and remove idle source and object trees; the next build of "
			  "their repository starts from scratch" },
		{ .name = "dry-run", .short_name = 'n', .type = KB_OPT_FLAG, .target = &dry_run,
		  .help = "only say what would be removed" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "gc",
		.summary = "trim the caches",
		.usage = "[--max-size SIZE] [--slots] [--dry-run]",
		.description =
			"Removes the least recently used entries of the build and boot caches until "
			"the rest fits into the size. What a running kbisect uses is never removed.",
		.opts = opts,
	};
	struct kb_cache_trim how = { .removed = print_removed, .ctx = &dry_run };
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = parse_max_size(max_size, &how.max_bytes, &err);
	how.slots = slots;
	how.dry_run = dry_run;
	if (!r)
		r = kb_cache_trim(cache, &how, &totals, &err);
	if (r)
		return kb_cmd_fail("gc", &err);
	print_totals(&totals, dry_run);
	return KB_EXIT_OK;
}
