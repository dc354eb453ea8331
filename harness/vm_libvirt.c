/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/vm.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/vm_libvirt.h"
#include "harness/vm_slot.h"

struct kb_vm_host {
	struct kb_vm_slot slot; /* embedded only; its root is NULL otherwise */
	virConnectPtr conn;	/* owned */
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;
	atomic_int pumps;   /* channels whose buffers still live in the event thread */
	int event_callback; /* -1: none */
	char *qemu_version, *libvirt_version; /* owned */
	pthread_mutex_t vm_lock; /* of the next member: the event thread looks at it */
	struct kb_vm *vm; /* borrowed; the one that runs, for the event callback */
};

struct kb_vm {
	struct kb_vm_host *host; /* borrowed */
	virDomainPtr domain;	 /* owned; NULL once destroyed */
	char *name;		 /* owned */
	pid_t pid;		 /* of QEMU, our child; 0 when unknown or reaped */
	bool ended;
	enum kb_vm_state state;
	char text[160];
	atomic_int stop_detail; /* from libvirt's event; -1: none yet */
};

/* ---- errors ---- */

static void be_silent(void *ctx, virErrorPtr error)
{
	(void)ctx;
	(void)error;
}

int kb_vm_libvirt_failed(struct kb_error *err, const char *what)
{
	const char *text = virGetLastErrorMessage();

	return kb_error_set(err, KB_EVM, "%s: %s", what, text);
}

/* ---- the event thread ---- */

static void tick(int timer, void *opaque)
{
	(void)timer;
	(void)opaque; /* wakes the loop, so that it sees `stop` */
}

static void *event_loop(void *opaque)
{
	struct kb_vm_host *host = opaque;

	while (!atomic_load(&host->stop))
		if (virEventRunDefaultImpl() < 0)
			kb_sleep_ms(10);
	return NULL;
}

static int start_events(struct kb_vm_host *host, struct kb_error *err)
{
	sigset_t all, old;

	if (virEventRegisterDefaultImpl() < 0 ||
	    virEventAddTimeout(50, tick, NULL, NULL) < 0)
		return kb_vm_libvirt_failed(err, "libvirt's event loop");
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int r = pthread_create(&host->thread, NULL, event_loop, host);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return kb_error_errno(err, KB_EVM, r, "cannot start a thread");
	host->has_thread = true;
	return 0;
}

static void set_current(struct kb_vm_host *host, struct kb_vm *vm)
{
	pthread_mutex_lock(&host->vm_lock);
	host->vm = vm;
	pthread_mutex_unlock(&host->vm_lock);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr domain, int event, int detail,
			void *opaque)
{
	struct kb_vm_host *host = opaque;

	(void)conn;
	pthread_mutex_lock(&host->vm_lock);
	if (event == VIR_DOMAIN_EVENT_STOPPED && host->vm &&
	    kb_streq(virDomainGetName(domain), host->vm->name))
		atomic_store(&host->vm->stop_detail, detail);
	pthread_mutex_unlock(&host->vm_lock);
	return 0;
}

/* ---- the connection ---- */

/* Nothing may be left by whoever held this slot before: it held the lock as we do now. */
static void destroy_leftovers(struct kb_vm_host *host)
{
	virDomainPtr *domains = NULL;
	int n = virConnectListAllDomains(host->conn, &domains,
					 VIR_CONNECT_LIST_DOMAINS_ACTIVE);

	for (int i = 0; i < n; i++) {
		kb_warn("a VM of a killed kbisect is destroyed: %s",
			virDomainGetName(domains[i]));
		virDomainDestroy(domains[i]);
		virDomainFree(domains[i]);
	}
	free(domains);
}

static char *version_string(unsigned long v)
{
	return kb_asprintf("%lu.%lu.%lu", v / 1000000, v / 1000 % 1000, v % 1000);
}

