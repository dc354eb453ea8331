/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a request to a running VM. */
#include "harness/boot_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guest-init/proto.h"
#include "harness/base/clock.h"
#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/cpio.h"
#include "harness/paths.h"
#include "harness/vm_domxml.h"

enum { INITRD_ALIGN = 512 };

static int check_file(const char *path, const char *sha256, const char *what,
		      struct kb_error *err)
{
	char hex[KB_HASH_HEX_LEN + 1];

	if (!path || path[0] != '/')
		return kb_error_set(err, KB_ECONFIG,
				    "the %s needs an absolute path, not %s", what,
				    path ? path : "none");
	int r = kb_hash_file(path, hex, err);
	if (r)
		return kb_error_prefix(err, "%s", what);
	if (sha256 && *sha256 && !kb_streq(sha256, hex))
		return kb_error_set(err, KB_EIO,
				    "the %s %s has changed: its SHA-256 is %s, not %s",
				    what, path, hex, sha256);
	return 0;
}

/*
 * In exact mode every byte that the guest looks at may move its timing, so the nonce
 * depends on the perturbation alone. Elsewhere it is random.
 */
static int make_nonce(struct boot *b, struct kb_error *err)
{
	char hex[KB_HASH_HEX_LEN + 1];
	struct kb_hash *h = kb_hash_new();
	uint8_t random[32];

	kb_hash_update_str(h, "kbisect nonce");
	if (kb_streq(b->req->mode, "exact")) {
		kb_hash_update(h, &b->req->perturbation, sizeof(b->req->perturbation));
	} else if (getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random)) {
		kb_hash_update(h, random, sizeof(random));
	} else {
		kb_hash_finish(h, hex);
		return kb_error_errno(err, KB_EINTERNAL, errno, "getrandom");
	}
	kb_hash_finish(h, hex);
	memcpy(b->nonce, hex, BOOT_NONCE_LEN);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct kb_pair *)a)->name, ((const struct kb_pair *)b)->name);
}

char *boot_params_text(const struct boot *b)
{
	const struct kb_boot_request *req = b->req;
	const char *device = kb_domxml_scratch_device(req->scratch);
	KB_AUTO_FREE char *timeout = kb_asprintf("%" PRIu64, req->timeout_ms);
	const struct kb_pair fixed[] = {
		{(char *)"nonce", (char *)b->nonce},
		{(char *)"mode", req->mode},
		{(char *)"ssh", (char *)"1"},
	};
	const struct kb_pair defaults[] = {
		{(char *)"scratch.device", (char *)device},
		{(char *)"keep_ms", (char *)"600000"},
		{(char *)"timeout_ms", timeout},
	};
	KB_AUTO(kb_str_free) struct kb_str s = {0};

	kb_str_append(&s, KB_PROTO_PARAMS_MAGIC "\n");
	for (size_t i = 0; i < KB_COUNT_OF(fixed); i++)
		kb_str_appendf(&s, "%s %s\n", fixed[i].name, fixed[i].value);
	for (size_t i = 0; i < KB_COUNT_OF(defaults); i++)
		if (defaults[i].value && !kb_pairs_get(&req->params, defaults[i].name))
			kb_str_appendf(&s, "%s %s\n", defaults[i].name,
				       defaults[i].value);
	/* Sorted: members of a JSON object have no order, and in exact mode even the order
		 * of these lines moves the guest's timing. */
	KB_AUTO_FREE struct kb_pair *sorted = kb_calloc(req->params.count + 1, sizeof(*sorted));
	if (req->params.count)
		memcpy(sorted, req->params.items, req->params.count * sizeof(*sorted));
	qsort(sorted, req->params.count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < req->params.count; i++) {
		const struct kb_pair *p = &sorted[i];

		if (!kb_streq(p->name, "nonce") && !kb_streq(p->name, "mode") &&
		    !kb_streq(p->name, "ssh"))
			kb_str_appendf(&s, "%s %s\n", p->name, p->value);
	}
	kb_str_append(&s, "end\n");
	return kb_str_steal(&s);
}

