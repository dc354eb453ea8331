/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small things that all of guest-init needs. Nothing beyond libc. */
#ifndef KB_GUEST_UTIL_H
#define KB_GUEST_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** 1 to KB_PROTO_NAME_MAX of A-Z a-z 0-9 _ . - */
bool kb_util_is_name(const char *s);

/** 1 to max lower-case hexadecimal digits. */
bool kb_util_is_hex(const char *s, size_t len, size_t max);

/** A whole decimal number without sign, blanks or suffix, within [min, max]. */
bool kb_util_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);

/** Copies text as far as it fits, every byte that is not printable ASCII made a '?'. */
void kb_util_clean(char *dest, size_t size, const char *text);

uint64_t kb_util_mono_ns(void);
void kb_util_sleep_ms(uint64_t ms);

/** Reads at most size - 1 bytes and adds a NUL. @return length, or -1 with errno */
ssize_t kb_util_read_file(const char *path, char *buf, size_t size);

/** Writes all of it, going on after EINTR. @return 0, or -1 with errno */
int kb_util_write_all(int fd, const void *data, size_t len);

/** Writes text into a file that exists (of /proc, say). @return 0, or -1 with errno */
int kb_util_poke(const char *path, const char *text);

#endif