static int check_host(struct kb_vm_host *host, const struct kb_vm_host_spec *spec,
		      struct kb_error *err)
{
	const char *type = spec->kvm ? "kvm" : "qemu";
	const char *emulator = host->slot.root ? spec->wrapper : NULL;
	unsigned long version = 0;
	char *caps = virConnectGetDomainCapabilities(host->conn, emulator, "x86_64",
						     spec->machine, type, 0);

	if (!caps) {
		KB_AUTO_FREE char *what =
			kb_asprintf("this host's QEMU cannot run a %s machine with %s",
				    spec->machine, spec->kvm ? "KVM" : "TCG");
		return kb_vm_libvirt_failed(err, what);
	}
	free(caps);
	if (virConnectGetVersion(host->conn, &version) < 0)
		return kb_vm_libvirt_failed(err, "QEMU's version");
	host->qemu_version = version_string(version);
	version = 0;
	if (virConnectGetLibVersion(host->conn, &version) < 0)
		return kb_vm_libvirt_failed(err, "libvirt's version");
	host->libvirt_version = version_string(version);
	return 0;
}

/* libvirt would log to our stderr; keep what it says beside the slot instead. */
static void redirect_log(const struct kb_vm_slot *slot)
{
	KB_AUTO_FREE char *out =
		slot->root ? kb_asprintf("3:file:%s/libvirt.log", slot->root)
			   : kb_strdup("4:null");

	if (slot->root) {
		KB_AUTO_FREE char *log = kb_path_join(slot->root, "libvirt.log");

		unlink(log);
		setenv("LIBVIRT_LOG_OUTPUTS", out, 0);
	}
	setenv("LIBVIRT_DEBUG", "4", 0);
}

/*
 * libvirt throws its cached capabilities away when CPUID has changed, and CPUID tells the
 * number of the CPU it is asked on: so always ask on the first one. Probing takes
 * seconds.
 */
static virConnectPtr connect_on_first_cpu(const char *uri)
{
	cpu_set_t old, first;
	bool pinned = false;

	if (sched_getaffinity(0, sizeof(old), &old) == 0) {
		CPU_ZERO(&first);
		for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; cpu++)
			if (CPU_ISSET(cpu, &old))
				CPU_SET(cpu, &first);
		pinned = sched_setaffinity(0, sizeof(first), &first) == 0;
	}
	virConnectPtr conn = virConnectOpen(uri);
	if (pinned)
		sched_setaffinity(0, sizeof(old), &old);
	return conn;
}

static int connect_host(struct kb_vm_host *host, const struct kb_vm_host_spec *spec,
			struct kb_error *err)
{
	bool embedded = !spec->uri || kb_streq(spec->uri, "qemu:///embed");
	const char *uri = spec->uri;
	int r;

	if (spec->uri && !embedded && kb_starts_with(spec->uri, "qemu:///embed"))
		return kb_error_set(
			err, KB_ECONFIG,
			"vm.uri %s: give just qemu:///embed; KBISECT_VM_DIR sets where "
			"its root directories are",
			spec->uri);
	if (embedded) {
		r = kb_vm_slot_take(spec->wrapper, &host->slot, err);
		if (r)
			return r;
		uri = host->slot.uri;
	}
	redirect_log(&host->slot);
	virSetErrorFunc(NULL, be_silent);
	if (virInitialize() < 0)
		return kb_vm_libvirt_failed(err, "libvirt");
	r = start_events(host, err);
	if (r)
		return r;
	host->conn = connect_on_first_cpu(uri);
	if (!host->conn) {
		KB_AUTO_FREE char *what = kb_asprintf("cannot connect to %s", uri);
		return kb_vm_libvirt_failed(err, what);
	}
	host->event_callback = virConnectDomainEventRegisterAny(
		host->conn, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
		VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), host, NULL);
	r = check_host(host, spec, err);
	kb_vm_slot_probed(&host->slot);
	if (r || !embedded)
		return r;
	destroy_leftovers(host);
	/* Only now: probes that libvirt starts must be reaped by init, or it waits for
	 * them. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return kb_error_errno(err, KB_EVM, errno, "PR_SET_CHILD_SUBREAPER");
	return 0;
}

int kb_vm_host_open(const struct kb_vm_host_spec *spec, struct kb_vm_host **ret_host,
		    struct kb_error *err)
{
	struct kb_vm_host *host = kb_calloc(1, sizeof(*host));

	pthread_mutex_init(&host->vm_lock, NULL);

	host->slot = (struct kb_vm_slot)KB_VM_SLOT_INIT;
	host->event_callback = -1;
	int r = connect_host(host, spec, err);
	if (r) {
		kb_vm_host_free(host);
		return r;
	}
	*ret_host = host;
	return 0;
}

void kb_vm_host_free(struct kb_vm_host *host)
{
	if (!host)
		return;
	if (host->conn) {
		/* Channels close when their other end does; their buffers go with them.
		 */
		for (int i = 0; i < 200 && atomic_load(&host->pumps) > 0; i++)
			kb_sleep_ms(5);
		if (host->event_callback >= 0)
			virConnectDomainEventDeregisterAny(host->conn,
							   host->event_callback);
		virConnectClose(host->conn);
	}
	if (host->has_thread) {
		atomic_store(&host->stop, true);
		pthread_join(host->thread, NULL);
	}
	kb_vm_slot_free(&host->slot);
	free(host->qemu_version);
	free(host->libvirt_version);
	free(host);
}

