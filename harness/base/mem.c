/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p, size_t size)
{
	if (!p) {
		fprintf(stderr, "kbisect: out of memory (%zu bytes)\n", size);
		abort();
	}
	return p;
}

void *kb_malloc(size_t size)
{
	return checked(malloc(size ? size : 1), size);
}

void *kb_calloc(size_t count, size_t size)
{
	if (count == 0 || size == 0)
		count = size = 1;
	return checked(calloc(count, size), count);
}

void *kb_realloc(void *ptr, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX; /* no allocator grants that */
	return checked(realloc(ptr, bytes ? bytes : 1), bytes);
}

char *kb_strdup(const char *s)
{
	return s ? checked(strdup(s), strlen(s) + 1) : NULL;
}

char *kb_strndup(const char *s, size_t n)
{
	return s ? checked(strndup(s, n), n) : NULL;
}

char *kb_asprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return checked(n < 0 ? NULL : text, 0);
}

void kb_free_ptr(void *ptr_to_ptr)
{
	void *p;

	memcpy(&p, ptr_to_ptr, sizeof(p));
	free(p);
}
