/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/cache.h"
#include "harness/kversion.h"
#include "harness/paths.h"
#include "harness/vm_domxml.h"
#include "harness/workload.h"

#define BOOT_UNIT_RETRIES 2
#define QEMU_PROGRAM "qemu-system-x86_64"

static int find_oldest(struct kb_repo *repo, const struct kb_oid *commits, size_t count,
		       struct kb_kversion *ret_oldest, struct kb_error *err)
{
	struct kb_kversion oldest = { 0, 0 };

	for (size_t i = 0; i < count; i++) {
		KB_AUTO_FREE char *text = NULL;
		size_t len = 0;
		int r = kb_repo_read_file(repo, &commits[i], "Makefile", &text, &len, err);

		if (r)
			return r;
		struct kb_kversion v = kb_kversion_from_makefile(text ? text : "", len);
		if (i == 0 || kb_kversion_compare(v, oldest) < 0)
			oldest = v;
	}
	*ret_oldest = oldest;
	return 0;
}

static int read_qemu_version(char **ret_version, struct kb_error *err)
{
	const char *const argv[] = { QEMU_PROGRAM, "--version", NULL };
	struct kb_proc_result res;
	char *out = NULL;
	int r = kb_proc_capture(argv, 20000, 4096, &out, &res, err);

	if (r)
		return r;
	if (res.exit_code != 0) {
		free(out);
		return kb_error_set(err, KB_EVM,
				    QEMU_PROGRAM " --version failed: is qemu-system-x86 whole?");
	}
	char *newline = strchr(out, '\n');
	if (newline)
		*newline = '\0';
	*ret_version = out;
	return 0;
}

/* What can be had without pushing others out; 0 when it cannot be told. */
static uint64_t available_mib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	unsigned long long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib >> 10;
}

/* Exact boots do not feel each other; timed ones do. QEMU takes some 256 MiB of its own. */
static unsigned default_parallel(const char *mode, const struct kb_job *job)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t fit = available_mib() / (job->vm_memory_mib + job->vm_scratch_mib + 256);

	if (!kb_streq(mode, "exact") || cores < 2 || fit < 2)
		return 1;
	return fit < (uint64_t)cores ? (unsigned)fit : (unsigned)cores;
}

static int make_neutral_xml(const struct kb_boot_request *req, char **ret_xml,
			    struct kb_error *err);

/* What no machine can be made of is found out now, not after the first kernel build. */
static int check_machine(const struct kb_measure *m, struct kb_error *err)
{
	KB_AUTO(kb_boot_request_free) struct kb_boot_request req = { 0 };
	const struct kb_build_record none = { .artifact_dir = (char *)"/",
					      .kernel_sha256 = (char *)"" };
	KB_AUTO_FREE char *xml = NULL;

	kb_measure_boot_request(m, &none, 0, "/", &req);
	return make_neutral_xml(&req, &xml, err);
}

int kb_measure_init(struct kb_measure *m, const struct kb_job *job,
		    const struct kb_run_info *info, struct kb_repo *repo, const char *run_dir,
		    const struct kb_oid *endpoints, size_t count, struct kb_error *err)
{
	struct kb_kversion oldest;
	int r;

	*m = (struct kb_measure){ .job = job, .info = info, .repo = repo, .run_dir = run_dir };
	m->cache_dir = kb_cache_dir();
	m->parallel = job->vm_parallel ? job->vm_parallel : default_parallel(info->mode, job);
	for (size_t i = 0; i < job->kernel_fragments.count; i++) {
		KB_AUTO_FREE char *path = NULL;

		r = kb_path_fragment(job->kernel_fragments.items[i], &path, err);
		if (r)
			return r;
		kb_strv_add(&m->fragments, path);
	}
	r = kb_workload_resolve(job->workload_name, &job->workload_params, job->vm_memory_mib,
				&m->workload_params, err);
	if (r)
		return r;
	if (job->fs_mkfs_options) {
		m->mkfs_options = kb_strdup(job->fs_mkfs_options);
	} else {
		r = find_oldest(repo, endpoints, count, &oldest, err);
		if (r)
			return r;
		m->mkfs_options = kb_strdup(kb_kversion_mkfs_options(oldest));
		kb_debug("mkfs options for kernels from %u.%u on: %s", oldest.major,
			 oldest.minor, m->mkfs_options);
	}
	r = check_machine(m, err);
	return r ? r : read_qemu_version(&m->qemu_version, err);
}

