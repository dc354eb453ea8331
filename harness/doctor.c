/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/doctor.h"

#include <glob.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/proc.h"
#include "harness/base/str.h"

#define PROBE_TIMEOUT_MS 20000
#define PROBE_MAX_BYTES 65536
#define QEMU "qemu-system-x86_64"

#define SPACE_NEEDED_MIB 2048   /* one source and object tree, some kernels */
#define SPACE_WANTED_MIB 8192
#define MEMORY_NEEDED_MIB 768   /* a small guest beside a compiler */
#define MEMORY_WANTED_MIB 2048

struct finding {
	enum kb_doctor_status status;
	char *fact, *fix; /* owned */
};

struct probe {
	const char *name;
	const char *subject; /* a program or a file pattern for the common probes */
	const char *package; /* the Debian package that brings it */
	enum kb_doctor_status without; /* status when it is not there */
	void (*run)(const struct probe *p, const char *cache_dir, struct finding *f);
};

__attribute__((format(printf, 4, 5))) static void
found(struct finding *f, enum kb_doctor_status status, const char *fix, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f->status = status;
	f->fact = kb_str_sanitize(text, strlen(text), sizeof(text));
	f->fix = kb_strdup(fix);
}

/* In PATH, or where Debian keeps what only administrators are thought to need. */
static char *find_program(const char *name)
{
	static const char *const more[] = { "/usr/sbin", "/sbin" };
	char *path = kb_proc_find(name);

	for (size_t i = 0; !path && i < KB_COUNT_OF(more); i++) {
		KB_AUTO_FREE char *full = kb_path_join(more[i], name);

		path = kb_proc_find(full);
	}
	return path;
}

/* First line that is not empty of `PROGRAM --version`, or NULL. */
static char *version_line(const char *path)
{
	const char *const argv[] = { path, "--version", NULL };
	KB_AUTO_FREE char *out = NULL;
	struct kb_proc_result res = { 0 };

	if (kb_proc_capture(argv, PROBE_TIMEOUT_MS, PROBE_MAX_BYTES, &out, &res, NULL) ||
	    res.exit_code != 0 || out[0] == '\0')
		return NULL;
	const char *line = out + strspn(out, "\n"); /* perl begins with an empty one */
	return kb_strndup(line, strcspn(line, "\n"));
}

static void probe_program(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *path = find_program(p->subject);
	KB_AUTO_FREE char *fix = kb_asprintf("apt install %s", p->package);

	(void)cache_dir;
	if (!path) {
		found(f, p->without, fix, "%s was not found", p->subject);
		return;
	}
	KB_AUTO_FREE char *version = version_line(path);
	found(f, KB_DOCTOR_OK, NULL, "%s", version ? version : path);
}

/* `subject` is a list of glob patterns, any of which will do. */
static void probe_file(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO(kb_strv_free) struct kb_strv patterns = { 0 };
	KB_AUTO_FREE char *fix = kb_asprintf("apt install %s", p->package);

	(void)cache_dir;
	kb_strv_split(&patterns, p->subject, " ");
	for (size_t i = 0; i < patterns.count; i++) {
		glob_t g = { 0 };

		if (glob(patterns.items[i], 0, NULL, &g) == 0) {
			found(f, KB_DOCTOR_OK, NULL, "%s", g.gl_pathv[0]);
			globfree(&g);
			return;
		}
		globfree(&g);
	}
	found(f, p->without, fix, "%s was not found", patterns.items[0]);
}

static void probe_kvm(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *why = NULL;

	(void)cache_dir;
	if (kb_doctor_kvm_usable(&why)) {
		found(f, KB_DOCTOR_OK, NULL, "a guest runs at the processor's speed");
		return;
	}
	found(f, p->without,
	      strstr(why, "may not open") ?
		      "add the user to the group kvm (usermod -aG kvm USER), or use exact mode" :
		      "use exact mode (the default without KVM), or a host with KVM for time mode",
	      "not usable: %s", why);
}

/* What QEMU says on both outputs; owned, never NULL. */
static char *qemu_says(const char *const *args)
{
	KB_AUTO(kb_strv_free) struct kb_strv argv = { 0 };
	char path[] = "/tmp/kbisect-doctor-XXXXXX";
	char *text = NULL;
	struct kb_proc_result res = { 0 };
	KB_AUTO(kb_close) int fd = mkstemp(path);

	if (fd < 0)
		return kb_strdup("");
	kb_strv_add(&argv, QEMU);
	for (; *args; args++)
		kb_strv_add(&argv, *args);
	struct kb_proc_spec spec = { .argv = (const char *const *)argv.items,
				     .output_path = path,
				     .timeout_ms = PROBE_TIMEOUT_MS };
	if (kb_proc_run(&spec, &res, NULL) ||
	    kb_read_file(path, PROBE_MAX_BYTES, &text, NULL, NULL))
		text = kb_strdup("");
	unlink(path);
	return text;
}

