/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/vm_domxml.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "guest-init/proto.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"

#define FIXED_UUID "6b626973-6563-7400-8000-000000000001"
#define FIXED_START "1700000000" /* of the guest's clock, epoch seconds */

enum {
	CMDLINE_MAX = 2047,    /* COMMAND_LINE_SIZE of x86, less the NUL */
	MEMORY_ABOVE_MIB = 32, /* at most; see memory_above() */
	LOW_RESERVE_MIB = 128, /* left below the scratch area for kernel and initramfs */
	MAX_MIB = 1 << 24,
};

struct machine {
	const char *name;
	bool pci;
	uint64_t split_from_mib; /* memory of this size or more is split */
	uint64_t low_mib;	 /* what then stays below 4 GiB */
};

static const struct machine machines[] = {
	{"microvm", false, 3072 + 1, 3072},
	{"q35", true, 2816, 2048},
	{"pc", true, 3584, 3072},
};

static const struct machine *find_machine(const char *name)
{
	for (size_t i = 0; name && i < KB_COUNT_OF(machines); i++)
		if (kb_streq(machines[i].name, name))
			return &machines[i];
	return NULL;
}

static bool is_exact(const struct kb_boot_request *req)
{
	return kb_streq(req->mode, "exact");
}

const char *kb_domxml_scratch_device(const char *scratch)
{
	if (kb_streq(scratch, "pmem"))
		return "/dev/pmem0";
	return kb_streq(scratch, "virtio-blk") ? "/dev/vda" : NULL;
}

/*
 * Some memory stays above a scratch range that lies below 4 GiB: QEMU loads the initrd at the
 * top of it, and firmware keeps tables there. In the range itself the initrd's bytes (among
 * them fresh SSH keys) would be what mkfs finds on its device and looks at, and exact boots
 * would not be equal.
 */
static uint64_t memory_above(uint64_t memory_mib)
{
	return memory_mib / 4 < MEMORY_ABOVE_MIB ? memory_mib / 4 : MEMORY_ABOVE_MIB;
}

int kb_domxml_place_scratch(const char *machine, uint64_t memory_mib,
			    uint64_t scratch_mib, uint64_t *ret_start_mib,
			    struct kb_error *err)
{
	const struct machine *m = find_machine(machine);

	if (!m)
		return kb_error_set(err, KB_ECONFIG, "vm.machine %s is not known",
				    machine ? machine : "(none)");
	if (memory_mib > MAX_MIB || scratch_mib > MAX_MIB)
		return kb_error_set(err, KB_ECONFIG,
				    "vm.memory_mib or vm.scratch_mib is too large");
	uint64_t total = memory_mib + scratch_mib;
	if (total < m->split_from_mib) {
		*ret_start_mib = memory_mib - memory_above(memory_mib);
		return 0;
	}
	uint64_t high = total - m->low_mib;
	if (scratch_mib <= high)
		*ret_start_mib = 4096 + high - scratch_mib;
	else if (scratch_mib + LOW_RESERVE_MIB + memory_above(memory_mib) <= m->low_mib)
		*ret_start_mib = m->low_mib - scratch_mib - memory_above(memory_mib);
	else
		return kb_error_set(
			err, KB_ECONFIG,
			"a scratch disk of %" PRIu64 " MiB in memory does not fit a %s "
			"with %" PRIu64 " MiB: it has %" PRIu64 " MiB below and %" PRIu64
			" MiB above 4 GiB; change vm.scratch_mib or vm.memory_mib",
			scratch_mib, machine, memory_mib, m->low_mib, high);
	return 0;
}

/* ---- checks ---- */

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return word && (kb_streq(word, a) || kb_streq(word, b) || kb_streq(word, c));
}

