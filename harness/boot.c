/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/boot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "guest-init/proto.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/boot_internal.h"

enum {
	POLL_MS = 10,
	CONNECT_MS = 30000, /* SSH, one try */
	COLLECT_TRIES = 3,
	GRACE_CRASH_MS = 1500, /* for the rest of an oops, or the end by itself */
	GRACE_OOM_MS = 5000,   /* for init to say what came of it */
	GRACE_FAIL_MS = 1000,
};

enum stop {		   /* why the watch ended */
	    STOP_ENDED,	   /* QEMU is gone */
	    STOP_RESULT,   /* the end marker */
	    STOP_CONSOLE,  /* trouble on the console: crash, failure, flood, lie */
	    STOP_NO_START, /* time limits */
	    STOP_TIMEOUT,
};

static enum kb_crash_kind crash_of(const struct boot *b, const char **ret_line)
{
	return kb_crash_result(&b->console.crash, ret_line);
}

/* How long a guest in this state may still go on; UINT64_MAX: nothing is wrong. */
static uint64_t grace_ms(const struct boot *b)
{
	const struct kb_console *c = &b->console;
	const char *line;

	if (c->flooded || c->lied)
		return 0;
	if (c->has_fail)
		return GRACE_FAIL_MS;
	switch (crash_of(b, &line)) {
	case KB_CRASH_PANIC:
	case KB_CRASH_OOPS:
		return GRACE_CRASH_MS;
	case KB_CRASH_OOM:
		return GRACE_OOM_MS;
	default:
		return UINT64_MAX;
	}
}

/* Watches console and QEMU until something is decided. */
static int watch(struct boot *b, enum stop *ret_stop, enum kb_vm_state *ret_state,
		 const char **ret_text, struct kb_error *err)
{
	const struct kb_boot_request *req = b->req;
	const struct kb_console *c = &b->console;
	uint64_t trouble_ms = 0;

	for (;; kb_sleep_ms(POLL_MS)) {
		/* In this order: what is read after the end is all there is. */
		*ret_state = kb_vm_poll(b->vm, ret_text);
		int r = kb_console_poll(&b->console, err);
		if (r)
			return r;
		uint64_t now = kb_now_ms(), grace = grace_ms(b);

		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
		if (grace != UINT64_MAX && !trouble_ms)
			trouble_ms = now;
		if (*ret_state != KB_VM_RUNNING)
			*ret_stop = STOP_ENDED;
		else if (grace != UINT64_MAX && now - trouble_ms >= grace)
			*ret_stop = STOP_CONSOLE;
		else if (grace == UINT64_MAX && c->has_result)
			*ret_stop = STOP_RESULT;
		else if (!c->started && now - b->created_ms >= req->boot_timeout_ms)
			*ret_stop = STOP_NO_START;
		else if (now - b->created_ms >= req->timeout_ms)
			*ret_stop = STOP_TIMEOUT;
		else
			continue;
		return 0;
	}
}

static int fail_with(struct kb_boot_record *rec, enum kb_boot_outcome outcome,
		     char *reason)
{
	free(rec->reason);
	rec->outcome = outcome;
	rec->reason = reason;
	return 0;
}

static char *failed_step(const struct kb_console *c)
{
	return kb_asprintf("step %s: %s (errno %d)", c->fail.name, c->fail.text,
			   c->fail.errno_value);
}

/* ---- collecting ---- */

static bool vm_is_gone(struct boot *b)
{
	return kb_vm_poll(b->vm, NULL) != KB_VM_RUNNING;
}

static int fetch(struct boot *b, char **ret_data, size_t *ret_len, struct kb_error *err)
{
	struct kb_guest *guest = NULL;
	uint64_t start = kb_now_ms();
	int r = boot_connect(b, CONNECT_MS, &guest, err);

	if (r)
		return r;
	uint64_t connected = kb_now_ms();
	r = kb_guest_download(guest, KB_PROTO_RESULT_PATH, KB_PROTO_RESULT_MAX_BYTES,
			      CONNECT_MS, ret_data, ret_len, err);
	kb_guest_free(guest);
	kb_debug("collect: connected after %" PRIu64 " ms, read in %" PRIu64 " ms",
		 connected - start, kb_now_ms() - connected);
	return r;
}