void kb_measure_free(struct kb_measure *m)
{
	for (size_t i = 0; i < m->held_count; i++)
		kb_close(&m->held[i]);
	free(m->held);
	free(m->cache_dir);
	free(m->mkfs_options);
	free(m->qemu_version);
	kb_strv_free(&m->fragments);
	kb_pairs_free(&m->workload_params);
	*m = (struct kb_measure){ 0 };
}

/* ---- build ---- */

static void copy_strv(struct kb_strv *to, const struct kb_strv *from)
{
	for (size_t i = 0; i < from->count; i++)
		kb_strv_add(to, from->items[i]);
}

/* One slot per repository, so that neighbouring commits of it build incrementally. */
static char *slot_dir(const struct kb_measure *m)
{
	char hex[KB_HASH_HEX_LEN + 1];
	const char *git_dir = kb_repo_git_dir(m->repo);

	kb_hash_bytes(git_dir, strlen(git_dir), hex);
	return kb_asprintf("%s/slots/%.12s", m->cache_dir, hex);
}

static int make_build_request(struct kb_measure *m, const struct kb_oid *commit,
			      struct kb_build_request *req, struct kb_error *err)
{
	struct kb_oid tree;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int r = kb_repo_tree(m->repo, commit, &tree, err);

	if (r)
		return r;
	req->repo_path = kb_strdup(m->info->repo_path);
	req->commit = kb_strdup(commit->hex);
	req->tree = kb_strdup(tree.hex);
	copy_strv(&req->fragments, &m->fragments);
	copy_strv(&req->required, &m->job->kernel_required);
	copy_strv(&req->make_args, &m->job->kernel_make_args);
	req->cache_dir = kb_strdup(m->cache_dir);
	req->slot_dir = slot_dir(m);
	req->jobs = m->job->kernel_jobs ? m->job->kernel_jobs : (uint32_t)(cores > 0 ? cores : 1);
	req->timeout_ms = m->job->kernel_timeout_ms;
	return 0;
}

/* `kbisect gc` beside us must not take a kernel between its build and its last boot. An entry
 * that cannot be held (another host's, or a test's) is used all the same. */
static void hold_artifact(struct kb_measure *m, const struct kb_build_record *build)
{
	int fd = -1;

	if (!build->artifact_dir || kb_cache_hold(build->artifact_dir, &fd, NULL))
		return;
	KB_GROW(m->held, m->held_count, m->held_cap);
	m->held[m->held_count++] = fd;
}

int kb_measure_build(struct kb_measure *m, const struct kb_oid *commit,
		     struct kb_build_record *ret_record, char **ret_record_rel,
		     struct kb_error *err)
{
	KB_AUTO(kb_build_request_free) struct kb_build_request req = { 0 };
	KB_AUTO_FREE char *work = kb_asprintf("%s/builds/%.12s.d", m->run_dir, commit->hex);
	KB_AUTO_FREE char *rel = kb_asprintf("builds/%s.json", commit->hex);
	KB_AUTO_FREE char *path = kb_path_join(m->run_dir, rel);
	int r = make_build_request(m, commit, &req, err);

	if (r)
		return r;
	r = kb_unit_build(m->info->unit_command, &req, work, m->tick, m->tick_ctx, ret_record,
			  err);
	if (r)
		return r;
	hold_artifact(m, ret_record);
	r = kb_build_record_write(path, ret_record, err);
	if (r) {
		kb_build_record_free(ret_record);
		return r;
	}
	*ret_record_rel = KB_STEAL(rel);
	return 0;
}

/* ---- boots ---- */

void kb_measure_boot_request(const struct kb_measure *m, const struct kb_build_record *build,
			     uint32_t perturbation, const char *work_dir,
			     struct kb_boot_request *req)
{
	const struct kb_job *job = m->job;

