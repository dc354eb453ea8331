/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenSSH's private key file -> dropbear's. Pure. */
#ifndef KB_HARNESS_GUEST_KEYS_H
#define KB_HARNESS_GUEST_KEYS_H

#include <stddef.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

/**
 * Converts an unencrypted ed25519 key ("-----BEGIN OPENSSH PRIVATE KEY-----" text).
 * Source: openssh PROTOCOL.key; dropbear src/ed25519.c (string "ssh-ed25519", string of
 * 64 bytes: seed and public key).
 * @ret_key appended to
 * Errors: KB_EINTERNAL.
 */
int kb_guest_keys_to_dropbear(const char *openssh, struct kb_str *ret_key,
			      struct kb_error *err);

#endif