/*
 * The result stays in the guest, so a connection that broke is tried again. What comes is
 * checked against the marker; a document that is wrong then is the guest's doing.
 */
static int collect(struct boot *b, struct kb_boot_record *rec, struct kb_error *err)
{
	KB_AUTO_FREE char *path = kb_path_join(b->req->work_dir, "result.txt");
	KB_AUTO_FREE char *data = NULL;
	struct kb_error why = {0};
	size_t len = 0;
	int r = 0;

	for (int try = 0; try < COLLECT_TRIES; try++) {
		r = fetch(b, &data, &len, &why);
		if (!r || kb_interrupted() || vm_is_gone(b))
			break;
	}
	if (kb_interrupted())
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	int polled = kb_console_poll(&b->console, err);
	if (polled)
		return polled;
	/* Not the guest's doing: nothing was learnt about the kernel. */
	if (r && why.code != KB_EGUEST && why.code != KB_ETIMEOUT && !vm_is_gone(b))
		return kb_error_set(err, why.code, "%s", why.message);
	if (r && b->console.has_late_fail)
		return fail_with(rec, KB_BOOT_FAILED, failed_step(&b->console));
	if (r)
		return fail_with(
			rec, KB_BOOT_GARBAGE,
			kb_asprintf(
				"the result was announced but could not be fetched: %s",
				why.message));
	r = kb_write_file_atomic(path, data, len, err);
	if (r)
		return r;
	if (kb_guestdoc_parse(data, len, &b->console.result, b->nonce, rec, &why))
		return fail_with(rec, KB_BOOT_GARBAGE, kb_strdup(why.message));
	/* The guest is not asked to shut down: nothing that counts is left to happen in
	 * it. */
	return 0;
}

/* ---- the verdict ---- */

/* Trouble that the console shows, whatever else happened. @return whether there was any
 */
static bool judge_console(const struct boot *b, struct kb_boot_record *rec)
{
	const struct kb_console *c = &b->console;
	const char *line;

	switch (crash_of(b, &line)) {
	case KB_CRASH_PANIC:
		if (c->crash.oops)
			fail_with(rec, KB_BOOT_PANIC,
				  kb_asprintf("%s (%s)", line, c->crash.oops_line));
		else
			fail_with(rec, KB_BOOT_PANIC, kb_strdup(line));
		return true;
	case KB_CRASH_OOPS:
		fail_with(rec, KB_BOOT_OOPS, kb_strdup(line));
		return true;
	case KB_CRASH_OOM:
		fail_with(rec, KB_BOOT_OOM, kb_strdup(line));
		return true;
	default:
		break;
	}
	if (c->has_fail)
		fail_with(rec, KB_BOOT_FAILED, failed_step(c));
	else if (c->flooded)
		fail_with(rec, KB_BOOT_FLOOD,
			  kb_asprintf("the console log went over %" PRIu64 " bytes",
				      b->req->console_max_bytes));
	else if (c->lied)
		fail_with(rec, KB_BOOT_GARBAGE,
			  kb_strdup("a marker on the console does not fit this boot"));
	return c->has_fail || c->flooded || c->lied;
}

static void judge_silence(const struct boot *b, enum stop stop,
			  struct kb_boot_record *rec)
{
	const struct kb_console *c = &b->console;
	const char *phase = c->phase[0] ? c->phase : c->started ? "start" : "boot";

	if (stop == STOP_NO_START)
		fail_with(rec, KB_BOOT_HANG,
			  kb_asprintf("init did not start within %" PRIu64 " ms",
				      b->req->boot_timeout_ms));
	else if (stop == STOP_TIMEOUT)
		fail_with(rec, KB_BOOT_HANG,
			  kb_asprintf("no end within %" PRIu64 " ms; last phase: %s",
				      b->req->timeout_ms, phase));
	else if (c->broken_markers)
		fail_with(
			rec, KB_BOOT_GARBAGE,
			kb_asprintf(
				"the guest ended without an end marker, after %u broken "
				"marker lines",
				c->broken_markers));
	else
		fail_with(rec, KB_BOOT_DIED,
			  kb_asprintf(
				  "the guest ended without an end marker; last phase: %s",
				  phase));
}

