/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"
#include "harness/paths.h"

#define UNIT_LOG_MAX_BYTES (8u << 20)

/* A boot unit keeps its own limits; this is the net below them. */
static uint64_t boot_guard_ms(const struct kb_boot_request *r)
{
	return r->boot_timeout_ms + 2 * r->timeout_ms + 120000;
}

static uint64_t build_guard_ms(const struct kb_build_request *r)
{
	return r->timeout_ms + 600000; /* checkout and configuration come on top */
}

struct unit_argv {
	struct kb_strv words;
};

static void unit_argv_free(struct unit_argv *a)
{
	kb_strv_free(&a->words);
}

static int make_argv(const char *command, const char *kind, const char *request,
		     const char *record, struct unit_argv *ret, struct kb_error *err)
{
	if (command && *command) {
		kb_strv_split(&ret->words, command, " \t");
	} else {
		KB_AUTO_FREE char *self = NULL;
		int r = kb_path_self(&self, err);

		if (r)
			return r;
		kb_strv_add(&ret->words, self);
		kb_strv_add(&ret->words, "unit");
	}
	kb_strv_add(&ret->words, kind);
	kb_strv_add(&ret->words, request);
	kb_strv_add(&ret->words, record);
	return 0;
}

/* The last lines of a unit's log, for an error message. */
static char *log_tail(const char *path)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (kb_read_file(path, UNIT_LOG_MAX_BYTES, &text, &len, NULL) || len == 0)
		return kb_strdup("it said nothing");
	size_t from = len > 600 ? len - 600 : 0;
	char *tail = kb_str_sanitize(text + from, len - from, 600);
	kb_str_rstrip(tail);
	for (char *p = tail; *p; p++)
		if (*p == '\n')
			*p = '|';
	return tail;
}

static int unit_failed(enum kb_errno code, const char *what, const char *log_path,
		       const struct kb_proc_result *res, struct kb_error *err)
{
	KB_AUTO_FREE char *tail = log_tail(log_path);

	if (res->interrupted || kb_interrupted())
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	if (res->timed_out)
		return kb_error_set(err, code, "the %s unit did not end in time: %s", what, tail);
	if (res->term_signal)
		return kb_error_set(err, code, "the %s unit was killed by signal %d: %s", what,
				    res->term_signal, tail);
	return kb_error_set(err, code, "the %s unit failed (exit %d): %s", what, res->exit_code,
			    tail);
}

int kb_unit_build(const char *command, const struct kb_build_request *request, const char *dir,
		  kb_unit_tick tick, void *ctx, struct kb_build_record *ret_record,
		  struct kb_error *err)
{
	KB_AUTO_FREE char *req = kb_path_join(dir, "request.json");
	KB_AUTO_FREE char *rec = kb_path_join(dir, "record.json");
	KB_AUTO_FREE char *log = kb_path_join(dir, "unit.log");
	KB_AUTO(unit_argv_free) struct unit_argv argv = { 0 };
	struct kb_proc_result res = { 0 };
	struct kb_proc *proc = NULL;
	int r = kb_mkdirs(dir, err);

	if (!r)
		r = kb_build_request_write(req, request, err);
	if (!r)
		r = make_argv(command, "build", req, rec, &argv, err);
	if (r)
		return r;
	unlink(rec); /* an old record must not pass for this build's */
	struct kb_proc_spec spec = { .argv = (const char *const *)argv.words.items,
				     .output_path = log,
				     .timeout_ms = build_guard_ms(request) };
	r = kb_proc_start(&spec, &proc, err);
	if (r)
		return r;
	while ((r = kb_proc_poll(proc, 500, &res, err)) == 0)
		if (tick)
			tick(ctx);
	kb_proc_free(proc);
	if (r < 0)
		return r;
	if (res.exit_code != 0 || res.timed_out || res.interrupted)
		return unit_failed(KB_EBUILD, "build", log, &res, err);
	r = kb_build_record_read(rec, ret_record, err);
	if (r)
		return r;
	if (!kb_streq(ret_record->tree, request->tree) ||
	    (ret_record->outcome == KB_BUILD_OK &&
	     (!ret_record->artifact_dir || !ret_record->kernel_sha256))) {
		kb_build_record_free(ret_record);
		*ret_record = (struct kb_build_record){ 0 };
		return kb_error_set(err, KB_EBUILD,
				    "the build unit's record is of another tree, or names no kernel");
	}
	return 0;
}

/* ---- boots, several at once ---- */

