/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/workload.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/base/str.h"

#define PAGE_BYTES 4096u
#define SIZE_MAX_BYTES (UINT64_C(1) << 50)
#define MIB (UINT64_C(1) << 20)

/* ---- sizes ---- */

static bool is_multiple_of_memory(const char *text)
{
	return kb_ends_with(text, "x memory");
}

static int parse_memory_multiple(const char *text, uint64_t memory_bytes, const char *what,
				 uint64_t *ret_bytes, struct kb_error *err)
{
	KB_AUTO_FREE char *number = kb_strndup(text, strlen(text) - strlen("x memory"));
	double factor;
	int r = kb_parse_double(number, what, &factor, err);

	if (r)
		return r;
	double bytes = factor * (double)memory_bytes;
	if (!(bytes >= PAGE_BYTES && bytes <= (double)SIZE_MAX_BYTES))
		return kb_error_set(err, KB_ECONFIG, "%s: '%s' is not between 4096 bytes and 1 PiB",
				    what, text);
	*ret_bytes = (uint64_t)bytes / PAGE_BYTES * PAGE_BYTES;
	return 0;
}

static int unit_shift(const char *suffix)
{
	static const struct {
		const char *name;
		int shift;
	} units[] = { { "", 0 }, { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 }, { "TiB", 40 } };

	for (size_t i = 0; i < KB_COUNT_OF(units); i++)
		if (!strcmp(suffix, units[i].name))
			return units[i].shift;
	return -1;
}

int kb_size_parse(const char *text, uint64_t memory_bytes, const char *what,
		  uint64_t *ret_bytes, struct kb_error *err)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t number;

	if (is_multiple_of_memory(text))
		return parse_memory_multiple(text, memory_bytes, what, ret_bytes, err);
	int shift = unit_shift(text + digits);
	KB_AUTO_FREE char *head = kb_strndup(text, digits);
	if (digits == 0 || shift < 0)
		return kb_error_set(err, KB_ECONFIG,
				    "%s: '%s' is not a size: write 4194304, 512KiB, 64MiB, 1GiB "
				    "or 2.0x memory",
				    what, text);
	if (kb_parse_u64(head, 1, SIZE_MAX_BYTES >> shift, what, &number, NULL))
		return kb_error_set(err, KB_ECONFIG, "%s: '%s' is not between 4096 bytes and 1 PiB",
				    what, text);
	number <<= shift;
	if (number % PAGE_BYTES)
		return kb_error_set(err, KB_ECONFIG, "%s: '%s' is not a multiple of 4096 bytes",
				    what, text);
	*ret_bytes = number;
	return 0;
}

/* ---- what workloads and parameters there are ---- */

enum param_type { PARAM_NUMBER, PARAM_SIZE, PARAM_CHOICE };

struct param {
	const char *name;
	enum param_type type;
	const char *fallback; /* NULL: none, left out when not given */
	uint64_t min, max;    /* numbers */
	const char *choices;  /* separated by '|' */
	const char *help;
};

struct workload {
	const char *name;
	const char *metric; /* the default deciding one */
	const char *summary;
	const struct param *params; /* ends with a NULL name */
};

static const struct param trunc_params[] = {
	{ "files", PARAM_NUMBER, "64", 1, 65536, NULL, "number of sparse files" },
	{ "total_bytes", PARAM_SIZE, NULL, 0, 0, NULL,
	  "size of all files together (default `2.0x memory`); a multiple of memory is rounded "
	  "down so that all files are equal" },
	{ "file_bytes", PARAM_SIZE, NULL, 0, 0, NULL, "size of one file, instead of `total_bytes`" },
	{ "stages", PARAM_NUMBER, "3", 1, 3, NULL,
	  "mask: 1 creates the files and reads them all, 2 truncates them and takes the time" },
	{ "pattern", PARAM_CHOICE, "random", 0, 0, "random|sequential",
	  "`random`: page-granular page cache, no readahead; `sequential`: with readahead (large "
	  "folios where the kernel has them)" },
	{ "hold_open", PARAM_NUMBER, "1", 0, 1, NULL,
	  "1 keeps the files open until they are truncated; with 0, kernels before about 5.15 "
	  "drop the shadow entries before they can be measured" },
	{ "repetitions", PARAM_NUMBER, "3", 1, 1000, NULL, "in one boot, files made anew each time" },
	{ NULL, 0, NULL, 0, 0, NULL, NULL },
};