	req->kernel_path = kb_path_join(build->artifact_dir, "bzImage");
	req->kernel_sha256 = kb_strdup(build->kernel_sha256);
	req->image_path = kb_strdup(m->info->image_path);
	req->image_sha256 = kb_strdup(m->info->image_sha256);
	req->mode = kb_strdup(m->info->mode);
	req->accel = kb_strdup(m->info->accel);
	req->uri = kb_strdup(job->vm_uri);
	req->machine = kb_strdup(job->vm_machine);
	req->scratch = kb_strdup(job->vm_scratch);
	req->memory_mib = job->vm_memory_mib;
	req->vcpus = job->vm_vcpus;
	req->scratch_mib = job->vm_scratch_mib;
	req->perturbation = perturbation;
	req->boot_timeout_ms = job->vm_boot_timeout_ms;
	req->timeout_ms = job->vm_timeout_ms;
	req->console_max_bytes = job->vm_console_max_bytes;
	req->extra_cmdline = kb_strdup(job->vm_extra_cmdline);
	req->work_dir = kb_strdup(work_dir);
	kb_pairs_add(&req->params, "mode", m->info->mode);
	kb_pairs_add(&req->params, "scratch.mkfs", m->mkfs_options);
	if (job->fs_mount_options && *job->fs_mount_options)
		kb_pairs_add(&req->params, "scratch.mount_options", job->fs_mount_options);
	kb_pairs_add(&req->params, "workload", job->workload_name);
	for (size_t i = 0; i < m->workload_params.count; i++) {
		KB_AUTO_FREE char *key =
			kb_asprintf("param.%s", m->workload_params.items[i].name);

		kb_pairs_add(&req->params, key, m->workload_params.items[i].value);
	}
}

/* The domain of a boot, with names and paths that differ from boot to boot left out. */
static int make_neutral_xml(const struct kb_boot_request *req, char **ret_xml,
			    struct kb_error *err)
{
	struct kb_boot_request neutral = *req;

	neutral.kernel_path = (char *)"kernel";
	struct kb_domxml_spec spec = { .req = &neutral, .name = "boot", .initrd_path = "initrd",
				       .console_path = "console", .scratch_path = "scratch" };
	if (kb_starts_with(req->uri, "qemu:///embed"))
		spec.rom_path = kb_domxml_rom(req);
	return kb_domxml_make(&spec, ret_xml, err);
}

/*
 * An exact boot is a pure function of these: whoever computed it, it need not be computed
 * again. NULL for a request that is not exact.
 */
static char *cache_path(const struct kb_measure *m, const struct kb_boot_request *req)
{
	char hex[KB_HASH_HEX_LEN + 1];

	if (!kb_streq(req->mode, "exact") || m->fresh)
		return NULL;
	struct kb_hash *h = kb_hash_new();
	KB_AUTO_FREE char *xml = NULL;

	/* The domain says it all but for the files' contents. */
	if (make_neutral_xml(req, &xml, NULL)) {
		kb_hash_finish(h, hex);
		return NULL;
	}
	const char *const texts[] = { "kbisect exact boot 3", m->qemu_version, xml,
				      req->kernel_sha256, req->image_sha256 };

	for (size_t i = 0; i < KB_COUNT_OF(texts); i++)
		kb_hash_update_str(h, texts[i]);
	for (size_t i = 0; i < req->params.count; i++) {
		kb_hash_update_str(h, req->params.items[i].name);
		kb_hash_update_str(h, req->params.items[i].value);
	}
	kb_hash_finish(h, hex);
	return kb_asprintf("%s/boots/%.2s/%s.json", m->cache_dir, hex, hex);
}

struct boot_batch {
	struct kb_measure *m;
	const struct kb_boot_wish *wishes; /* of the boots that really run */
	struct kb_boot_request *requests;
	struct kb_unit_boot_job *jobs;
	char **rel;
	size_t count;
	kb_measure_done done;
	void *ctx;
};

static void boot_batch_free(struct boot_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		kb_boot_request_free(&b->requests[i]);
		free((char *)b->jobs[i].record_path);
		free(b->rel[i]);
	}
	free(b->requests);
	free(b->jobs);
	free(b->rel);
	free((struct kb_boot_wish *)b->wishes);
}

static void remember_boot(const struct kb_measure *m, const struct kb_boot_request *req,
			  const struct kb_boot_record *record)
{
	KB_AUTO_FREE char *path = cache_path(m, req);
	struct kb_error err;

	/* Failures are not remembered: a time limit depends on the host. */
	if (!path || record->outcome != KB_BOOT_OK)
		return;
	KB_AUTO_FREE char *dir = kb_strndup(path, (size_t)(strrchr(path, '/') - path));
	if (kb_mkdirs(dir, &err) || kb_boot_record_write(path, record, &err))
		kb_warn("boot not cached: %s", err.message);
}

static void batch_tick(void *ctx)
{
	const struct kb_measure *m = ((struct boot_batch *)ctx)->m;

	if (m->tick)
		m->tick(m->tick_ctx);
}

static int boot_finished(void *ctx, size_t index, const struct kb_boot_record *record,
			 struct kb_error *err)
{
	struct boot_batch *b = ctx;

	remember_boot(b->m, &b->requests[index], record);
	return b->done(b->ctx, &b->wishes[index], record, b->rel[index], false, err);
}

