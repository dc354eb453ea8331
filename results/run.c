/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "results/json_util.h"
#include "results/record.h"

#define RUN_FORMAT "kbisect-run"
#define RUN_MAJOR 1
#define RUN_MINOR 0
#define LISTED_MAX 8

static const struct kb_json_field run_fields[] = {
	KB_JSON_NEEDED(kb_run_info, id, TEXT),
	KB_JSON_NEEDED(kb_run_info, command, TEXT),
	KB_JSON_NEEDED(kb_run_info, repo_path, TEXT),
	KB_JSON_NEEDED(kb_run_info, goods, LIST),
	KB_JSON_FIELD(kb_run_info, bad, TEXT),
	KB_JSON_FIELD(kb_run_info, skips, LIST),
	KB_JSON_FIELD(kb_run_info, paths, LIST),
	KB_JSON_FIELD(kb_run_info, first_parent, FLAG),
	KB_JSON_NEEDED(kb_run_info, image_path, TEXT),
	KB_JSON_NEEDED(kb_run_info, image_sha256, TEXT),
	KB_JSON_NEEDED(kb_run_info, mode, TEXT),
	KB_JSON_NEEDED(kb_run_info, accel, TEXT),
	KB_JSON_FIELD(kb_run_info, unit_command, TEXT),
	KB_JSON_FIELD(kb_run_info, argv, LIST),
	KB_JSON_FIELD(kb_run_info, version, TEXT),
	KB_JSON_FIELD(kb_run_info, created_us, U64),
};

void kb_run_info_free(struct kb_run_info *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < KB_COUNT_OF(run_fields); i++) {
		void *at = (char *)info + run_fields[i].offset;

		if (run_fields[i].type == KB_JSON_TEXT)
			free(*(char **)at);
		else if (run_fields[i].type == KB_JSON_LIST)
			kb_strv_free(at);
	}
	free(info->job_text);
	*info = (struct kb_run_info){ 0 };
}

int kb_run_info_write(const char *run_dir, const struct kb_run_info *info, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(run_dir, "run.json");
	KB_AUTO(kb_json_auto_free) json_t *root = kb_json_document(RUN_FORMAT, RUN_MAJOR, RUN_MINOR);
	const char *text = info->job_text ? info->job_text : "{}";
	json_error_t why;
	json_t *job = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	if (!job)
		return kb_error_set(err, KB_EINTERNAL, "the run's job is not JSON: %s", why.text);
	kb_json_put(root, run_fields, KB_COUNT_OF(run_fields), info);
	json_object_set_new(root, "job", job);
	return kb_json_write(path, root, KB_JSON_READABLE, err);
}

int kb_run_info_read(const char *run_dir, struct kb_run_info *ret_info, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(run_dir, "run.json");
	KB_AUTO(kb_json_auto_free) json_t *root = NULL;
	KB_AUTO(kb_run_info_free) struct kb_run_info info = { 0 };
	int r = kb_json_load(path, RUN_FORMAT, RUN_MAJOR, &root, err);

	if (r)
		return r;
	r = kb_json_get(root, run_fields, KB_COUNT_OF(run_fields), "", &info, err);
	json_t *job = json_object_get(root, "job");
	if (!r && !json_is_object(job))
		r = kb_json_wrong_kind("job", "an object", job, err);
	if (r) {
		kb_error_prefix(err, "%s", path);
		return r;
	}
	info.job_text = kb_json_dump(job, KB_JSON_READABLE);
	*ret_info = info;
	info = (struct kb_run_info){ 0 };
	return 0;
}

/* ---- where ---- */

static char *root_dir(const char *own, const char *xdg, const char *below_home)
{
	const char *value = getenv(own), *home = getenv("HOME");

	if (value && *value)
		return kb_strdup(value);
	value = getenv(xdg);
	/* the specification says that relative paths there are to be ignored */
	if (value && *value == '/')
		return kb_path_join(value, "kbisect");
	return kb_asprintf("%s/%s/kbisect", home && *home ? home : "/root", below_home);
}

char *kb_state_dir(void)
{
	return root_dir("KBISECT_HOME", "XDG_STATE_HOME", ".local/state");
}

char *kb_cache_dir(void)
{
	return root_dir("KBISECT_CACHE", "XDG_CACHE_HOME", ".cache");
}

/* ---- making ---- */

int kb_run_create(const char *state_dir, const char *command, char **ret_dir, char **ret_id,
		  struct kb_error *err)
{
	KB_AUTO_FREE char *runs = kb_path_join(state_dir, "runs");
	int r = kb_mkdirs(runs, err);

