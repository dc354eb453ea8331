/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the words of the channel's hand-shake in a stream of bytes. Pure. */
#ifndef KB_GUEST_HANDSHAKE_H
#define KB_GUEST_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "guest-init/proto.h"

enum kb_handshake_event {
	KB_HANDSHAKE_NONE,
	KB_HANDSHAKE_HELLO, /* answer READY with .nonce */
	KB_HANDSHAKE_GO,    /* with the nonce of the last HELLO: SSH follows */
};

struct kb_handshake {			    /* zero to begin with */
	char nonce[KB_PROTO_NONCE_MAX + 1]; /* of the last HELLO */
	char line[256];			    /* the latest bytes of the line at work */
	size_t len;
};

/**
 * Takes bytes up to and including the one that makes an event.
 * @ret_used how many were taken: all of them when there was no event
 */
enum kb_handshake_event kb_handshake_feed(struct kb_handshake *h, const char *data,
					  size_t len, size_t *ret_used);

#endif
