/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A unit program for tests: "builds" a commit by reading its files "level" and "state", and
 * "boots" it by inventing values around that level. It keeps the contract of `kbisect unit`.
 *
 * FAKE_LOG: a file that gets one line per unit done. FAKE_SLEEP_MS: how long a unit takes.
 * FAKE_BREAK: "boot" or "build": such units fail. FAKE_NOISE: relative sd (default 0.002).
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bisect/repo.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "results/record.h"

#define SD_DEFAULT 0.002

static void die_if(int r, const struct kb_error *err)
{
	if (r) {
		fprintf(stderr, "fake: %s\n", err->message);
		exit(1);
	}
}

static void note(const char *kind, const char *commit, uint32_t number)
{
	const char *path = getenv("FAKE_LOG");

	if (!path)
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %s %u\n", kind, commit, number);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		exit(1);
	close(fd);
}

/* About a normal deviate, and a function of the text alone. */
static double noise(const char *text)
{
	char hex[KB_HASH_HEX_LEN + 1];
	double sum = 0;

	kb_hash_bytes(text, strlen(text), hex);
	for (int i = 0; i < 12; i++) {
		char part[6] = { 0 };

		memcpy(part, hex + 5 * i, 5);
		sum += (double)strtoul(part, NULL, 16) / 0xfffff;
	}
	return sum - 6;
}

static char *tree_file(struct kb_repo *repo, const char *commit, const char *name)
{
	struct kb_error err;
	struct kb_oid oid;
	char *text = NULL;
	size_t len = 0;

	die_if(kb_repo_resolve(repo, commit, &oid, &err), &err);
	die_if(kb_repo_read_file(repo, &oid, name, &text, &len, &err), &err);
	if (!text)
		exit(1);
	return kb_str_rstrip(text);
}

static void build(const char *request, const char *record)
{
	struct kb_build_request req = { 0 };
	struct kb_build_record rec = { .wall_ms = 10, .cpu_ms = 10 };
	struct kb_repo *repo = NULL;
	struct kb_error err;
	char hex[KB_HASH_HEX_LEN + 1];

	die_if(kb_build_request_read(request, &req, &err), &err);
	die_if(kb_repo_open(req.repo_path, &repo, &err), &err);
	char *level = tree_file(repo, req.commit, "level");
	char *state = tree_file(repo, req.commit, "state");
	rec.commit = kb_strdup(req.commit);
	rec.tree = kb_strdup(req.tree);
	kb_hash_bytes(req.tree, strlen(req.tree), hex);
	rec.key = kb_strdup(hex);
	rec.config_sha256 = kb_strdup(hex);
	rec.toolchain = kb_strdup("fake");
	if (!strcmp(state, "nobuild")) {
		rec.outcome = KB_BUILD_FAILED;
		rec.reason = kb_strdup("mm/fake.c:1: error: told so");
		rec.log_excerpt = kb_strdup("mm/fake.c:1: error: told so");
	} else {
		char *text = kb_asprintf("%s %s %s\n", level, state, req.commit);

		rec.artifact_dir = kb_asprintf("%s/builds/%s", req.cache_dir, rec.key);
		char *path = kb_path_join(rec.artifact_dir, "bzImage");
		die_if(kb_mkdirs(rec.artifact_dir, &err), &err);
		die_if(kb_write_file_atomic(path, text, strlen(text), &err), &err);
		kb_hash_bytes(text, strlen(text), hex);
		rec.kernel_sha256 = kb_strdup(hex);
		free(path);
		free(text);
	}
	die_if(kb_build_record_write(record, &rec, &err), &err);
	note("build", req.commit, 0);
	free(level);
	free(state);
	kb_repo_free(repo);
	kb_build_request_free(&req);
	kb_build_record_free(&rec);
}

static void add_metric(struct kb_boot_record *rec, const struct kb_boot_request *req,
		       double level, const char *commit)
{
	const char *sd_text = getenv("FAKE_NOISE");
	const char *n_text = kb_pairs_get(&req->params, "param.repetitions");
	double sd = sd_text ? atof(sd_text) : SD_DEFAULT;
	size_t n = n_text ? strtoul(n_text, NULL, 10) : 1;
	struct kb_metric *m = kb_calloc(1, sizeof(*m));

	m->name = kb_strdup("trunc_ns");
	m->unit = kb_strdup("ns");
	m->values = kb_calloc(n, sizeof(double));
	m->count = n;
	for (size_t i = 0; i < n; i++) {
		char *text = kb_asprintf("%s/%u/%zu", commit, req->perturbation, i);

		m->values[i] = level * (1 + sd * noise(text));
		free(text);
	}
	rec->metrics = m;
	rec->metric_count = 1;
}

static void boot(const char *request, const char *record)
{
	struct kb_boot_request req = { 0 };
	struct kb_boot_record rec = { .create_ms = 1, .run_ms = 1, .collect_ms = 1,
				      .total_ms = 3, .started_us = 1 };
	struct kb_error err;
	char *text = NULL, state[32], commit[64];
	double level;
	size_t len;

	die_if(kb_boot_request_read(request, &req, &err), &err);
	die_if(kb_read_file(req.kernel_path, 4096, &text, &len, &err), &err);
	if (sscanf(text, "%lf %31s %63s", &level, state, commit) != 3)
		exit(1);
	rec.perturbation = req.perturbation;
	rec.kernel_version = kb_strdup("6.1.0|fake");
	rec.workload = kb_strdup(kb_pairs_get(&req.params, "workload"));
	rec.kernel_sha256 = kb_strdup(req.kernel_sha256);
	rec.image_sha256 = kb_strdup(req.image_sha256);
	for (size_t i = 0; i < req.params.count; i++)
		if (kb_starts_with(req.params.items[i].name, "param."))
			kb_pairs_add(&rec.params, req.params.items[i].name + strlen("param."),
				     req.params.items[i].value);
	if (!strcmp(state, "ok")) {
		add_metric(&rec, &req, level, commit);
	} else {
		if (kb_boot_outcome_parse(state, &rec.outcome))
			exit(1);
		rec.reason = kb_asprintf("told to %s", state);
	}
	die_if(kb_boot_record_write(record, &rec, &err), &err);
	note("boot", commit, req.perturbation);
	free(text);
	kb_boot_request_free(&req);
	kb_boot_record_free(&rec);
}

int main(int argc, char **argv)
{
	const char *sleep_ms = getenv("FAKE_SLEEP_MS"), *broken = getenv("FAKE_BREAK");

	if (argc != 4)
		return 2;
	if (sleep_ms)
		kb_sleep_ms(strtoul(sleep_ms, NULL, 10));
	if (broken && !strcmp(broken, argv[1])) {
		fputs("fake: told to break\n", stderr);
		return 1;
	}
	if (!strcmp(argv[1], "build"))
		build(argv[2], argv[3]);
	else
		boot(argv[2], argv[3]);
	return 0;
}
