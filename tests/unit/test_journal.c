/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "tests/tap.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static char *dir, *file;

static const struct kb_event samples[] = {
	{ .kind = KB_EVENT_START, .at_us = 11, .text = (char *)"1.0" },
	{ .kind = KB_EVENT_ACTION, .at_us = 12, .commit = COMMIT, .count = 4, .perturbation = 7,
	  .text = (char *)"calibrate \"good\"\nsecond line" },
	{ .kind = KB_EVENT_BUILD, .at_us = 13, .commit = COMMIT, .record = (char *)"builds/x.json" },
	{ .kind = KB_EVENT_BOOT, .at_us = 14, .commit = COMMIT, .record = (char *)"boots/x-7.json",
	  .perturbation = 7, .slot = 3 },
	{ .kind = KB_EVENT_UNTESTABLE, .at_us = 15, .commit = COMMIT, .text = (char *)"no" },
	{ .kind = KB_EVENT_RESUME, .at_us = UINT64_C(1700000000123456) },
	{ .kind = KB_EVENT_NOTE, .at_us = 17, .text = (char *)"n" },
	{ .kind = KB_EVENT_DONE, .at_us = 18, .text = (char *)"culprit" },
};

static void spit(const char *text, size_t len)
{
	FILE *out = fopen(file, "w");

	if (!out || fwrite(text, 1, len, out) != len || fclose(out))
		ok(false, "cannot prepare %s", file);
}

static void slurp(char **text, size_t *len)
{
	struct kb_error err;

	if (kb_read_file(file, 1 << 22, text, len, &err)) {
		ok(false, "cannot read back: %s", err.message);
		*text = kb_strdup("");
		*len = 0;
	}
}

static void write_samples(void)
{
	struct kb_journal *j = NULL;
	struct kb_error err = { 0 };
	int failed = 0;

	unlink(file);
	is_int(kb_journal_open(file, &j, &err), 0, "a new journal: %s", err.message);
	for (size_t i = 0; i < KB_COUNT_OF(samples); i++)
		failed += kb_journal_append(j, &samples[i], &err) != 0;
	is_int(failed, 0, "events are appended");
	kb_journal_close(j);
}

static void free_events(struct kb_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kb_event_free(&events[i]);
	free(events);
}

static bool same_event(const struct kb_event *a, const struct kb_event *b)
{
	return a->kind == b->kind && a->at_us == b->at_us && kb_streq(a->commit, b->commit) &&
	       kb_streq(a->record, b->record) && kb_streq(a->text, b->text) &&
	       a->perturbation == b->perturbation && a->count == b->count && a->slot == b->slot;
}

