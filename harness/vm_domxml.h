/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a boot request to libvirt domain XML and a kernel command line. Pure. */
#ifndef KB_HARNESS_VM_DOMXML_H
#define KB_HARNESS_VM_DOMXML_H

#include <stdint.h>

#include "harness/base/error.h"
#include "results/record.h"

struct kb_domxml_spec {
	const struct kb_boot_request *req; /* borrowed, as all of them */
	const char *name;		   /* of the domain */
	const char *uuid;     /* of the domain; NULL: the fixed one. In exact mode
			       * the guest sees the fixed one whatever this is */
	const char *emulator; /* NULL: libvirt's default */
	const char *rom_path; /* firmware image; NULL: the machine's own */
	const char *initrd_path;
	const char *console_path;
	const char *scratch_path; /* raw image; only for scratch "virtio-blk" */
	uint64_t tsc_khz;	  /* of the host; 0: unknown. Not used by exact mode */
	long controller_pid;	  /* told to the emulator wrapper; 0: no wrapper */
};

/**
 * The whole domain. Every text is escaped; texts that XML cannot carry are refused.
 * @ret_xml owned by the caller
 * Errors: KB_ECONFIG when the request cannot be such a VM (exact mode with two CPUs,
 * scratch memory that cannot be placed, unknown machine, ...).
 */
int kb_domxml_make(const struct kb_domxml_spec *spec, char **ret_xml,
		   struct kb_error *err);

/** The kernel command line alone; owned by the caller. Errors: as above. */
int kb_domxml_cmdline(const struct kb_domxml_spec *spec, char **ret_cmdline,
		      struct kb_error *err);

/**
 * Where `scratch_mib` of memory can be set aside for the pmem scratch disk so that
 * `memory_mib` stay usable, in a VM that has both together. It accounts for the hole
 * below 4 GiB, and leaves the initrd, at the top of low memory, outside.
 * @ret_start_mib guest-physical address
 * Errors: KB_ECONFIG when no single area is large enough.
 * Source: QEMU hw/i386/{pc_q35,pc_piix,microvm}.c, where each splits its memory.
 */
int kb_domxml_place_scratch(const char *machine, uint64_t memory_mib,
			    uint64_t scratch_mib, uint64_t *ret_start_mib,
			    struct kb_error *err);

/**
 * The firmware that boots of this request get on our own host: qboot starts a kernel in a
 * third of SeaBIOS' time, but knows nothing of several CPUs without ACPI, so only exact mode
 * has it. @return a path (Debian: qemu-system-data) or NULL for the machine's own
 */
const char *kb_domxml_rom(const struct kb_boot_request *req);

/** The guest's device node for a kind of scratch disk; NULL for "none" or unknown. */
const char *kb_domxml_scratch_device(const char *scratch);

#endif
