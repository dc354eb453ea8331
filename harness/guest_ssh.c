/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/guest.h"

#include <inttypes.h>
#include <libssh/libssh.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"
#include "harness/guest_channel.h"
#include "harness/guest_keys.h"

enum { READ_STEP_MS = 50 };

/* ---- keys ---- */

struct kb_guest_keys {
	ssh_key user, host; /* owned */
	char *authorized;   /* owned */
	struct kb_str dropbear;
};

void kb_guest_keys_free(struct kb_guest_keys *keys)
{
	if (!keys)
		return;
	ssh_key_free(keys->user);
	ssh_key_free(keys->host);
	free(keys->authorized);
	kb_str_free(&keys->dropbear);
	free(keys);
}

static int make_host_key(struct kb_guest_keys *keys, struct kb_error *err)
{
	char *text = NULL;

	if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &keys->host) != SSH_OK ||
	    ssh_pki_export_privkey_base64(keys->host, NULL, NULL, NULL, &text) != SSH_OK)
		return kb_error_set(err, KB_EINTERNAL, "libssh cannot make a host key");
	int r = kb_guest_keys_to_dropbear(text, &keys->dropbear, err);
	ssh_string_free_char(text);
	return r;
}

int kb_guest_keys_new(struct kb_guest_keys **ret_keys, struct kb_error *err)
{
	struct kb_guest_keys *keys = kb_calloc(1, sizeof(*keys));
	char *text = NULL;
	int r = make_host_key(keys, err);

	if (!r && (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &keys->user) != SSH_OK ||
		   ssh_pki_export_pubkey_base64(keys->user, &text) != SSH_OK))
		r = kb_error_set(err, KB_EINTERNAL, "libssh cannot make a user key");
	if (r) {
		kb_guest_keys_free(keys);
		return r;
	}
	keys->authorized = kb_asprintf("ssh-ed25519 %s kbisect\n", text);
	ssh_string_free_char(text);
	*ret_keys = keys;
	return 0;
}

const char *kb_guest_keys_authorized(const struct kb_guest_keys *keys)
{
	return keys->authorized;
}

const void *kb_guest_keys_host(const struct kb_guest_keys *keys, size_t *ret_len)
{
	*ret_len = keys->dropbear.len;
	return keys->dropbear.data;
}

/* ---- the session ---- */

struct kb_guest {
	ssh_session session; /* owned */
};

static int ssh_failed(ssh_session session, struct kb_error *err, const char *what)
{
	return kb_error_set(err, KB_EGUEST, "%s: %s", what, ssh_get_error(session));
}

/* Few and cheap algorithms: the guest's CPU is emulated. No files of the user are read.
 */
static int set_options(ssh_session session, int fd, uint64_t timeout_ms)
{
	long seconds = (long)(timeout_ms / 1000) + 1;
	bool no = false;
	int bad = 0;

	bad |= ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &no);
	bad |= ssh_options_set(session, SSH_OPTIONS_HOST, "guest");
	bad |= ssh_options_set(session, SSH_OPTIONS_USER, "root");
	bad |= ssh_options_set(session, SSH_OPTIONS_FD, &fd);
	bad |= ssh_options_set(session, SSH_OPTIONS_TIMEOUT, &seconds);
	bad |= ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
	bad |= ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
	bad |= ssh_options_set(session, SSH_OPTIONS_HOSTKEYS, "ssh-ed25519");
	bad |= ssh_options_set(session, SSH_OPTIONS_KEY_EXCHANGE,
			       "curve25519-sha256,curve25519-sha256@libssh.org");
	bad |= ssh_options_set(session, SSH_OPTIONS_CIPHERS_C_S,
			       "chacha20-poly1305@openssh.com");
	bad |= ssh_options_set(session, SSH_OPTIONS_CIPHERS_S_C,
			       "chacha20-poly1305@openssh.com");
	bad |= ssh_options_set(session, SSH_OPTIONS_COMPRESSION, "no");
	return bad ? -1 : 0;
}

static int authenticate(ssh_session session, const struct kb_guest_keys *keys,
			struct kb_error *err)
{
	ssh_key server = NULL;

	if (ssh_connect(session) != SSH_OK)
		return ssh_failed(session, err, "SSH to the guest");
	if (ssh_get_server_publickey(session, &server) != SSH_OK)
		return ssh_failed(session, err, "the guest's host key");
	bool same = ssh_key_cmp(server, keys->host, SSH_KEY_CMP_PUBLIC) == 0;
	ssh_key_free(server);
	if (!same)
		return kb_error_set(
			err, KB_EGUEST,
			"the guest's host key is not the one that was made for it");
	if (ssh_userauth_publickey(session, NULL, keys->user) != SSH_AUTH_SUCCESS)
		return ssh_failed(session, err, "logging in to the guest");
	return 0;
}

