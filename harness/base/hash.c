/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"

struct kb_hash {
	struct sha256_ctx ctx;
};

struct kb_hash *kb_hash_new(void)
{
	struct kb_hash *h = kb_malloc(sizeof(*h));

	sha256_init(&h->ctx);
	return h;
}

void kb_hash_update(struct kb_hash *h, const void *data, size_t len)
{
	if (len)
		sha256_update(&h->ctx, len, data);
}

void kb_hash_update_str(struct kb_hash *h, const char *s)
{
	kb_hash_update(h, s, strlen(s) + 1);
}

void kb_hash_finish(struct kb_hash *h, char hex[KB_HASH_HEX_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[SHA256_DIGEST_SIZE];

	sha256_digest(&h->ctx, sizeof(raw), raw);
	for (size_t i = 0; i < sizeof(raw); i++) {
		hex[2 * i] = digits[raw[i] >> 4];
		hex[2 * i + 1] = digits[raw[i] & 15];
	}
	hex[KB_HASH_HEX_LEN] = '\0';
	free(h);
}

void kb_hash_bytes(const void *data, size_t len, char hex[KB_HASH_HEX_LEN + 1])
{
	struct kb_hash *h = kb_hash_new();

	kb_hash_update(h, data, len);
	kb_hash_finish(h, hex);
}

int kb_hash_file(const char *path, char hex[KB_HASH_HEX_LEN + 1], struct kb_error *err)
{
	KB_AUTO_FREE char *buf = kb_malloc(1 << 16);
	KB_AUTO(kb_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char unused[KB_HASH_HEX_LEN + 1];

	if (fd < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot open %s", path);
	struct kb_hash *h = kb_hash_new();
	for (;;) {
		ssize_t n = read(fd, buf, 1 << 16);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int saved = errno;

			kb_hash_finish(h, unused);
			return kb_error_errno(err, KB_EIO, saved, "cannot read %s", path);
		}
		if (n == 0)
			break;
		kb_hash_update(h, buf, (size_t)n);
	}
	kb_hash_finish(h, hex);
	return 0;
}