static int check_request(const struct kb_boot_request *req, struct kb_error *err)
{
	if (!is_one_of(req->mode, "exact", "time", "shell"))
		return kb_error_set(err, KB_ECONFIG,
				    "mode %s is not exact, time or shell",
				    req->mode ? req->mode : "(none)");
	if (!is_one_of(req->accel, "tcg", "kvm", "kvm"))
		return kb_error_set(err, KB_ECONFIG, "vm.accel %s is not tcg or kvm",
				    req->accel ? req->accel : "(none)");
	if (!find_machine(req->machine))
		return kb_error_set(err, KB_ECONFIG,
				    "vm.machine %s is not microvm, q35 or pc",
				    req->machine ? req->machine : "(none)");
	if (!is_one_of(req->scratch, "pmem", "virtio-blk", "none"))
		return kb_error_set(err, KB_ECONFIG,
				    "vm.scratch %s is not pmem, virtio-blk or none",
				    req->scratch ? req->scratch : "(none)");
	if (req->memory_mib == 0 || req->memory_mib > MAX_MIB || req->vcpus == 0)
		return kb_error_set(err, KB_ECONFIG,
				    "vm.memory_mib or vm.vcpus is out of range");
	if (!kb_streq(req->scratch, "none") && req->scratch_mib == 0)
		return kb_error_set(err, KB_ECONFIG, "vm.scratch_mib is 0");
	if (!is_exact(req))
		return 0;
	if (!kb_streq(req->accel, "tcg"))
		return kb_error_set(err, KB_ECONFIG, "exact mode needs vm.accel tcg");
	if (req->vcpus != 1)
		return kb_error_set(err, KB_ECONFIG,
				    "exact mode needs vm.vcpus 1, not %u", req->vcpus);
	if (kb_streq(req->scratch, "virtio-blk"))
		return kb_error_set(
			err, KB_ECONFIG,
			"exact mode needs vm.scratch pmem: a virtio disk answers in "
			"host time");
	return 0;
}

/* ---- the kernel command line ---- */

/*
 * A perturbation moves code paths that should not matter: the word below ends up in
 * init's environment and in /proc/cmdline, its length and letters follow from the index
 * alone.
 */
static void append_pad(struct kb_str *s, uint32_t perturbation)
{
	char hex[KB_HASH_HEX_LEN + 1];
	KB_AUTO_FREE char *text = kb_asprintf("kbisect perturbation %u", perturbation);

	kb_hash_bytes(text, strlen(text), hex);
	size_t length = 3 + (perturbation * 23u) % 59u;
	kb_str_appendf(s, " kbpad=%.*s", (int)length, hex);
}

/*
 * What unrelated commits do to a kernel's results is mostly a matter of which pages are
 * where. A word on the command line alone moves too little of that and would understate
 * the scatter; some KiB less of memory, up to half a MiB, stands in for it.
 */
static void append_reserve(struct kb_str *s, uint32_t perturbation)
{
	uint32_t pages = 1 + (3 * perturbation * perturbation + 29 * perturbation) % 127;

	kb_str_appendf(s, " memmap=%uK$40M", 4 * pages);
}

int kb_domxml_cmdline(const struct kb_domxml_spec *spec, char **ret_cmdline,
		      struct kb_error *err)
{
	const struct kb_boot_request *req = spec->req;
	KB_AUTO(kb_str_free) struct kb_str s = {0};
	int r = check_request(req, err);

	if (r)
		return r;
	/* panic=-1: reboot at once, by triple fault (there need not be ACPI): that ends
	 * the VM. loglevel=5: warnings and worse. */
	kb_str_append(&s, "console=ttyS0 panic=-1 reboot=t nokaslr loglevel=5");
	/* Calibrating clocks against emulated timers takes for ever under TCG, or 22
	 * seconds for the APIC's; by instruction count both are known: one a nanosecond.
	 */
	if (is_exact(req))
		kb_str_append(
			&s,
			" tsc_early_khz=1000000 lpj=4000000 noapictimer no_timer_check");
	else if (kb_streq(req->accel, "tcg") && spec->tsc_khz)
		kb_str_appendf(&s, " tsc_early_khz=%" PRIu64, spec->tsc_khz);
	if (kb_streq(req->scratch, "pmem")) {
		uint64_t start = 0;

		r = kb_domxml_place_scratch(req->machine, req->memory_mib,
					    req->scratch_mib, &start, err);
		if (r)
			return r;
		kb_str_appendf(&s, " memmap=%uM!%" PRIu64 "M", req->scratch_mib, start);
	}
	if (is_exact(req))
		append_reserve(&s, req->perturbation);
	append_pad(&s, req->perturbation);
	if (req->extra_cmdline && *req->extra_cmdline)
		kb_str_appendf(&s, " %s", req->extra_cmdline);
	if (s.len > CMDLINE_MAX)
		return kb_error_set(
			err, KB_ECONFIG,
			"the kernel command line has %zu bytes, more than %d: shorten "
			"vm.extra_cmdline",
			s.len, CMDLINE_MAX);
	*ret_cmdline = kb_str_steal(&s);
	return 0;
}