struct running {
	struct kb_proc *proc; /* NULL: free place */
	size_t index;
	unsigned failures;
};

struct batch {
	const char *command;
	const struct kb_unit_boot_job *jobs;
	unsigned retries;
	kb_unit_boot_done done;
	void *ctx;
};

static char *beside(const struct kb_unit_boot_job *job, const char *name)
{
	return kb_path_join(job->request->work_dir, name);
}

static int start_boot(const struct batch *b, struct running *run, struct kb_error *err)
{
	const struct kb_unit_boot_job *job = &b->jobs[run->index];
	KB_AUTO_FREE char *req = beside(job, "request.json");
	KB_AUTO_FREE char *log = beside(job, "unit.log");
	KB_AUTO(unit_argv_free) struct unit_argv argv = { 0 };
	int r = kb_boot_request_write(req, job->request, err);

	if (!r)
		r = make_argv(b->command, "boot", req, job->record_path, &argv, err);
	if (r)
		return r;
	unlink(job->record_path);
	struct kb_proc_spec spec = { .argv = (const char *const *)argv.words.items,
				     .output_path = log,
				     .timeout_ms = boot_guard_ms(job->request) };
	return kb_proc_start(&spec, &run->proc, err);
}

/* A unit may be a stranger's wrapper, and QEMU gone is no fact about the kernel. */
static int check_record(const struct kb_boot_request *req, const struct kb_boot_record *rec,
			struct kb_error *err)
{
	if (rec->outcome == KB_BOOT_KILLED)
		return kb_error_set(err, KB_EVM, "QEMU went away: %s",
				    rec->reason ? rec->reason : "no reason recorded");
	if (!kb_streq(rec->kernel_sha256, req->kernel_sha256) ||
	    rec->perturbation != req->perturbation)
		return kb_error_set(err, KB_EVM,
				    "the boot unit's record is of another kernel or perturbation");
	return 0;
}

/* @return 0 finished, 1 started again after a failure of the unit, negative on error */
static int finish_boot(const struct batch *b, struct running *run,
		       const struct kb_proc_result *res, struct kb_error *err)
{
	const struct kb_unit_boot_job *job = &b->jobs[run->index];
	KB_AUTO_FREE char *log = beside(job, "unit.log");
	KB_AUTO(kb_boot_record_free) struct kb_boot_record record = { 0 };
	struct kb_error why;
	int r = 0;

	kb_proc_free(run->proc);
	run->proc = NULL;
	if (res->interrupted || kb_interrupted())
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	if (res->exit_code != 0 || res->timed_out)
		r = unit_failed(KB_EVM, "boot", log, res, &why);
	else
		r = kb_boot_record_read(job->record_path, &record, &why);
	if (!r)
		r = check_record(job->request, &record, &why);
	if (r) {
		if (run->failures++ < b->retries) {
			kb_warn("%s; trying again", why.message);
			r = start_boot(b, run, err);
			return r ? r : 1;
		}
		return kb_error_set(err, KB_EVM, "%s", why.message);
	}
	return b->done(b->ctx, run->index, &record, err);
}

int kb_unit_boots(const char *command, const struct kb_unit_boot_job *jobs, size_t count,
		  unsigned parallel, unsigned retries, kb_unit_boot_done done,
		  kb_unit_tick tick, void *ctx, struct kb_error *err)
{
	struct batch b = { command, jobs, retries, done, ctx };
	size_t next = 0, active = 0, places = parallel ? parallel : 1;
	KB_AUTO_FREE struct running *run = kb_calloc(places, sizeof(*run));
	uint64_t ticked = kb_now_ms();
	int r = 0;

	while (r >= 0 && (next < count || active > 0)) {
		for (size_t i = 0; i < places && r >= 0; i++) {
			struct kb_proc_result res = { 0 };

			if (!run[i].proc) {
				if (next == count)
					continue;
				run[i] = (struct running){ .index = next++ };
				r = start_boot(&b, &run[i], err);
				if (r >= 0)
					active++;
				continue;
			}
			r = kb_proc_poll(run[i].proc, 10, &res, err);
			if (r <= 0)
				continue;
			r = finish_boot(&b, &run[i], &res, err);
			if (r == 0)
				active--;
		}
		if (tick && kb_now_ms() - ticked >= 500) {
			ticked = kb_now_ms();
			tick(ctx);
		}
	}
	for (size_t i = 0; i < places; i++)
		kb_proc_free(run[i].proc); /* kills what still runs after an error */
	return r < 0 ? r : 0;
}
