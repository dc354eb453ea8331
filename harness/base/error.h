/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: every function that can fail returns 0 or a negative enum kb_errno and, as its
 * last parameter, fills the caller's struct kb_error where the failure is first seen.
 * A verdict about a kernel (bad, untestable, ...) is never an error.
 */
#ifndef KB_BASE_ERROR_H
#define KB_BASE_ERROR_H

enum kb_errno {
	KB_OK = 0,
	KB_EUSAGE = -1,       /* the command line is wrong */
	KB_ECONFIG = -2,      /* a job file or a setting is wrong */
	KB_EREPO = -3,        /* the repository or a revision is wrong */
	KB_EBUILD = -4,       /* building could not be attempted (not: did not compile) */
	KB_EVM = -5,          /* libvirt or QEMU failed */
	KB_EGUEST = -6,       /* the guest did not keep the protocol */
	KB_ETIMEOUT = -7,     /* a time limit passed */
	KB_EIO = -8,          /* files, space, permissions */
	KB_EINTERRUPTED = -9, /* the user asked us to stop */
	KB_EINTERNAL = -10,   /* a bug in kbisect */
};

struct kb_error {
	enum kb_errno code;
	char message[1024]; /* one line, no trailing newline; says what to do where it can */
};

/**
 * Fills *err (when not NULL) and returns `code`, so that callers can write
 * `return kb_error_set(err, KB_EIO, ...)`. Control characters in the formatted text are
 * replaced by '?': guest and user data may be part of a message.
 */
int kb_error_set(struct kb_error *err, enum kb_errno code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** As kb_error_set() with ": strerror(errno_value)" appended. */
int kb_error_errno(struct kb_error *err, enum kb_errno code, int errno_value,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** Puts "context: " in front of an error that is already filled; returns its code. */
int kb_error_prefix(struct kb_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** A stable lower-case word for a code ("repo", "timeout", ...); never NULL. */
const char *kb_errno_name(enum kb_errno code);

#endif
