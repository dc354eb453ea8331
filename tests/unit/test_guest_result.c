/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the guest writes: counters, the result document, the marker, the hand-shake's
 * words. */
#include "guest-init/result.h"

#include <errno.h>
#include <stdlib.h>

#include "guest-init/counters.h"
#include "guest-init/handshake.h"
#include "guest-init/scratch.h"
#include "guest-init/util.h"
#include "tests/tap.h"

static char *format(enum kb_counters_source source, const char *text, bool all)
{
	char *data = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&data, &len);

	kb_counters_format(f, "start", 2, source, text, all);
	fclose(f);
	return data;
}

static void counters(void)
{
	char *s = format(
		KB_COUNTERS_VMSTAT,
		"nr_free_pages 25\nnr_mlock 3\nworkingset_nodes 630\npgscan_direct 7\n",
		false);
	is_str(s,
	       "counter start 2 nr_free_pages 25\ncounter start 2 workingset_nodes 630\n"
	       "counter start 2 pgscan_direct 7\n",
	       "vmstat: only what matters");
	free(s);
	s = format(KB_COUNTERS_VMSTAT, "nr_mlock 3\nodd\n\nnr_x -4", true);
	is_str(s, "counter start 2 nr_mlock 3\ncounter start 2 nr_x -4\n",
	       "vmstat: everything that has a number");
	free(s);
	s = format(KB_COUNTERS_MEMINFO,
		   "MemTotal:         117080 kB\nActive(anon):      12 kB\n: 7\n", true);
	is_str(s,
	       "counter start 2 meminfo.MemTotal 117080\ncounter start 2 "
	       "meminfo.Active_anon 12\n",
	       "meminfo: names made clean");
	free(s);
	s = format(KB_COUNTERS_SLABINFO,
		   "slabinfo - version: 2.1\n"
		   "# name            <active_objs> <num_objs> <objsize>\n"
		   "xfs_inode            85     90    896\n"
		   "kmalloc-8          1024   1024      8\n"
		   "radix_tree_node     630    644    576\n",
		   true);
	is_str(s,
	       "counter start 2 slab.xfs_inode.active_objs 85\n"
	       "counter start 2 slab.radix_tree_node.active_objs 630\n",
	       "slabinfo: two caches, no headings");
	free(s);
}

static void document(void)
{
	struct kb_result r;
	char line[256];

	is_int(kb_result_build("0011223344556677", "6.1.0|#1 SMP\tx", "none", "note a\n",
			       "metric x ns lower 1\n", &r),
	       0, "builds");
	is_str(r.data,
	       "kbisect-result 1\nnonce 0011223344556677\nkernel 6.1.0|#1 "
	       "SMP?x\nworkload none\n"
	       "note a\nmetric x ns lower 1\nend 6\n",
	       "the document");
	is_int(r.len, strlen(r.data), "its length");
	kb_result_free(&r);

	/* The digest of "abc" stands in FIPS 180-2. */
	kb_result_marker("0011223344556677", "abc", 3, line);
	is_str(line,
	       "@kb result nonce=0011223344556677 bytes=3 sha256="
	       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n",
	       "the marker");
}

static void document_too_long(void)
{
	char *big = malloc(KB_PROTO_RESULT_MAX_BYTES + 1);
	struct kb_result r;

	memset(big, 'x', KB_PROTO_RESULT_MAX_BYTES);
	big[KB_PROTO_RESULT_MAX_BYTES] = '\0';
	ok(kb_result_build("0011223344556677", "k", "none", "", big, &r) == -1 &&
		   errno == EFBIG,
	   "a document over the limit is refused");
	free(big);
}

/* Feeds text in pieces of `step` bytes; writes H and G for the events. */
static void feed(struct kb_handshake *h, const char *text, size_t step, char *events)
{
	size_t len = strlen(text), used;

	for (size_t at = 0; at < len; at += used) {
		size_t n = len - at < step ? len - at : step;

		switch (kb_handshake_feed(h, text + at, n, &used)) {
		case KB_HANDSHAKE_HELLO:
			*events++ = 'H';
			break;
		case KB_HANDSHAKE_GO:
			*events++ = 'G';
			break;
		case KB_HANDSHAKE_NONE:
			break;
		}
	}
	*events = '\0';
}

static void handshake(void)
{
	static const struct {
		const char *text, *events, *what;
	} rows[] = {
		{"KB-HELLO ab12\nKB-GO ab12\n", "HG", "the usual"},
		{"KB-HELLO ab12\nKB-HELLO ab12\nKB-GO ab12\n", "HHG", "HELLO twice"},
		{"\x01gar\nbageKB-HELLO ab12\nKB-GO ab12\n", "HG", "after garbage"},
		{"KB-HELKB-HELLO ab12\nKB-GO ab12\n", "HG", "after a HELLO cut off"},
		{"KB-GO ab12\n", "", "GO alone"},
		{"KB-HELLO ab12\nKB-GO ab13\nKB-GO ab12\n", "HG", "GO of another"},
		{"KB-HELLO ab12\nKB-GO ab1\n", "H", "GO with a part of the nonce"},
		{"KB-HELLO aa\nKB-HELLO bb\nKB-GO aa\nKB-GO bb\n", "HHG",
		 "the last one counts"},
		{"KB-HELLO ab12\nKB-GO ab12\nKB-GO ab12\n", "HG", "GO works once"},
		{"KB-HELLO \nKB-HELLO AB\nKB-HELLO a b\nKB-HELLO ab\r\n", "",
		 "malformed"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t step = 1; step < 40; step += 6) {
			struct kb_handshake h = {0};
			char events[64];

			feed(&h, rows[i].text, step, events);
			is_str(events, rows[i].events, "%s, %zu bytes at a time",
			       rows[i].what, step);
		}
}

/* The longest nonce behind any amount of garbage on the same line. */
static void handshake_long_lines(void)
{
	char text[700], events[64], nonce[65];
	unsigned bad = 0;

	memset(nonce, 'f', 64);
	nonce[64] = '\0';
	for (size_t n = 0; n < 600; n++) {
		struct kb_handshake h = {0};

		memset(text, '#', n);
		sprintf(text + n, "KB-HELLO %s\n", nonce);
		feed(&h, text, 50, events);
		bad += strcmp(events, "H") || strcmp(h.nonce, nonce);
	}
	is_int(bad, 0, "a HELLO is found behind 0 to 599 bytes of garbage");
}

static void small_things(void)
{
	char text[] = "  -m crc=1\t -K ", clean[8];
	const char *words[4];
	uint64_t v = 7;

	is_int(kb_scratch_split(text, words, 4), 3, "options split at blanks");
	is_str(words[1], "crc=1", "second option");
	char many[] = "a b c d e";
	is_int(kb_scratch_split(many, words, 4), -1, "too many options");

	ok(kb_util_u64("18446744073709551615", 0, UINT64_MAX, &v) && v == UINT64_MAX,
	   "u64 max");
	v = 7;
	ok(!kb_util_u64("18446744073709551616", 0, UINT64_MAX, &v), "u64 overflow");
	ok(!kb_util_u64("", 0, 9, &v) && !kb_util_u64("+1", 0, 9, &v) &&
		   !kb_util_u64("1 ", 0, 9, &v) && !kb_util_u64("10", 0, 9, &v) && v == 7,
	   "not numbers, and the output stays");
	kb_util_clean(clean, sizeof(clean), "a\nb\x1b[longer");
	is_str(clean, "a?b?[lo", "text made clean and cut");
}

int main(void)
{
	counters();
	document();
	document_too_long();
	handshake();
	handshake_long_lines();
	small_things();
	return tap_done();
}
