/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest-init/proto.h"

bool kb_util_is_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= KB_PROTO_NAME_MAX &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			 "0123456789_.-") == len;
}

/* Without branches on the digits: in exact mode the nonce, new at each boot, would
 * otherwise change the number of instructions executed before the workload, and so its
 * result. */
bool kb_util_is_hex(const char *s, size_t len, size_t max)
{
	unsigned wrong = 0;

	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned c = (unsigned char)s[i];
		unsigned digit = (c - '0') <= 9, letter = (c - 'a') <= 5;

		wrong |= !(digit | letter);
	}
	return !wrong;
}

bool kb_util_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return false;
	}
	if (value < min || value > max)
		return false;
	*ret_value = value;
	return true;
}

void kb_util_clean(char *dest, size_t size, const char *text)
{
	size_t i = 0;

	for (; i + 1 < size && text[i]; i++)
		dest[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	dest[i] = '\0';
}

uint64_t kb_util_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void kb_util_sleep_ms(uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

ssize_t kb_util_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -1;
	while (len + 1 < size) {
		ssize_t n = read(fd, buf + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int saved = errno;

			close(fd);
			errno = saved;
			return -1;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	close(fd);
	return (ssize_t)len;
}

int kb_util_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int kb_util_poke(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	int r = kb_util_write_all(fd, text, strlen(text));
	int saved = errno;
	close(fd);
	errno = saved;
	return r;
}
