/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/vm_slot.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"

enum {
	MAX_SLOTS = 256,
	/* "/lib/qemu/channel/target/domain-1-kb-4194304/org.kbisect.ssh.0" must follow */
	MAX_ROOT = 44,
};

/* Nothing of the host but plain processes and files: no security labels, cgroups, mount
 * namespaces, log daemon, or changes of file ownership. */
static const char qemu_conf[] = "user = \"root\"\n"
				"group = \"root\"\n"
				"dynamic_ownership = 0\n"
				"remember_owner = 0\n"
				"security_driver = \"none\"\n"
				"stdio_handler = \"file\"\n"
				"cgroup_controllers = []\n"
				"namespaces = []\n";

void kb_vm_slot_free(struct kb_vm_slot *slot)
{
	if (!slot)
		return;
	kb_close(&slot->probe_fd);
	kb_close(&slot->lock_fd);
	free(slot->root);
	free(slot->uri);
	slot->root = slot->uri = NULL;
}

void kb_vm_slot_probed(struct kb_vm_slot *slot)
{
	kb_close(&slot->probe_fd);
}

/* The QEMU that the wrapper will find, as harness/qwrap.c looks for it. */
static char *find_qemu(void)
{
	const char *path = getenv("PATH");
	KB_AUTO(kb_strv_free) struct kb_strv dirs = {0};

	kb_strv_split(&dirs, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.count; i++) {
		KB_AUTO_FREE char *file =
			kb_path_join(dirs.items[i], "qemu-system-x86_64");

		if (access(file, X_OK) == 0)
			return KB_STEAL(file);
	}
	return NULL;
}

static int hash_program(struct kb_hash *h, const char *path, struct kb_error *err)
{
	KB_AUTO_FREE char *real = realpath(path, NULL);
	struct stat st;

	if (!real || stat(real, &st))
		return kb_error_errno(err, KB_EVM, errno, "emulator %s", path);
	KB_AUTO_FREE char *text =
		kb_asprintf("%s %jd %jd.%09ld", real, (intmax_t)st.st_size,
			    (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	kb_hash_update_str(h, text);
	return 0;
}

/* A name for (QEMU, wrapper): 8 hex digits. */
static int pool_name(const char *wrapper, char name[9], struct kb_error *err)
{
	KB_AUTO_FREE char *qemu = find_qemu();
	char hex[KB_HASH_HEX_LEN + 1];

	if (!qemu)
		return kb_error_set(err, KB_EVM,
				    "qemu-system-x86_64 is not in PATH; install it, e.g. "
				    "apt-get install qemu-system-x86");
	struct kb_hash *h = kb_hash_new();
	kb_hash_update_str(h, qemu_conf);
	int r = hash_program(h, qemu, err);
	if (!r)
		r = hash_program(h, wrapper, err);
	kb_hash_finish(h, hex);
	memcpy(name, hex, 8);
	name[8] = '\0';
	return r;
}

/* Our own folder, nobody else's: /tmp is everybody's. */
static int private_dir(const char *path, struct kb_error *err)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return kb_error_errno(err, KB_EIO, errno, "cannot make %s", path);
	if (lstat(path, &st))
		return kb_error_errno(err, KB_EIO, errno, "%s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return kb_error_set(
			err, KB_EIO,
			"%s is not a folder that only we can write to; remove it or "
			"set KBISECT_VM_DIR",
			path);
	return 0;
}

static char *base_dir(void)
{
	const char *own = getenv("KBISECT_VM_DIR");
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (own && *own)
		return kb_strdup(own);
	if (!runtime || *runtime != '/' || strlen(runtime) > 20 || access(runtime, W_OK))
		runtime = "/tmp";
	return kb_asprintf("%s/kbisect-%u", runtime, (unsigned)geteuid());
}

static char *make_uri(const char *root)
{
	KB_AUTO(kb_str_free) struct kb_str s = {0};

	kb_str_append(&s, "qemu:///embed?root=");
	for (const char *p = root; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("/-._~", *p))
			kb_str_append_bytes(&s, p, 1);
		else
			kb_str_appendf(&s, "%%%02X", (unsigned char)*p);
	}
	return kb_str_steal(&s);
}