int kb_guest_connect(int fd, const struct kb_guest_keys *keys, uint64_t timeout_ms,
		     struct kb_guest **ret_guest, struct kb_error *err)
{
	uint64_t start = kb_now_ms();
	int r = kb_guest_channel_sync(fd, timeout_ms, err);

	if (r) {
		close(fd);
		return r;
	}
	uint64_t used = kb_now_ms() - start;
	ssh_session session = ssh_new();
	if (!session ||
	    set_options(session, fd, timeout_ms > used ? timeout_ms - used : 1)) {
		close(fd);
		ssh_free(session);
		return kb_error_set(err, KB_EINTERNAL, "libssh refuses our options");
	}
	r = authenticate(session, keys, err); /* ssh_free() closes fd from here on */
	kb_debug("guest: hand-shake %" PRIu64 " ms, SSH %" PRIu64 " ms", used,
		 kb_now_ms() - start - used);
	if (r) {
		ssh_disconnect(session);
		ssh_free(session);
		return r;
	}
	struct kb_guest *guest = kb_calloc(1, sizeof(*guest));
	guest->session = session;
	*ret_guest = guest;
	return 0;
}

void kb_guest_free(struct kb_guest *guest)
{
	if (!guest)
		return;
	ssh_disconnect(guest->session);
	ssh_free(guest->session);
	free(guest);
}

static void close_channel(ssh_channel *channel)
{
	if (*channel) {
		ssh_channel_close(*channel);
		ssh_channel_free(*channel);
	}
}

static ssh_channel open_session(struct kb_guest *guest, struct kb_error *err)
{
	ssh_channel channel = ssh_channel_new(guest->session);

	if (channel && ssh_channel_open_session(channel) == SSH_OK)
		return channel;
	ssh_failed(guest->session, err, "a channel to the guest");
	if (channel)
		ssh_channel_free(channel);
	return NULL;
}

/* Reads stdout to its end; anything over max_bytes, the time limit, or an interrupt
 * fails. */
static int read_output(struct kb_guest *guest, ssh_channel channel, size_t max_bytes,
		       uint64_t deadline, struct kb_str *out, struct kb_error *err)
{
	char buf[16384];

	for (;;) {
		int n = ssh_channel_read_timeout(channel, buf, sizeof(buf), 0,
						 READ_STEP_MS);

		if (n == SSH_ERROR)
			return ssh_failed(guest->session, err, "reading from the guest");
		if (n > 0) {
			if (out->len + (size_t)n > max_bytes)
				return kb_error_set(err, KB_EGUEST,
						    "the guest sent more than %zu bytes",
						    max_bytes);
			kb_str_append_bytes(out, buf, (size_t)n);
			continue;
		}
		if (ssh_channel_is_eof(channel) || ssh_channel_is_closed(channel))
			return 0;
		if (kb_interrupted())
			return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
		if (kb_now_ms() >= deadline)
			return kb_error_set(err, KB_ETIMEOUT,
					    "the guest's command did not end in time");
	}
}

/* The status comes after the end of the output. */
static int wait_status(ssh_channel channel, uint64_t deadline)
{
	char scrap[256];

	while (ssh_channel_get_exit_status(channel) < 0 &&
	       !ssh_channel_is_closed(channel) && kb_now_ms() < deadline &&
	       !kb_interrupted())
		if (ssh_channel_read_timeout(channel, scrap, sizeof(scrap), 1,
					     READ_STEP_MS) < 0)
			break;
	return ssh_channel_get_exit_status(channel);
}

int kb_guest_exec(struct kb_guest *guest, const char *command, const void *input,
		  size_t input_len, size_t max_bytes, uint64_t timeout_ms,
		  char **ret_output, size_t *ret_len, int *ret_exit, struct kb_error *err)
{
	uint64_t deadline = kb_now_ms() + timeout_ms;
	KB_AUTO(kb_str_free) struct kb_str out = {0};
	KB_AUTO(close_channel) ssh_channel channel = open_session(guest, err);

	if (!channel)
		return KB_EGUEST;
	if (ssh_channel_request_exec(channel, command) != SSH_OK)
		return ssh_failed(guest->session, err, "a command in the guest");
	for (size_t done = 0; done < input_len;) {
		size_t rest = input_len - done;
		uint32_t chunk = rest > 16384 ? 16384 : (uint32_t)rest;
		int n = ssh_channel_write(channel, (const char *)input + done, chunk);

		if (n <= 0)
			return ssh_failed(guest->session, err, "writing to the guest");
		if (kb_now_ms() >= deadline)
			return kb_error_set(err, KB_ETIMEOUT,
					    "the guest does not take its input");
		done += (size_t)n;
	}
	ssh_channel_send_eof(channel);
	int r = read_output(guest, channel, max_bytes, deadline, &out, err);
	if (r)
		return r;
	*ret_exit = wait_status(channel, deadline);
	if (ret_len)
		*ret_len = out.len;
	if (ret_output)
		*ret_output = kb_str_steal(&out);
	return 0;
}