/* How many of the samples the file holds, -1 when something else is in it. */
static long count_samples(struct kb_error *err)
{
	struct kb_event *events = NULL;
	size_t count = 0;
	bool same = true;

	if (kb_journal_read(file, &events, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		same = same && i < KB_COUNT_OF(samples) && same_event(&events[i], &samples[i]);
	free_events(events, count);
	return same ? (long)count : -1;
}

static void events_round_trip(void)
{
	struct kb_error err = { 0 };
	KB_AUTO_FREE char *text = NULL;
	size_t len, lines = 0;

	write_samples();
	is_int(count_samples(&err), KB_COUNT_OF(samples), "every event comes back: %s", err.message);
	slurp(&text, &len);
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	is_int((long long)lines, KB_COUNT_OF(samples) + 1, "one line each, and a header");
	ok(kb_starts_with(text, "{\"format\":{\"name\":\"kbisect-journal\",\"major\":1,"),
	   "which says the format");

	struct kb_journal *j = NULL;
	struct kb_event now = { .kind = KB_EVENT_NOTE }, *events = NULL;
	size_t count = 0;
	is_int(kb_journal_open(file, &j, &err), 0, "opened again");
	is_int(kb_journal_append(j, &now, &err), 0, "an event without a time");
	kb_journal_close(j);
	is_int(kb_journal_read(file, &events, &count, &err), 0, "read");
	is_int((long long)count, KB_COUNT_OF(samples) + 1, "appended after the old ones");
	ok(count && events[count - 1].at_us > UINT64_C(1600000000000000), "it was given one");
	free_events(events, count);
}

static void one_writer_at_a_time(void)
{
	struct kb_journal *j = NULL, *k = NULL;
	struct kb_error err = { 0 };
	int status = 0;

	write_samples();
	is_int(kb_journal_open(file, &j, &err), 0, "open");
	is_int(kb_journal_open(file, &k, &err), KB_EIO, "a second writer is refused");
	ok(strstr(err.message, "in use: another kbisect"), "with the reason: %s", err.message);
	is_int(count_samples(&err), KB_COUNT_OF(samples), "reading is allowed");
	kb_journal_close(j);
	is_int(kb_journal_open(file, &k, &err), 0, "closing lets the next one in");
	kb_journal_close(k);

	/* a writer that dies without closing */
	pid_t pid = fork();
	if (pid == 0)
		_exit(kb_journal_open(file, &j, &err) != 0);
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process opens it and dies");
	is_int(kb_journal_open(file, &k, &err), 0, "so does its death");
	kb_journal_close(k);
}

/*
 * A crash may leave any prefix of what was written. Wherever it is cut: opening keeps every
 * whole line and nothing else, and appending afterwards gives a whole journal.
 */
static void torn_at_every_byte(void)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len, wrong_read = 0, wrong_open = 0, wrong_after = 0;
	struct kb_error err = { 0 };

	write_samples();
	slurp(&text, &len);
	for (size_t cut = 0; cut <= len; cut++) {
		struct kb_journal *j = NULL;
		long whole = -1;

		for (size_t i = 0; i < cut; i++)
			whole += text[i] == '\n';
		whole = whole < 0 ? 0 : whole;
		spit(text, cut);
		wrong_read += count_samples(&err) != whole;
		if (kb_journal_open(file, &j, &err)) {
			wrong_open++;
			continue;
		}
		wrong_open += count_samples(&err) != whole;
		if ((size_t)whole < KB_COUNT_OF(samples))
			wrong_after += kb_journal_append(j, &samples[whole], &err) ||
				       count_samples(&err) != whole + 1;
		kb_journal_close(j);
	}
	ok(len > 500, "%zu places to cut at", len);
	is_int((long long)wrong_read, 0, "reading gives the whole lines");
	is_int((long long)wrong_open, 0, "opening keeps the whole lines");
	is_int((long long)wrong_after, 0, "and the next event follows them");
}

static void damage_is_named_and_left_alone(void)
{
	static const struct {
		size_t line; /* counted from 1 */
		const char *with, *why;
	} table[] = {
		{ 1, "{}", "header: format: a document of kbisect has name and major here" },
		{ 1, "{\"format\":{\"name\":\"kbisect-journal\",\"major\":2}}",
		  "header: format.major: is 2; this kbisect understands up to 1" },
		{ 2, "", "'[' or '{' expected near end of file" },
		{ 3, "{\"event\":\"start\"", "'}' expected near end of file" },
		{ 3, "{\"event\":\"start\"}", "at_us: is missing" },
		{ 4, "{\"event\":\"explode\",\"at_us\":1}", "event: unknown or missing" },
		{ 4, "[1]", "event: unknown or missing" },
		{ 5, "{\"event\":\"boot\",\"at_us\":1,\"commit\":\"xyz\"}",
		  "commit: is not a commit id" },
		{ 5, "{\"event\":\"boot\",\"at_us\":1,\"commit\":\"" COMMIT "0\"}",
		  "commit: longer than 40 characters" },
		{ 5, "{\"event\":\"boot\",\"at_us\":-1}", "at_us: out of range" },
		{ 9, "{\"event\":\"boot\",\"at_us\":1,\"slot\":\"1\"}",
		  "slot: must be an integer, not a string" },
	};
	KB_AUTO_FREE char *text = NULL;
	size_t len;

	write_samples();
	slurp(&text, &len);
	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO(kb_str_free) struct kb_str bad = { 0 };
		KB_AUTO_FREE char *want = kb_asprintf("%s:%zu: the journal is damaged: %s", file,
						      table[i].line, table[i].why);
		KB_AUTO_FREE char *after = NULL;
		size_t line = 1, after_len;
		struct kb_journal *j = NULL;
		struct kb_error err = { 0 };

		for (const char *at = text; *at; line++) {
			size_t n = strcspn(at, "\n");

			if (line == table[i].line)
				kb_str_append(&bad, table[i].with);
			else
				kb_str_append_bytes(&bad, at, n);
			kb_str_append(&bad, "\n");
			at += n + 1;
		}
		kb_str_append(&bad, "{\"torn"); /* must not be cut off a damaged journal */
		spit(bad.data, bad.len);
		is_int(kb_journal_open(file, &j, &err), KB_EIO, "damage in line %zu", table[i].line);
		is_str(err.message, want, "is named");
		is_int(count_samples(&err), -1, "for readers too");
		slurp(&after, &after_len);
		ok(after_len == bad.len && !memcmp(after, bad.data, bad.len), "nothing is changed");
	}
}

/* A full disk must not leave half a line behind. */
static void failed_append_leaves_whole_lines(void)
{
	struct kb_journal *j = NULL;
	struct kb_error err = { 0 };
	int status = 0;

	write_samples();
	pid_t pid = fork();
	if (pid == 0) {
		struct kb_event big = { .kind = KB_EVENT_NOTE, .at_us = 1 };
		int r = kb_journal_open(file, &j, &err);

		/* a file size limit stands for the full disk: part of the write succeeds */
		off_t size = lseek(open(file, O_RDONLY), 0, SEEK_END);
		struct rlimit limit = { (rlim_t)size + 50, (rlim_t)size + 50 };
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		big.text = kb_calloc(1, 500);
		memset(big.text, 'x', 499);
		_exit(r || kb_journal_append(j, &big, &err) != KB_EIO);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "an append that fails half-way says so");
	is_int(count_samples(&err), KB_COUNT_OF(samples), "what was there is there");
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	slurp(&text, &len);
	ok(len && text[len - 1] == '\n', "and nothing else");
}

static void missing_files_are_errors(void)
{
	struct kb_journal *j = NULL;
	struct kb_event *events = NULL;
	size_t count;
	struct kb_error err = { 0 };

	unlink(file);
	is_int(kb_journal_read(file, &events, &count, &err), KB_EIO, "no journal to read: %s",
	       err.message);
	is_int(kb_journal_open("/nonexistent/journal.jsonl", &j, &err), KB_EIO,
	       "no folder to make one in: %s", err.message);
}

int main(void)
{
	/* thousands of small files, each synced: in memory where there is such a place */
	bool has_shm = access("/dev/shm", W_OK) == 0;
	char in_memory[] = "/dev/shm/kb-test-journal-XXXXXX", in_tmp[] = "/tmp/kb-test-journal-XXXXXX";

	dir = mkdtemp(has_shm ? in_memory : in_tmp);
	if (!dir)
		return 99;
	file = kb_path_join(dir, "journal.jsonl");
	events_round_trip();
	one_writer_at_a_time();
	torn_at_every_byte();
	damage_is_named_and_left_alone();
	failed_append_leaves_whole_lines();
	missing_files_are_errors();
	kb_remove_tree(dir, NULL);
	free(file);
	return tap_done();
}