const char *kb_domxml_rom(const struct kb_boot_request *req)
{
	return is_exact(req) && kb_streq(req->machine, "q35") ? "/usr/share/qemu/qboot.rom"
							     : NULL;
}

/* ---- XML ---- */

/* Appends `before`, the escaped text, `after`. Control characters have no XML spelling.
 */
static int append_text(struct kb_str *s, const char *before, const char *text,
		       const char *after, struct kb_error *err)
{
	kb_str_append(s, before);
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '<':
			kb_str_append(s, "&lt;");
			break;
		case '>':
			kb_str_append(s, "&gt;");
			break;
		case '&':
			kb_str_append(s, "&amp;");
			break;
		case '\'':
			kb_str_append(s, "&apos;");
			break;
		case '"':
			kb_str_append(s, "&quot;");
			break;
		default:
			if ((unsigned char)*p < ' ' || *p == 127)
				return kb_error_set(err, KB_ECONFIG,
						    "a control character in '%s'", text);
			kb_str_append_bytes(s, p, 1);
		}
	}
	kb_str_append(s, after);
	return 0;
}

/* Without fast string instructions: TCG counts one instruction per byte of rep movsb, which
 * would drown everything else in copying. */
static const char emulated_cpu[] = "  <cpu mode='maximum' check='none'>\n"
				   "    <feature policy='disable' name='erms'/>\n"
				   "    <feature policy='disable' name='fsrm'/>\n"
				   "  </cpu>\n";

static int append_head(struct kb_str *s, const struct kb_domxml_spec *spec,
		       struct kb_error *err)
{
	const struct kb_boot_request *req = spec->req;
	bool kvm = kb_streq(req->accel, "kvm");
	bool pmem = kb_streq(req->scratch, "pmem");
	KB_AUTO_FREE char *cmdline = NULL;
	int r = kb_domxml_cmdline(spec, &cmdline, err);

	if (r)
		return r;
	kb_str_appendf(s,
		       "<domain type='%s' "
		       "xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n",
		       kvm ? "kvm" : "qemu");
	r = append_text(s, "  <name>", spec->name, "</name>\n", err);
	if (!r)
		r = append_text(s, "  <uuid>", spec->uuid ? spec->uuid : FIXED_UUID,
				"</uuid>\n", err);
	kb_str_appendf(
		s, "  <memory unit='MiB'>%" PRIu64 "</memory>\n  <vcpu>%u</vcpu>\n",
		(uint64_t)req->memory_mib + (pmem ? req->scratch_mib : 0), req->vcpus);
	kb_str_appendf(s, "  <os>\n    <type arch='x86_64' machine='%s'>hvm</type>\n",
		       req->machine);
	if (!r && spec->rom_path)
		r = append_text(s, "    <loader type='rom'>", spec->rom_path, "</loader>\n",
				err);
	if (!r)
		r = append_text(s, "    <kernel>", req->kernel_path, "</kernel>\n", err);
	if (!r)
		r = append_text(s, "    <initrd>", spec->initrd_path, "</initrd>\n", err);
	if (!r)
		r = append_text(s, "    <cmdline>", cmdline, "</cmdline>\n  </os>\n",
				err);
	if (find_machine(req->machine)->pci)
		kb_str_append(s,
			      "  <features>\n    <acpi/>\n    <apic/>\n  </features>\n");
	kb_str_append(
		s,
		kvm ? "  <cpu mode='host-passthrough' check='none' migratable='off'/>\n"
		    : emulated_cpu);
	if (is_exact(req))
		kb_str_append(s, "  <clock offset='absolute' start='" FIXED_START "'>\n"
				 "    <timer name='rtc' track='guest'/>\n  </clock>\n");
	kb_str_append(s, "  <on_poweroff>destroy</on_poweroff>\n"
			 "  <on_reboot>destroy</on_reboot>\n"
			 "  <on_crash>destroy</on_crash>\n");
	return r;
}

