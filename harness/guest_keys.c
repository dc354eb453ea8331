/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guest_keys.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "harness/base/mem.h"

#define KEY_TYPE "ssh-ed25519"

/* The base64 body between the BEGIN and END lines. */
static bool decode_body(const char *text, struct kb_str *ret)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = strstr(text, "KEY-----\n");
	unsigned bits = 0, count = 0;

	if (!p)
		return false;
	for (p += 9; *p && *p != '-' && *p != '='; p++) {
		if (*p == '\n' || *p == '\r')
			continue;
		const char *letter = strchr(letters, *p);

		if (!letter)
			return false;
		bits = bits << 6 | (unsigned)(letter - letters);
		if (++count == 4) {
			char out[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};

			kb_str_append_bytes(ret, out, 3);
			bits = count = 0;
		}
	}
	if (count == 1)
		return false;
	char out[2] = {(char)(bits >> (count == 2 ? 4 : 10)), (char)(bits >> 2)};
	if (count)
		kb_str_append_bytes(ret, out, count - 1);
	return true;
}

struct reader {
	const uint8_t *p, *end;
};

static bool skip(struct reader *r, size_t n)
{
	if ((size_t)(r->end - r->p) < n)
		return false;
	r->p += n;
	return true;
}

/* A 32-bit big-endian length and that many bytes. */
static bool take_string(struct reader *r, const uint8_t **ret, size_t *ret_len)
{
	const uint8_t *p = r->p;

	if (!skip(r, 4))
		return false;
	*ret_len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	*ret = r->p;
	return skip(r, *ret_len);
}

static bool string_is(struct reader *r, const char *want)
{
	const uint8_t *s;
	size_t len;

	return take_string(r, &s, &len) && len == strlen(want) && !memcmp(s, want, len);
}

/* @ret_secret 64 bytes: seed and public key */
static bool find_secret(const struct kb_str *blob, const uint8_t **ret_secret)
{
	static const char magic[] = "openssh-key-v1"; /* its NUL belongs to it */
	const uint8_t *data = (const uint8_t *)kb_str_get(blob), *s;
	struct reader r = {data, data + blob->len};
	size_t len;

	if (!skip(&r, sizeof(magic)) || memcmp(data, magic, sizeof(magic)) != 0)
		return false;
	if (!string_is(&r, "none") || !string_is(&r, "none") || !string_is(&r, ""))
		return false; /* cipher, key derivation and its options */
	if (!skip(&r, 4) || !take_string(&r, &s, &len) || !take_string(&r, &s, &len))
		return false; /* number of keys, public key, private section */
	struct reader inner = {s, s + len};
	if (!skip(&inner, 8) || !string_is(&inner, KEY_TYPE))
		return false; /* two check words */
	return take_string(&inner, &s, &len) && len == 32 &&
	       take_string(&inner, ret_secret, &len) && len == 64;
}

int kb_guest_keys_to_dropbear(const char *openssh, struct kb_str *ret_key,
			      struct kb_error *err)
{
	static const char head[] = "\0\0\0\x0b" KEY_TYPE "\0\0\0\x40";
	KB_AUTO(kb_str_free) struct kb_str blob = {0};
	const uint8_t *secret;

	if (!decode_body(openssh, &blob) || !find_secret(&blob, &secret))
		return kb_error_set(err, KB_EINTERNAL,
				    "not an unencrypted OpenSSH ed25519 key");
	kb_str_append_bytes(ret_key, head, sizeof(head) - 1);
	kb_str_append_bytes(ret_key, secret, 64);
	return 0;
}
