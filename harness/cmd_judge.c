/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kbisect judge: the test program for `git bisect run`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect/repo.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/bisectlog.h"
#include "harness/cmd.h"
#include "harness/opts.h"
#include "harness/paths.h"
#include "harness/progress.h"
#include "harness/session.h"
#include "harness/version.h"
#include "results/run.h"

#define BISECT_LOG_MAX_BYTES (16u << 20)

struct judge_opts {
	const char *repo, *good, *bad, *unit_command;
	struct kb_cmd_job_opts job;
	bool quiet;
};

/* git's own words when `git bisect terms` chose others. */
static void read_terms(const char *git_dir, struct kb_strv *ret_terms)
{
	KB_AUTO_FREE char *path = kb_path_join(git_dir, "BISECT_TERMS");
	KB_AUTO_FREE char *text = NULL;
	size_t len;

	if (!kb_read_file(path, 4096, &text, &len, NULL))
		kb_strv_split(ret_terms, text, "\n");
	if (ret_terms->count != 2) {
		kb_strv_free(ret_terms);
		kb_strv_add(ret_terms, "bad");
		kb_strv_add(ret_terms, "good");
	}
}

static int endpoints_from_git(struct kb_repo *repo, char *ret_bad, char *ret_good,
			      struct kb_error *err)
{
	const char *git_dir = kb_repo_worktree_git_dir(repo);
	KB_AUTO_FREE char *path = kb_path_join(git_dir, "BISECT_LOG");
	KB_AUTO(kb_strv_free) struct kb_strv terms = { 0 };
	KB_AUTO_FREE char *text = NULL;
	size_t len;

	if (!kb_path_exists(path))
		return kb_error_set(err, KB_EUSAGE,
				    "no git bisect is in progress here; run it as `git bisect run "
				    "kbisect judge`, or give --good and --bad");
	int r = kb_read_file(path, BISECT_LOG_MAX_BYTES, &text, &len, err);
	if (r)
		return r;
	read_terms(git_dir, &terms);
	return kb_bisectlog_endpoints(text, len, terms.items[0], terms.items[1], ret_bad, ret_good,
				      err);
}

/* The run of these endpoints and this job, made at the first call: a small file under
 * STATE/judge points to it. */
static int find_or_make_run(const struct judge_opts *o, const struct kb_job *job,
			    const char *git_dir, const char *good, const char *bad,
			    char **ret_dir, struct kb_error *err)
{
	KB_AUTO_FREE char *image = NULL;
	char image_sha256[KB_HASH_HEX_LEN + 1];
	int r = kb_path_image(&image, err);

	if (!r)
		r = kb_hash_file(image, image_sha256, err);
	if (r)
		return r;
	KB_AUTO_FREE char *state = kb_state_dir();
	KB_AUTO_FREE char *job_text = kb_job_format(job);
	KB_AUTO_FREE char *folder = kb_path_join(state, "judge");
	KB_AUTO(kb_strv_free) struct kb_strv goods = { 0 };
	char hex[KB_HASH_HEX_LEN + 1];
	struct kb_hash *h = kb_hash_new();

	kb_hash_update_str(h, KB_VERSION);
	kb_hash_update_str(h, git_dir);
	kb_hash_update_str(h, image_sha256);
	kb_hash_update_str(h, good);
	kb_hash_update_str(h, bad);
	kb_hash_update_str(h, job_text);
	kb_hash_update_str(h, o->unit_command ? o->unit_command : "");
	kb_hash_finish(h, hex);
	KB_AUTO_FREE char *pointer = kb_path_join(folder, hex);
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	if (!kb_read_file(pointer, 4096, &text, &len, NULL) && kb_path_is_dir(text)) {
		*ret_dir = KB_STEAL(text);
		return 0;
	}
	kb_strv_add(&goods, good);
	struct kb_session_args args = { .command = "judge", .repo_path = o->repo,
					.goods = &goods, .bad = bad, .job = job,
					.unit_command = o->unit_command };
	KB_AUTO_FREE char *dir = NULL;
	r = kb_session_create(&args, &dir, err);
	if (!r)
		r = kb_mkdirs(folder, err);
	if (!r)
		r = kb_write_file_atomic(pointer, dir, strlen(dir), err);
	if (!r)
		*ret_dir = KB_STEAL(dir);
	return r;
}