bool kb_vm_host_is_embedded(const struct kb_vm_host *host)
{
	return host->slot.root != NULL;
}

const char *kb_vm_host_qemu_version(const struct kb_vm_host *host)
{
	return host->qemu_version;
}

const char *kb_vm_host_libvirt_version(const struct kb_vm_host *host)
{
	return host->libvirt_version;
}

/* ---- a VM ---- */

static pid_t read_pid(const struct kb_vm *vm)
{
	KB_AUTO_FREE char *path =
		kb_asprintf("%s/run/qemu/%s.pid", vm->host->slot.root, vm->name);
	KB_AUTO_FREE char *text = NULL;
	size_t len;
	uint64_t pid;

	if (kb_read_file(path, 32, &text, &len, NULL) ||
	    kb_parse_u64(kb_str_rstrip(text), 2, 1 << 30, "pid", &pid, NULL))
		return 0;
	return (pid_t)pid;
}

int kb_vm_create(struct kb_vm_host *host, const char *name, const char *xml,
		 struct kb_vm **ret_vm, struct kb_error *err)
{
	struct kb_vm *vm = kb_calloc(1, sizeof(*vm));

	vm->host = host;
	vm->name = kb_strdup(name);
	atomic_store(&vm->stop_detail, -1);
	set_current(host, vm);
	/* The embedded driver refuses autodestroy: there QEMU dies with us
	 * (harness/qwrap.c). */
	vm->domain = virDomainCreateXML(
		host->conn, xml, host->slot.root ? 0 : VIR_DOMAIN_START_AUTODESTROY);
	if (!vm->domain) {
		int r = kb_vm_libvirt_failed(
			err,
			host->slot.root
				? "cannot start the VM"
				: "cannot start the VM (kernel, initramfs and console "
				  "log must be accessible to that libvirt's QEMU at "
				  "the same paths)");

		kb_vm_free(vm);
		return r;
	}
	if (host->slot.root)
		vm->pid = read_pid(vm);
	*ret_vm = vm;
	return 0;
}

static void set_end(struct kb_vm *vm, enum kb_vm_state state, const char *text)
{
	vm->ended = true;
	vm->state = state;
	(void)snprintf(vm->text, sizeof(vm->text), "%s", text);
}

