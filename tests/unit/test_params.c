/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-init/params.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define HEAD "kbisect-params 1\n"
#define NEED "nonce 0123456789abcdef\nmode exact\n"

static char buffer[KB_PROTO_PARAMS_MAX_BYTES + 8192];
static char reason[200];

/* The parser cuts its input up, so it gets a copy. Strings of *p live until the next
 * call. */
static int parse(const char *text, struct kb_params *p)
{
	size_t len = strlen(text);

	memcpy(buffer, text, len + 1);
	reason[0] = '\0';
	return kb_params_parse(buffer, len, p, reason, sizeof(reason));
}

static void defaults(void)
{
	struct kb_params p;

	is_int(parse(HEAD NEED "end\n", &p), 0, "nonce and mode are enough: %s", reason);
	is_str(p.nonce, "0123456789abcdef", "nonce");
	is_int(p.mode, KB_GUEST_EXACT, "mode");
	is_int(p.end, KB_GUEST_REBOOT, "ends with a reboot by default");
	is_str(p.workload, "none", "no workload by default");
	ok(!p.scratch_device, "no scratch by default");
	is_str(p.scratch_mkfs, "", "no mkfs options by default");
	is_str(p.scratch_mount_options, "", "no mount options by default");
	is_int(p.ssh, 0, "no SSH by default");
	is_int(p.keep_ms, 60000, "keep_ms by default");
	is_int(p.timeout_ms, 600000, "timeout_ms by default");
	is_int(p.wl_count, 0, "no workload parameters");
}

static void everything(void)
{
	struct kb_params p;

	is_int(parse(HEAD NEED
		     "scratch.device /dev/pmem0\n"
		     "scratch.mkfs -m crc=1,bigtime=0 -K\n"
		     "scratch.mount_options \n"
		     "workload trunc\nparam.files 64\nparam.pattern random\n"
		     "ssh 1\nkeep_ms 1\ntimeout_ms 86400000\nend poweroff\nend\n",
		     &p),
	       0, "all keys: %s", reason);
	is_str(p.scratch_device, "/dev/pmem0", "scratch.device");
	is_str(p.scratch_mkfs, "-m crc=1,bigtime=0 -K",
	       "a value goes to the end of the line");
	is_str(p.scratch_mount_options, "", "options may be empty");
	is_str(p.workload, "trunc", "workload");
	is_int(p.ssh, 1, "ssh");
	is_int(p.keep_ms, 1, "keep_ms");
	is_int(p.timeout_ms, 86400000, "timeout_ms");
	is_int(p.end, KB_GUEST_POWEROFF, "end poweroff is a key, end alone is the end");
	is_int(p.wl_count, 2, "two workload parameters");
	is_str(p.wl[0].name, "files", "name without its prefix");
	is_str(p.wl[0].value, "64", "value");
	is_str(p.wl[1].value, "random", "second value");
}

static void shell_mode(void)
{
	struct kb_params p;

	is_int(parse(HEAD "nonce 00000000\nmode shell\nssh 0\nend\n", &p), 0,
	       "shell mode");
	ok(p.ssh, "mode shell always serves SSH");
}

