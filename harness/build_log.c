/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/build_log.h"

#include <string.h>

#include "harness/base/mem.h"
#include "harness/base/str.h"

#define LINES_AFTER 4    /* the source line, the caret, notes */
#define FALLBACK_LINES 15
#define LINE_MAX_BYTES 400 /* machine-made lines (link commands) can be very long */
#define REASON_MAX_BYTES 240

struct line {
	const char *start;
	size_t len;
};

/* Cuts the next line off the front. @return false at the end */
static bool next_line(const char **text, size_t *left, struct line *ret)
{
	if (*left == 0)
		return false;
	const char *nl = memchr(*text, '\n', *left);
	size_t n = nl ? (size_t)(nl - *text) : *left;

	*ret = (struct line){ *text, n };
	n += nl != NULL;
	*text += n;
	*left -= n;
	return true;
}

static bool has(struct line l, const char *word)
{
	return memmem(l.start, l.len, word, strlen(word)) != NULL;
}

static bool begins(struct line l, const char *word)
{
	size_t n = strlen(word);

	return l.len >= n && memcmp(l.start, word, n) == 0;
}

/* A diagnostic that names the sources as the culprit. */
static bool is_diagnostic(struct line l)
{
	static const char *const words[] = {
		"error: ",	       "Error: ",		 "undefined reference to",
		"undefined symbol: ",  "multiple definition of", ": syntax error",
		": relocation truncated",
	};

	/* make tells of a failed rule with the same word, but it is only the messenger */
	if (begins(l, "make"))
		return false;
	for (size_t i = 0; i < KB_COUNT_OF(words); i++)
		if (has(l, words[i]))
			return true;
	return begins(l, "ERROR:") || begins(l, "Error:") ||
	       (begins(l, "ld: ") && !has(l, "warning")) ||
	       (begins(l, "BTF") && has(l, "FAILED"));
}

static bool is_context_before(struct line l)
{
	return has(l, "In file included from") || has(l, ": In function") ||
	       has(l, "At top level") || (begins(l, "   ") && has(l, " from "));
}

/* "  CC      mm/truncate.o", directory notes, make's tail of failed rules. */
static bool is_noise(struct line l)
{
	size_t i = 0, word;

	if (l.len == 0)
		return true;
	if (begins(l, "make") && (has(l, "Entering directory") || has(l, "Leaving directory") ||
				  has(l, "Waiting for unfinished jobs") || has(l, "Error ")))
		return true;
	while (i < l.len && l.start[i] == ' ')
		i++;
	word = i;
	while (i < l.len && ((l.start[i] >= 'A' && l.start[i] <= 'Z') || l.start[i] == '_'))
		i++;
	return word == 2 && i - word >= 2 && i < l.len && l.start[i] == ' ';
}

/* Adds a line, cut and cleaned. @return false when max_bytes is reached */
static bool add_line(struct kb_str *out, struct line l, const char *strip, size_t max_bytes)
{
	KB_AUTO(kb_str_free) struct kb_str cut = { 0 };
	size_t strip_len = strip ? strlen(strip) : 0;
	const char *p = l.start, *end = l.start + l.len;

	while (p < end && cut.len < LINE_MAX_BYTES) {
		const char *at = strip_len ? memmem(p, (size_t)(end - p), strip, strip_len) : NULL;

		kb_str_append_bytes(&cut, p, (size_t)((at ? at : end) - p));
		p = at ? at + strip_len : end;
	}
	KB_AUTO_FREE char *clean =
		kb_str_sanitize(kb_str_get(&cut), cut.len, LINE_MAX_BYTES);
	size_t n = strlen(clean);
	if (out->len + n + 1 > max_bytes)
		return false;
	if (out->len)
		kb_str_append(out, "\n");
	kb_str_append(out, clean);
	return true;
}

static void excerpt_diagnostics(const char *text, size_t len, const char *strip,
				size_t max_bytes, struct kb_str *out)
{
	struct line l, context[4];
	size_t contexts = 0;
	unsigned after = 0;

	while (next_line(&text, &len, &l)) {
		bool hit = is_diagnostic(l);

		if (!hit && is_context_before(l)) {
			if (contexts == KB_COUNT_OF(context)) /* keep the innermost ones */
				memmove(context, context + 1,
					--contexts * sizeof(context[0]));
			context[contexts++] = l;
			continue;
		}
		if (hit) {
			for (size_t i = 0; i < contexts; i++)
				if (!add_line(out, context[i], strip, max_bytes))
					return;
			after = LINES_AFTER + 1;
		}
		if (after > 0 && is_noise(l))
			after = 0;
		if (after > 0) {
			after--;
			if (!add_line(out, l, strip, max_bytes))
				return;
		}
		contexts = 0;
	}
}

