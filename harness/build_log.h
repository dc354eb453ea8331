/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a kernel build's log says about its failure. Pure; the text is not trusted. */
#ifndef KB_HARNESS_BUILD_LOG_H
#define KB_HARNESS_BUILD_LOG_H

#include <stdbool.h>
#include <stddef.h>

/**
 * The lines that tell why a build failed: diagnostics of compiler, linker and host tools
 * with their context; make's own chatter is dropped. Without any, the last lines.
 * @param strip a path prefix that is cut out of the lines, or NULL
 * @return owned, sanitized, at most `max_bytes` long, never NULL, no trailing newline
 */
char *kb_build_log_excerpt(const char *text, size_t len, const char *strip, size_t max_bytes);

/** The first diagnostic in one line, for a record's reason; owned, sanitized, never NULL. */
char *kb_build_log_reason(const char *text, size_t len, const char *strip);

/**
 * Did the sources themselves fail (a compiler's or linker's diagnostic)? If not, stale files
 * of an incremental build may be to blame.
 */
bool kb_build_log_is_source_error(const char *text, size_t len);

/**
 * Says what is wrong with this host when the log shows that the build failed for it (a
 * missing tool or header, no space, no memory): such a failure is no verdict on the commit.
 * @return a sentence naming the fix, static; NULL when there is no such sign
 */
const char *kb_build_log_host_problem(const char *text, size_t len);

#endif
