/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bisect/repo.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/build_config.h"
#include "harness/build_internal.h"
#include "harness/build_log.h"
#include "harness/build_toolchain.h"
#include "harness/cache.h"

#define FRAGMENT_MAX_BYTES (1u << 20)
#define CONFIG_MAX_BYTES (8u << 20)
#define LOG_TAIL_BYTES (8 << 20)
#define EXCERPT_MAX_BYTES 4096

/* ---- inputs ---- */

static int read_fragments(struct kb_build *b, struct kb_error *err)
{
	struct kb_str all = { 0 };

	for (size_t i = 0; i < b->req->fragments.count; i++) {
		KB_AUTO_FREE char *text = NULL;
		int r = kb_read_file(b->req->fragments.items[i], FRAGMENT_MAX_BYTES, &text, NULL,
				     err);

		if (r) {
			kb_str_free(&all);
			kb_error_prefix(err, "kernel configuration fragment");
			return r;
		}
		kb_str_append(&all, text);
		kb_str_append(&all, "\n"); /* the last line of a fragment may lack it */
	}
	b->requested = kb_str_steal(&all);
	return 0;
}

static void hash_list(struct kb_hash *h, const struct kb_strv *list)
{
	kb_hash_update(h, &list->count, sizeof(list->count));
	for (size_t i = 0; i < list->count; i++)
		kb_hash_update_str(h, list->items[i]);
}

static char *make_key(const struct kb_build *b)
{
	char *hex = kb_malloc(KB_HASH_HEX_LEN + 1);
	struct kb_hash *h = kb_hash_new();
	int recipe = KB_BUILD_RECIPE;

	kb_hash_update(h, &recipe, sizeof(recipe));
	kb_hash_update_str(h, b->req->tree);
	kb_hash_update_str(h, b->requested);
	hash_list(h, &b->req->required);
	hash_list(h, &b->req->make_args);
	kb_hash_update_str(h, b->rec->toolchain);
	kb_hash_finish(h, hex);
	return hex;
}

static int open_slot(struct kb_build *b, struct kb_error *err)
{
	int r = kb_mkdirs(b->req->slot_dir, err);

	if (r)
		return r;
	b->slot = realpath(b->req->slot_dir, NULL);
	if (!b->slot)
		return kb_error_errno(err, KB_EIO, errno, "cannot use %s", b->req->slot_dir);
	if (strpbrk(b->slot, " \t\n:=")) /* kbuild refuses the first ones, -f*-map the last */
		return kb_error_set(err, KB_ECONFIG,
				    "kernels cannot be built below '%s': the path must not "
				    "contain blanks, ':' or '=' (set $KBISECT_CACHE)",
				    b->slot);
	b->src = kb_path_join(b->slot, "src");
	b->obj = kb_path_join(b->slot, "obj");
	b->conf = kb_path_join(b->slot, "conf");
	b->log = kb_path_join(b->slot, "build.log");
	b->marker = kb_path_join(b->slot, "make.running");
	b->stamp = kb_path_join(b->slot, "obj.stamp");
	return 0;
}

static void build_done(struct kb_build *b)
{
	char *const owned[] = { b->slot,   b->src,   b->obj,	   b->conf, b->log,
				b->marker, b->stamp, b->requested, b->entry };

	for (size_t i = 0; i < KB_COUNT_OF(owned); i++)
		free(owned[i]);
	kb_close(&b->entry_fd);
}

/* ---- make ---- */

/* Nothing of the user's environment but what programs need to be found and to run. */
static void make_env(struct kb_strv *env)
{
	static const char *const fixed[] = {
		"LC_ALL=C",
		"TZ=UTC",
		"KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
		"KBUILD_BUILD_USER=kbisect",
		"KBUILD_BUILD_HOST=kbisect",
		"KBUILD_BUILD_VERSION=1",
	};
	static const char *const kept[] = { "PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH",
					    "CCACHE_DIR", "CCACHE_BASEDIR", "CCACHE_MAXSIZE" };

	for (size_t i = 0; i < KB_COUNT_OF(fixed); i++)
		kb_strv_add(env, fixed[i]);
	for (size_t i = 0; i < KB_COUNT_OF(kept); i++)
		if (getenv(kept[i]))
			kb_strv_addf(env, "%s=%s", kept[i], getenv(kept[i]));
}

