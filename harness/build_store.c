/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finished builds in the cache: a folder with artifacts, their checksums, and the record. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/build_internal.h"
#include "harness/cache.h"

#define RECORD_FILE "build.json"
#define SUMS_FILE "SHA256SUMS"
#define SUMS_MAX_BYTES 65536
#define STRIP_TIMEOUT_MS 300000

/* ---- looking up ---- */

/* Lines as sha256sum(1) writes them. @ret_kernel_seen bzImage was among them */
static int verify_sums(const char *dir, const char *sums, bool *ret_kernel_seen,
		       struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv lines = { 0 };

	kb_strv_split(&lines, sums, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		char hex[KB_HASH_HEX_LEN + 1];

		if (strlen(line) < KB_HASH_HEX_LEN + 3 || strchr(line, '/'))
			return kb_error_set(err, KB_EIO, "%s is garbled", SUMS_FILE);
		const char *name = line + KB_HASH_HEX_LEN + 2;
		KB_AUTO_FREE char *path = kb_path_join(dir, name);
		int r = kb_hash_file(path, hex, err);
		if (r)
			return r;
		if (memcmp(hex, line, KB_HASH_HEX_LEN) != 0)
			return kb_error_set(err, KB_EIO, "%s has changed", name);
		if (kb_streq(name, "bzImage"))
			*ret_kernel_seen = true;
	}
	return 0;
}

static int load_entry(const char *dir, struct kb_build_record *ret, struct kb_error *err)
{
	KB_AUTO(kb_build_record_free) struct kb_build_record rec = { 0 };
	KB_AUTO_FREE char *record_path = kb_path_join(dir, RECORD_FILE);
	KB_AUTO_FREE char *sums_path = kb_path_join(dir, SUMS_FILE);
	KB_AUTO_FREE char *sums = NULL;
	bool kernel_seen = false;
	int r = kb_build_record_read(record_path, &rec, err);

	if (!r)
		r = kb_read_file(sums_path, SUMS_MAX_BYTES, &sums, NULL, err);
	if (!r)
		r = verify_sums(dir, sums, &kernel_seen, err);
	if (!r && rec.outcome == KB_BUILD_OK && !kernel_seen)
		r = kb_error_set(err, KB_EIO, "it holds no kernel");
	if (r)
		return r;
	*ret = rec;
	rec = (struct kb_build_record){ 0 };
	return 0;
}

static void replace(char **field, const char *value)
{
	free(*field);
	*field = kb_strdup(value);
}

int kb_build_store_find(struct kb_build *b, struct kb_error *err)
{
	KB_AUTO(kb_build_record_free) struct kb_build_record found = { 0 };
	KB_AUTO(kb_close) int fd = -1;
	struct kb_error why = { 0 };
	int r = kb_cache_hold(b->entry, &fd, err);

	if (r)
		return r;
	r = load_entry(b->entry, &found, &why);
	if (r || !kb_streq(found.key, b->rec->key)) {
		kb_warn("the cached build %.12s is damaged (%s) and is made again",
			b->rec->key, r ? why.message : "it has another key");
		r = kb_cache_discard(b->entry, err);
		return r ? r : 1;
	}
	/* the same tree may belong to another commit, and caches get moved */
	replace(&found.commit, b->req->commit);
	replace(&found.tree, b->req->tree);
	replace(&found.artifact_dir, b->entry);
	found.from_cache = true;
	found.files_changed = 0;
	kb_build_record_free(b->rec);
	*b->rec = found;
	found = (struct kb_build_record){ 0 };
	b->entry_fd = fd;
	fd = -1;
	return 0;
}

/* ---- putting in ---- */

/* vmlinux without debugging sections: symbols for people, a tenth of the size. */
static int store_vmlinux(const char *from, const char *to, struct kb_error *err)
{
	const char *const argv[] = { "strip", "--strip-debug", "-o", to, from, NULL };
	struct kb_proc_spec spec = { .argv = argv,
				     .output_path = "/dev/null",
				     .timeout_ms = STRIP_TIMEOUT_MS };
	struct kb_proc_result res = { 0 };
	int r = kb_proc_run(&spec, &res, err);

	if (r)
		return r;
	if (res.interrupted)
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	/* what strip does not understand is kept as it is */
	return res.exit_code == 0 ? 0 : kb_copy_file(from, to, err);
}

static int add_sum(const char *dir, const char *name, struct kb_str *sums, char **ret_hex,
		   struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(dir, name);
	char hex[KB_HASH_HEX_LEN + 1];
	int r = kb_hash_file(path, hex, err);

	if (r)
		return r;
	kb_str_appendf(sums, "%s  %s\n", hex, name);
	if (ret_hex)
		replace(ret_hex, hex);
	return 0;
}

static int store_file(const struct kb_build *b, const char *from, const char *dir,
		      const char *name, struct kb_str *sums, char **ret_hex,
		      struct kb_error *err)
{
	KB_AUTO_FREE char *source = kb_path_join(b->obj, from);
	KB_AUTO_FREE char *target = kb_path_join(dir, name);
	int r = kb_streq(name, "vmlinux") ? store_vmlinux(source, target, err) :
					    kb_copy_file(source, target, err);

	return r ? r : add_sum(dir, name, sums, ret_hex, err);
}

static int store_artifacts(struct kb_build *b, const char *dir, struct kb_str *sums,
			   struct kb_error *err)
{
	KB_AUTO_FREE char *log_copy = kb_path_join(dir, "build.log");
	int r = 0;

	if (b->rec->outcome == KB_BUILD_OK) {
		r = store_file(b, "arch/x86/boot/bzImage", dir, "bzImage", sums,
			       &b->rec->kernel_sha256, err);
		if (!r)
			r = store_file(b, "System.map", dir, "System.map", sums, NULL, err);
		if (!r)
			r = store_file(b, "vmlinux", dir, "vmlinux", sums, NULL, err);
	}
	if (!r && b->configured)
		r = store_file(b, ".config", dir, "config", sums, &b->rec->config_sha256, err);
	if (!r && kb_path_exists(b->log))
		r = kb_copy_file(b->log, log_copy, err);
	return r;
}

int kb_build_store_put(struct kb_build *b, struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str sums = { 0 };
	KB_AUTO(kb_close) int fd = -1;
	KB_AUTO_FREE char *dir = NULL;
	int r = kb_cache_begin(b->req->cache_dir, KB_CACHE_BUILDS, &dir, &fd, err);

	if (r)
		return r;
	KB_AUTO_FREE char *record_path = kb_path_join(dir, RECORD_FILE);
	KB_AUTO_FREE char *sums_path = kb_path_join(dir, SUMS_FILE);
	replace(&b->rec->artifact_dir, b->entry);
	r = store_artifacts(b, dir, &sums, err);
	if (!r)
		r = kb_build_record_write(record_path, b->rec, err);
	if (!r) /* last: a damaged record is found out, too */
		r = add_sum(dir, RECORD_FILE, &sums, NULL, err);
	if (!r)
		r = kb_write_file_atomic(sums_path, sums.data, sums.len, err);
	if (!r)
		r = kb_cache_commit(dir, b->entry, &fd, err);
	if (r) {
		(void)kb_remove_tree(dir, NULL);
		return r;
	}
	b->entry_fd = fd;
	fd = -1;
	return 0;
}