	for (int attempt = 0; !r && attempt < 100; attempt++) {
		time_t now = (time_t)(kb_wall_us() / 1000000);
		struct tm tm;
		char stamp[20];
		uint16_t salt = 0;

		gmtime_r(&now, &tm);
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
		if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
			salt = (uint16_t)attempt;
		KB_AUTO_FREE char *id = kb_asprintf("%s-%s-%04x", stamp, command, salt);
		KB_AUTO_FREE char *dir = kb_path_join(runs, id);
		if (mkdir(dir, 0777)) {
			if (errno != EEXIST)
				return kb_error_errno(err, KB_EIO, errno, "cannot make %s", dir);
			continue;
		}
		*ret_dir = KB_STEAL(dir);
		*ret_id = KB_STEAL(id);
		return 0;
	}
	return r ? r : kb_error_set(err, KB_EIO, "no free run name below %s", runs);
}

/* ---- finding ---- */

struct run_list {
	const char *runs;
	const char *command;   /* NULL: any */
	struct kb_strv names;  /* sorted, so by time */
};

/* A folder without run.json is of a run that ended before it began. */
static int list_run(const char *name, void *ctx)
{
	struct run_list *list = ctx;
	KB_AUTO_FREE char *file = kb_asprintf("%s/%s/run.json", list->runs, name);
	KB_AUTO_FREE char *part = list->command ? kb_asprintf("-%s-", list->command) : NULL;

	/* "20260102-030405-COMMAND-ab12": the id says it, no need to read the file */
	if (kb_path_exists(file) &&
	    (!part || (strlen(name) > 15 && kb_starts_with(name + 15, part))))
		kb_strv_add(&list->names, name);
	return 0;
}

/* Runs of one second are told apart by when their run.json was written. */
static const char *latest_of(const struct run_list *list)
{
	const char *best = NULL;
	struct timespec best_time = { 0 };

	for (size_t i = list->names.count; i-- > 0;) {
		const char *name = list->names.items[i];
		KB_AUTO_FREE char *file = kb_asprintf("%s/%s/run.json", list->runs, name);
		struct stat st;

		if (best && strncmp(name, best, 15) != 0)
			break;
		if (stat(file, &st))
			st.st_mtim = (struct timespec){ 0 };
		if (!best || st.st_mtim.tv_sec > best_time.tv_sec ||
		    (st.st_mtim.tv_sec == best_time.tv_sec &&
		     st.st_mtim.tv_nsec > best_time.tv_nsec)) {
			best = name;
			best_time = st.st_mtim;
		}
	}
	return best;
}

static int find_nothing(const struct run_list *list, const char *name, const char *problem,
			struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str known = { 0 };
	size_t from = list->names.count > LISTED_MAX ? list->names.count - LISTED_MAX : 0;

	for (size_t i = from; i < list->names.count; i++)
		kb_str_appendf(&known, "%s%s", known.len ? ", " : from ? "..., " : "",
			       list->names.items[i]);
	if (!known.len)
		return kb_error_set(err, KB_EUSAGE, "there are no %s%sruns below %s",
				    list->command ? list->command : "", list->command ? " " : "",
				    list->runs);
	return kb_error_set(err, KB_EUSAGE, "%s '%.200s'; there are %s", problem, name,
			    kb_str_get(&known));
}

int kb_run_find(const char *state_dir, const char *name, const char *command, char **ret_dir,
		struct kb_error *err)
{
	KB_AUTO_FREE char *runs = kb_path_join(state_dir, "runs");
	struct run_list list = { .runs = runs, .command = command };
	const char *found = NULL;
	size_t matches = 0;
	int r = 0;

	if (name && strchr(name, '/')) {
		KB_AUTO_FREE char *file = kb_path_join(name, "run.json");

		if (!kb_path_exists(file))
			return kb_error_set(err, KB_EUSAGE, "%s is not the folder of a run", name);
		*ret_dir = kb_strdup(name);
		return 0;
	}
	r = kb_list_dir(runs, list_run, &list, err);
	if (!r && !name)
		found = latest_of(&list);
	for (size_t i = 0; !r && name && i < list.names.count; i++) {
		const char *item = list.names.items[i];

		if (!kb_starts_with(item, name))
			continue;
		found = item;
		matches++;
		if (kb_streq(item, name)) {
			matches = 1;
			break;
		}
	}
	if (!r && !found)
		r = find_nothing(&list, name ? name : "", "no run is called", err);
	else if (!r && matches > 1)
		r = find_nothing(&list, name, "more than one run begins with", err);
	if (!r)
		*ret_dir = kb_path_join(runs, found);
	kb_strv_free(&list.names);
	return r;
}
