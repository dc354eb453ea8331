/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/job.h"
#include "tests/tap.h"

static char *dir;

static void fill(struct kb_run_info *info, const char *id)
{
	*info = (struct kb_run_info){ .id = kb_strdup(id), .command = kb_strdup("bisect"),
				      .repo_path = kb_strdup("/repo"), .bad = kb_strdup("b"),
				      .first_parent = 1, .image_path = kb_strdup("/i"),
				      .image_sha256 = kb_strdup("s"), .mode = kb_strdup("exact"),
				      .accel = kb_strdup("tcg"), .version = kb_strdup("1"),
				      .created_us = 5 };
	kb_strv_add(&info->goods, "g1");
	kb_strv_add(&info->goods, "g2");
	kb_strv_add(&info->paths, "mm");
	kb_strv_add(&info->argv, "kbisect");
}

static void info_round_trip(void)
{
	KB_AUTO(kb_run_info_free) struct kb_run_info a, b = { 0 };
	KB_AUTO(kb_job_free) struct kb_job job, again;
	struct kb_error err = { 0 };
	char before[65], after[65];

	fill(&a, "x");
	kb_job_init(&job);
	is_int(kb_job_set(&job, "decision.alpha", "0.07", &err), 0, "a job");
	is_int(kb_job_set(&job, "workload.params.files", "32", &err), 0, "with a parameter");
	a.job_text = kb_job_format(&job);
	is_int(kb_run_info_write(dir, &a, &err), 0, "written: %s", err.message);
	is_int(kb_run_info_read(dir, &b, &err), 0, "read: %s", err.message);
	is_str(b.id, "x", "id");
	is_int((long long)b.goods.count, 2, "goods");
	is_str(b.goods.items[1], "g2", "in order");
	is_int((long long)b.skips.count, 0, "no skips");
	is_str(b.paths.items[0], "mm", "paths");
	is_int(b.first_parent, 1, "first parent");
	is_str(b.unit_command, NULL, "our own units");
	is_int((long long)b.created_us, 5, "time");
	kb_job_init(&again);
	is_int(kb_job_parse(b.job_text, strlen(b.job_text), "job", &again, &err), 0,
	       "its job is a job: %s", err.message);
	is_double(again.alpha, 0.07, 0, "with its values");
	kb_job_measurement_hash(&job, before);
	kb_job_measurement_hash(&again, after);
	is_str(after, before, "and its identity");

	KB_AUTO_FREE char *path = kb_path_join(dir, "run.json");
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	is_int(kb_read_file(path, 1 << 20, &text, &len, &err), 0, "run.json");
	ok(strstr(text, "\"job\": {"), "embeds the job as an object");
	ok(strstr(text, "\"alpha\": 0.07,"), "with numbers as people write them");
}

static void bad_info_is_refused(void)
{
	KB_AUTO_FREE char *path = kb_path_join(dir, "run.json");
	KB_AUTO(kb_run_info_free) struct kb_run_info a, b = { 0 };
	struct kb_error err = { 0 };
	static const char text[] = "{\"format\": {\"name\": \"kbisect-run\", \"major\": 1},"
				   "\"id\": \"x\", \"command\": 1}";

	is_int(kb_write_file_atomic(path, text, strlen(text), &err), 0, "a bad run.json");
	is_int(kb_run_info_read(dir, &b, &err), KB_ECONFIG, "is refused");
	KB_AUTO_FREE char *want =
		kb_asprintf("%s: command: must be a string, not an integer", path);
	is_str(err.message, want, "by file and key");
	is_int(kb_run_info_read("/nonexistent", &b, &err), KB_EIO, "no run.json: %s", err.message);
	fill(&a, "x");
	a.job_text = kb_strdup("{");
	is_int(kb_run_info_write(dir, &a, &err), KB_EINTERNAL, "a job that is no JSON: %s",
	       err.message);
}

