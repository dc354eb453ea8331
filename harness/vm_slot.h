/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Root directories for libvirt's embedded QEMU driver. Only one driver may use a root at
 * a time, so there is a pool of them, taken with locks; they are kept because what
 * libvirt has learnt about an emulator (seconds of probing) is cached below them. Their
 * paths are short: a socket's path has at most 107 bytes.
 */
#ifndef KB_HARNESS_VM_SLOT_H
#define KB_HARNESS_VM_SLOT_H

#include "harness/base/error.h"

struct kb_vm_slot {
	char *root;   /* owned */
	char *uri;    /* owned; qemu:///embed?root=... */
	int lock_fd;  /* held while the slot is in use */
	int probe_fd; /* held until kb_vm_slot_probed(): one process probes, others reuse
		       */
};

#define KB_VM_SLOT_INIT                                                                  \
	{                                                                                \
		.lock_fd = -1, .probe_fd = -1                                            \
	}

/**
 * Takes a free slot below ${XDG_RUNTIME_DIR:-/tmp}/kbisect-UID (or $KBISECT_VM_DIR),
 * making what is missing. The folder's name depends on the QEMU program, so that an
 * upgrade of QEMU behind the wrapper starts with a fresh cache.
 * @param wrapper the emulator that libvirt is given
 * Errors: KB_EVM, KB_EIO.
 */
int kb_vm_slot_take(const char *wrapper, struct kb_vm_slot *ret_slot,
		    struct kb_error *err);

/** libvirt has its capabilities now. */
void kb_vm_slot_probed(struct kb_vm_slot *slot);

void kb_vm_slot_free(struct kb_vm_slot *slot); /* NULL is fine */

#endif
