/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moves bytes between a libvirt stream and a socket, in libvirt's event thread. */
#include "harness/vm_libvirt.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"

/* One open channel; lives in the event thread after kb_vm_libvirt_pump(). */
struct pump {
	atomic_int *alive; /* counts the pumps */
	virStreamPtr stream;
	int fd, watch;
	pthread_mutex_t lock; /* until everything is registered */
	bool closed;
	char to_guest[16384], to_host[16384];
	size_t to_guest_len, to_host_len;
};

static void pump_free(void *opaque)
{
	struct pump *p = opaque;
	atomic_int *alive = p->alive;

	pthread_mutex_destroy(&p->lock);
	kb_close(&p->fd);
	free(p);
	atomic_fetch_sub(alive, 1);
}

static void pump_close(struct pump *p)
{
	if (p->closed)
		return;
	p->closed = true;
	virStreamEventRemoveCallback(p->stream);
	virStreamAbort(p->stream);
	virStreamFree(p->stream);
	shutdown(p->fd, SHUT_RDWR);
	virEventRemoveHandle(p->watch); /* pump_free() follows from the loop */
}

/* Both move what can be moved now; false when an end is gone. */
static bool move_to_guest(struct pump *p)
{
	ssize_t n;

	if (p->to_guest_len == 0) {
		n = recv(p->fd, p->to_guest, sizeof(p->to_guest), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		p->to_guest_len = n > 0 ? (size_t)n : 0;
	}
	if (p->to_guest_len == 0)
		return true;
	n = virStreamSend(p->stream, p->to_guest, p->to_guest_len);
	if (n > 0) {
		p->to_guest_len -= (size_t)n;
		memmove(p->to_guest, p->to_guest + n, p->to_guest_len);
	}
	return n >= 0 || n == -2; /* -2: later */
}

static bool move_to_host(struct pump *p)
{
	ssize_t n;

	if (p->to_host_len == 0) {
		n = virStreamRecv(p->stream, p->to_host, sizeof(p->to_host));
		if (n == 0 || (n < 0 && n != -2))
			return false;
		p->to_host_len = n > 0 ? (size_t)n : 0;
	}
	if (p->to_host_len == 0)
		return true;
	n = send(p->fd, p->to_host, p->to_host_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		p->to_host_len -= (size_t)n;
		memmove(p->to_host, p->to_host + n, p->to_host_len);
	}
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void pump_run(struct pump *p)
{
	pthread_mutex_lock(&p->lock);
	if (!p->closed && !(move_to_guest(p) && move_to_host(p)))
		pump_close(p);
	if (!p->closed) {
		virStreamEventUpdateCallback(
			p->stream,
			(p->to_host_len ? 0 : VIR_STREAM_EVENT_READABLE) |
				(p->to_guest_len ? VIR_STREAM_EVENT_WRITABLE : 0) |
				VIR_STREAM_EVENT_HANGUP | VIR_STREAM_EVENT_ERROR);
		virEventUpdateHandle(
			p->watch,
			(p->to_guest_len ? 0 : VIR_EVENT_HANDLE_READABLE) |
				(p->to_host_len ? VIR_EVENT_HANDLE_WRITABLE : 0) |
				VIR_EVENT_HANDLE_HANGUP | VIR_EVENT_HANDLE_ERROR);
	}
	pthread_mutex_unlock(&p->lock);
}

static void on_stream(virStreamPtr stream, int events, void *opaque)
{
	(void)stream;
	(void)events;
	pump_run(opaque);
}

static void on_fd(int watch, int fd, int events, void *opaque)
{
	(void)watch;
	(void)fd;
	(void)events;
	pump_run(opaque);
}

int kb_vm_libvirt_pump(virStreamPtr stream, atomic_int *alive, int fd,
		       struct kb_error *err)
{
	struct pump *p = kb_calloc(1, sizeof(*p));

	p->alive = alive;
	p->stream = stream;
	p->fd = fd;
	atomic_fetch_add(alive, 1);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_lock(&p->lock);
	p->watch = virEventAddHandle(fd, VIR_EVENT_HANDLE_READABLE, on_fd, p, pump_free);
	if (p->watch < 0) {
		virStreamAbort(stream);
		virStreamFree(stream);
		pthread_mutex_unlock(&p->lock);
		pump_free(p);
		return kb_vm_libvirt_failed(err, "cannot watch the channel");
	}
	int r = virStreamEventAddCallback(stream,
					  VIR_STREAM_EVENT_READABLE |
						  VIR_STREAM_EVENT_HANGUP |
						  VIR_STREAM_EVENT_ERROR,
					  on_stream, p, NULL);
	p->closed = r < 0;
	pthread_mutex_unlock(&p->lock);
	if (r < 0) {
		/* From here on the event thread does nothing with p but free it. */
		r = kb_vm_libvirt_failed(err, "cannot watch the channel's stream");
		virStreamAbort(stream);
		virStreamFree(stream);
		virEventRemoveHandle(p->watch);
	}
	return r;
}