static void probe_tcg(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *says = qemu_says((const char *const[]){ "-accel", "help", NULL });
	KB_AUTO_FREE char *fix = kb_asprintf("apt install %s", p->package);

	(void)cache_dir;
	if (strstr(says, "tcg"))
		found(f, KB_DOCTOR_OK, NULL, "emulation (exact mode) is built in");
	else
		found(f, p->without, fix, "%s has no TCG accelerator", QEMU);
}

static void probe_plugins(const struct probe *p, const char *cache_dir, struct finding *f)
{
	/* no such plugin exists: a QEMU with the interface tries to load it */
	KB_AUTO_FREE char *says =
		qemu_says((const char *const[]){ "-M", "none", "-plugin", "kb-no-such-plugin",
						 NULL });
	KB_AUTO_FREE char *fix =
		kb_asprintf("a QEMU configured with --enable-plugins (apt install %s has it)",
			    p->package);

	(void)cache_dir;
	if (strstr(says, "Could not load plugin"))
		found(f, KB_DOCTOR_OK, NULL, "TCG plugins can be loaded");
	else
		found(f, p->without, fix, "%s cannot load TCG plugins", QEMU);
}

static void probe_user(const struct probe *p, const char *cache_dir, struct finding *f)
{
	(void)cache_dir;
	if (geteuid() != 0)
		found(f, KB_DOCTOR_OK, NULL, "not needed: not running as root");
	else if (getpwnam(p->subject))
		found(f, KB_DOCTOR_OK, NULL, "the user %s exists", p->subject);
	else
		found(f, p->without, "useradd --system --user-group libvirt-qemu",
		      "there is no user %s, libvirt's QEMU driver will not start as root",
		      p->subject);
}

static void probe_busybox(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *path = find_program(p->subject);
	KB_AUTO_FREE char *fix = kb_asprintf("apt install %s", p->package);

	(void)cache_dir;
	if (!path) {
		found(f, p->without, fix, "%s was not found", p->subject);
		return;
	}
	/* a static program names no interpreter */
	const char *const argv[] = { "readelf", "-lW", path, NULL };
	KB_AUTO_FREE char *out = NULL;
	struct kb_proc_result res = { 0 };
	if (kb_proc_capture(argv, PROBE_TIMEOUT_MS, PROBE_MAX_BYTES, &out, &res, NULL) ||
	    res.exit_code != 0)
		found(f, KB_DOCTOR_WARN, "apt install binutils",
		      "%s: cannot tell whether it is static", path);
	else if (strstr(out, "INTERP"))
		found(f, p->without, fix, "%s is not static", path);
	else
		found(f, KB_DOCTOR_OK, NULL, "%s is static", path);
}

static void judge_amount(struct finding *f, uint64_t have_mib, uint64_t needed_mib,
			 uint64_t wanted_mib, const char *what, const char *fix)
{
	enum kb_doctor_status status = have_mib < needed_mib ? KB_DOCTOR_MISSING :
				       have_mib < wanted_mib ? KB_DOCTOR_WARN :
							       KB_DOCTOR_OK;

	found(f, status, status == KB_DOCTOR_OK ? NULL : fix,
	      "%" PRIu64 " MiB %s (needed %" PRIu64 ", better %" PRIu64 ")", have_mib, what,
	      needed_mib, wanted_mib);
}

static void probe_space(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *dir = kb_strdup(cache_dir);
	struct kb_error err;
	uint64_t bytes = 0;

	/* the cache may not be there yet: its nearest ancestor is on the same disk */
	while (!kb_path_exists(dir) && strrchr(dir, '/') > dir)
		*strrchr(dir, '/') = '\0';
	if (kb_free_space(kb_path_exists(dir) ? dir : "/", &bytes, &err)) {
		found(f, p->without, "check $KBISECT_CACHE", "%s", err.message);
		return;
	}
	KB_AUTO_FREE char *what = kb_asprintf("free at %s", dir);
	judge_amount(f, bytes >> 20, SPACE_NEEDED_MIB, SPACE_WANTED_MIB, what,
		     "free some space, run `kbisect gc`, or set $KBISECT_CACHE");
}

static void probe_memory(const struct probe *p, const char *cache_dir, struct finding *f)
{
	KB_AUTO_FREE char *text = NULL;
	const char *at;

	(void)cache_dir;
	if (kb_read_file("/proc/meminfo", PROBE_MAX_BYTES, &text, NULL, NULL) ||
	    !(at = strstr(text, "MemAvailable:"))) {
		found(f, p->without, "look at /proc/meminfo", "cannot tell");
		return;
	}
	uint64_t kib = strtoull(at + strlen("MemAvailable:"), NULL, 10);
	judge_amount(f, kib >> 10, MEMORY_NEEDED_MIB, MEMORY_WANTED_MIB, "available",
		     "stop other programs, or use a host with more memory");
}

