/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log lines on stderr. Results never go through here. */
#ifndef KB_BASE_LOG_H
#define KB_BASE_LOG_H

enum kb_log_level { KB_LOG_ERROR, KB_LOG_WARN, KB_LOG_INFO, KB_LOG_DEBUG };

void kb_log_set_level(enum kb_log_level level); /* default KB_LOG_INFO */
enum kb_log_level kb_log_get_level(void);

/** One line; the newline is added. Clears a progress bar line first if one is shown. */
void kb_log(enum kb_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** `fn` is called before each line, so that a progress bar can clear itself; NULL: nothing. */
void kb_log_set_hook(void (*fn)(void));

#define kb_error_log(...) kb_log(KB_LOG_ERROR, __VA_ARGS__)
#define kb_warn(...) kb_log(KB_LOG_WARN, __VA_ARGS__)
#define kb_info(...) kb_log(KB_LOG_INFO, __VA_ARGS__)
#define kb_debug(...) kb_log(KB_LOG_DEBUG, __VA_ARGS__)

#endif
