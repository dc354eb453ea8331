/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/result.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-init/util.h"

static size_t count_lines(const char *s, size_t len)
{
	size_t lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += s[i] == '\n';
	return lines;
}

int kb_result_build(const char *nonce, const char *kernel, const char *workload,
		    const char *init_lines, const char *workload_lines,
		    struct kb_result *ret_result)
{
	struct kb_result r = {0};
	char clean[512];
	FILE *out = open_memstream(&r.data, &r.len);

	if (!out)
		return -1;
	kb_util_clean(clean, sizeof(clean), kernel);
	fprintf(out, KB_PROTO_RESULT_MAGIC "\nnonce %s\nkernel %s\nworkload %s\n%s%s",
		nonce, clean, workload, init_lines, workload_lines);
	if (fflush(out)) {
		fclose(out);
		free(r.data);
		return -1;
	}
	fprintf(out, "end %zu\n", count_lines(r.data, r.len));
	if (fclose(out) || r.len > KB_PROTO_RESULT_MAX_BYTES) {
		free(r.data);
		errno = r.len > KB_PROTO_RESULT_MAX_BYTES ? EFBIG : ENOMEM;
		return -1;
	}
	*ret_result = r;
	return 0;
}

void kb_result_free(struct kb_result *r)
{
	free(r->data);
	*r = (struct kb_result){0};
}

void kb_result_marker(const char *nonce, const void *data, size_t len, char *line)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	char hex[2 * SHA256_DIGEST_SIZE + 1];
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, data);
	sha256_digest(&ctx, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(line, 256,
		 KB_PROTO_CONSOLE_PREFIX "result nonce=%s bytes=%zu sha256=%s\n", nonce,
		 len, hex);
}