static void judge_denied(const struct boot *b, struct kb_boot_record *rec)
{
	if (rec->outcome == KB_BOOT_OK && b->console.denied_line[0])
		fail_with(rec, KB_BOOT_INVALID,
			  kb_asprintf("on the console: %s", b->console.denied_line));
	if (b->console.crash.warned) {
		KB_AUTO_FREE char *note =
			kb_asprintf("console: %s", b->console.crash.warning_line);

		kb_strv_add(&rec->notes, note);
	}
}

/* From the watch's end to an outcome. */
static int judge(struct boot *b, enum stop stop, enum kb_vm_state state, const char *text,
		 struct kb_boot_record *rec, struct kb_error *err)
{
	uint64_t before = kb_now_ms();
	int r = 0;

	rec->run_ms = before - b->created_ms;
	if (stop == STOP_RESULT) {
		r = collect(b, rec, err);
		rec->collect_ms = kb_now_ms() - before;
		state = kb_vm_poll(b->vm, &text);
	}
	rec->qemu_command = rec->qemu_command ? rec->qemu_command : kb_vm_command(b->vm);
	kb_vm_destroy(b->vm);
	if (!r)
		r = kb_console_finish(&b->console, err);
	if (r)
		return r;
	if (state == KB_VM_KILLED)
		fail_with(rec, KB_BOOT_KILLED, kb_strdup(text));
	else if (!judge_console(b, rec) && stop != STOP_RESULT)
		judge_silence(b, stop, rec);
	judge_denied(b, rec);
	return 0;
}

static void describe(const struct boot *b, struct kb_boot_record *rec)
{
	const struct kb_boot_request *req = b->req;
	char hex[KB_HASH_HEX_LEN + 1];

	kb_hash_bytes(b->xml, strlen(b->xml), hex);
	rec->domain_xml_sha256 = kb_strdup(hex);
	rec->qemu_version = kb_strdup(kb_vm_host_qemu_version(b->host));
	rec->libvirt_version = kb_strdup(kb_vm_host_libvirt_version(b->host));
	rec->qemu_command = kb_vm_command(b->vm);
	rec->perturbation = req->perturbation;
	rec->kernel_sha256 = kb_strdup(req->kernel_sha256);
	rec->image_sha256 = kb_strdup(req->image_sha256);
	rec->console_path = kb_strdup("console.log");
	rec->create_ms = b->create_ms;
}

static int run(struct boot *b, const struct kb_boot_request *req,
	       struct kb_boot_record *rec, struct kb_error *err)
{
	enum stop stop = STOP_ENDED;
	enum kb_vm_state state = KB_VM_RUNNING;
	const char *text = "";
	double load = 0;

	rec->started_us = kb_wall_us();
	if (getloadavg(&load, 1) == 1)
		rec->host_load = load;
	int r = boot_start(b, req, err);
	if (r)
		return r;
	describe(b, rec);
	r = watch(b, &stop, &state, &text, err);
	if (!r)
		r = judge(b, stop, state, text, rec, err);
	if (r)
		return r;
	rec->console_bytes = b->console.bytes;
	if (rec->outcome != KB_BOOT_OK)
		rec->console_excerpt = kb_console_excerpt(&b->console);
	return 0;
}

int kb_boot_run(const struct kb_boot_request *req, struct kb_boot_record *ret_record,
		struct kb_error *err)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record rec = {0};
	struct boot b;
	uint64_t start = kb_now_ms();
	int r;

	memset(&b, 0, sizeof(b));
	r = run(&b, req, &rec, err);
	boot_free(&b);
	if (r)
		return r;
	rec.total_ms = kb_now_ms() - start;
	*ret_record = rec;
	rec = (struct kb_boot_record){0};
	return 0;
}