static const struct param none_params[] = {
	{ NULL, 0, NULL, 0, 0, NULL, NULL },
};

static const struct param fault_params[] = {
	{ "kind", PARAM_CHOICE, "hang", 0, 0,
	  "panic|oops|hang|stall|spin|garbage|lie-checksum|lie-nonce|lie-truncated|flood|die|oom|"
	  "segv|fail|invalid",
	  "what goes wrong, see guest-protocol.md" },
	{ "bytes", PARAM_SIZE, NULL, 0, 0, NULL, "how much, for kinds that write" },
	{ NULL, 0, NULL, 0, 0, NULL, NULL },
};

static const struct workload workloads[] = {
	{ "trunc", "trunc_ns",
	  "Truncation of page cache and shadow entries (trunc-bench): fills the page cache with "
	  "sparse files, larger together than memory, then truncates them all and takes the time.",
	  trunc_params },
	{ "none", "boot_ns", "Boots, mounts and does nothing: to try a kernel or an image.",
	  none_params },
	{ "fault", "fault_ns", "Fails in a chosen way: to test how kbisect takes it.", fault_params },
};

static const struct workload *find_workload(const char *name)
{
	for (size_t i = 0; i < KB_COUNT_OF(workloads); i++)
		if (kb_streq(workloads[i].name, name))
			return &workloads[i];
	return NULL;
}

const char *kb_workload_default_metric(const char *name)
{
	const struct workload *w = find_workload(name);

	return w ? w->metric : NULL;
}

