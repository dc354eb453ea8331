/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-256, by nettle; the only module that includes it on the host side. */
#ifndef KB_BASE_HASH_H
#define KB_BASE_HASH_H

#include <stddef.h>

#include "harness/base/error.h"

#define KB_HASH_HEX_LEN 64

struct kb_hash; /* a running digest */

struct kb_hash *kb_hash_new(void);
void kb_hash_update(struct kb_hash *h, const void *data, size_t len);
/** Adds the string and its terminating NUL, so that neighbouring fields can't run together. */
void kb_hash_update_str(struct kb_hash *h, const char *s);
/** Writes 64 lower-case hex digits and a NUL, and frees h. */
void kb_hash_finish(struct kb_hash *h, char hex[KB_HASH_HEX_LEN + 1]);

void kb_hash_bytes(const void *data, size_t len, char hex[KB_HASH_HEX_LEN + 1]);
int kb_hash_file(const char *path, char hex[KB_HASH_HEX_LEN + 1], struct kb_error *err);

#endif
