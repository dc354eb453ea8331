/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Talking with a guest over SSH on a virtio-serial channel: the seam behind which libssh
 * is. */
#ifndef KB_HARNESS_GUEST_H
#define KB_HARNESS_GUEST_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"

/* The keys of one boot: made for it and never written to a lasting file. */
struct kb_guest_keys;

/** Errors: KB_EINTERNAL when libssh can't make keys. */
int kb_guest_keys_new(struct kb_guest_keys **ret_keys, struct kb_error *err);
void kb_guest_keys_free(struct kb_guest_keys *keys); /* NULL is fine */

/** The line for authorized_keys, with its newline; borrowed. Always of the same length.
 */
const char *kb_guest_keys_authorized(const struct kb_guest_keys *keys);

/** The host key in dropbear's file format; borrowed. Always of the same length. */
const void *kb_guest_keys_host(const struct kb_guest_keys *keys, size_t *ret_len);

struct kb_guest;

/**
 * Hand-shakes on the channel and opens an SSH session, whose host key must be ours.
 * @param fd taken over, whether it succeeds or not
 * Errors: KB_ETIMEOUT, KB_EGUEST, KB_EINTERRUPTED.
 */
int kb_guest_connect(int fd, const struct kb_guest_keys *keys, uint64_t timeout_ms,
		     struct kb_guest **ret_guest, struct kb_error *err);

void kb_guest_free(struct kb_guest *guest); /* NULL is fine */

/**
 * Runs one command. Its output past max_bytes is an error; stderr is dropped.
 * @param input may be NULL; sent to its stdin
 * @ret_output owned, NUL-terminated (not counted); may be NULL
 * @ret_exit its exit status, -1 when it did not say
 * Errors: KB_ETIMEOUT, KB_EGUEST, KB_EINTERRUPTED.
 */
int kb_guest_exec(struct kb_guest *guest, const char *command, const void *input,
		  size_t input_len, size_t max_bytes, uint64_t timeout_ms,
		  char **ret_output, size_t *ret_len, int *ret_exit,
		  struct kb_error *err);

/** A file of at most max_bytes, by cat. `path` must not need quoting. Errors: as above.
 */
int kb_guest_download(struct kb_guest *guest, const char *path, size_t max_bytes,
		      uint64_t timeout_ms, char **ret_data, size_t *ret_len,
		      struct kb_error *err);

/** The other way. Errors: as above. */
int kb_guest_upload(struct kb_guest *guest, const char *path, const void *data,
		    size_t len, uint64_t timeout_ms, struct kb_error *err);

/** A login shell on our own terminal until it ends. @ret_exit its exit status */
int kb_guest_shell(struct kb_guest *guest, int *ret_exit, struct kb_error *err);

#endif