/* The last lines; make's last words are better than nothing. */
static void excerpt_tail(const char *text, size_t len, const char *strip, size_t max_bytes,
			 bool with_noise, struct kb_str *out)
{
	struct line l, ring[FALLBACK_LINES];
	size_t n = 0;

	while (next_line(&text, &len, &l))
		if (l.len && (with_noise || !is_noise(l)))
			ring[n++ % FALLBACK_LINES] = l;
	for (size_t i = n > FALLBACK_LINES ? n - FALLBACK_LINES : 0; i < n; i++)
		if (!add_line(out, ring[i % FALLBACK_LINES], strip, max_bytes))
			return;
}

char *kb_build_log_excerpt(const char *text, size_t len, const char *strip, size_t max_bytes)
{
	struct kb_str out = { 0 };

	excerpt_diagnostics(text, len, strip, max_bytes, &out);
	if (out.len == 0)
		excerpt_tail(text, len, strip, max_bytes, false, &out);
	if (out.len == 0)
		excerpt_tail(text, len, strip, max_bytes, true, &out);
	return kb_str_rstrip(kb_str_steal(&out));
}

char *kb_build_log_reason(const char *text, size_t len, const char *strip)
{
	struct kb_str out = { 0 };
	struct line l, rule = { "", 0 }, last = { "", 0 };
	bool found = false;

	while (!found && next_line(&text, &len, &l)) {
		found = is_diagnostic(l);
		if (found)
			last = l;
		else if (!is_noise(l))
			last = l;
		if (begins(l, "make") && has(l, "***") && rule.len == 0)
			rule = l;
	}
	if (!found && rule.len)
		last = rule;
	add_line(&out, last, strip, SIZE_MAX);
	for (char *p = out.data; p && *p; p++)
		if (*p == '\t')
			*p = ' ';
	char *all = kb_str_steal(&out);
	char *clean = kb_str_sanitize(all, strlen(all), REASON_MAX_BYTES);
	kb_free_ptr(&all);
	return kb_str_rstrip(clean);
}

bool kb_build_log_is_source_error(const char *text, size_t len)
{
	struct line l;

	while (next_line(&text, &len, &l))
		if (is_diagnostic(l))
			return true;
	return false;
}

const char *kb_build_log_host_problem(const char *text, size_t len)
{
	static const struct {
		const char *first, *second; /* both in one line */
		const char *sentence;
	} signs[] = {
		{ "No space left on device", "",
		  "no space is left on the device: free some, or try `kbisect gc`" },
		{ "Disk quota exceeded", "", "the disk quota is used up" },
		{ "Cannot allocate memory", "", "the host ran out of memory: use fewer jobs" },
		{ "virtual memory exhausted", "", "the host ran out of memory: use fewer jobs" },
		{ "Killed", "program cc1", "the compiler was killed (out of memory?): use fewer jobs" },
		{ "Killed signal terminated program", "",
		  "the compiler was killed (out of memory?): use fewer jobs" },
		{ "terminated with signal 9", "",
		  "the linker was killed (out of memory?): use fewer jobs" },
		{ "Killed", " ld", "the linker was killed (out of memory?): use fewer jobs" },
		{ "Read-only file system", "", "the file system is read-only" },
		{ "Too many open files", "", "too many open files: raise the limit (ulimit -n)" },
		{ "fork: Resource temporarily unavailable", "",
		  "no more processes can be started: use fewer jobs" },
		{ "unable to execute command: Killed", "",
		  "the compiler was killed (out of memory?): use fewer jobs" },
		/* gcc says "No such file or directory", clang "file not found"; the quote or
		 * blank in front tells the host's gelf.h from a header of the kernel */
		{ "error: gelf.h: No such", "", "headers are missing: apt install libelf-dev" },
		{ "error: libelf.h: No such", "", "headers are missing: apt install libelf-dev" },
		{ "error: 'gelf.h' file", "", "headers are missing: apt install libelf-dev" },
		{ "error: 'libelf.h' file", "", "headers are missing: apt install libelf-dev" },
		{ "please install libelf-dev", "", "headers are missing: apt install libelf-dev" },
		{ "error: openssl/", "No such", "headers are missing: apt install libssl-dev" },
		{ "error: 'openssl/", "file", "headers are missing: apt install libssl-dev" },
		{ "flex:", "not found", "a program is missing: apt install flex" },
		{ "bison:", "not found", "a program is missing: apt install bison" },
		{ "bc:", "not found", "a program is missing: apt install bc" },
		{ "perl:", "not found", "a program is missing: apt install perl" },
		{ "python3:", "not found", "a program is missing: apt install python3" },
		{ "cpio:", "not found", "a program is missing: apt install cpio" },
		{ "lz4:", "not found", "a program is missing: apt install lz4" },
		{ "lz4c:", "not found", "a program is missing: apt install lz4" },
		{ "zstd:", "not found", "a program is missing: apt install zstd" },
		{ "pahole:", "not found", "a program is missing: apt install dwarves" },
	};
	struct line l;

	while (next_line(&text, &len, &l))
		for (size_t i = 0; i < KB_COUNT_OF(signs); i++)
			if (has(l, signs[i].first) && has(l, signs[i].second))
				return signs[i].sentence;
	return NULL;
}
