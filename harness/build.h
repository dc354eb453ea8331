/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The build unit: one commit of a kernel repository -> bzImage, vmlinux, System.map and
 * configuration in the cache, or the reason why there is none.
 */
#ifndef KB_HARNESS_BUILD_H
#define KB_HARNESS_BUILD_H

#include "harness/base/error.h"
#include "results/record.h"

/**
 * Builds, or takes from CACHE/builds/KEY. The same tree, configuration, toolchain and make
 * arguments give the same key, and the same bytes in any slot folder. The slot is locked
 * meanwhile, so several processes may share slot and cache. A failure to compile is a
 * record, kept in the cache too; a time-out is a record that is not kept.
 * @return 0: *ret_record is filled, whatever its outcome
 * Errors: KB_EBUILD (tools or space missing, says what to install), KB_EREPO, KB_ECONFIG,
 * KB_EIO, KB_EINTERRUPTED
 */
int kb_build_run(const struct kb_build_request *req, struct kb_build_record *ret_record,
		 struct kb_error *err);

#endif