/* @return 1 when the cache had it (and `done` was called), 0 when not, negative on error */
static int try_cache(struct boot_batch *b, const struct kb_boot_wish *wish,
		     const struct kb_boot_request *req, const char *record_path,
		     const char *rel, struct kb_error *err)
{
	KB_AUTO_FREE char *path = cache_path(b->m, req);
	KB_AUTO(kb_boot_record_free) struct kb_boot_record record = { 0 };
	struct kb_error why;
	int r;

	if (!path || !kb_path_exists(path))
		return 0;
	r = kb_boot_record_read(path, &record, &why);
	if (r || record.outcome != KB_BOOT_OK ||
	    !kb_streq(record.kernel_sha256, req->kernel_sha256)) {
		kb_warn("cached boot %s is damaged (%s); booting again", path,
			r ? why.message : "it is another kernel's");
		unlink(path);
		return 0;
	}
	kb_cache_touch(path);
	r = kb_boot_record_write(record_path, &record, err);
	if (!r)
		r = b->done(b->ctx, wish, &record, rel, true, err);
	return r ? r : 1;
}

/*
 * A boot that finished but whose controller was killed before it was written into the
 * journal: its record is there (written by rename, so whole) and is taken, not repeated.
 * @return as try_cache()
 */
static int try_finished(struct boot_batch *b, const struct kb_boot_wish *wish,
			const struct kb_boot_request *req, const char *record_path,
			const char *rel, struct kb_error *err)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record record = { 0 };

	if (!kb_path_exists(record_path) || kb_boot_record_read(record_path, &record, NULL) ||
	    !kb_streq(record.kernel_sha256, req->kernel_sha256) ||
	    record.perturbation != wish->perturbation || record.outcome == KB_BOOT_KILLED)
		return 0;
	int r = b->done(b->ctx, wish, &record, rel, false, err);
	return r ? r : 1;
}

static int plan_boot(struct boot_batch *b, const struct kb_oid *commit,
		     const struct kb_build_record *build, const struct kb_boot_wish *wish,
		     struct kb_error *err)
{
	KB_AUTO(kb_boot_request_free) struct kb_boot_request req = { 0 };
	KB_AUTO_FREE char *rel =
		kb_asprintf("boots/%.12s-%u.json", commit->hex, wish->perturbation);
	KB_AUTO_FREE char *work = kb_asprintf("%s/boots/%.12s-%u.d", b->m->run_dir, commit->hex,
					      wish->perturbation);
	KB_AUTO_FREE char *path = kb_path_join(b->m->run_dir, rel);
	int r;

	kb_measure_boot_request(b->m, build, wish->perturbation, work, &req);
	r = try_finished(b, wish, &req, path, rel, err);
	if (!r)
		r = try_cache(b, wish, &req, path, rel, err);
	if (r)
		return r < 0 ? r : 0;
	r = kb_mkdirs(work, err);
	if (r)
		return r;
	size_t i = b->count++;
	b->requests[i] = req;
	req = (struct kb_boot_request){ 0 };
	b->rel[i] = KB_STEAL(rel);
	b->jobs[i].request = &b->requests[i];
	b->jobs[i].record_path = KB_STEAL(path);
	((struct kb_boot_wish *)b->wishes)[i] = *wish;
	return 0;
}

int kb_measure_boots(struct kb_measure *m, const struct kb_oid *commit,
		     const struct kb_build_record *build, const struct kb_boot_wish *wishes,
		     size_t count, kb_measure_done done, void *ctx, struct kb_error *err)
{
	KB_AUTO(boot_batch_free) struct boot_batch b = { .m = m, .done = done, .ctx = ctx };
	KB_AUTO_FREE char *boots_dir = kb_path_join(m->run_dir, "boots");
	int r = kb_mkdirs(boots_dir, err);

	if (r || count == 0)
		return r;
	b.requests = kb_calloc(count, sizeof(*b.requests));
	b.jobs = kb_calloc(count, sizeof(*b.jobs));
	b.rel = kb_calloc(count, sizeof(*b.rel));
	b.wishes = kb_calloc(count, sizeof(*b.wishes));
	for (size_t i = 0; i < count; i++) {
		r = plan_boot(&b, commit, build, &wishes[i], err);
		if (r)
			return r;
	}
	return kb_unit_boots(m->info->unit_command, b.jobs, b.count, m->parallel,
			     BOOT_UNIT_RETRIES, boot_finished, batch_tick, &b, err);
}
