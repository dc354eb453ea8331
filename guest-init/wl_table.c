/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <string.h>

#include "guest-init/workload.h"

static const struct kb_workload *const table[] = {
	&kb_wl_none,
	&kb_wl_trunc,
	&kb_wl_fault,
};

const struct kb_workload *kb_workload_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i]->name, name))
			return table[i];
	return NULL;
}