#define NEEDED KB_DOCTOR_MISSING
#define NICE KB_DOCTOR_WARN

static const struct probe probes[] = {
	{ "kvm", NULL, NULL, NICE, probe_kvm },
	{ "qemu", QEMU, "qemu-system-x86", NEEDED, probe_program },
	{ "qemu-tcg", QEMU, "qemu-system-x86", NEEDED, probe_tcg },
	{ "qemu-plugins", QEMU, "qemu-system-x86", NICE, probe_plugins },
	{ "libvirt-qemu-driver",
	  "/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so "
	  "/usr/lib64/libvirt/connection-driver/libvirt_driver_qemu.so "
	  "/usr/lib/libvirt/connection-driver/libvirt_driver_qemu.so",
	  "libvirt-daemon-driver-qemu", NEEDED, probe_file },
	{ "libvirt-qemu-user", "libvirt-qemu", NULL, NEEDED, probe_user },
	{ "make", "make", "make", NEEDED, probe_program },
	{ "gcc", "gcc", "gcc", NEEDED, probe_program },
	{ "ld", "ld", "binutils", NEEDED, probe_program },
	{ "flex", "flex", "flex", NEEDED, probe_program },
	{ "bison", "bison", "bison", NEEDED, probe_program },
	{ "bc", "bc", "bc", NEEDED, probe_program },
	{ "perl", "perl", "perl", NEEDED, probe_program },
	{ "libelf-headers", "/usr/include/gelf.h", "libelf-dev", NEEDED, probe_file },
	{ "openssl-headers", "/usr/include/openssl/ssl.h", "libssl-dev", NICE, probe_file },
	{ "mkfs.xfs", "mkfs.xfs", "xfsprogs", NEEDED, probe_program },
	{ "dropbear", "dropbear", "dropbear-bin", NEEDED, probe_program },
	{ "busybox", "busybox", "busybox-static", NEEDED, probe_busybox },
	{ "space", NULL, NULL, NEEDED, probe_space },
	{ "memory", NULL, NULL, NICE, probe_memory },
};

void kb_doctor_run(const char *cache_dir, struct kb_doctor_report *ret_report)
{
	struct kb_doctor_report report = { 0 };

	for (size_t i = 0; i < KB_COUNT_OF(probes); i++) {
		struct finding f = { 0 };

		probes[i].run(&probes[i], cache_dir, &f);
		KB_GROW(report.checks, report.count, report.cap);
		report.checks[report.count++] = (struct kb_doctor_check){
			.name = probes[i].name, .status = f.status, .fact = f.fact, .fix = f.fix
		};
	}
	*ret_report = report;
}

void kb_doctor_report_free(struct kb_doctor_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->count; i++) {
		free(report->checks[i].fact);
		free(report->checks[i].fix);
	}
	free(report->checks);
	*report = (struct kb_doctor_report){ 0 };
}

const char *kb_doctor_status_name(enum kb_doctor_status status)
{
	static const char *const names[] = { "ok", "warn", "missing" };

	return names[status];
}

bool kb_doctor_is_missing(const struct kb_doctor_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->checks[i].status == KB_DOCTOR_MISSING)
			return true;
	return false;
}

/* The facts are sanitized UTF-8 already; only JSON's own characters are left to escape. */
static void append_json_text(struct kb_str *out, const char *text)
{
	if (!text) {
		kb_str_append(out, "null");
		return;
	}
	kb_str_append(out, "\"");
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20)
			kb_str_appendf(out, "\\u%04x", (unsigned)*text);
		else if (*text == '"' || *text == '\\')
			kb_str_appendf(out, "\\%c", *text);
		else
			kb_str_append_bytes(out, text, 1);
	}
	kb_str_append(out, "\"");
}

char *kb_doctor_json(const struct kb_doctor_report *report)
{
	struct kb_str out = { 0 };

	kb_str_append(&out, "{\n  \"format\": {\"name\": \"kbisect-doctor\", \"major\": 1, "
			    "\"minor\": 0},\n  \"checks\": [");
	for (size_t i = 0; i < report->count; i++) {
		const struct kb_doctor_check *c = &report->checks[i];

		kb_str_appendf(&out, "%s\n    {\"name\": ", i ? "," : "");
		append_json_text(&out, c->name);
		kb_str_append(&out, ", \"status\": ");
		append_json_text(&out, kb_doctor_status_name(c->status));
		kb_str_append(&out, ", \"fact\": ");
		append_json_text(&out, c->fact);
		kb_str_append(&out, ", \"fix\": ");
		append_json_text(&out, c->fix);
		kb_str_append(&out, "}");
	}
	kb_str_append(&out, "\n  ]\n}\n");
	return kb_str_steal(&out);
}