static void make_argv(const struct kb_build *b, const char *objects, const char *target,
		      uint32_t jobs, struct kb_strv *argv)
{
	/* the folder's name must not get into the kernel: the same bytes in every slot */
	KB_AUTO_FREE char *maps = kb_asprintf("-ffile-prefix-map=%s/= -ffile-prefix-map=%s=.",
					      b->src, b->obj);
	const char *c_flags = "", *a_flags = "";

	kb_strv_add(argv, "make");
	kb_strv_addf(argv, "-j%u", jobs ? jobs : 1);
	kb_strv_add(argv, "--output-sync=target"); /* a diagnostic stays in one piece */
	kb_strv_addf(argv, "--directory=%s", b->src);
	kb_strv_addf(argv, "O=%s", objects);
	kb_strv_add(argv, "LOCALVERSION=");
	for (size_t i = 0; i < b->req->make_args.count; i++) {
		const char *arg = b->req->make_args.items[i];

		if (kb_starts_with(arg, "KCFLAGS="))
			c_flags = strchr(arg, '=') + 1;
		else if (kb_starts_with(arg, "KAFLAGS="))
			a_flags = strchr(arg, '=') + 1;
		else
			kb_strv_add(argv, arg);
	}
	kb_strv_addf(argv, "KCFLAGS=%s %s", maps, c_flags);
	kb_strv_addf(argv, "KAFLAGS=%s %s", maps, a_flags);
	kb_strv_add(argv, target);
}

/* @return 0 when make ended in whatever way; interruption is an error */
static int run_make(struct kb_build *b, const char *objects, const char *target, uint32_t jobs,
		    struct kb_proc_result *ret_res, struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv argv = { 0 };
	KB_AUTO(kb_strv_free) struct kb_strv env = { 0 };
	uint64_t now = kb_now_ms();
	struct kb_proc_spec spec = { .only_env = true, .output_path = b->log };

	make_argv(b, objects, target, jobs, &argv);
	make_env(&env);
	spec.argv = (const char *const *)argv.items;
	spec.env = (const char *const *)env.items;
	if (b->deadline_ms)
		spec.timeout_ms = now < b->deadline_ms ? b->deadline_ms - now : 1;
	int r = kb_proc_run(&spec, ret_res, err);
	if (r)
		return r;
	b->rec->cpu_ms += ret_res->cpu_ms;
	if (ret_res->interrupted)
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted while building");
	return 0;
}

/* ---- failures ---- */

/* The log's end; a log that cannot be read is an empty one. */
static char *read_log_tail(const char *path, size_t *ret_len)
{
	KB_AUTO(kb_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	char buf[16384];
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		off_t at = st.st_size > LOG_TAIL_BYTES ? st.st_size - LOG_TAIL_BYTES : 0;
		ssize_t n;

		while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
			kb_str_append_bytes(&text, buf, (size_t)n);
			at += n;
		}
	}
	*ret_len = text.len;
	return kb_str_steal(&text);
}

/*
 * Judges a make that did not succeed: the host's fault is an error, the time limit and the
 * sources' fault are outcomes.
 * @ret_doubtful set when stale files could be to blame rather than the sources
 */
static int judge_failure(struct kb_build *b, const struct kb_proc_result *res,
			 bool *ret_doubtful, struct kb_error *err)
{
	KB_AUTO_FREE char *strip = kb_asprintf("%s/", b->src);
	size_t len;
	KB_AUTO_FREE char *log = read_log_tail(b->log, &len);
	const char *host = kb_build_log_host_problem(log, len);
	struct kb_build_record *rec = b->rec;

	free(rec->log_excerpt);
	free(rec->reason);
	rec->log_excerpt = kb_build_log_excerpt(log, len, strip, EXCERPT_MAX_BYTES);
	rec->reason = NULL;
	*ret_doubtful = false;
	if (res->timed_out) {
		char limit[32];

		rec->outcome = KB_BUILD_TIMEOUT;
		rec->reason = kb_asprintf("not built within its time limit of %s",
					  kb_duration_string(b->req->timeout_ms, limit));
		return 0;
	}
	if (host)
		return kb_error_set(err, KB_EBUILD, "%s (log: %s)", host, b->log);
	if (res->term_signal)
		return kb_error_set(err, KB_EBUILD, "make was killed by signal %d (log: %s)",
				    res->term_signal, b->log);
	rec->outcome = KB_BUILD_FAILED;
	rec->reason = kb_build_log_reason(log, len, strip);
	*ret_doubtful = !b->fresh && !kb_build_log_is_source_error(log, len);
	return 0;
}

