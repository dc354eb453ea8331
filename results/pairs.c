/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of names and values. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "results/record.h"

void kb_pairs_add(struct kb_pairs *p, const char *name, const char *value)
{
	KB_GROW(p->items, p->count, p->cap);
	p->items[p->count].name = kb_strdup(name);
	p->items[p->count].value = kb_strdup(value);
	p->count++;
}

const char *kb_pairs_get(const struct kb_pairs *p, const char *name)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->items[i].name, name))
			return p->items[i].value;
	return NULL;
}

void kb_pairs_free(struct kb_pairs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++) {
		free(p->items[i].name);
		free(p->items[i].value);
	}
	free(p->items);
	*p = (struct kb_pairs){ 0 };
}