static int append_devices(struct kb_str *s, const struct kb_domxml_spec *spec,
			  struct kb_error *err)
{
	const struct kb_boot_request *req = spec->req;
	/* A microvm has no PCI bus, and libvirt would look for one. */
	const char *address = find_machine(req->machine)->pci
				      ? ""
				      : "\n      <address type='virtio-mmio'/>";
	int r = 0;

	kb_str_append(s, "  <devices>\n");
	if (spec->emulator)
		r = append_text(s, "    <emulator>", spec->emulator, "</emulator>\n",
				err);
	if (!r)
		r = append_text(s, "    <serial type='file'>\n      <source path='",
				spec->console_path,
				"'/>\n      <target type='isa-serial' port='0'/>\n    "
				"</serial>\n",
				err);
	if (!r && kb_streq(req->scratch, "virtio-blk")) {
		r = append_text(s,
				"    <disk type='file' device='disk'>\n"
				"      <driver name='qemu' type='raw' cache='unsafe'/>\n"
				"      <source file='",
				spec->scratch_path ? spec->scratch_path : "", "'/>\n",
				err);
		kb_str_appendf(s,
			       "      <target dev='vda' bus='virtio'/>%s\n    </disk>\n",
			       address);
	}
	kb_str_appendf(
		s,
		"    <controller type='virtio-serial' index='0'>%s\n    </controller>\n"
		"    <channel type='unix'>\n"
		"      <target type='virtio' name='" KB_PROTO_CHANNEL_NAME "'/>\n"
		"    </channel>\n"
		"    <controller type='usb' model='none'/>\n"
		"    <memballoon model='none'/>\n"
		"    <video>\n      <model type='none'/>\n    </video>\n"
		"  </devices>\n",
		address);
	return r;
}

static void append_arg(struct kb_str *s, const char *name, const char *value)
{
	kb_str_appendf(s, "    <qemu:arg value='%s'/>\n    <qemu:arg value='%s'/>\n",
		       name, value);
}

/* What libvirt has no words for. */
static void append_qemu(struct kb_str *s, const struct kb_domxml_spec *spec)
{
	const struct kb_boot_request *req = spec->req;
	bool exact = is_exact(req);

	if (!exact && !spec->controller_pid)
		return;
	kb_str_append(s, "  <qemu:commandline>\n");
	if (exact) {
		KB_AUTO_FREE char *seed = kb_asprintf("%u", req->perturbation + 1u);

		append_arg(s, "-icount", "shift=0,sleep=off");
		append_arg(s, "-seed", seed);
		/* The guest's firmware tables hold it, so it moves timings; the last one
		 * counts. */
		if (spec->uuid)
			append_arg(s, "-uuid", FIXED_UUID);
		/* With ioeventfd, kicks are handled whenever the main loop gets to them.
		 */
		append_arg(s, "-global",
			   find_machine(req->machine)->pci
				   ? "virtio-serial-pci.ioeventfd=off"
				   : "virtio-mmio.ioeventfd=off");
	}
	if (spec->controller_pid)
		kb_str_appendf(s,
			       "    <qemu:env name='KBISECT_CONTROLLER' value='%ld'/>\n",
			       spec->controller_pid);
	kb_str_append(s, "  </qemu:commandline>\n");
}

int kb_domxml_make(const struct kb_domxml_spec *spec, char **ret_xml,
		   struct kb_error *err)
{
	KB_AUTO(kb_str_free) struct kb_str s = {0};
	int r = append_head(&s, spec, err);

	if (!r)
		r = append_devices(&s, spec, err);
	if (r)
		return r;
	append_qemu(&s, spec);
	kb_str_append(&s, "</domain>\n");
	*ret_xml = kb_str_steal(&s);
	return 0;
}
