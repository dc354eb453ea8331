/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/counters.h"

#include <stdlib.h>
#include <string.h>

#include "guest-init/util.h"

/* In the image rather than on the heap: taking a snapshot should not move the memory it
 * looks at. /proc/slabinfo is the largest, some 20 KiB. */
static char proc_text[96 << 10];

/* A '*' at the end stands for any rest. */
static const char *const vmstat_names[] = {
	"workingset_*",
	"pgscan*",
	"pgsteal*",
	"allocstall*",
	"nr_inactive_file",
	"nr_active_file",
	"pgfault",
	"pgmajfault",
	"nr_dirty",
	"nr_writeback",
	"nr_free_pages",
	"nr_file_pages",
	"slabs_scanned",
	"pginodesteal",
	"kswapd_inodesteal",
	"compact_stall",
	"oom_kill",
	"nr_slab_reclaimable",
	NULL,
};
static const char *const meminfo_names[] = {"MemFree", "MemAvailable", "Cached", "Slab",
					    NULL};
static const char *const slab_names[] = {"radix_tree_node", "xfs_inode", NULL};

static bool wanted(const char *name, const char *const *list)
{
	for (; *list; list++) {
		size_t len = strlen(*list);

		if ((*list)[len - 1] == '*' ? !strncmp(name, *list, len - 1)
					    : !strcmp(name, *list))
			return true;
	}
	return false;
}

/* "Active(anon):" becomes "Active_anon". False when nothing usable is left. */
static bool clean_name(char *dest, size_t size, const char *from, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		char c[2] = {from[i], '\0'};

		if (kb_util_is_name(c))
			dest[n++] = from[i];
		else if (n && dest[n - 1] != '_')
			dest[n++] = '_';
	}
	while (n && dest[n - 1] == '_')
		n--;
	dest[n] = '\0';
	return n > 0;
}

static void format_line(FILE *out, const char *point, unsigned repetition,
			enum kb_counters_source source, const char *line, bool all)
{
	static const char *const formats[] = {
		[KB_COUNTERS_VMSTAT] = "counter %s %u %s %lld\n",
		[KB_COUNTERS_MEMINFO] = "counter %s %u meminfo.%s %lld\n",
		[KB_COUNTERS_SLABINFO] = "counter %s %u slab.%s.active_objs %lld\n",
	};
	static const char *const *const lists[] = {
		[KB_COUNTERS_VMSTAT] = vmstat_names,
		[KB_COUNTERS_MEMINFO] = meminfo_names,
		[KB_COUNTERS_SLABINFO] = slab_names,
	};
	size_t len = strcspn(line, " \t\n");
	char name[44]; /* the longest format leaves room for it in a NAME */
	char *end;

	if (!clean_name(name, sizeof(name), line, len))
		return;
	/* Of the slabs, a hundred small caches are of no interest at any time. */
	if ((!all || source == KB_COUNTERS_SLABINFO) && !wanted(name, lists[source]))
		return;
	long long value = strtoll(line + len, &end, 10);
	if (end == line + len)
		return; /* a heading */
	fprintf(out, formats[source], point, repetition, name, value);
}

void kb_counters_format(FILE *out, const char *point, unsigned repetition,
			enum kb_counters_source source, const char *text, bool all)
{
	while (*text) {
		format_line(out, point, repetition, source, text, all);
		text += strcspn(text, "\n");
		if (*text)
			text++;
	}
}

void kb_counters_write(FILE *out, const char *point, unsigned repetition, bool all)
{
	static const struct {
		enum kb_counters_source source;
		const char *path;
	} files[] = {
		{KB_COUNTERS_VMSTAT, "/proc/vmstat"},
		{KB_COUNTERS_MEMINFO, "/proc/meminfo"},
		{KB_COUNTERS_SLABINFO, "/proc/slabinfo"},
	};

	/* Counters are kept per CPU and folded together once a second; reading this file
	 * folds them now (since 4.8), so that the numbers don't depend on the last fold.
	 */
	(void)kb_util_read_file("/proc/sys/vm/stat_refresh", proc_text,
				sizeof(proc_text));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (kb_util_read_file(files[i].path, proc_text, sizeof(proc_text)) > 0)
			kb_counters_format(out, point, repetition, files[i].source,
					   proc_text, all);
}

int64_t kb_counters_vmstat(const char *name)
{
	size_t len = strlen(name);
	const char *line = proc_text;

	if (kb_util_read_file("/proc/vmstat", proc_text, sizeof(proc_text)) <= 0)
		return -1;
	while (line) {
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoll(line + len, NULL, 10);
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return -1;
}