int kb_guest_download(struct kb_guest *guest, const char *path, size_t max_bytes,
		      uint64_t timeout_ms, char **ret_data, size_t *ret_len,
		      struct kb_error *err)
{
	KB_AUTO_FREE char *command = kb_asprintf("cat %s", path);
	KB_AUTO_FREE char *data = NULL;
	int status = -1;
	int r = kb_guest_exec(guest, command, NULL, 0, max_bytes, timeout_ms, &data,
			      ret_len, &status, err);

	if (r)
		return r;
	if (status != 0)
		return kb_error_set(err, KB_EGUEST,
				    "the guest cannot read %s (status %d)", path, status);
	*ret_data = KB_STEAL(data);
	return 0;
}

int kb_guest_upload(struct kb_guest *guest, const char *path, const void *data,
		    size_t len, uint64_t timeout_ms, struct kb_error *err)
{
	KB_AUTO_FREE char *command = kb_asprintf("cat > %s", path);
	int status = -1;
	int r = kb_guest_exec(guest, command, data, len, 4096, timeout_ms, NULL, NULL,
			      &status, err);

	if (!r && status != 0)
		r = kb_error_set(err, KB_EGUEST, "the guest cannot write %s (status %d)",
				 path, status);
	return r;
}

/* ---- a shell on our terminal ---- */

static void window_size(int *cols, int *rows)
{
	struct winsize ws;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col && ws.ws_row) {
		*cols = ws.ws_col;
		*rows = ws.ws_row;
	}
}

/* One round of copying. @return false when the shell has ended */
static bool shell_step(ssh_session session, ssh_channel channel, bool *stdin_open)
{
	struct pollfd pfd[2] = {
		{.fd = ssh_get_fd(session), .events = POLLIN},
		{.fd = *stdin_open ? STDIN_FILENO : -1, .events = POLLIN}};
	char buf[4096];
	int n;

	poll(pfd, 2, READ_STEP_MS);
	if (pfd[1].revents) {
		ssize_t got = read(STDIN_FILENO, buf, sizeof(buf));

		if (got > 0) {
			if (ssh_channel_write(channel, buf, (uint32_t)got) < 0)
				return false;
		} else if (got == 0) {
			*stdin_open = false;
			ssh_channel_send_eof(channel);
		}
	}
	for (int is_stderr = 0; is_stderr < 2; is_stderr++)
		while ((n = ssh_channel_read_nonblocking(channel, buf, sizeof(buf),
							 is_stderr)) > 0)
			if (kb_write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, buf,
					 (size_t)n, NULL))
				return false;
	return !ssh_channel_is_eof(channel) && !ssh_channel_is_closed(channel) &&
	       ssh_is_connected(session);
}

int kb_guest_shell(struct kb_guest *guest, int *ret_exit, struct kb_error *err)
{
	KB_AUTO(close_channel) ssh_channel channel = open_session(guest, err);
	const char *term = getenv("TERM");
	bool tty = isatty(STDIN_FILENO), stdin_open = true;
	int cols = 80, rows = 24;
	struct termios saved, raw;

	if (!channel)
		return KB_EGUEST;
	window_size(&cols, &rows);
	if (tty && ssh_channel_request_pty_size(channel, term ? term : "vt100", cols,
						rows) != SSH_OK)
		return ssh_failed(guest->session, err, "a terminal in the guest");
	if (ssh_channel_request_shell(channel) != SSH_OK)
		return ssh_failed(guest->session, err, "a shell in the guest");
	tty = tty && tcgetattr(STDIN_FILENO, &saved) == 0;
	if (tty) {
		raw = saved;
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	while (shell_step(guest->session, channel, &stdin_open) && !kb_interrupted()) {
		int c = cols, r = rows;

		window_size(&c, &r);
		if (c != cols || r != rows)
			ssh_channel_change_pty_size(channel, cols = c, rows = r);
	}
	if (tty)
		tcsetattr(STDIN_FILENO, TCSANOW, &saved);
	*ret_exit = wait_status(channel, kb_now_ms() + 2000);
	return 0;
}