/* ---- configuration ---- */

static int append_fragments(const struct kb_build *b, const char *config, struct kb_error *err)
{
	KB_AUTO(kb_close) int fd = open(config, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot write %s", config);
	return kb_write_all(fd, b->requested, strlen(b->requested), err);
}

/* Symbols that the job needs; without them the commit cannot be tested. */
static void check_required(struct kb_build *b, const char *config)
{
	KB_AUTO(kb_str_free) struct kb_str lost = { 0 };

	kb_config_missing(b->requested, config, &b->rec->missing_symbols);
	for (size_t i = 0; i < b->req->required.count; i++) {
		const char *symbol = b->req->required.items[i];

		if (!kb_config_is_set(config, symbol))
			kb_str_appendf(&lost, "%s%s%s", lost.len ? ", " : "",
				       kb_starts_with(symbol, "CONFIG_") ? "" : "CONFIG_", symbol);
	}
	if (lost.len == 0)
		return;
	b->rec->outcome = KB_BUILD_CONFIG_MISSING;
	b->rec->reason = kb_asprintf("the job needs %s, which this tree cannot set",
				     kb_str_get(&lost));
	b->rec->log_excerpt = kb_strdup(b->rec->reason);
}

/*
 * The configuration is made in an O= folder of its own. The object tree's .config is only
 * replaced by a different one, so that kbuild sees a change when there is one and only then.
 */
static int configure(struct kb_build *b, struct kb_error *err)
{
	static const char *const targets[] = { "tinyconfig", "olddefconfig" };
	KB_AUTO_FREE char *fresh = kb_path_join(b->conf, ".config");
	KB_AUTO_FREE char *used = kb_path_join(b->obj, ".config");
	KB_AUTO_FREE char *text = NULL, *old = NULL;
	struct kb_proc_result res = { 0 };
	size_t len = 0, old_len = 0;
	bool doubtful;
	int r;

	for (size_t i = 0; i < KB_COUNT_OF(targets); i++) {
		r = run_make(b, b->conf, targets[i], 1, &res, err);
		if (r)
			return r;
		if (res.exit_code != 0 || res.timed_out)
			return judge_failure(b, &res, &doubtful, err);
		r = i == 0 ? append_fragments(b, fresh, err) : 0;
		if (r)
			return r;
	}
	r = kb_read_file(fresh, CONFIG_MAX_BYTES, &text, &len, err);
	if (r)
		return r;
	check_required(b, text);
	if (kb_read_file(used, CONFIG_MAX_BYTES, &old, &old_len, NULL) || old_len != len ||
	    memcmp(old, text, len) != 0)
		r = kb_write_file_atomic(used, text, len, err);
	b->configured = r == 0;
	return r;
}

/* ---- the steps ---- */

static int checkout(struct kb_build *b, struct kb_error *err)
{
	KB_AUTO_FREE char *state = kb_path_join(b->slot, "checkout.state");
	struct kb_repo *repo = NULL;
	struct kb_oid commit, tree;
	int r = kb_repo_open(b->req->repo_path, &repo, err);

	if (r)
		return r;
	r = kb_repo_resolve(repo, b->req->commit, &commit, err);
	if (!r)
		r = kb_repo_tree(repo, &commit, &tree, err);
	if (!r && !kb_streq(tree.hex, b->req->tree))
		r = kb_error_set(err, KB_EREPO, "%s has tree %s, not %s", commit.hex, tree.hex,
				 b->req->tree);
	if (!r)
		r = kb_repo_checkout(repo, &commit, b->src, state, &b->rec->files_changed, err);
	kb_repo_free(repo);
	return r;
}

/* One attempt in the slot as it is. */
static int attempt(struct kb_build *b, bool *ret_doubtful, struct kb_error *err)
{
	struct kb_proc_result res = { 0 };
	int r = kb_build_slot_prepare(b, err);

	*ret_doubtful = false;
	if (!r)
		r = kb_write_file_atomic(b->log, "", 0, err);
	if (!r)
		r = kb_build_slot_begin_make(b, err);
	if (!r)
		r = configure(b, err);
	if (!r && b->rec->outcome == KB_BUILD_OK) {
		r = run_make(b, b->obj, "bzImage", b->req->jobs, &res, err);
		if (!r && (res.exit_code != 0 || res.timed_out))
			r = judge_failure(b, &res, ret_doubtful, err);
	}
	/* after anything else the marker stays, and the next build looks for half files */
	if (!r && b->rec->outcome != KB_BUILD_TIMEOUT)
		kb_build_slot_end_make(b);
	return r;
}

static int build_in_slot(struct kb_build *b, struct kb_error *err)
{
	bool doubtful;
	int r = kb_build_slot_check_space(b, err);

	if (!r)
		r = checkout(b, err);
	if (!r)
		r = attempt(b, &doubtful, err);
	if (!r && doubtful) {
		kb_info("%.12s: the incremental build failed without a diagnostic of the "
			"compiler; building from scratch",
			b->req->commit);
		kb_strv_free(&b->rec->missing_symbols);
		b->rec->outcome = KB_BUILD_OK;
		b->configured = false;
		r = kb_build_slot_wipe(b, err);
		if (!r)
			r = attempt(b, &doubtful, err);
	}
	return r;
}

/* A success leaves nothing of an earlier attempt's failure. */
static void tidy_record(struct kb_build_record *rec)
{
	if (rec->outcome != KB_BUILD_OK)
		return;
	free(rec->reason);
	free(rec->log_excerpt);
	rec->reason = rec->log_excerpt = NULL;
}

static int run(struct kb_build *b, uint64_t started_ms, struct kb_error *err)
{
	KB_AUTO(kb_close) int lock = -1;
	int r = read_fragments(b, err);

	if (!r)
		r = kb_toolchain_probe(&b->req->make_args, &b->rec->toolchain, err);
	if (r)
		return r;
	b->rec->key = make_key(b);
	b->rec->commit = kb_strdup(b->req->commit);
	b->rec->tree = kb_strdup(b->req->tree);
	b->entry = kb_cache_path(b->req->cache_dir, KB_CACHE_BUILDS, b->rec->key);
	r = kb_build_store_find(b, err);
	if (r != 1)
		return r;
	r = kb_cache_lock_slot(b->req->slot_dir, &lock, err);
	if (!r)
		r = open_slot(b, err);
	if (r)
		return r;
	/* while we waited for the slot its user may have built just this */
	r = kb_build_store_find(b, err);
	if (r != 1)
		return r;
	/* waiting for others is not building: the limit starts here */
	b->deadline_ms = b->req->timeout_ms ? kb_now_ms() + b->req->timeout_ms : 0;
	r = build_in_slot(b, err);
	if (r)
		return r;
	tidy_record(b->rec);
	b->rec->wall_ms = kb_now_ms() - started_ms;
	return b->rec->outcome == KB_BUILD_TIMEOUT ? 0 : kb_build_store_put(b, err);
}

int kb_build_run(const struct kb_build_request *req, struct kb_build_record *ret_record,
		 struct kb_error *err)
{
	KB_AUTO(kb_build_record_free) struct kb_build_record rec = { 0 };
	KB_AUTO(build_done) struct kb_build b = { .req = req, .rec = &rec, .entry_fd = -1 };
	int r = run(&b, kb_now_ms(), err);

	if (r)
		return r;
	*ret_record = rec;
	rec = (struct kb_build_record){ 0 };
	return 0;
}
