/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Console bytes in two different slicings must be understood the same way. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/console.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void start(struct kb_console *c, const struct kb_strv *deny)
{
	memset(c, 0, sizeof(*c));
	c->nonce = "0123456789abcdef";
	c->deny = deny;
	c->fd = -1;
	c->max_bytes = UINT64_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kb_console whole, sliced;
	struct kb_strv deny = {0};

	kb_strv_add(&deny, "clocksource");
	start(&whole, &deny);
	start(&sliced, &deny);
	kb_console_feed(&whole, (const char *)data, size);
	for (size_t at = 0; at < size;) {
		size_t n = 1 + data[at] % 13;

		n = n > size - at ? size - at : n;
		kb_console_feed(&sliced, (const char *)data + at, n);
		at += n;
	}
	if (whole.line_len > sizeof(whole.line) || whole.bytes != size)
		abort();
	if (memcmp(&whole, &sliced, sizeof(whole)))
		abort();
	if (whole.has_result && strlen(whole.result.sha256) != KB_HASH_HEX_LEN)
		abort();
	kb_strv_free(&deny);
	return 0;
}