/* All slots of a pool share one cache folder. */
static int furnish(const char *pool, const char *root, struct kb_error *err)
{
	KB_AUTO_FREE char *etc = kb_path_join(root, "etc");
	KB_AUTO_FREE char *conf = kb_path_join(etc, "qemu.conf");
	KB_AUTO_FREE char *link = kb_path_join(root, "cache");
	KB_AUTO_FREE char *cache = kb_path_join(pool, "cache");
	int r = kb_mkdirs(etc, err);

	if (!r)
		r = kb_mkdirs(cache, err);
	if (r)
		return r;
	if (symlink("../cache", link) && errno != EEXIST)
		return kb_error_errno(err, KB_EIO, errno, "cannot make %s", link);
	if (kb_path_exists(conf))
		return 0;
	/* user and group may only be set by root */
	const char *text = geteuid() == 0 ? qemu_conf : strstr(qemu_conf, "dynamic_");
	return kb_write_file_atomic(conf, text, strlen(text), err);
}

/* A QEMU that libvirt started to learn its capabilities, left by a killed controller. */
static int kill_probe(const char *name, void *ctx)
{
	KB_AUTO_FREE char *file = kb_asprintf("%s/%s/qmp.pid", (const char *)ctx, name);
	KB_AUTO_FREE char *text = NULL;
	KB_AUTO_FREE char *args = NULL;
	size_t len = 0;
	uint64_t pid;

	if (!kb_starts_with(name, "qmp-") || kb_read_file(file, 32, &text, &len, NULL) ||
	    kb_parse_u64(kb_str_rstrip(text), 2, 1 << 30, "pid", &pid, NULL))
		return 0;
	KB_AUTO_FREE char *cmdline = kb_asprintf("/proc/%u/cmdline", (unsigned)pid);
	/* Numbers are used again: it must be the one that was given this very file. */
	if (!kb_read_file(cmdline, 1 << 20, &args, &len, NULL) &&
	    memmem(args, len, file, strlen(file)))
		kill((pid_t)pid, SIGKILL);
	unlink(file);
	return 0;
}

/* libvirt's privileged driver resolves this name whatever its configuration says. */
static int check_user(struct kb_error *err)
{
	if (geteuid() == 0 && !getpwnam("libvirt-qemu"))
		return kb_error_set(
			err, KB_EVM,
			"libvirt needs the system user libvirt-qemu, which does not "
			"exist; make it with: useradd --system --user-group "
			"libvirt-qemu");
	return 0;
}

int kb_vm_slot_take(const char *wrapper, struct kb_vm_slot *ret_slot,
		    struct kb_error *err)
{
	KB_AUTO(kb_vm_slot_free) struct kb_vm_slot slot = KB_VM_SLOT_INIT;
	KB_AUTO_FREE char *base = base_dir();
	char name[9];
	int r = check_user(err);

	if (!r)
		r = pool_name(wrapper, name, err);
	if (!r)
		r = private_dir(base, err);
	if (r)
		return r;
	KB_AUTO_FREE char *pool = kb_path_join(base, name);
	r = private_dir(pool, err);
	for (unsigned i = 0; !r && i < MAX_SLOTS; i++) {
		KB_AUTO_FREE char *lock = kb_asprintf("%s/%u.lock", pool, i);

		r = kb_lock_file(lock, false, &slot.lock_fd, err);
		if (r == 1) { /* in use */
			r = 0;
			continue;
		}
		if (r == 0)
			slot.root = kb_asprintf("%s/%u", pool, i);
		break;
	}
	if (r)
		return r;
	if (!slot.root)
		return kb_error_set(err, KB_EVM, "all %d VM slots below %s are in use",
				    MAX_SLOTS, pool);
	if (strlen(slot.root) > MAX_ROOT)
		return kb_error_set(
			err, KB_EVM,
			"%s is too long for libvirt's sockets; set KBISECT_VM_DIR to a "
			"shorter folder",
			slot.root);
	KB_AUTO_FREE char *probe = kb_path_join(pool, "probe.lock");
	KB_AUTO_FREE char *probes = kb_path_join(slot.root, "lib/qemu");
	kb_list_dir(probes, kill_probe, probes, NULL);
	r = furnish(pool, slot.root, err);
	if (!r)
		r = kb_lock_file(probe, true, &slot.probe_fd, err);
	if (r)
		return r;
	slot.uri = make_uri(slot.root);
	*ret_slot = slot;
	slot = (struct kb_vm_slot)KB_VM_SLOT_INIT;
	return 0;
}