static void refusals(void)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "the end is missing"},
		{"kbisect-params 2\n" NEED "end\n", "want \"kbisect-params 1\""},
		{NEED "end\n", "want \"kbisect-params 1\""},
		{HEAD NEED, "the end is missing"},
		{HEAD NEED "end", "has no newline"},
		{HEAD NEED "end\nssh 1\n", "follows the end"},
		{HEAD NEED "end\n\n", "follows the end"},
		{HEAD "mode exact\nend\n", "is required"},
		{HEAD "nonce 0123456789\nend\n", "is required"},
		{HEAD NEED "mode exact\nend\n", "given twice"},
		{HEAD NEED "colour red\nend\n", "unknown key"},
		{HEAD NEED "ssh\nend\n", "want \"key value\""},
		{HEAD NEED "\nend\n", "want \"key value\""},
		{HEAD NEED "ssh 2\nend\n", "want 0 or 1"},
		{HEAD NEED "ssh \nend\n", "want 0 or 1"},
		{HEAD NEED "ssh 1 \nend\n", "want 0 or 1"},
		{HEAD NEED "keep_ms 0\nend\n", "whole number"},
		{HEAD NEED "keep_ms -1\nend\n", "whole number"},
		{HEAD NEED "keep_ms 86400001\nend\n", "whole number"},
		{HEAD NEED "timeout_ms 99999999999999999999999\nend\n", "whole number"},
		{HEAD NEED "timeout_ms 1e3\nend\n", "whole number"},
		{HEAD NEED "timeout_ms  5\nend\n", "whole number"},
		{HEAD NEED "end now\nend\n", "want reboot or poweroff"},
		{HEAD NEED "scratch.device pmem0\nend\n", "absolute path"},
		{HEAD NEED "workload a/b\nend\n", "want a name"},
		{HEAD NEED "param.files \nend\n", "is empty"},
		{HEAD NEED "param. 3\nend\n", "malformed"},
		{HEAD NEED "param.a 1\nparam.a 2\nend\n", "given twice"},
		{HEAD NEED "param.a \t\nend\n", "plain text"},
		{HEAD NEED "param.a \x80\nend\n", "plain text"},
		{HEAD NEED "ssh 1\r\nend\n", "plain text"},
		{HEAD "nonce 0123\nmode time\nend\n", "hexadecimal"},
		{HEAD "nonce 0123456789ABCDEF\nmode time\nend\n", "hexadecimal"},
		{HEAD "nonce 0123456789abcdef\nmode fast\nend\n",
		 "want exact, time or shell"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kb_params p = {.keep_ms = 12345};

		ok(parse(rows[i].text, &p) == -1 && strstr(reason, rows[i].why),
		   "row %zu is refused (%s), got \"%s\"", i, rows[i].why, reason);
		if (p.keep_ms != 12345)
			ok(false, "row %zu leaves the output alone", i);
	}
}

static void limits(void)
{
	static char text[sizeof(buffer)];
	struct kb_params p;
	size_t n;

	strcpy(text, HEAD NEED);
	for (unsigned i = 0; i <= KB_PARAMS_WL_MAX; i++)
		sprintf(text + strlen(text), "param.p%u 1\n", i);
	strcat(text, "end\n");
	ok(parse(text, &p) == -1 && strstr(reason, "too many"), "too many parameters");

	n = (size_t)sprintf(text, HEAD NEED "param.a ");
	memset(text + n, 'x', KB_PROTO_LINE_MAX - 8);
	strcpy(text + n + KB_PROTO_LINE_MAX - 8, "\nend\n");
	is_int(parse(text, &p), 0, "a line of the greatest length: %s", reason);
	memset(text + n, 'x', KB_PROTO_LINE_MAX - 7);
	strcpy(text + n + KB_PROTO_LINE_MAX - 7, "\nend\n");
	ok(parse(text, &p) == -1 && strstr(reason, "too long"),
	   "one byte more is too long");

	memset(text, 'x', KB_PROTO_PARAMS_MAX_BYTES + 1);
	text[KB_PROTO_PARAMS_MAX_BYTES + 1] = '\0';
	ok(parse(text, &p) == -1 && strstr(reason, "file is too long"),
	   "a file too long");

	memcpy(buffer, HEAD NEED "ssh\0 1\nend\n", sizeof(HEAD NEED "ssh\0 1\nend\n"));
	ok(kb_params_parse(buffer, sizeof(HEAD NEED "ssh\0 1\nend\n") - 1, &p, reason,
			   sizeof(reason)) == -1,
	   "a NUL byte does not hide the rest of a line");
}

int main(void)
{
	defaults();
	everything();
	shell_mode();
	refusals();
	limits();
	return tap_done();
}
