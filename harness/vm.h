/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual machines: the seam behind which libvirt is. One host connection per process.
 *
 * With an embedded URI (the default) libvirt's QEMU driver runs inside this process,
 * which becomes the parent ("child subreaper") of the QEMU processes; the emulator
 * wrapper makes them die with it. With any other URI libvirtd is in charge: the files of
 * a domain must be readable at the same paths on its host.
 */
#ifndef KB_HARNESS_VM_H
#define KB_HARNESS_VM_H

#include <stdbool.h>

#include "harness/base/error.h"

struct kb_vm_host;
struct kb_vm;

struct kb_vm_host_spec {
	const char
		*uri; /* borrowed; NULL: qemu:///embed in a root directory of our own */
	const char *wrapper; /* borrowed; emulator for embedded URIs (kbisect-qemu) */
	const char *machine; /* borrowed; "microvm", ...: checked to be supported */
	bool kvm;
};

/**
 * Connects, after destroying what a killed controller may have left in the same place.
 * Starts a thread for libvirt's events and (embedded) makes this process a subreaper.
 * Errors: KB_EVM; says what is missing and how to get it where that is known.
 */
int kb_vm_host_open(const struct kb_vm_host_spec *spec, struct kb_vm_host **ret_host,
		    struct kb_error *err);

/** Destroys every VM created here that still runs. NULL is fine. */
void kb_vm_host_free(struct kb_vm_host *host);

bool kb_vm_host_is_embedded(const struct kb_vm_host *host);
const char *kb_vm_host_qemu_version(const struct kb_vm_host *host);    /* borrowed */
const char *kb_vm_host_libvirt_version(const struct kb_vm_host *host); /* borrowed */

/**
 * Starts a transient domain that dies with this connection.
 * @param name as in the XML
 * Errors: KB_EVM with libvirt's own words.
 */
int kb_vm_create(struct kb_vm_host *host, const char *name, const char *xml,
		 struct kb_vm **ret_vm, struct kb_error *err);

enum kb_vm_state {
	KB_VM_RUNNING,
	KB_VM_ENDED,  /* the guest powered off or reset */
	KB_VM_KILLED, /* QEMU itself was killed, crashed or failed */
};

/**
 * Looks, without waiting, whether it still runs. Must be called every few milliseconds
 * while the guest ends: libvirt waits for us to reap QEMU.
 * @ret_text why it ended, one line (borrowed from vm, never NULL)
 */
enum kb_vm_state kb_vm_poll(struct kb_vm *vm, const char **ret_text);

/** Ends it at once, without asking the guest. Idempotent. */
void kb_vm_destroy(struct kb_vm *vm);

/** kb_vm_destroy() and frees. NULL is fine. */
void kb_vm_free(struct kb_vm *vm);

/**
 * Connects to a virtio-serial port of the guest.
 * @ret_fd one end of a stream socket pair, owned by the caller; closing it disconnects.
 * Errors: KB_EVM.
 */
int kb_vm_open_channel(struct kb_vm *vm, const char *port_name, int *ret_fd,
		       struct kb_error *err);

/** QEMU's command line, words separated by blanks; owned; NULL when it can't be seen. */
char *kb_vm_command(const struct kb_vm *vm);

#endif