static void make_archive(const struct boot *b, struct kb_cpio *c)
{
	KB_AUTO_FREE char *params = boot_params_text(b);
	const char *authorized = kb_guest_keys_authorized(b->keys);
	size_t host_len;
	const void *host = kb_guest_keys_host(b->keys, &host_len);

	kb_cpio_add_dir(c, "kbisect", 0755);
	kb_cpio_add_file(c, &KB_PROTO_PARAMS_PATH[1], 0644, params, strlen(params));
	kb_cpio_add_dir(c, "root", 0700);
	kb_cpio_add_dir(c, "root/.ssh", 0700);
	kb_cpio_add_file(c, &KB_PROTO_AUTHORIZED_KEYS[1], 0600, authorized,
			 strlen(authorized));
	kb_cpio_add_dir(c, "etc", 0755);
	kb_cpio_add_dir(c, "etc/dropbear", 0700);
	kb_cpio_add_file(c, &KB_PROTO_HOST_KEY[1], 0600, host, host_len);
	kb_cpio_finish(c);
}

/* The image, zeros up to a round length, and our archive. */
static int write_initrd(struct boot *b, struct kb_error *err)
{
	static const char zeros[INITRD_ALIGN];
	KB_AUTO(kb_cpio_free) struct kb_cpio cpio = {0};
	KB_AUTO(kb_close) int in = open(b->req->image_path, O_RDONLY | O_CLOEXEC);
	KB_AUTO(kb_close)
	int out = open(b->initrd_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st;

	if (in < 0 || fstat(in, &st))
		return kb_error_errno(err, KB_EIO, errno, "%s", b->req->image_path);
	if (out < 0)
		return kb_error_errno(err, KB_EIO, errno, "cannot make %s",
				      b->initrd_path);
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = sendfile(out, in, &at, (size_t)(st.st_size - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return kb_error_errno(err, KB_EIO, n < 0 ? errno : EIO,
					      "cannot write %s", b->initrd_path);
	}
	size_t pad = (size_t)((INITRD_ALIGN - st.st_size % INITRD_ALIGN) % INITRD_ALIGN);
	make_archive(b, &cpio);
	int r = kb_write_all(out, zeros, pad, err);
	return r ? r : kb_write_all(out, cpio.out.data, cpio.out.len, err);
}

/* A sparse file; its space is only taken as the guest writes. */
static int make_scratch(struct boot *b, struct kb_error *err)
{
	if (!kb_streq(b->req->scratch, "virtio-blk"))
		return 0;
	b->scratch_path = kb_path_join(b->req->work_dir, "scratch.img");
	KB_AUTO(kb_close)
	int fd = open(b->scratch_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)b->req->scratch_mib << 20))
		return kb_error_errno(err, KB_EIO, errno, "cannot make %s",
				      b->scratch_path);
	return 0;
}

/* Cycles of the host's time stamp counter a millisecond; what a TCG guest without
 * instruction counting sees. 0 where there is none. */
static uint64_t measure_tsc_khz(void)
{
#ifdef __x86_64__
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC_RAW, &a);
	uint64_t from = __builtin_ia32_rdtsc();
	kb_sleep_ms(20);
	clock_gettime(CLOCK_MONOTONIC_RAW, &b);
	uint64_t to = __builtin_ia32_rdtsc();
	int64_t ns = (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec;
	return ns > 0 ? (uint64_t)((double)(to - from) * 1e6 / (double)ns) : 0;
#else
	return 0;
#endif
}

/* Only the embedded driver has one domain at a time and so can give all of them one UUID.
 */
