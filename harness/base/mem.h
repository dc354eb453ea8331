/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory: allocation never returns NULL (out of memory aborts with a message), and scoped
 * cleanup through KB_AUTO(...).
 */
#ifndef KB_BASE_MEM_H
#define KB_BASE_MEM_H

#include <stddef.h>

void *kb_malloc(size_t size);
void *kb_calloc(size_t count, size_t size);
void *kb_realloc(void *ptr, size_t count, size_t size); /* checks count * size */
char *kb_strdup(const char *s);                         /* NULL gives NULL */
char *kb_strndup(const char *s, size_t n);
char *kb_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void kb_free_ptr(void *ptr_to_ptr); /* for KB_AUTO_FREE only */

/** `KB_AUTO_FREE char *p = ...;` frees p when the scope ends. */
#define KB_AUTO_FREE __attribute__((cleanup(kb_free_ptr)))

/** `KB_AUTO(fn) struct x y = {0};` calls fn(&y) when the scope ends. */
#define KB_AUTO(fn) __attribute__((cleanup(fn)))

/** Takes the pointer out of a KB_AUTO_FREE variable: the caller owns it now. */
#define KB_STEAL(p)                          \
	({                                   \
		__typeof__(p) kb_stolen = (p); \
		(p) = NULL;                  \
		kb_stolen;                   \
	})

/**
 * Makes room for one more element of a growing array `arr` with `count` elements used and
 * `cap` allocated (both size_t lvalues).
 */
#define KB_GROW(arr, count, cap)                                            \
	do {                                                                \
		if ((count) == (cap)) {                                     \
			(cap) = (cap) ? (cap) * 2 : 8;                      \
			(arr) = kb_realloc((arr), (cap), sizeof((arr)[0])); \
		}                                                           \
	} while (0)

#define KB_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#endif
