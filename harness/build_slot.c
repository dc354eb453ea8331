/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source and object trees that builds reuse. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/build_internal.h"

/* Measured with a 6.1 tree and the lean configuration, and some room above it. */
#define FIRST_BUILD_BYTES (1792ull << 20)
#define NEXT_BUILD_BYTES (256ull << 20)

struct prune {
	const char *dir;
	struct timespec since;
	unsigned removed;
};

static bool is_older(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static void remove_file(struct prune *p, const char *name)
{
	KB_AUTO_FREE char *path = kb_path_join(p->dir, name);

	if (unlink(path) == 0)
		p->removed++;
}

/*
 * A rule of kbuild writes its target, then .TARGET.d, then .TARGET.cmd out of that, and
 * removes the .d: so a .d that is left tells of a rule that was cut short, and a target that
 * is younger than its .cmd (or has none) may be half a file.
 */
static void prune_file(struct prune *p, const char *name, const struct stat *st)
{
	struct stat cmd;

	if (is_older(st->st_mtim, p->since))
		return;
	if (name[0] == '.' && kb_ends_with(name, ".cmd"))
		return;
	if (name[0] == '.' && kb_ends_with(name, ".d")) {
		KB_AUTO_FREE char *target = kb_strndup(name + 1, strlen(name) - 3);
		KB_AUTO_FREE char *target_cmd = kb_asprintf(".%s.cmd", target);

		remove_file(p, target);
		remove_file(p, target_cmd);
		remove_file(p, name);
		return;
	}
	KB_AUTO_FREE char *cmd_path = kb_asprintf("%s/.%s.cmd", p->dir, name);
	if (stat(cmd_path, &cmd) == 0 && !is_older(cmd.st_mtim, st->st_mtim))
		return;
	remove_file(p, name);
}

static int prune_entry(const char *name, void *ctx)
{
	struct prune *p = ctx;
	KB_AUTO_FREE char *path = kb_path_join(p->dir, name);
	struct stat st;

	if (lstat(path, &st))
		return 0;
	if (S_ISREG(st.st_mode)) {
		prune_file(p, name, &st);
		return 0;
	}
	/* Files below include/config are time stamps of symbols that changed: without one,
	 * objects that depend on it would not be compiled again. Kconfig writes the others
	 * there by renames. */
	if (!S_ISDIR(st.st_mode) || kb_ends_with(path, "/include/config"))
		return 0;
	struct prune below = { .dir = path, .since = p->since };
	int r = kb_list_dir(path, prune_entry, &below, NULL);
	p->removed += below.removed;
	return r;
}

int kb_build_slot_wipe(struct kb_build *b, struct kb_error *err)
{
	int r = kb_remove_tree(b->obj, err);

	if (!r)
		r = kb_remove_tree(b->conf, err);
	if (!r && unlink(b->marker) && errno != ENOENT)
		r = kb_error_errno(err, KB_EIO, errno, "cannot remove %s", b->marker);
	return r;
}

/* Older kernels do not notice by themselves that the compiler is another one. */
static void stamp_of(const struct kb_build *b, char hex[KB_HASH_HEX_LEN + 1])
{
	struct kb_hash *h = kb_hash_new();
	int recipe = KB_BUILD_RECIPE;

	kb_hash_update(h, &recipe, sizeof(recipe));
	kb_hash_update_str(h, b->slot); /* .cmd files hold absolute names */
	kb_hash_update_str(h, b->rec->toolchain);
	for (size_t i = 0; i < b->req->make_args.count; i++)
		kb_hash_update_str(h, b->req->make_args.items[i]);
	kb_hash_finish(h, hex);
}

int kb_build_slot_prepare(struct kb_build *b, struct kb_error *err)
{
	char want[KB_HASH_HEX_LEN + 1];
	KB_AUTO_FREE char *have = NULL;
	struct stat st;
	int r = 0;

	stamp_of(b, want);
	if (kb_read_file(b->stamp, KB_HASH_HEX_LEN, &have, NULL, NULL) || !kb_streq(have, want))
		r = kb_build_slot_wipe(b, err);
	if (r)
		return r;
	if (stat(b->marker, &st) == 0) {
		struct prune p = { .dir = b->obj, .since = st.st_mtim };

		r = kb_remove_tree(b->conf, err);
		if (!r)
			r = kb_list_dir(b->obj, prune_entry, &p, err);
		if (r)
			return r;
		kb_debug("the last build was cut short: %u doubtful files removed", p.removed);
		unlink(b->marker);
	}
	r = kb_mkdirs(b->obj, err);
	if (!r)
		r = kb_mkdirs(b->conf, err);
	KB_AUTO_FREE char *config = kb_path_join(b->obj, ".config");
	b->fresh = !kb_path_exists(config);
	return r ? r : kb_write_file_atomic(b->stamp, want, KB_HASH_HEX_LEN, err);
}

int kb_build_slot_begin_make(struct kb_build *b, struct kb_error *err)
{
	return kb_write_file_atomic(b->marker, "", 0, err);
}

void kb_build_slot_end_make(struct kb_build *b)
{
	unlink(b->marker);
}

int kb_build_slot_check_space(const struct kb_build *b, struct kb_error *err)
{
	uint64_t need = kb_path_is_dir(b->obj) ? NEXT_BUILD_BYTES : FIRST_BUILD_BYTES;
	uint64_t have;
	int r = kb_free_space(b->slot, &have, err);

	if (r || have >= need)
		return r;
	return kb_error_set(err, KB_EBUILD,
			    "%s has %" PRIu64 " MiB free, a build needs about %" PRIu64
			    " MiB: free some space, try `kbisect gc`, or set $KBISECT_CACHE",
			    b->slot, have >> 20, need >> 20);
}
