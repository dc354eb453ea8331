/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/cpio.h"

#include <assert.h>
#include <string.h>

enum { TYPE_DIR = 0040000, TYPE_FILE = 0100000 };

void kb_cpio_free(struct kb_cpio *c)
{
	kb_str_free(&c->out);
	c->next_ino = 0;
}

static void pad(struct kb_cpio *c)
{
	static const char zeros[4];

	kb_str_append_bytes(&c->out, zeros, (4 - c->out.len % 4) % 4);
}

/* All fields but the magic are eight hex digits. Owner, time and device stay 0, so that
 * the archive depends on nothing but names, modes and contents. */
static void add(struct kb_cpio *c, const char *name, unsigned mode, const void *data,
		size_t len)
{
	size_t name_size = strlen(name) + 1;

	assert(len <= UINT32_MAX && name[0] != '/');
	kb_str_appendf(&c->out,
		       "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		       mode ? ++c->next_ino : 0, mode, 0, 0, 1, 0, (unsigned)len, 0, 0, 0,
		       0, (unsigned)name_size, 0);
	kb_str_append_bytes(&c->out, name, name_size);
	pad(c);
	if (len)
		kb_str_append_bytes(&c->out, data, len);
	pad(c);
}

void kb_cpio_add_dir(struct kb_cpio *c, const char *path, unsigned mode)
{
	add(c, path, TYPE_DIR | mode, NULL, 0);
}

void kb_cpio_add_file(struct kb_cpio *c, const char *path, unsigned mode,
		      const void *data, size_t len)
{
	add(c, path, TYPE_FILE | mode, data, len);
}

void kb_cpio_finish(struct kb_cpio *c)
{
	add(c, "TRAILER!!!", 0, NULL, 0);
}
