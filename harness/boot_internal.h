/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by boot*.c only. */
#ifndef KB_HARNESS_BOOT_INTERNAL_H
#define KB_HARNESS_BOOT_INTERNAL_H

#include <stdint.h>

#include "harness/console.h"
#include "harness/guest.h"
#include "harness/vm.h"
#include "results/record.h"

#define BOOT_NONCE_LEN 32

struct boot {
	const struct kb_boot_request *req; /* borrowed */
	char nonce[BOOT_NONCE_LEN + 1];
	struct kb_guest_keys *keys; /* owned, as all that follow */
	char *name, *initrd_path, *console_path, *scratch_path, *xml;
	struct kb_console console;
	struct kb_vm_host *host;
	struct kb_vm *vm;
	uint64_t entered_ms, created_ms; /* kb_now_ms() */
	uint64_t create_ms;		 /* how long that took */
};

/**
 * Checks the request's files, writes the initramfs, connects to libvirt and creates the
 * VM. On failure too, boot_free() must be called.
 */
int boot_start(struct boot *b, const struct kb_boot_request *req, struct kb_error *err);

/** Connects over SSH. Errors: see kb_guest_connect(). */
int boot_connect(struct boot *b, uint64_t timeout_ms, struct kb_guest **ret_guest,
		 struct kb_error *err);

/** Destroys what still runs and removes the files that only the VM needed. */
void boot_free(struct boot *b);

/** The text of the guest's parameter file; owned. */
char *boot_params_text(const struct boot *b);

#endif
