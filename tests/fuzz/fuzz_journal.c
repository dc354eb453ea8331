/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Journals: any bytes in a file in memory. What opens must be the same before and after, and
 * whole after one more event. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "results/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_events(const char *path, int *ret_code)
{
	struct kb_event *events = NULL;
	size_t count = 0;
	struct kb_error err;

	*ret_code = kb_journal_read(path, &events, &count, &err);
	for (size_t i = 0; i < count; i++)
		kb_event_free(&events[i]);
	free(events);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KB_AUTO(kb_close) int fd = memfd_create("journal", MFD_CLOEXEC);
	struct kb_event event = { .kind = KB_EVENT_NOTE, .at_us = 1 };
	struct kb_journal *journal = NULL;
	struct kb_error err;
	char path[64];
	int read_code;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	size_t before = count_events(path, &read_code);
	int open_code = kb_journal_open(path, &journal, &err);
	if ((read_code == 0) != (open_code == 0))
		abort();
	if (open_code == 0) {
		if (kb_journal_append(journal, &event, &err))
			abort();
		kb_journal_close(journal);
		if (count_events(path, &read_code) != before + 1 || read_code)
			abort();
	}
	return 0;
}
