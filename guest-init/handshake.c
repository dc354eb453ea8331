/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/handshake.h"

#include <string.h>

#include "guest-init/util.h"

/* When the line ends in `word` and hexadecimal digits, returns those. Anything may stand
 * in front: the rest of a session that died in the middle of a line. */
static const char *digits_after(const char *line, size_t len, const char *word)
{
	size_t word_len = strlen(word), digits = 0;

	while (digits < len && kb_util_is_hex(line + len - digits - 1, 1, 1))
		digits++;
	if (!digits || digits > KB_PROTO_NONCE_MAX || digits + word_len > len ||
	    memcmp(line + len - digits - word_len, word, word_len))
		return NULL;
	return line + len - digits;
}

static enum kb_handshake_event judge_line(struct kb_handshake *h)
{
	const char *digits = digits_after(h->line, h->len, KB_PROTO_HELLO);
	const char *end = h->line + h->len;

	if (digits) {
		memcpy(h->nonce, digits, (size_t)(end - digits));
		h->nonce[end - digits] = '\0';
		return KB_HANDSHAKE_HELLO;
	}
	digits = digits_after(h->line, h->len, KB_PROTO_GO);
	if (digits && strlen(h->nonce) == (size_t)(end - digits) &&
	    !memcmp(digits, h->nonce, (size_t)(end - digits))) {
		h->nonce[0] = '\0'; /* a session needs a HELLO of its own */
		return KB_HANDSHAKE_GO;
	}
	return KB_HANDSHAKE_NONE;
}

enum kb_handshake_event kb_handshake_feed(struct kb_handshake *h, const char *data,
					  size_t len, size_t *ret_used)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n') {
			enum kb_handshake_event event = judge_line(h);

			h->len = 0;
			if (event != KB_HANDSHAKE_NONE) {
				*ret_used = i + 1;
				return event;
			}
			continue;
		}
		if (h->len == sizeof(h->line)) { /* keep the half that may matter */
			memmove(h->line, h->line + h->len / 2, h->len / 2);
			h->len /= 2;
		}
		h->line[h->len++] = data[i];
	}
	*ret_used = len;
	return KB_HANDSHAKE_NONE;
}
