/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/cpio.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

/* An independent, small reader of the format. */
struct entry {
	char name[64];
	unsigned mode, size;
	const char *data;
};

static unsigned hex_field(const char *header, int index)
{
	char digits[9] = {0};

	memcpy(digits, header + 6 + 8 * index, 8);
	return (unsigned)strtoul(digits, NULL, 16);
}

static size_t read_entry(const char *archive, size_t at, struct entry *e)
{
	const char *h = archive + at;
	size_t name_size;

	memset(e, 0, sizeof(*e));
	if (memcmp(h, "070701", 6))
		return 0;
	e->mode = hex_field(h, 1);
	e->size = hex_field(h, 6);
	name_size = hex_field(h, 11);
	memcpy(e->name, h + 110,
	       name_size < sizeof(e->name) ? name_size : sizeof(e->name) - 1);
	at = (at + 110 + name_size + 3) & ~(size_t)3;
	e->data = archive + at;
	return (at + e->size + 3) & ~(size_t)3;
}

static void entries_read_back(void)
{
	KB_AUTO(kb_cpio_free) struct kb_cpio c = {0};
	struct entry e;
	size_t at = 0;

	kb_cpio_add_dir(&c, "kbisect", 0755);
	kb_cpio_add_file(&c, "kbisect/params", 0644, "hello", 5);
	kb_cpio_add_file(&c, "a/empty", 0600, NULL, 0);
	kb_cpio_finish(&c);
	is_int(c.out.len % 4, 0, "the length is a multiple of 4");
	at = read_entry(c.out.data, at, &e);
	is_str(e.name, "kbisect", "first the folder");
	is_int(e.mode, 040755, "its mode");
	is_int(e.size, 0, "a folder has no data");
	at = read_entry(c.out.data, at, &e);
	is_str(e.name, "kbisect/params", "then the file");
	is_int(e.mode, 0100644, "its mode");
	ok(e.size == 5 && !memcmp(e.data, "hello", 5), "its content");
	at = read_entry(c.out.data, at, &e);
	is_str(e.name, "a/empty", "an empty file");
	at = read_entry(c.out.data, at, &e);
	is_str(e.name, "TRAILER!!!", "then the trailer");
	is_int(at, c.out.len, "and nothing after it");
}

static void length_depends_on_sizes_only(void)
{
	KB_AUTO(kb_cpio_free) struct kb_cpio a = {0};
	KB_AUTO(kb_cpio_free) struct kb_cpio b = {0};

	kb_cpio_add_file(&a, "f", 0644, "aaaa", 4);
	kb_cpio_add_file(&b, "f", 0644, "\0\xff\n\t", 4);
	kb_cpio_finish(&a);
	kb_cpio_finish(&b);
	is_int(a.out.len, b.out.len, "same sizes, same length");
	ok(memcmp(a.out.data, b.out.data, a.out.len) != 0, "different content");
}

int main(void)
{
	entries_read_back();
	length_depends_on_sizes_only();
	return tap_done();
}