/* Our child: its exit status tells more than libvirt does. */
static void poll_child(struct kb_vm *vm)
{
	siginfo_t info = {0};
	char text[sizeof(vm->text) - 1];

	if (waitid(P_PID, (id_t)vm->pid, &info, WEXITED | WNOHANG) || info.si_pid == 0)
		return;
	vm->pid = 0;
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		set_end(vm, KB_VM_ENDED, "the guest powered off or reset");
	else if (info.si_code == CLD_EXITED) {
		(void)snprintf(text, sizeof(text), "QEMU exited with status %d",
			       info.si_status);
		set_end(vm, KB_VM_KILLED, text);
	} else {
		(void)snprintf(text, sizeof(text), "QEMU was killed by signal %d (%s)",
			       info.si_status, strsignal(info.si_status));
		set_end(vm, KB_VM_KILLED, text);
	}
}

static void poll_libvirt(struct kb_vm *vm)
{
	int detail = atomic_load(&vm->stop_detail);
	int alive = virDomainIsActive(vm->domain);

	if (detail < 0 && alive == 1)
		return;
	if (detail < 0) { /* the event may come a moment after the fact */
		kb_sleep_ms(100);
		detail = atomic_load(&vm->stop_detail);
	}
	if (detail < 0 && virConnectIsAlive(vm->host->conn) != 1)
		set_end(vm, KB_VM_KILLED, "the connection to libvirt broke");
	else if (detail == VIR_DOMAIN_EVENT_STOPPED_FAILED)
		set_end(vm, KB_VM_KILLED, "QEMU was killed or failed");
	else
		set_end(vm, KB_VM_ENDED, "the guest powered off, reset or crashed");
}

enum kb_vm_state kb_vm_poll(struct kb_vm *vm, const char **ret_text)
{
	if (!vm->ended && vm->pid)
		poll_child(vm);
	else if (!vm->ended)
		poll_libvirt(vm);
	if (ret_text)
		*ret_text = vm->text;
	return vm->ended ? vm->state : KB_VM_RUNNING;
}

void kb_vm_destroy(struct kb_vm *vm)
{
	if (!vm->domain)
		return;
	if (vm->pid && !vm->ended) {
		/* Faster than libvirt, which polls for the pid to vanish before we reap
		 * it. */
		kill(vm->pid, SIGKILL);
		while (waitid(P_PID, (id_t)vm->pid, &(siginfo_t){0}, WEXITED) && errno == EINTR)
			;
		vm->pid = 0;
	}
	if (!vm->ended)
		set_end(vm, KB_VM_ENDED, "destroyed by us");
	virDomainDestroy(
		vm->domain); /* fails when it has ended by itself: just as well */
	virDomainFree(vm->domain);
	vm->domain = NULL;
}

void kb_vm_free(struct kb_vm *vm)
{
	if (!vm)
		return;
	kb_vm_destroy(vm);
	set_current(vm->host, NULL);
	free(vm->name);
	free(vm);
}

char *kb_vm_command(const struct kb_vm *vm)
{
	KB_AUTO_FREE char *path = kb_asprintf("/proc/%d/cmdline", (int)vm->pid);
	KB_AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (!vm->pid || kb_read_file(path, 65536, &text, &len, NULL) || len == 0)
		return NULL;
	for (size_t i = 0; i + 1 < len; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return kb_str_sanitize(text, len - 1, len);
}

/* ---- channels ---- */

int kb_vm_open_channel(struct kb_vm *vm, const char *port_name, int *ret_fd,
		       struct kb_error *err)
{
	virStreamPtr stream = virStreamNew(vm->host->conn, VIR_STREAM_NONBLOCK);
	int fds[2];

	if (!stream)
		return kb_vm_libvirt_failed(err, "cannot make a stream");
	if (virDomainOpenChannel(vm->domain, port_name, stream,
				 VIR_DOMAIN_CHANNEL_FORCE) < 0) {
		virStreamFree(stream);
		return kb_vm_libvirt_failed(err, "cannot open the guest's channel");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		virStreamAbort(stream);
		virStreamFree(stream);
		return kb_error_errno(err, KB_EVM, errno, "socketpair");
	}
	int r = kb_vm_libvirt_pump(stream, &vm->host->pumps, fds[0], err);
	if (r) {
		close(fds[1]);
		return r;
	}
	*ret_fd = fds[1];
	return 0;
}
