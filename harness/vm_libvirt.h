/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by vm_libvirt*.c only; everybody else includes harness/vm.h. */
#ifndef KB_HARNESS_VM_LIBVIRT_H
#define KB_HARNESS_VM_LIBVIRT_H

#include <libvirt/libvirt.h>
#include <stdatomic.h>

#include "harness/base/error.h"

/** KB_EVM with "what: libvirt's last error". */
int kb_vm_libvirt_failed(struct kb_error *err, const char *what);

/**
 * Connects a non-blocking stream with a socket until either ends. Takes over both,
 * whether it succeeds or not. *alive counts the connections that still exist.
 */
int kb_vm_libvirt_pump(virStreamPtr stream, atomic_int *alive, int fd,
		       struct kb_error *err);

#endif
