/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The boot unit: one VM from its creation to its record. Runs in a process of its own: it
 * becomes a child subreaper, ignores SIGPIPE and holds one libvirt connection.
 */
#ifndef KB_HARNESS_BOOT_H
#define KB_HARNESS_BOOT_H

#include "harness/base/error.h"
#include "results/record.h"

/**
 * Boots, waits for the workload, collects its result, ends the VM. Leaves console.log,
 * domain.xml and (when there is one) result.txt in the request's work_dir.
 *
 * Whatever the guest did is an outcome of the record: 0 is returned also for a panic or a
 * hang. The job's own preconditions are not looked at here.
 * @ret_record filled on success; caller frees with kb_boot_record_free()
 * Errors: KB_EVM, KB_EIO, KB_ECONFIG, KB_EINTERRUPTED: nothing was learnt about the
 * kernel. No VM is left either way.
 */
int kb_boot_run(const struct kb_boot_request *req, struct kb_boot_record *ret_record,
		struct kb_error *err);

/**
 * Boots in mode "shell" and connects our terminal with a shell in the guest.
 * @ret_exit the shell's exit status
 * Errors: as above, and KB_EGUEST with the console's last lines when the guest does not
 * come up.
 */
int kb_boot_shell(const struct kb_boot_request *req, int *ret_exit, struct kb_error *err);

#endif
