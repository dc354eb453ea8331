/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "tests/tap.h"

#define NONCE "0123456789abcdef"
#define SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define RESULT "@kb result nonce=" NONCE " bytes=7 sha256=" SUM "\n"

static char dir[] = "/tmp/kb-console-XXXXXX";

static char *new_console(struct kb_console *c, uint64_t max_bytes,
			 const struct kb_strv *deny)
{
	char *path = kb_path_join(dir, "console.log");
	struct kb_error err;

	ok(kb_console_init(c, path, max_bytes, NONCE, deny, &err) == 0, "made");
	return path;
}

static void append(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "a");

	if (!f || fwrite(text, 1, len, f) != len)
		abort();
	fclose(f);
}

static void lines_in_pieces_are_put_together(void)
{
	static const char text[] = "SeaBIOS\r\n@kb start nonce=" NONCE " version=1\r\n"
				   "@kb phase mkfs\n@kb phase workload\n" RESULT RESULT;

	for (size_t step = 1; step < sizeof(text); step += 7) {
		KB_AUTO(kb_console_free) struct kb_console c;
		KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);

		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t rest = sizeof(text) - 1 - at;

			append(path, text + at, rest < step ? rest : step);
			if (kb_console_poll(&c, NULL))
				abort();
		}
		ok(c.started && c.has_result && !c.lied && !c.broken_markers &&
			   !c.has_fail,
		   "read in pieces of %zu", step);
		is_str(c.phase, "workload", "last phase");
		is_int(c.result.bytes, 7, "result's length");
	}
}

static void untrue_markers_are_lies(void)
{
	static const char *const lies[] = {
		"@kb start nonce=ffff version=1\n",
		"@kb result nonce=ffff bytes=7 sha256=" SUM "\n",
		RESULT "@kb result nonce=" NONCE " bytes=8 sha256=" SUM "\n",
	};

	for (size_t i = 0; i < KB_COUNT_OF(lies); i++) {
		KB_AUTO(kb_console_free) struct kb_console c;
		KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);

		kb_console_feed(&c, lies[i], strlen(lies[i]));
		ok(c.lied, "lie %zu", i);
	}
}

static void split_marker_is_broken_but_its_copy_counts(void)
{
	static const char text[] =
		"@kb result nonce=" NONCE " byt[    1.2] tsc: message\n" RESULT;
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);

	kb_console_feed(&c, text, sizeof(text) - 1);
	ok(c.has_result && !c.lied, "the second copy");
	is_int(c.broken_markers, 1, "the first is broken");
}

static void failure_after_the_marker_does_not_count(void)
{
	static const char fail[] = "@kb fail step=ssh errno=19 text=no channel\n";
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);

	kb_console_feed(&c, RESULT, sizeof(RESULT) - 1);
	kb_console_feed(&c, fail, sizeof(fail) - 1);
	ok(c.has_result && !c.has_fail && c.has_late_fail, "after");
	is_str(c.fail.name, "ssh", "it is known all the same");
	KB_AUTO(kb_console_free) struct kb_console d;
	KB_AUTO_FREE char *other = new_console(&d, 1 << 20, NULL);
	kb_console_feed(&d, fail, sizeof(fail) - 1);
	kb_console_feed(&d, RESULT, sizeof(RESULT) - 1);
	ok(d.has_fail, "before");
	is_str(d.fail.name, "ssh", "its step");
}

static void piece_of_a_long_line_is_no_marker(void)
{
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);
	KB_AUTO_FREE char *text = kb_malloc(KB_CONSOLE_LINE_MAX);

	memset(text, 'x', KB_CONSOLE_LINE_MAX);
	kb_console_feed(&c, text, KB_CONSOLE_LINE_MAX);
	kb_console_feed(&c, RESULT, sizeof(RESULT) - 1);
	ok(!c.has_result, "it stands in the middle of a line");
	kb_console_feed(&c, RESULT, sizeof(RESULT) - 1);
	ok(c.has_result, "this one is whole");
}

static void flood_is_cut_to_head_and_tail(void)
{
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 10000, NULL);
	KB_AUTO_FREE char *data = NULL;
	size_t len = 0;

	append(path, "first line\n", 11);
	for (int i = 0; i < 5000; i++)
		append(path, "0123456789abcdef\n", 17);
	append(path, "last line\n", 10);
	is_int(kb_console_poll(&c, NULL), 0, "poll");
	ok(c.flooded, "flooded");
	is_int(kb_console_finish(&c, NULL), 0, "finish");
	is_int(c.bytes, 5000 * 17 + 21, "the size is what was written");
	is_int(kb_read_file(path, 1 << 20, &data, &len, NULL), 0, "the log that is kept");
	ok(len < 10200, "has %zu bytes", len);
	ok(kb_starts_with(data, "first line\n") && kb_ends_with(data, "last line\n"),
	   "with both ends");
	ok(strstr(data, "bytes were cut out here]") != NULL, "and says so");
}

static void last_line_without_newline_counts(void)
{
	static const char text[] =
		"[    1.0] Kernel panic - not syncing: Fatal exception";
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 10000, NULL);

	append(path, text, sizeof(text) - 1);
	ok(kb_console_poll(&c, NULL) == 0 && !c.crash.panic, "not while it may go on");
	ok(kb_console_finish(&c, NULL) == 0 && c.crash.panic, "but at the end");
}

static void excerpt_is_around_the_trouble(void)
{
	KB_AUTO(kb_console_free) struct kb_console c;
	KB_AUTO_FREE char *path = new_console(&c, 1 << 20, NULL);

	for (int i = 0; i < 2000; i++)
		append(path, "something harmless\r\n", 20);
	append(path, "BUG: kernel NULL \x02\r\n", 20);
	for (int i = 0; i < 2000; i++)
		append(path, "something after it\r\n", 20);
	is_int(kb_console_finish(&c, NULL), 0, "read");
	KB_AUTO_FREE char *text = kb_console_excerpt(&c);
	ok(strstr(text, "harmless\nBUG: kernel NULL ?\nsomething after") != NULL,
	   "both sides");
	ok(strlen(text) <= 4096, "bounded");
	ok(!strstr(text, "?\nsomething harmless"), "no traces of carriage returns");
}

static void denied_pattern_is_found(void)
{
	static const char text[] = "a fine line\n[ 1.0] clocksource: Switched to \x01\n";
	KB_AUTO(kb_strv_free) struct kb_strv deny = {0};
	KB_AUTO(kb_console_free) struct kb_console c;

	kb_strv_add(&deny, "clocksource: Sw");
	KB_AUTO_FREE char *path = new_console(&c, 1 << 20, &deny);
	kb_console_feed(&c, text, sizeof(text) - 1);
	is_str(c.denied_line, "[ 1.0] clocksource: Switched to ?", "its line");
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	lines_in_pieces_are_put_together();
	untrue_markers_are_lies();
	split_marker_is_broken_but_its_copy_counts();
	failure_after_the_marker_does_not_count();
	piece_of_a_long_line_is_no_marker();
	flood_is_cut_to_head_and_tail();
	last_line_without_newline_counts();
	excerpt_is_around_the_trouble();
	denied_pattern_is_found();
	kb_remove_tree(dir, NULL);
	return tap_done();
}
