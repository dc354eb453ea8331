/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result document: whatever is accepted must be sane, whatever is not must leave
 * nothing. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "harness/guestdoc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_boot_record r = {0};
	int refused = kb_guestdoc_parse_text((const char *)data, size, "0123456789abcdef",
					     &r, NULL);

	if (refused &&
	    (r.metrics || r.counters || r.params.count || r.notes.count || r.reason))
		abort();
	for (size_t i = 0; i < r.metric_count; i++) {
		if (r.metrics[i].count == 0)
			abort();
		for (size_t j = 0; j < r.metrics[i].count; j++)
			if (!isfinite(r.metrics[i].values[j]))
				abort();
	}
	if (!refused && (!r.kernel_version || !r.workload))
		abort();
	kb_boot_record_free(&r);
	return 0;
}
