/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect gc: trims the caches to a size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/cache.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "results/run.h"

#define MAX_SIZE_DEFAULT "20GiB"

/* "20GiB", "500MiB", "0": a cache has no use for finer units. */
static int parse_size(const char *text, uint64_t *ret_bytes, struct kb_error *err)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = { { "GiB", 30 }, { "MiB", 20 }, { "KiB", 10 }, { "", 0 } };

	for (size_t i = 0; i < KB_COUNT_OF(units); i++) {
		uint64_t number;

		if (!kb_ends_with(text, units[i].suffix))
			continue;
		KB_AUTO_FREE char *digits =
			kb_strndup(text, strlen(text) - strlen(units[i].suffix));
		if (kb_parse_u64(digits, 0, UINT64_MAX >> units[i].shift, "size", &number, NULL))
			break;
		*ret_bytes = number << units[i].shift;
		return 0;
	}
	return kb_error_set(err, KB_EUSAGE, "--max-size wants e.g. 20GiB or 500MiB, not '%s'", text);
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_removed(void *ctx, const char *kind, const char *key, uint64_t bytes)
{
	printf("%s %s/%.16s %.1f MiB\n", *(const bool *)ctx ? "would remove" : "removed", kind,
	       key, mib(bytes));
}

int kb_cmd_gc(int argc, char **argv)
{
	const char *max_size = MAX_SIZE_DEFAULT;
	KB_AUTO_FREE char *cache = kb_cache_dir();
	struct kb_cache_trim how = { .removed = print_removed };
	struct kb_cache_totals totals = { 0 };
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "max-size", .type = KB_OPT_STRING, .target = &max_size,
		  .arg_name = "SIZE", .help = "what may stay (default " MAX_SIZE_DEFAULT ")" },
		{ .name = "slots", .type = KB_OPT_FLAG, .target = &how.slots,
		  .help = "source and object trees count too; the next build of such a "
			  "repository is then a full one" },
		{ .name = "dry-run", .short_name = 'n', .type = KB_OPT_FLAG,
		  .target = &how.dry_run, .help = "only say what would go" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "gc",
		.summary = "trim the caches of builds and boots to a size",
		.usage = "[--max-size SIZE] [--slots] [--dry-run]",
		.description = "Removes what was used longest ago first, and never what is in use. "
			       "Nothing is lost but time: whatever is removed is built or booted "
			       "again when it is needed. Runs and their records are not touched.",
		.opts = opts,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	how.ctx = &how.dry_run;
	if (!r)
		r = parse_size(max_size, &how.max_bytes, &err);
	if (!r)
		r = kb_cache_trim(cache, &how, &totals, &err);
	if (r)
		return kb_cmd_fail("gc", &err);
	printf("%.1f MiB in %" PRIu32 " entries; %s %.1f MiB in %" PRIu32 "; %" PRIu32 " in use\n",
	       mib(totals.bytes_before), totals.entries_before,
	       how.dry_run ? "would free" : "freed", mib(totals.bytes_freed),
	       totals.entries_removed, totals.entries_in_use);
	return KB_EXIT_OK;
}
