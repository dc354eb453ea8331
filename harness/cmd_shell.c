/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect shell: boots a revision and connects the terminal with a shell in it. */
#include <stdio.h>
#include <stdlib.h>

#include "bisect/repo.h"
#include "harness/base/fs.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/boot.h"
#include "harness/cmd.h"
#include "harness/measure.h"
#include "harness/opts.h"
#include "harness/session.h"
#include "results/run.h"

struct shell_ctx {
	struct kb_run_info info;
	struct kb_job job;
	struct kb_repo *repo;
	struct kb_measure measure;
	struct kb_build_record build;
	struct kb_boot_request request;
};

static void shell_ctx_free(struct shell_ctx *c)
{
	kb_boot_request_free(&c->request);
	kb_build_record_free(&c->build);
	if (c->repo)
		kb_measure_free(&c->measure);
	kb_repo_free(c->repo);
	kb_job_free(&c->job);
	kb_run_info_free(&c->info);
}

static void set_param(struct kb_pairs *params, const char *name, const char *value)
{
	for (size_t i = 0; i < params->count; i++) {
		if (kb_streq(params->items[i].name, name)) {
			free(params->items[i].value);
			params->items[i].value = kb_strdup(value);
			return;
		}
	}
	kb_pairs_add(params, name, value);
}

static int build(struct shell_ctx *c, const char *dir, struct kb_error *err)
{
	KB_AUTO_FREE char *rel = NULL;
	struct kb_oid commit;
	int r = kb_repo_open(c->info.repo_path, &c->repo, err);

	if (!r)
		r = kb_repo_resolve(c->repo, c->info.goods.items[0], &commit, err);
	if (!r)
		r = kb_measure_init(&c->measure, &c->job, &c->info, c->repo, dir, &commit, 1, err);
	if (r)
		return r;
	kb_info("building %.12s", commit.hex);
	r = kb_measure_build(&c->measure, &commit, &c->build, &rel, err);
	if (!r && c->build.outcome != KB_BUILD_OK)
		r = kb_error_set(err, KB_EBUILD, "%.12s does not build: %s", commit.hex,
				 c->build.reason ? c->build.reason : "no reason given");
	return r;
}

static int run_shell(const char *repo, const struct kb_cmd_job_opts *job_opts,
		     const struct kb_strv *revs, int *ret_exit, struct kb_error *err)
{
	KB_AUTO(shell_ctx_free) struct shell_ctx c = { 0 };
	KB_AUTO_FREE char *dir = NULL;
	struct kb_session_args args = { .command = "shell", .repo_path = repo, .goods = revs };
	int r = kb_cmd_load_job(job_opts, &c.job, err);

	args.job = &c.job;
	if (!r)
		r = kb_session_create(&args, &dir, err);
	if (!r)
		r = kb_run_info_read(dir, &c.info, err);
	if (!r)
		r = build(&c, dir, err);
	if (r)
		return r;
	KB_AUTO_FREE char *work = kb_path_join(dir, "shell.d");
	r = kb_mkdirs(work, err);
	if (r)
		return r;
	kb_measure_boot_request(&c.measure, &c.build, 0, work, &c.request);
	/* A person waits at the other end: no instruction counting, no workload. */
	free(c.request.mode);
	c.request.mode = kb_strdup("shell");
	set_param(&c.request.params, "mode", "shell");
	kb_info("booting; leave the shell to end the machine");
	return kb_boot_shell(&c.request, ret_exit, err);
}

int kb_cmd_shell(int argc, char **argv)
{
	struct kb_cmd_job_opts job = { 0 };
	KB_AUTO(kb_strv_free) struct kb_strv revs = { 0 };
	const char *repo = ".";
	struct kb_error err;
	int code = 0;
	const struct kb_opt opts[] = {
		{ .name = "repo", .short_name = 'C', .type = KB_OPT_STRING, .target = &repo,
		  .arg_name = "DIR", .help = "the kernel's git repository (default: .); only read" },
		KB_CMD_JOB_OPTIONS(job),
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "shell",
		.summary = "boot a revision and open a shell in it",
		.usage = "--repo DIR REV",
		.description = "Builds REV as a measurement would, boots it with the job's machine "
			       "(but without instruction counting), and connects this terminal over "
			       "SSH on a virtio-serial port. The scratch file system is mounted at "
			       "/scratch. The machine ends with the shell, whose exit code is ours.",
		.opts = opts,
		.args_min = 1,
		.args_max = 1,
	};
	int r = kb_opts_parse(&cmd, argc, argv, &revs, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = run_shell(repo, &job, &revs, &code, &err);
	kb_strv_free(&job.sets);
	return r ? kb_cmd_fail("shell", &err) : code;
}
