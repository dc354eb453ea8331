/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stored documents of all kinds: any bytes in a file in memory. What is read must be read
 * again after it was written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "results/record.h"
#include "results/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A folder for what is written, made once. */
static const char *out_path(void)
{
	static char path[64];

	if (!*path) {
		char dir[] = "/tmp/kb-fuzz-record-XXXXXX", shm[] = "/dev/shm/kb-fuzz-record-XXXXXX";

		if (!mkdtemp(access("/dev/shm", W_OK) ? dir : shm))
			abort();
		snprintf(path, sizeof(path), "%s/out.json", access("/dev/shm", W_OK) ? dir : shm);
	}
	return path;
}

static void remove_out(void)
{
	char *path = kb_strdup(out_path());

	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	free(path);
}

static void try_boot(const char *path)
{
	KB_AUTO(kb_boot_record_free) struct kb_boot_record a = { 0 }, b = { 0 };
	KB_AUTO(kb_boot_request_free) struct kb_boot_request request = { 0 };
	struct kb_error err;

	if (!kb_boot_record_read(path, &a, &err)) {
		if (kb_boot_record_write(out_path(), &a, &err) ||
		    kb_boot_record_read(out_path(), &b, &err))
			abort();
		if (a.counter_count != b.counter_count || a.metric_count != b.metric_count ||
		    a.outcome != b.outcome)
			abort();
	}
	if (!kb_boot_request_read(path, &request, &err) &&
	    kb_boot_request_write(out_path(), &request, &err))
		abort();
}

static void try_build(const char *path)
{
	KB_AUTO(kb_build_record_free) struct kb_build_record record = { 0 };
	KB_AUTO(kb_build_request_free) struct kb_build_request request = { 0 };
	struct kb_error err;

	if (!kb_build_record_read(path, &record, &err) &&
	    kb_build_record_write(out_path(), &record, &err))
		abort();
	if (!kb_build_request_read(path, &request, &err) &&
	    kb_build_request_write(out_path(), &request, &err))
		abort();
}

static void try_report(const char *path)
{
	KB_AUTO(kb_report_free) struct kb_report a = { 0 }, b = { 0 };
	KB_AUTO_FREE char *text = NULL;
	struct kb_error err;
	size_t len = 0;

	if (kb_report_read(path, &a, &err))
		return;
	FILE *out = open_memstream(&text, &len);
	kb_report_text(&a, out);
	fclose(out);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n')
			abort(); /* it would reach a terminal */
	if (kb_report_write(out_path(), &a, &err) || kb_report_read(out_path(), &b, &err))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_set_up;
	KB_AUTO(kb_close) int fd = memfd_create("record", MFD_CLOEXEC);
	char path[64];

	if (!is_set_up) {
		is_set_up = true;
		out_path();
		atexit(remove_out);
	}
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	try_boot(path);
	try_build(path);
	try_report(path);
	return 0;
}
