/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/workload.h"

#include <inttypes.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

static void sizes(void)
{
	static const struct {
		const char *text;
		uint64_t want; /* 0: an error */
	} table[] = {
		{ "4096", 4096 },
		{ "512KiB", 512 << 10 },
		{ "64MiB", 64 * MIB },
		{ "1GiB", 1024 * MIB },
		{ "2TiB", 2048 * 1024 * MIB },
		{ "2.0x memory", 256 * MIB },
		{ "2x memory", 256 * MIB },
		{ "0.5x memory", 64 * MIB },
		{ "1.3x memory", 174481408 },
		{ "1024TiB", UINT64_C(1) << 50 },
		{ "1025TiB", 0 },
		{ "99999999999999999999", 0 },
		{ "0", 0 },
		{ "1", 0 },
		{ "4097", 0 },
		{ "1KiB", 0 },
		{ "", 0 },
		{ "MiB", 0 },
		{ "64 MiB", 0 },
		{ "64MB", 0 },
		{ "-4096", 0 },
		{ "+4096", 0 },
		{ " 4096", 0 },
		{ "4096 ", 0 },
		{ "x memory", 0 },
		{ "-2x memory", 0 },
		{ "nanx memory", 0 },
		{ "infx memory", 0 },
		{ "0x memory", 0 },
		{ "0.00001x memory", 0 },
		{ "1e9x memory", 0 },
		{ "2.0x  memory", 0 },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		uint64_t got = 77;
		struct kb_error err = { 0 };
		int r = kb_size_parse(table[i].text, 128 * MIB, "what", &got, &err);

		if (table[i].want) {
			ok(r == 0 && got == table[i].want, "'%s' is %" PRIu64, table[i].text, got);
		} else {
			ok(r == KB_ECONFIG && got == 77, "'%s' is refused", table[i].text);
			ok(strstr(err.message, "what: ") == err.message, "by name: %s",
			   err.message);
		}
	}
}

/* "a=1,b=2" */
static void fill(struct kb_pairs *p, const char *text)
{
	KB_AUTO(kb_strv_free) struct kb_strv items = { 0 };

	kb_strv_split(&items, text, ",");
	for (size_t i = 0; i < items.count; i++) {
		char *eq = strchr(items.items[i], '=');

		*eq = '\0';
		kb_pairs_add(p, items.items[i], eq + 1);
	}
}

static char *resolved(const char *workload, const char *given, uint32_t memory_mib)
{
	KB_AUTO(kb_pairs_free) struct kb_pairs in = { 0 }, out = { 0 };
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	struct kb_error err;

	fill(&in, given);
	if (kb_workload_resolve(workload, &in, memory_mib, &out, &err)) {
		kb_str_appendf(&text, "error: %s", err.message);
		if (out.count)
			kb_str_append(&text, " (and left something)");
	}
	for (size_t i = 0; i < out.count; i++)
		kb_str_appendf(&text, "%s%s=%s", i ? "," : "", out.items[i].name,
			       out.items[i].value);
	return kb_str_steal(&text);
}

static void resolving(void)
{
	static const struct {
		const char *workload, *given, *want;
	} table[] = {
		{ "trunc", "",
		  "files=64,stages=3,pattern=random,hold_open=1,repetitions=3,file_bytes=4194304" },
		{ "trunc", "files=10,total_bytes=1.0x memory",
		  "files=10,stages=3,pattern=random,hold_open=1,repetitions=3,file_bytes=13418496" },
		{ "trunc", "file_bytes=1MiB,pattern=sequential,hold_open=0,stages=2,repetitions=10",
		  "files=64,stages=2,pattern=sequential,hold_open=0,repetitions=10,"
		  "file_bytes=1048576" },
		{ "trunc", "files=007",
		  "files=7,stages=3,pattern=random,hold_open=1,repetitions=3,file_bytes=38346752" },
		{ "trunc", "files=3,total_bytes=64MiB",
		  "error: workload.params.total_bytes: 67108864 bytes do not divide into 3 files of "
		  "whole 4096-byte pages" },
		{ "trunc", "files=65536,total_bytes=0.5x memory",
		  "error: workload.params.total_bytes: 65536 files cannot share '0.5x memory'" },
		{ "trunc", "total_bytes=64MiB,file_bytes=1MiB",
		  "error: workload.params.total_bytes: give this or file_bytes, not both" },
		{ "trunc", "file_bytes=100",
		  "error: workload.params.file_bytes: '100' is not a multiple of 4096 bytes" },
		{ "trunc", "pattern=rand",
		  "error: workload.params.pattern: 'rand' is not one of random|sequential" },
		{ "trunc", "pattern=",
		  "error: workload.params.pattern: '' is not one of random|sequential" },
		{ "trunc", "size=5",
		  "error: workload.params.size: workload trunc has no such parameter; it has files, "
		  "total_bytes, file_bytes, stages, pattern, hold_open, repetitions" },
		{ "trunc", "files=1,files=2", "error: workload.params.files: given twice" },
		{ "none", "", "" },
		{ "none", "files=1", "error: workload.params.files: workload none has no parameters" },
		{ "fault", "kind=flood,bytes=1GiB", "kind=flood,bytes=1073741824" },
		{ "fault", "", "kind=hang" },
		{ "nope", "", "error: workload.name: no workload 'nope'; there are trunc, none, fault" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO_FREE char *got = resolved(table[i].workload, table[i].given, 128);

		is_str(got, table[i].want, "%s with '%s'", table[i].workload, table[i].given);
	}
	static const char *const out_of_range[] = { "files=0",     "files=65537", "stages=0",
						    "stages=4",    "hold_open=2", "repetitions=0",
						    "repetitions=x" };
	for (size_t i = 0; i < KB_COUNT_OF(out_of_range); i++) {
		KB_AUTO_FREE char *got = resolved("trunc", out_of_range[i], 128);

		ok(kb_starts_with(got, "error: workload.params."), "%s: %s", out_of_range[i], got);
	}
}

/* Whatever memory and files: equal files of whole pages, and never more than was asked. */
static void resolved_work_is_equal_and_bounded(void)
{
	bool all = true;

	for (uint32_t memory = 64; memory <= 4096; memory += 61) {
		for (unsigned files = 1; files <= 97; files += 6) {
			KB_AUTO(kb_pairs_free) struct kb_pairs in = { 0 }, out = { 0 };
			char text[16];
			uint64_t bytes = 0;

			snprintf(text, sizeof(text), "%u", files);
			kb_pairs_add(&in, "files", text);
			kb_pairs_add(&in, "total_bytes", "1.7x memory");
			if (kb_workload_resolve("trunc", &in, memory, &out, NULL) ||
			    kb_parse_u64(kb_pairs_get(&out, "file_bytes"), 4096, UINT64_MAX, "f",
					 &bytes, NULL))
				all = false;
			double asked = 1.7 * memory * (double)MIB;
			all = all && bytes % 4096 == 0 && (double)(bytes * files) <= asked &&
			      (double)(bytes * files) > asked - 4096.0 * (files + 1);
		}
	}
	ok(all, "files are equal, of whole pages, and fill what was asked up to a page each");
}

int main(void)
{
	sizes();
	resolving();
	resolved_work_is_equal_and_bounded();
	is_str(kb_workload_default_metric("trunc"), "trunc_ns", "default metric");
	is_str(kb_workload_default_metric("nope"), NULL, "none of an unknown workload");
	return tap_done();
}
