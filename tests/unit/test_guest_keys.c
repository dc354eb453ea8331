/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guest_keys.h"

#include <string.h>

#include "harness/base/mem.h"
#include "harness/guest.h"
#include "tests/tap.h"

/* Made once with ssh-keygen -t ed25519 -N "" for this test; it opens nothing. */
static const char sample[] =
	"-----BEGIN OPENSSH PRIVATE KEY-----\n"
	"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
	"QyNTUxOQAAACBNr4fBxAXJmib1X3R+vd5vhMwAokbCq9JVojqnsF3qcgAAAIixFkGwsRZB\n"
	"sAAAAAtzc2gtZWQyNTUxOQAAACBNr4fBxAXJmib1X3R+vd5vhMwAokbCq9JVojqnsF3qcg\n"
	"AAAEAcZfwLxO4YKBHmnqsARTqaSIqKA/7obSp6u3SZDgRw902vh8HEBcmaJvVfdH693m+E\n"
	"zACiRsKr0lWiOqewXepyAAAABHRlc3QB\n"
	"-----END OPENSSH PRIVATE KEY-----\n";
/* The same key by dropbearconvert, from byte 19 on. */
static const char sample_seed_hex[] =
	"1c65fc0bc4ee182811e69eab00453a9a488a8a03fee86d2a7abb74990e0470f7"
	"4daf87c1c405c99a26f55f747ebdde6f84cc00a246c2abd255a23aa7b05dea72";

static void known_key_is_converted(void)
{
	KB_AUTO(kb_str_free) struct kb_str key = {0};
	KB_AUTO(kb_str_free) struct kb_str hex = {0};

	is_int(kb_guest_keys_to_dropbear(sample, &key, NULL), 0, "converted");
	is_int(key.len, 4 + 11 + 4 + 64, "its length");
	ok(!memcmp(key.data, "\0\0\0\x0bssh-ed25519\0\0\0\x40", 19), "its head");
	for (size_t i = 19; i < 19 + 64; i++)
		kb_str_appendf(&hex, "%02x", (unsigned char)key.data[i]);
	is_str(kb_str_get(&hex), sample_seed_hex, "seed and public key");
}

static void damaged_keys_are_refused(void)
{
	size_t len = strlen(sample);
	KB_AUTO_FREE char *copy = kb_strdup(sample);
	KB_AUTO(kb_str_free) struct kb_str key = {0};
	int accepted = 0;

	/* Every way of cutting it short must be refused, and must stay within bounds. */
	for (size_t n = 0; n < len; n++) {
		KB_AUTO_FREE char *part = kb_strndup(sample, n);
		key.len = 0;
		if (kb_guest_keys_to_dropbear(part, &key, NULL) == 0)
			accepted++;
	}
	ok(accepted < 40, "cut keys are refused (only the padding may be missing: %d)",
	   accepted);
	copy[40] = '*';
	is_int(kb_guest_keys_to_dropbear(copy, &key, NULL), KB_EINTERNAL, "not base64");
	is_int(kb_guest_keys_to_dropbear("", &key, NULL), KB_EINTERNAL, "empty");
}

static void fresh_keys_have_fixed_sizes(void)
{
	size_t line = 0;

	for (int i = 0; i < 5; i++) {
		struct kb_guest_keys *keys = NULL;
		size_t len = 0;

		is_int(kb_guest_keys_new(&keys, NULL), 0, "made");
		const char *text = kb_guest_keys_authorized(keys);
		ok(!strncmp(text, "ssh-ed25519 AAAA", 16) &&
			   text[strlen(text) - 1] == '\n',
		   "authorized line");
		ok(i == 0 || line == strlen(text), "always as long");
		line = strlen(text);
		ok(kb_guest_keys_host(keys, &len) && len == 83, "host key");
		kb_guest_keys_free(keys);
	}
}

int main(void)
{
	known_key_is_converted();
	damaged_keys_are_refused();
	fresh_keys_have_fixed_sizes();
	return tap_done();
}