static char *make_uuid(const struct boot *b)
{
	uint8_t u[16];

	if (kb_vm_host_is_embedded(b->host) || getrandom(u, sizeof(u), 0) != sizeof(u))
		return NULL;
	KB_AUTO(kb_str_free) struct kb_str s = {0};
	u[6] = (uint8_t)(0x40 | (u[6] & 0x0f));
	u[8] = (uint8_t)(0x80 | (u[8] & 0x3f));
	for (size_t i = 0; i < sizeof(u); i++)
		kb_str_appendf(&s, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	return kb_str_steal(&s);
}

static int make_xml(struct boot *b, const char *wrapper, struct kb_error *err)
{
	const struct kb_boot_request *req = b->req;
	bool embedded = kb_vm_host_is_embedded(b->host);
	KB_AUTO_FREE char *uuid = make_uuid(b);
	KB_AUTO_FREE char *path = kb_path_join(req->work_dir, "domain.xml");
	struct kb_domxml_spec spec = {
		.req = req,
		.name = b->name,
		.uuid = uuid,
		.emulator = embedded ? wrapper : NULL,
		.initrd_path = b->initrd_path,
		.console_path = b->console_path,
		.scratch_path = b->scratch_path,
		.controller_pid = embedded ? (long)getpid() : 0,
	};

	if (embedded)
		spec.rom_path = kb_domxml_rom(req);
	if (spec.rom_path && !kb_path_exists(spec.rom_path))
		return kb_error_set(err, KB_EVM, "%s is missing: apt install qemu-system-data",
				    spec.rom_path);
	if (kb_streq(req->accel, "tcg") && !kb_streq(req->mode, "exact"))
		spec.tsc_khz = measure_tsc_khz();
	int r = kb_domxml_make(&spec, &b->xml, err);
	return r ? r : kb_write_file_atomic(path, b->xml, strlen(b->xml), err);
}

static int prepare(struct boot *b, struct kb_error *err)
{
	const struct kb_boot_request *req = b->req;
	int r = check_file(req->kernel_path, req->kernel_sha256, "kernel", err);

	if (!r)
		r = check_file(req->image_path, req->image_sha256, "guest image", err);
	if (!r && (!req->work_dir || req->work_dir[0] != '/'))
		r = kb_error_set(err, KB_ECONFIG, "work_dir must be an absolute path");
	if (!r)
		r = kb_mkdirs(req->work_dir, err);
	if (!r)
		r = make_nonce(b, err);
	if (!r)
		r = kb_guest_keys_new(&b->keys, err);
	if (r)
		return r;
	b->initrd_path = kb_path_join(req->work_dir, "initrd");
	b->console_path = kb_path_join(req->work_dir, "console.log");
	b->name = kb_asprintf("kb-%d", (int)getpid());
	r = write_initrd(b, err);
	if (!r)
		r = make_scratch(b, err);
	if (!r)
		r = kb_console_init(&b->console, b->console_path, req->console_max_bytes,
				    b->nonce, &req->console_deny, err);
	return r;
}

int boot_start(struct boot *b, const struct kb_boot_request *req, struct kb_error *err)
{
	KB_AUTO_FREE char *wrapper = NULL;
	struct kb_vm_host_spec spec = {.uri = req->uri, .machine = req->machine};

	memset(b, 0, sizeof(*b));
	b->req = req;
	b->entered_ms = kb_now_ms();
	(void)signal(SIGPIPE, SIG_IGN);
	int r = prepare(b, err);
	if (!r)
		r = kb_path_qemu_wrapper(&wrapper, err);
	if (r)
		return r;
	spec.wrapper = wrapper;
	spec.kvm = kb_streq(req->accel, "kvm");
	kb_debug("boot: prepared in %" PRIu64 " ms", kb_now_ms() - b->entered_ms);
	r = kb_vm_host_open(&spec, &b->host, err);
	kb_debug("boot: libvirt is open after %" PRIu64 " ms",
		 kb_now_ms() - b->entered_ms);
	if (!r)
		r = make_xml(b, wrapper, err);
	if (!r && kb_interrupted())
		r = kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	if (r)
		return r;
	uint64_t before = kb_now_ms();
	r = kb_vm_create(b->host, b->name, b->xml, &b->vm, err);
	b->created_ms = kb_now_ms();
	b->create_ms = b->created_ms - before;
	return r;
}

int boot_connect(struct boot *b, uint64_t timeout_ms, struct kb_guest **ret_guest,
		 struct kb_error *err)
{
	int fd = -1;
	int r = kb_vm_open_channel(b->vm, KB_PROTO_CHANNEL_NAME, &fd, err);

	return r ? r : kb_guest_connect(fd, b->keys, timeout_ms, ret_guest, err);
}

void boot_free(struct boot *b)
{
	kb_vm_free(b->vm);
	kb_vm_host_free(b->host);
	kb_console_free(&b->console);
	kb_guest_keys_free(b->keys);
	if (b->initrd_path)
		unlink(b->initrd_path); /* keys, and megabytes */
	if (b->scratch_path)
		unlink(b->scratch_path);
	free(b->name);
	free(b->initrd_path);
	free(b->console_path);
	free(b->scratch_path);
	free(b->xml);
	memset(b, 0, sizeof(*b));
}
