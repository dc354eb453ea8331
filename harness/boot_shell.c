/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/boot.h"

#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"
#include "harness/boot_internal.h"

enum { POLL_MS = 20, CONNECT_MS = 60000 };

static int no_shell(struct boot *b, struct kb_error *err, const char *what)
{
	KB_AUTO_FREE char *excerpt = kb_console_excerpt(&b->console);
	size_t len = strlen(excerpt);

	return kb_error_set(err, KB_EGUEST, "%s; the console's last lines: %s", what,
			    excerpt + (len > 600 ? len - 600 : 0));
}

static int wait_for_ssh(struct boot *b, struct kb_error *err)
{
	const char *line = "", *text = "";

	for (;; kb_sleep_ms(POLL_MS)) {
		enum kb_vm_state state = kb_vm_poll(b->vm, &text);
		int r = kb_console_poll(&b->console, err);

		if (r)
			return r;
		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
		if (b->console.started && kb_streq(b->console.phase, "ssh"))
			return 0;
		if (state != KB_VM_RUNNING)
			return no_shell(b, err, text);
		if (kb_crash_result(&b->console.crash, &line) == KB_CRASH_PANIC)
			return no_shell(b, err, "the kernel panicked");
		if (b->console.has_fail)
			return no_shell(b, err, "the guest's init failed");
		if (kb_now_ms() - b->created_ms >= b->req->boot_timeout_ms)
			return no_shell(b, err, "the guest did not come up in time");
	}
}

int kb_boot_shell(const struct kb_boot_request *req, int *ret_exit, struct kb_error *err)
{
	struct kb_guest *guest = NULL;
	struct boot b;

	memset(&b, 0, sizeof(b));
	int r = boot_start(&b, req, err);
	if (!r)
		r = wait_for_ssh(&b, err);
	if (!r)
		r = boot_connect(&b, CONNECT_MS, &guest, err);
	if (!r)
		r = kb_guest_shell(guest, ret_exit, err);
	kb_guest_free(guest);
	boot_free(&b);
	return r;
}
