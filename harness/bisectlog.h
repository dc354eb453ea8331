/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the endpoints of a running `git bisect` out of its BISECT_LOG. Pure. */
#ifndef KB_HARNESS_BISECTLOG_H
#define KB_HARNESS_BISECTLOG_H

#include <stddef.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

/**
 * The first bad commit named is the bad endpoint (later ones are answers), the good ones
 * named before any test are the good endpoints; only the first of them is returned, since
 * only one is measured.
 * @param bad_term, good_term git's words for them ("bad"/"good" unless BISECT_TERMS says else)
 * @param ret_bad, ret_good 41 bytes each: full commit ids
 * Errors: KB_EREPO when either is missing.
 * Source: comment lines "# TERM: [ID] subject" that git bisect writes for every mark.
 */
int kb_bisectlog_endpoints(const char *text, size_t len, const char *bad_term,
			   const char *good_term, char *ret_bad, char *ret_good,
			   struct kb_error *err);

#endif
