/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which compiler and linker a build will use, and whether the build tools are there. */
#ifndef KB_HARNESS_BUILD_TOOLCHAIN_H
#define KB_HARNESS_BUILD_TOOLCHAIN_H

#include "harness/base/error.h"
#include "harness/base/str.h"

/**
 * The programs that `make` would take with these arguments (CC=, LD=, LLVM=,
 * CROSS_COMPILE= are understood): the compiler's words and the linker. Pure.
 */
void kb_toolchain_programs(const struct kb_strv *make_args, struct kb_strv *ret_cc,
			   char **ret_ld);

/**
 * First lines of the compiler's and the linker's --version, e.g. "gcc (Debian ...) 12.2.0 /
 * GNU ld ...". @ret_description owned
 * Errors: KB_EBUILD when a program that every kernel build needs is missing; names the
 * package.
 */
int kb_toolchain_probe(const struct kb_strv *make_args, char **ret_description,
		       struct kb_error *err);

#endif
