/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A serial port has no connections: this hand-shake makes both sides agree on where a
 * session begins, whatever bytes of an earlier one are still under way
 * (docs/guest-protocol.md).
 */
#ifndef KB_HARNESS_GUEST_CHANNEL_H
#define KB_HARNESS_GUEST_CHANNEL_H

#include <stdint.h>

#include "harness/base/error.h"

/**
 * HELLO (every 250 ms) / READY / GO with a nonce of its own on a socket. On success the
 * next byte to be read is the first of the session. Errors: KB_ETIMEOUT, KB_EGUEST (the
 * channel closed), KB_EINTERRUPTED.
 */
int kb_guest_channel_sync(int fd, uint64_t timeout_ms, struct kb_error *err);

#endif
