/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/bisectlog.h"

#include <stdbool.h>
#include <string.h>

#include "harness/base/mem.h"

#define ID_LEN 40

/* "# TERM: [ID] ..." */
static bool mark_of(const char *line, const char *term, char *ret_id)
{
	size_t n = strlen(term);

	if (!kb_starts_with(line, "# ") || strncmp(line + 2, term, n) != 0 ||
	    !kb_starts_with(line + 2 + n, ": ["))
		return false;
	const char *id = line + 2 + n + 3;
	if (strspn(id, "0123456789abcdef") != ID_LEN || id[ID_LEN] != ']')
		return false;
	memcpy(ret_id, id, ID_LEN);
	ret_id[ID_LEN] = '\0';
	return true;
}

int kb_bisectlog_endpoints(const char *text, size_t len, const char *bad_term,
			   const char *good_term, char *ret_bad, char *ret_good,
			   struct kb_error *err)
{
	KB_AUTO_FREE char *copy = kb_strndup(text, len);
	KB_AUTO(kb_strv_free) struct kb_strv lines = { 0 };
	char bad[ID_LEN + 1] = "", good[ID_LEN + 1] = "";

	kb_strv_split(&lines, copy, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		if (!*bad)
			mark_of(lines.items[i], bad_term, bad);
		if (!*good)
			mark_of(lines.items[i], good_term, good);
	}
	if (!*bad || !*good)
		return kb_error_set(err, KB_EREPO,
				    "the git bisect in progress has no %s commit yet; mark both "
				    "endpoints before `git bisect run kbisect judge`",
				    *bad ? good_term : bad_term);
	memcpy(ret_bad, bad, sizeof(bad));
	memcpy(ret_good, good, sizeof(good));
	return 0;
}
