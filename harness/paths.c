/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"

#ifndef KB_DATA_DIR
#define KB_DATA_DIR "/usr/local/share/kbisect"
#endif

int kb_path_self(char **ret_path, struct kb_error *err)
{
	char buf[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);

	if (n < 0)
		return kb_error_errno(err, KB_EINTERNAL, errno, "cannot read /proc/self/exe");
	buf[n] = '\0';
	/* Rebuilt or upgraded while a long run goes on: the new one stands in the old place. */
	if (kb_ends_with(buf, " (deleted)"))
		buf[n - (ssize_t)strlen(" (deleted)")] = '\0';
	*ret_path = kb_strdup(buf);
	return 0;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? kb_strndup(path, (size_t)(slash - path)) : kb_strdup(".");
}

/* Data folders, nearest first: $KBISECT_DATA, the checkout around the binary, installed. */
static int data_dirs(struct kb_strv *ret_dirs, struct kb_error *err)
{
	const char *env = getenv("KBISECT_DATA");
	KB_AUTO_FREE char *self = NULL;
	int r = kb_path_self(&self, err);

	if (r)
		return r;
	if (env && *env)
		kb_strv_add(ret_dirs, env);
	/* build/kbisect and build/<variant>/kbisect both lie within the checkout */
	char *dir = parent_of(self);
	for (int up = 0; up < 3; up++) {
		char *above = parent_of(dir);

		free(dir);
		dir = above;
		KB_AUTO_FREE char *probe = kb_path_join(dir, "configs/kernel");
		if (kb_path_is_dir(probe)) {
			kb_strv_add(ret_dirs, dir);
			break;
		}
	}
	free(dir);
	kb_strv_add(ret_dirs, KB_DATA_DIR);
	return 0;
}

static int find_data(const char *sub, const char *name, const char *suffix, const char *what,
		     char **ret_path, struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv dirs = { 0 };
	KB_AUTO(kb_str_free) struct kb_str tried = { 0 };
	int r;

	/* A bare name is one of ours: what happens to lie in the current folder is not meant. */
	if (strchr(name, '/')) {
		if (!kb_path_exists(name))
			return kb_error_set(err, KB_ECONFIG, "%s %s does not exist", what, name);
		/* units run elsewhere: hand out absolute paths only */
		KB_AUTO_FREE char *full = realpath(name, NULL);
		if (!full)
			return kb_error_errno(err, KB_ECONFIG, errno, "%s %s", what, name);
		*ret_path = kb_strdup(full);
		return 0;
	}
	r = data_dirs(&dirs, err);
	if (r)
		return r;
	for (size_t i = 0; i < dirs.count; i++) {
		KB_AUTO_FREE char *path = kb_asprintf("%s/%s/%s", dirs.items[i], sub, name);
		KB_AUTO_FREE char *longer = kb_asprintf("%s%s", path, suffix);

		if (kb_path_exists(path)) {
			*ret_path = KB_STEAL(path);
			return 0;
		}
		if (kb_path_exists(longer)) {
			*ret_path = KB_STEAL(longer);
			return 0;
		}
		kb_str_appendf(&tried, "%s%s/%s", tried.len ? ", " : "", dirs.items[i], sub);
	}
	return kb_error_set(err, KB_ECONFIG, "%s '%s' was not found in %s", what, name,
			    kb_str_get(&tried));
}

int kb_path_fragment(const char *name, char **ret_path, struct kb_error *err)
{
	return find_data("configs/kernel", name, ".config", "kernel configuration fragment",
			 ret_path, err);
}

int kb_path_job(const char *name, char **ret_path, struct kb_error *err)
{
	return find_data("configs/jobs", name, ".json", "job file", ret_path, err);
}

static int beside_self(const char *name, const char *env_name, const char *hint,
		       char **ret_path, struct kb_error *err)
{
	const char *env = getenv(env_name);
	KB_AUTO_FREE char *self = NULL;
	int r;

	if (env && *env) {
		char *full = realpath(env, NULL); /* units have other working folders */

		if (!full)
			return kb_error_errno(err, KB_ECONFIG, errno, "$%s names %s", env_name,
					      env);
		*ret_path = full;
		return 0;
	}
	r = kb_path_self(&self, err);
	if (r)
		return r;
	char *dir = parent_of(self);
	for (int up = 0; up < 3; up++) {
		char *path = kb_path_join(dir, name);

		if (!access(path, R_OK)) {
			free(dir);
			*ret_path = path;
			return 0;
		}
		free(path);
		char *above = parent_of(dir);
		free(dir);
		dir = above;
	}
	free(dir);
	KB_AUTO_FREE char *installed = kb_path_join(KB_DATA_DIR, name);
	if (!access(installed, R_OK)) {
		*ret_path = KB_STEAL(installed);
		return 0;
	}
	return kb_error_set(err, KB_ECONFIG, "%s was not found beside %s: %s", name, self, hint);
}

int kb_path_image(char **ret_path, struct kb_error *err)
{
	return beside_self("image/base.cpio", "KBISECT_IMAGE", "make it with `make image`",
			   ret_path, err);
}

int kb_path_qemu_wrapper(char **ret_path, struct kb_error *err)
{
	return beside_self("kbisect-qemu", "KBISECT_QEMU_WRAPPER",
			   "make it with `make build/kbisect-qemu`", ret_path, err);
}