static void roots_follow_the_environment(void)
{
	static const struct {
		const char *own, *xdg, *home, *want;
	} table[] = {
		{ "/own", "/xdg", "/home/me", "/own" },
		{ NULL, "/xdg", "/home/me", "/xdg/kbisect" },
		{ "", "", "/home/me", "/home/me/.local/state/kbisect" },
		{ NULL, "relative", "/home/me", "/home/me/.local/state/kbisect" },
		{ NULL, NULL, NULL, "/root/.local/state/kbisect" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		const char *const names[] = { "KBISECT_HOME", "XDG_STATE_HOME", "HOME" };
		const char *const values[] = { table[i].own, table[i].xdg, table[i].home };

		for (size_t j = 0; j < 3; j++) {
			if (values[j])
				setenv(names[j], values[j], 1);
			else
				unsetenv(names[j]);
		}
		KB_AUTO_FREE char *got = kb_state_dir();
		is_str(got, table[i].want, "state folder");
	}
	setenv("KBISECT_CACHE", "/c", 1);
	KB_AUTO_FREE char *own = kb_cache_dir();
	is_str(own, "/c", "cache folder");
	unsetenv("KBISECT_CACHE");
	setenv("XDG_CACHE_HOME", "/x", 1);
	KB_AUTO_FREE char *xdg = kb_cache_dir();
	is_str(xdg, "/x/kbisect", "by XDG");
}

static void folders_are_new_and_named(void)
{
	struct kb_error err = { 0 };
	KB_AUTO_FREE char *state = kb_path_join(dir, "new/state");
	bool all = true;

	for (int i = 0; i < 20; i++) {
		KB_AUTO_FREE char *run = NULL;
		KB_AUTO_FREE char *id = NULL;
		unsigned salt;
		int end = 0;

		all = all && !kb_run_create(state, "bisect", &run, &id, &err) &&
		      kb_path_is_dir(run) && kb_ends_with(run, id) &&
		      sscanf(id, "%*8[0-9]-%*6[0-9]-bisect-%4x%n", &salt, &end) == 1 &&
		      id[end] == '\0';
	}
	ok(all, "twenty runs in one second have their own folders: %s", err.message);
}

/* Makes a run as if it had been created then. */
static void make_run(const char *state, const char *id, long mtime)
{
	KB_AUTO_FREE char *run = kb_asprintf("%s/runs/%s", state, id);
	KB_AUTO_FREE char *path = kb_path_join(run, "run.json");
	KB_AUTO(kb_run_info_free) struct kb_run_info info;
	struct timespec times[2] = { { mtime, 0 }, { mtime, 0 } };
	struct kb_error err = { 0 };

	fill(&info, id);
	if (kb_mkdirs(run, &err) || kb_run_info_write(run, &info, &err) ||
	    utimensat(AT_FDCWD, path, times, 0))
		ok(false, "cannot prepare: %s", err.message);
}

static void runs_are_found(void)
{
	KB_AUTO_FREE char *state = kb_path_join(dir, "state");
	KB_AUTO_FREE char *half = kb_path_join(state, "runs/20300101-000000-bisect-dead");
	KB_AUTO_FREE char *by_path = kb_path_join(state, "runs/20260102-030405-measure-aaaa");
	struct kb_error err = { 0 };
	char *found = NULL;

	is_int(kb_run_find(state, NULL, NULL, &found, &err), KB_EUSAGE, "no run yet");
	ok(kb_starts_with(err.message, "there are no runs below "), "says so: %s", err.message);

	make_run(state, "20260101-000000-bisect-1111", 100);
	make_run(state, "20260102-030405-bisect-ffff", 200);
	make_run(state, "20260102-030405-bisect-2222", 201); /* later in the same second */
	make_run(state, "20260102-030405-measure-aaaa", 199);
	if (kb_mkdirs(half, &err)) /* killed before run.json was there */
		ok(false, "cannot prepare");

	const struct {
		const char *name, *command, *want, *message;
	} table[] = {
		{ NULL, NULL, "20260102-030405-bisect-2222", NULL },
		{ NULL, "bisect", "20260102-030405-bisect-2222", NULL },
		{ NULL, "measure", "20260102-030405-measure-aaaa", NULL },
		{ "20260101", NULL, "20260101-000000-bisect-1111", NULL },
		{ "20260102-030405-bisect-ffff", NULL, "20260102-030405-bisect-ffff", NULL },
		{ "20260102-030405-m", NULL, "20260102-030405-measure-aaaa", NULL },
		{ by_path, NULL, "20260102-030405-measure-aaaa", NULL },
		{ "20260102", NULL, NULL, "more than one run begins with '20260102'; there are " },
		{ "2030", NULL, NULL, "no run is called '2030'; there are " },
		{ "zzz", "measure", NULL,
		  "no run is called 'zzz'; there are 20260102-030405-measure-aaaa" },
		{ NULL, "judge", NULL, "there are no judge runs below " },
		{ "/nonexistent", NULL, NULL, "/nonexistent is not the folder of a run" },
		{ half, NULL, NULL, half },
	};
	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		KB_AUTO_FREE char *got = NULL;
		int r = kb_run_find(state, table[i].name, table[i].command, &got, &err);

		is_int(r, table[i].want ? 0 : KB_EUSAGE, "find %s",
		       table[i].name ? table[i].name : "the latest");
		if (table[i].want)
			ok(got && kb_ends_with(got, table[i].want), "finds %s", table[i].want);
		else
			ok(kb_starts_with(err.message, table[i].message), "says: %s", err.message);
	}
}

int main(void)
{
	char template[] = "/tmp/kb-test-run-XXXXXX";

	dir = mkdtemp(template);
	if (!dir)
		return 99;
	info_round_trip();
	bad_info_is_refused();
	roots_follow_the_environment();
	folders_are_new_and_named();
	runs_are_found();
	kb_remove_tree(dir, NULL);
	return tap_done();
}
