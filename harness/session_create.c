/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening a new run: everything that can be checked before the first build. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/host.h"
#include "harness/paths.h"
#include "harness/session_internal.h"
#include "harness/version.h"

static int resolve_all(struct kb_repo *repo, const struct kb_strv *specs, struct kb_strv *ret_ids,
		       struct kb_error *err)
{
	for (size_t i = 0; specs && i < specs->count; i++) {
		struct kb_oid oid;
		int r = kb_repo_resolve(repo, specs->items[i], &oid, err);

		if (r)
			return r;
		kb_strv_add(ret_ids, oid.hex);
	}
	return 0;
}

static void copy_strv(struct kb_strv *to, const struct kb_strv *from)
{
	for (size_t i = 0; from && i < from->count; i++)
		kb_strv_add(to, from->items[i]);
}

static int fill_job(const struct kb_job *given, struct kb_run_info *info, struct kb_error *err)
{
	KB_AUTO(kb_job_free) struct kb_job job;
	KB_AUTO_FREE char *text = kb_job_format(given);
	int r;

	/* A copy by way of its text: the caller's job keeps its "auto"s. */
	kb_job_init(&job);
	r = kb_job_parse(text, strlen(text), "job", &job, err);
	if (!r)
		r = kb_host_settle_job(&job, err);
	/* A run resumed from another folder must find the same files. */
	for (size_t i = 0; i < job.kernel_fragments.count && !r; i++) {
		char *path = NULL;

		r = kb_path_fragment(job.kernel_fragments.items[i], &path, err);
		if (r)
			break;
		free(job.kernel_fragments.items[i]);
		job.kernel_fragments.items[i] = path;
	}
	if (r)
		return r;
	info->job_text = kb_job_format(&job);
	info->mode = kb_strdup(job.mode);
	info->accel = kb_strdup(job.vm_accel);
	return 0;
}

static int fill_image(struct kb_run_info *info, struct kb_error *err)
{
	char hex[KB_HASH_HEX_LEN + 1];
	int r = kb_path_image(&info->image_path, err);

	if (!r)
		r = kb_hash_file(info->image_path, hex, err);
	if (!r)
		info->image_sha256 = kb_strdup(hex);
	return r;
}

/* The range is walked here only to find out whether the endpoints make sense. */
static int check_range(struct kb_repo *repo, const struct kb_run_info *info,
		       struct kb_error *err)
{
	KB_AUTO(kb_range_free) struct kb_range range;
	KB_AUTO_FREE struct kb_oid *goods = kb_calloc(info->goods.count, sizeof(*goods));
	struct kb_range_spec spec = { .goods = goods,
				      .good_count = info->goods.count,
				      .first_parent = info->first_parent,
				      .paths = &info->paths };
	int r = kb_repo_resolve(repo, info->bad, &spec.bad, err);

	kb_range_init(&range);
	for (size_t i = 0; i < info->goods.count && !r; i++)
		r = kb_repo_resolve(repo, info->goods.items[i], &goods[i], err);
	return r ? r : kb_repo_range(repo, &spec, &range, err);
}

int kb_session_create(const struct kb_session_args *args, char **ret_run_dir,
		      struct kb_error *err)
{
	KB_AUTO(kb_run_info_free) struct kb_run_info info = { 0 };
	struct kb_repo *repo = NULL;
	KB_AUTO_FREE char *state = kb_state_dir();
	KB_AUTO_FREE char *dir = NULL;
	char path[PATH_MAX];
	struct kb_oid bad;
	int r = kb_repo_open(args->repo_path, &repo, err);

	if (r)
		return r;
	info.command = kb_strdup(args->command);
	info.repo_path = kb_strdup(realpath(args->repo_path, path) ? path : args->repo_path);
	info.first_parent = args->first_parent;
	info.unit_command = kb_strdup(args->unit_command);
	info.version = kb_strdup(KB_VERSION);
	info.created_us = kb_wall_us();
	copy_strv(&info.paths, args->paths);
	copy_strv(&info.argv, args->argv);
	r = resolve_all(repo, args->goods, &info.goods, err);
	if (!r)
		r = resolve_all(repo, args->skips, &info.skips, err);
	if (!r && args->bad) {
		r = kb_repo_resolve(repo, args->bad, &bad, err);
		if (!r) {
			info.bad = kb_strdup(bad.hex);
			r = check_range(repo, &info, err);
		}
	}
	if (!r)
		r = fill_job(args->job, &info, err);
	if (!r)
		r = fill_image(&info, err);
	if (!r)
		r = kb_run_create(state, args->command, &dir, &info.id, err);
	if (!r)
		r = kb_run_info_write(dir, &info, err);
	kb_repo_free(repo);
	if (!r)
		*ret_run_dir = KB_STEAL(dir);
	return r;
}