static const struct param *find_param(const struct workload *w, const char *name)
{
	for (const struct param *p = w->params; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

static int unknown_workload(const char *name, struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str known = { 0 };

	for (size_t i = 0; i < KB_COUNT_OF(workloads); i++)
		kb_str_appendf(&known, "%s%s", i ? ", " : "", workloads[i].name);
	return kb_error_set(err, KB_ECONFIG, "workload.name: no workload '%s'; there are %s", name,
			    kb_str_get(&known));
}

static int unknown_param(const struct workload *w, const char *name, struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str known = { 0 };

	for (const struct param *p = w->params; p->name; p++)
		kb_str_appendf(&known, "%s%s", known.len ? ", " : "", p->name);
	if (!known.len)
		return kb_error_set(err, KB_ECONFIG,
				    "workload.params.%s: workload %s has no parameters", name,
				    w->name);
	return kb_error_set(err, KB_ECONFIG,
			    "workload.params.%s: workload %s has no such parameter; it has %s", name,
			    w->name, kb_str_get(&known));
}

/* ---- resolving ---- */

static bool is_choice(const char *choices, const char *value)
{
	size_t len = strlen(value);

	for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
		if (len && strcspn(c, "|") == len && !strncmp(c, value, len))
			return true;
	return false;
}

/* @param what "workload.params.NAME" @ret_value owned, as the guest is told */
static int resolve_value(const struct param *p, const char *what, const char *value,
			 uint64_t memory_bytes, char **ret_value, struct kb_error *err)
{
	uint64_t number = 0;
	int r = 0;

	switch (p->type) {
	case PARAM_NUMBER:
		r = kb_parse_u64(value, p->min, p->max, what, &number, err);
		if (!r)
			*ret_value = kb_asprintf("%" PRIu64, number);
		return r;
	case PARAM_SIZE:
		r = kb_size_parse(value, memory_bytes, what, &number, err);
		if (!r)
			*ret_value = kb_asprintf("%" PRIu64, number);
		return r;
	case PARAM_CHOICE:
		if (!is_choice(p->choices, value))
			return kb_error_set(err, KB_ECONFIG, "%s: '%.64s' is not one of %s", what,
					    value, p->choices);
		break;
	}
	*ret_value = kb_strdup(value);
	return 0;
}

/*
 * Whichever size is given, the files are equally large and of whole pages. A multiple of
 * memory means "about this much" and is rounded down; bytes mean exactly these bytes.
 */
static int resolve_trunc_sizes(const struct kb_pairs *given, uint64_t memory_bytes,
			       struct kb_pairs *params, struct kb_error *err)
{
	static const char total_key[] = "workload.params.total_bytes";
	const char *total_text = kb_pairs_get(given, "total_bytes");
	const char *file_text = kb_pairs_get(given, "file_bytes");
	uint64_t files, file = 0, total = 0;
	int r = kb_parse_u64(kb_pairs_get(params, "files"), 1, UINT32_MAX, "files", &files, err);

	if (r)
		return r;
	if (total_text && file_text)
		return kb_error_set(err, KB_ECONFIG, "%s: give this or file_bytes, not both",
				    total_key);
	if (file_text) {
		r = kb_size_parse(file_text, memory_bytes, "workload.params.file_bytes", &file, err);
	} else {
		total_text = total_text ? total_text : "2.0x memory";
		r = kb_size_parse(total_text, memory_bytes, total_key, &total, err);
		file = r ? 0 : total / files / PAGE_BYTES * PAGE_BYTES;
		if (!r && !is_multiple_of_memory(total_text) && file * files != total)
			return kb_error_set(err, KB_ECONFIG,
					    "%s: %" PRIu64 " bytes do not divide into %" PRIu64
					    " files of whole 4096-byte pages",
					    total_key, total, files);
	}
	if (r)
		return r;
	if (file == 0 || file > SIZE_MAX_BYTES / files)
		return kb_error_set(err, KB_ECONFIG, "%s: %" PRIu64 " files cannot share '%s'",
				    file_text ? "workload.params.file_bytes" : total_key, files,
				    file_text ? file_text : total_text);
	KB_AUTO_FREE char *file_value = kb_asprintf("%" PRIu64, file);
	kb_pairs_add(params, "file_bytes", file_value);
	return 0;
}

static int resolve_all(const struct workload *w, const struct kb_pairs *given,
		       uint64_t memory_bytes, struct kb_pairs *params, struct kb_error *err)
{
	bool is_trunc = !strcmp(w->name, "trunc");

	for (size_t i = 0; i < given->count; i++) {
		if (!find_param(w, given->items[i].name))
			return unknown_param(w, given->items[i].name, err);
		for (size_t j = 0; j < i; j++)
			if (kb_streq(given->items[j].name, given->items[i].name))
				return kb_error_set(err, KB_ECONFIG,
						    "workload.params.%s: given twice",
						    given->items[i].name);
	}
	for (const struct param *p = w->params; p->name; p++) {
		const char *value = kb_pairs_get(given, p->name);
		KB_AUTO_FREE char *what = kb_asprintf("workload.params.%s", p->name);
		KB_AUTO_FREE char *resolved = NULL;

		if (is_trunc && p->type == PARAM_SIZE)
			continue; /* they depend on each other */
		value = value ? value : p->fallback;
		if (!value)
			continue;
		int r = resolve_value(p, what, value, memory_bytes, &resolved, err);
		if (r)
			return r;
		kb_pairs_add(params, p->name, resolved);
	}
	return is_trunc ? resolve_trunc_sizes(given, memory_bytes, params, err) : 0;
}

int kb_workload_resolve(const char *name, const struct kb_pairs *given, uint32_t memory_mib,
			struct kb_pairs *ret_params, struct kb_error *err)
{
	const struct workload *w = find_workload(name);
	KB_AUTO(kb_pairs_free) struct kb_pairs params = { 0 };
	int r;

	if (!w)
		return unknown_workload(name ? name : "", err);
	r = resolve_all(w, given, memory_mib * MIB, &params, err);
	if (r)
		return r;
	for (size_t i = 0; i < params.count; i++)
		kb_pairs_add(ret_params, params.items[i].name, params.items[i].value);
	return 0;
}

/* ---- reference ---- */

static void write_param(FILE *out, const struct param *p)
{
	const char *fallback = p->fallback ? p->fallback : "-";

	fprintf(out, "| `%s` | ", p->name);
	if (p->type == PARAM_NUMBER)
		fprintf(out, "%" PRIu64 "..%" PRIu64, p->min, p->max);
	else if (p->type == PARAM_SIZE)
		fputs("size", out);
	for (const char *c = p->choices; c && *c; c++) {
		if (*c == '|')
			fputs(", ", out);
		else
			fputc(*c, out);
	}
	fprintf(out, " | %s | %s |\n", fallback, p->help);
}

void kb_workload_write_reference(FILE *out)
{
	for (size_t i = 0; i < KB_COUNT_OF(workloads); i++) {
		const struct workload *w = &workloads[i];

		fprintf(out, "\n### `%s`\n\n%s Decides by `%s` unless `metric` says otherwise.\n\n",
			w->name, w->summary, w->metric);
		if (!w->params->name) {
			fputs("No parameters.\n", out);
			continue;
		}
		fputs("| parameter | values | default | meaning |\n|---|---|---|---|\n", out);
		for (const struct param *p = w->params; p->name; p++)
			write_param(out, p);
	}
}
