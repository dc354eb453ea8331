/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this host has and lacks for building and booting kernels. Prints nothing. */
#ifndef KB_HARNESS_DOCTOR_H
#define KB_HARNESS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/error.h"

enum kb_doctor_status {
	KB_DOCTOR_OK,
	KB_DOCTOR_WARN,    /* kbisect works, but slower or with less */
	KB_DOCTOR_MISSING, /* something that is needed */
};

struct kb_doctor_check {
	const char *name; /* borrowed, static: "qemu" */
	enum kb_doctor_status status;
	char *fact;       /* owned; one line: what was found */
	char *fix;        /* owned; what to do, with the package; NULL when OK */
};

struct kb_doctor_report {
	struct kb_doctor_check *checks; /* owned */
	size_t count, cap;
};

/**
 * Runs every check. What cannot be found out is reported as missing: there are no errors.
 * @param cache_dir where builds will go; its free space is looked at
 */
void kb_doctor_run(const char *cache_dir, struct kb_doctor_report *ret_report);
void kb_doctor_report_free(struct kb_doctor_report *report);

/** "ok", "warn", "missing"; never NULL. */
const char *kb_doctor_status_name(enum kb_doctor_status status);

/** Is something missing that is needed? */
bool kb_doctor_is_missing(const struct kb_doctor_report *report);

/** The report as a JSON document, format "kbisect-doctor"; owned by the caller. */
char *kb_doctor_json(const struct kb_doctor_report *report);

/**
 * Does KVM work here as fast as hardware does? A small guest in long mode with paging runs a
 * loop; nested software that only claims to be KVM fails or takes thousands of times longer.
 * @param ret_why set, when it is not usable, to the reason (owned, "..." completes "KVM: ...")
 */
bool kb_doctor_kvm_usable(char **ret_why);

#endif
