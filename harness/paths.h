/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where kbisect's own files are: beside the binary (build/ of a checkout) or installed. */
#ifndef KB_HARNESS_PATHS_H
#define KB_HARNESS_PATHS_H

#include "harness/base/error.h"

/** The running program, resolved; owned by the caller. Errors: KB_EINTERNAL. */
int kb_path_self(char **ret_path, struct kb_error *err);

/** A kernel configuration fragment: a path (with a '/'), or a name below configs/kernel. @ret_path owned. Errors: KB_ECONFIG naming where it was looked for. */
int kb_path_fragment(const char *name, char **ret_path, struct kb_error *err);

/** A job file: a path, or a name (with or without .json) below configs/jobs. */
int kb_path_job(const char *name, char **ret_path, struct kb_error *err);

/** The guest image; $KBISECT_IMAGE wins. Errors: KB_ECONFIG, says how to build it. */
int kb_path_image(char **ret_path, struct kb_error *err);

/** The QEMU wrapper that is given to libvirt as emulator. */
int kb_path_qemu_wrapper(char **ret_path, struct kb_error *err);

#endif
