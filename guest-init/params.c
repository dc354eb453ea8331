/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/params.h"

#include <stdio.h>
#include <string.h>

#include "guest-init/util.h"

enum { MAX_GUEST_MS = 86400000 };

enum key {
	KEY_NONCE,
	KEY_MODE,
	KEY_SCRATCH_DEVICE,
	KEY_SCRATCH_MKFS,
	KEY_SCRATCH_MOUNT_OPTIONS,
	KEY_WORKLOAD,
	KEY_SSH,
	KEY_KEEP_MS,
	KEY_TIMEOUT_MS,
	KEY_END,
	KEY_COUNT,
};

static const char *const key_names[KEY_COUNT] = {
	[KEY_NONCE] = "nonce",
	[KEY_MODE] = "mode",
	[KEY_SCRATCH_DEVICE] = "scratch.device",
	[KEY_SCRATCH_MKFS] = "scratch.mkfs",
	[KEY_SCRATCH_MOUNT_OPTIONS] = "scratch.mount_options",
	[KEY_WORKLOAD] = "workload",
	[KEY_SSH] = "ssh",
	[KEY_KEEP_MS] = "keep_ms",
	[KEY_TIMEOUT_MS] = "timeout_ms",
	[KEY_END] = "end",
};

/* The index of value in a NULL-terminated list of words, or -1. */
static int choice(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	return -1;
}

static bool is_text(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < ' ' || s[i] > '~')
			return false;
	return true;
}

/* @return NULL, or what is wrong with the value */
static const char *set_key(struct kb_params *p, enum key key, const char *value)
{
	static const char *const modes[] = {"exact", "time", "shell", NULL};
	static const char *const ends[] = {"reboot", "poweroff", NULL};
	size_t len = strlen(value);
	uint64_t number = 0;
	int n;

	switch (key) {
	case KEY_NONCE:
		if (len < 8 || !kb_util_is_hex(value, len, KB_PROTO_NONCE_MAX))
			return "want 8 to 64 lower-case hexadecimal digits";
		memcpy(p->nonce, value, len + 1);
		return NULL;
	case KEY_MODE:
		n = choice(value, modes);
		if (n < 0)
			return "want exact, time or shell";
		p->mode = (enum kb_guest_mode)n;
		return NULL;
	case KEY_END:
		n = choice(value, ends);
		if (n < 0)
			return "want reboot or poweroff";
		p->end = (enum kb_guest_end)n;
		return NULL;
	case KEY_SCRATCH_DEVICE:
		p->scratch_device = value;
		return value[0] == '/' ? NULL : "want an absolute path";
	case KEY_SCRATCH_MKFS:
		p->scratch_mkfs = value;
		return NULL;
	case KEY_SCRATCH_MOUNT_OPTIONS:
		p->scratch_mount_options = value;
		return NULL;
	case KEY_WORKLOAD:
		p->workload = value;
		return kb_util_is_name(value) ? NULL : "want a name";
	case KEY_SSH:
		p->ssh = !strcmp(value, "1");
		return p->ssh || !strcmp(value, "0") ? NULL : "want 0 or 1";
	case KEY_KEEP_MS:
	case KEY_TIMEOUT_MS:
		if (!kb_util_u64(value, 1, MAX_GUEST_MS, &number))
			return "want a whole number from 1 to 86400000";
		*(key == KEY_KEEP_MS ? &p->keep_ms : &p->timeout_ms) = number;
		return NULL;
	case KEY_COUNT:
		break;
	}
	return "unknown key";
}

static const char *add_wl_param(struct kb_params *p, const char *name, const char *value)
{
	if (!kb_util_is_name(name))
		return "the parameter's name is malformed";
	for (size_t i = 0; i < p->wl_count; i++)
		if (!strcmp(p->wl[i].name, name))
			return "given twice";
	if (p->wl_count == KB_PARAMS_WL_MAX)
		return "too many parameters";
	p->wl[p->wl_count++] = (struct kb_wl_param){name, value};
	return NULL;
}

/* Cuts "key value" and stores it. The value may be empty only where that means something.
 */
static const char *do_line(struct kb_params *p, bool seen[KEY_COUNT], char *line)
{
	char *value = strchr(line, ' ');

	if (!value)
		return "want \"key value\"";
	*value++ = '\0';
	if (!strncmp(line, "param.", 6))
		return *value ? add_wl_param(p, line + 6, value) : "the value is empty";
	for (unsigned key = 0; key < KEY_COUNT; key++) {
		if (strcmp(line, key_names[key]))
			continue;
		if (seen[key])
			return "given twice";
		seen[key] = true;
		return set_key(p, (enum key)key, value);
	}
	return "unknown key";
}

static int fail(char *reason, size_t size, unsigned line, const char *key,
		const char *what)
{
	char clean[64];

	kb_util_clean(clean, sizeof(clean), key);
	snprintf(reason, size, "line %u (%s): %s", line, clean, what);
	return -1;
}

int kb_params_parse(char *text, size_t len, struct kb_params *ret_params, char *reason,
		    size_t reason_size)
{
	struct kb_params p = {.scratch_mkfs = "",
			      .scratch_mount_options = "",
			      .workload = "none",
			      .keep_ms = 60000,
			      .timeout_ms = 600000};
	bool seen[KEY_COUNT] = {false}, ended = false;
	unsigned number = 0;

	if (len > KB_PROTO_PARAMS_MAX_BYTES)
		return fail(reason, reason_size, 0, "", "the file is too long");
	for (char *line = text, *next; line < text + len; line = next) {
		char *newline = memchr(line, '\n', (size_t)(text + len - line));

		number++;
		if (!newline)
			return fail(reason, reason_size, number, "", "has no newline");
		*newline = '\0';
		next = newline + 1;
		if (newline - line > KB_PROTO_LINE_MAX)
			return fail(reason, reason_size, number, "", "is too long");
		if (!is_text(line, (size_t)(newline - line)))
			return fail(reason, reason_size, number, line,
				    "is not plain text");
		if (ended)
			return fail(reason, reason_size, number, line, "follows the end");
		if (number == 1) {
			if (strcmp(line, KB_PROTO_PARAMS_MAGIC))
				return fail(reason, reason_size, 1, line,
					    "want \"" KB_PROTO_PARAMS_MAGIC "\"");
			continue;
		}
		ended = !strcmp(line, "end");
		const char *wrong = ended ? NULL : do_line(&p, seen, line);
		if (wrong)
			return fail(reason, reason_size, number, line, wrong);
	}
	if (!ended)
		return fail(reason, reason_size, number, "", "the end is missing");
	if (!seen[KEY_NONCE] || !seen[KEY_MODE])
		return fail(reason, reason_size, number,
			    seen[KEY_NONCE] ? "mode" : "nonce", "is required");
	if (p.mode == KB_GUEST_SHELL)
		p.ssh = true;
	*ret_params = p;
	return 0;
}