static int judge(const struct judge_opts *o, enum kb_verdict *ret_verdict, char *ret_why,
		 size_t why_size, char *ret_head, struct kb_error *err)
{
	KB_AUTO(kb_job_free) struct kb_job job = { 0 };
	KB_AUTO_FREE char *dir = NULL;
	char from_git_good[KB_OID_HEX_LEN + 1], from_git_bad[KB_OID_HEX_LEN + 1];
	struct kb_oid good, bad;
	struct kb_progress progress;
	struct kb_session_observer observer = { kb_progress_status, &progress };
	struct kb_repo *repo = NULL;
	struct kb_oid head;
	int r = kb_cmd_load_job(&o->job, &job, err);

	if (!r)
		r = kb_repo_open(o->repo, &repo, err);
	/* With `git bisect start --no-checkout` git moves this one instead of HEAD. */
	if (!r && kb_repo_resolve(repo, "BISECT_HEAD", &head, NULL))
		r = kb_repo_resolve(repo, "HEAD", &head, err);
	if (!r && (!o->good || !o->bad))
		r = endpoints_from_git(repo, from_git_bad, from_git_good, err);
	if (!r)
		r = kb_repo_resolve(repo, o->good ? o->good : from_git_good, &good, err);
	if (!r)
		r = kb_repo_resolve(repo, o->bad ? o->bad : from_git_bad, &bad, err);
	if (!r)
		r = find_or_make_run(o, &job, kb_repo_worktree_git_dir(repo), good.hex, bad.hex,
				     &dir, err);
	kb_repo_free(repo);
	if (r)
		return r;
	memcpy(ret_head, head.hex, sizeof(head.hex));
	kb_progress_init(&progress, o->quiet);
	r = kb_session_judge(dir, head.hex, &observer, ret_verdict, ret_why, why_size, err);
	kb_progress_end(&progress);
	return r;
}

int kb_cmd_judge(int argc, char **argv)
{
	struct judge_opts o = { .repo = "." };
	enum kb_verdict verdict = KB_VERDICT_NONE;
	char why[256] = "", head[KB_OID_HEX_LEN + 1] = "";
	struct kb_error err;
	const struct kb_opt opts[] = {
		{ .name = "repo", .short_name = 'C', .type = KB_OPT_STRING, .target = &o.repo,
		  .arg_name = "DIR", .help = "the work tree that git bisects (default: .)" },
		{ .name = "good", .short_name = 'g', .type = KB_OPT_STRING, .target = &o.good,
		  .arg_name = "REV", .help = "good endpoint (default: from git's bisect log)" },
		{ .name = "bad", .short_name = 'b', .type = KB_OPT_STRING, .target = &o.bad,
		  .arg_name = "REV", .help = "bad endpoint (default: from git's bisect log)" },
		KB_CMD_JOB_OPTIONS(o.job),
		{ .name = "unit-command", .type = KB_OPT_STRING, .target = &o.unit_command,
		  .arg_name = "CMD", .help = "as in `kbisect bisect`" },
		{ .name = "quiet", .short_name = 'q', .type = KB_OPT_FLAG, .target = &o.quiet,
		  .help = "no progress on stderr" },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "judge",
		.summary = "inside `git bisect run`: measure HEAD against the endpoints",
		.usage = "[--job FILE]",
		.description =
			"Measures the commit that is checked out (the commit, not what the work tree "
			"holds on top of it; with `git bisect start --no-checkout`, which saves git the "
			"checkouts, the one it names) and compares it with the endpoints of the git bisect in "
			"progress, which are measured at the first call and remembered.\n\n"
			"Exit code: 0 good, 1 bad, 125 cannot be tested or stays unclear, 129 "
			"infrastructure or usage: git bisect run stops there and loses nothing.",
		.opts = opts,
	};
	int r = kb_opts_parse(&cmd, argc, argv, NULL, NULL, &err);

	if (r > 0)
		return KB_EXIT_OK;
	if (!r)
		r = judge(&o, &verdict, why, sizeof(why), head, &err);
	kb_strv_free(&o.job.sets);
	if (r) {
		kb_cmd_fail("judge", &err);
		return KB_EXIT_JUDGE_BROKEN;
	}
	switch (verdict) {
	case KB_VERDICT_GOOD:
		printf("%.12s good: %s\n", head, why);
		return 0;
	case KB_VERDICT_BAD:
		printf("%.12s bad: %s\n", head, why);
		return 1;
	case KB_VERDICT_UNCLEAR:
		printf("%.12s unclear: %s\n", head, why);
		return KB_EXIT_SKIP;
	default:
		printf("%.12s untestable: %s\n", head, why);
		return KB_EXIT_SKIP;
	}
}
