/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/results-format.md: its examples are documents, and it names every key that is written. */
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "results/journal.h"
#include "results/record.h"
#include "results/report.h"
#include "results/run.h"
#include "tests/tap.h"

static char *dir;

/* The part of the page under a heading, up to the next one of any level; owned. */
static char *section_of(const char *page, const char *heading)
{
	KB_AUTO_FREE char *line = kb_asprintf("\n%s", heading);
	const char *at = strstr(page, line), *end;

	if (!at)
		return NULL;
	at += strlen(line);
	for (end = at; (end = strstr(end, "\n#")); end++)
		if (end[2] == '#')
			break;
	return end ? kb_strndup(at, (size_t)(end - at)) : kb_strdup(at);
}

/* The first example of a section; owned. */
static char *example_of(const char *section)
{
	static const char opening[] = "\n```json\n";
	const char *at = strstr(section, opening), *end;

	if (!at)
		return NULL;
	at += strlen(opening);
	end = strstr(at, "\n```\n");
	return end ? kb_strndup(at, (size_t)(end + 1 - at)) : NULL;
}

/* Is every key of the JSON text named as `key` in the section? */
static void keys_are_named(const char *json, const char *section, const char *format)
{
	size_t count = 0;

	for (const char *at = json; (at = strchr(at, '"')); at++) {
		size_t len = strcspn(at + 1, "\"");
		const char *end = at + 1 + len;

		if (!*end)
			break;
		if (end[1] == ':') {
			KB_AUTO_FREE char *key = kb_strndup(at + 1, len);
			KB_AUTO_FREE char *named = kb_asprintf("`%s`", key);

			/* described once, at the top of the page */
			ok(kb_streq(key, "format") || strstr(section, named), "%s: %s is described", format, key);
			count++;
		}
		at = end;
	}
	ok(count > 5, "%s: %zu keys", format, count);
}

/* Objects with keys of their own: of the job, of parameters, of counters. */
static void blank_objects(char *json, const char *opening)
{
	for (char *at = json; (at = strstr(at, opening));) {
		size_t depth = 0;

		at += strlen(opening) - 1;
		do {
			depth += *at == '{';
			depth -= *at == '}';
			*at++ = ' ';
		} while (depth && *at);
	}
}

static int read_run(const char *path, struct kb_error *err)
{
	KB_AUTO(kb_run_info_free) struct kb_run_info info = { 0 };
	KB_AUTO_FREE char *file = kb_path_join(dir, "run.json");

	if (rename(path, file))
		return -1;
	int r = kb_run_info_read(dir, &info, err);
	return r ? r : kb_run_info_write(dir, &info, err) || rename(file, path);
}

static int read_journal(const char *path, struct kb_error *err)
{
	struct kb_event *events = NULL;
	size_t count = 0;
	int r = kb_journal_read(path, &events, &count, err);

	for (size_t i = 0; i < count; i++)
		kb_event_free(&events[i]);
	free(events);
	return r ? r : count < 3;
}

/* Reads the example and writes it anew, so that the file has every key there is. */
#define READER(kind)                                                                       \
	static int read_##kind(const char *path, struct kb_error *err)                     \
	{                                                                                  \
		KB_AUTO(kb_##kind##_free) struct kb_##kind document = { 0 };               \
		int r = kb_##kind##_read(path, &document, err);                            \
		return r ? r : kb_##kind##_write(path, &document, err);                    \
	}
READER(build_request)
READER(build_record)
READER(boot_request)
READER(boot_record)
READER(report)

static void page_is_true(const char *page)
{
	static const struct {
		const char *heading, *format;
		int (*read)(const char *path, struct kb_error *err);
	} table[] = {
		{ "### `kbisect-run`\n", "run", read_run },
		{ "## The journal: `kbisect-journal`\n", "journal", read_journal },
		{ "### `kbisect-build-request`\n", "build request", read_build_request },
		{ "### `kbisect-build`\n", "build", read_build_record },
		{ "### `kbisect-boot-request`\n", "boot request", read_boot_request },
		{ "### `kbisect-boot`\n", "boot", read_boot_record },
		{ "## The report: ", "report", read_report },
	};
	KB_AUTO_FREE char *path = kb_path_join(dir, "document");

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO_FREE char *section = section_of(page, table[i].heading);
		KB_AUTO_FREE char *example = section ? example_of(section) : NULL;
		KB_AUTO_FREE char *written = NULL;
		struct kb_error err = { 0 };
		size_t len;

		ok(example, "%s: there is an example", table[i].format);
		if (!example || kb_write_file_atomic(path, example, strlen(example), &err))
			continue;
		is_int(table[i].read(path, &err), 0, "%s: that is one: %s", table[i].format,
		       err.message);
		is_int(kb_read_file(path, 1 << 20, &written, &len, &err), 0, "%s: written again",
		       table[i].format);
		if (written) {
			blank_objects(written, "\"format\": {");
			blank_objects(written, "\"format\":{"); /* in a journal */
			blank_objects(written, "\"job\": {");
			blank_objects(written, "\"params\": {");
			blank_objects(written, "\"values\": {");
			keys_are_named(written, section, table[i].format);
		}
	}
}

int main(void)
{
	const char *src = getenv("KB_SRC");
	KB_AUTO_FREE char *path =
		kb_path_join(src && *src ? src : ".", "docs/results-format.md");
	KB_AUTO_FREE char *page = NULL;
	char template[] = "/tmp/kb-test-format-XXXXXX";
	struct kb_error err = { 0 };
	size_t len;

	dir = mkdtemp(template);
	if (!dir)
		return 99;
	is_int(kb_read_file(path, 1 << 20, &page, &len, &err), 0, "%s: %s", path, err.message);
	if (page)
		page_is_true(page);
	kb_remove_tree(dir, NULL);
	return tap_done();
}
