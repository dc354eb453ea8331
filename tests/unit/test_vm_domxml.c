/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Golden files tests/golden/domain-*.xml; REGENERATE=1 writes them anew. */
#include "harness/vm_domxml.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "tests/tap.h"

static struct kb_boot_request base_request(void)
{
	return (struct kb_boot_request){
		.kernel_path = (char *)"/cache/bzImage",
		.mode = (char *)"exact",
		.accel = (char *)"tcg",
		.machine = (char *)"q35",
		.scratch = (char *)"pmem",
		.memory_mib = 128,
		.vcpus = 1,
		.scratch_mib = 320,
	};
}

static struct kb_domxml_spec spec_of(const struct kb_boot_request *req)
{
	return (struct kb_domxml_spec){.req = req,
				       .name = "kb-1",
				       .emulator = "/opt/kbisect-qemu",
				       .initrd_path = "/w/initrd",
				       .console_path = "/w/console.log",
				       .controller_pid = 4242};
}

static void compare(const struct kb_domxml_spec *spec, const char *name)
{
	const char *src = getenv("KB_SRC");
	KB_AUTO_FREE char *path =
		kb_asprintf("%s/tests/golden/domain-%s.xml", src ? src : ".", name);
	KB_AUTO_FREE char *xml = NULL;
	KB_AUTO_FREE char *want = NULL;
	struct kb_error err = {0};
	size_t len;

	ok(kb_domxml_make(spec, &xml, &err) == 0, "%s is made %s", name, err.message);
	if (getenv("REGENERATE") && xml)
		kb_write_file_atomic(path, xml, strlen(xml), NULL);
	ok(kb_read_file(path, 1 << 16, &want, &len, &err) == 0, "%s: golden file", name);
	is_str(xml, want, "%s is as before", name);
}

static void domains_are_as_before(void)
{
	struct kb_boot_request req = base_request();
	struct kb_domxml_spec spec = spec_of(&req);

	spec.rom_path = "/usr/share/qemu/qboot.rom";
	compare(&spec, "q35-exact");
	spec.rom_path = NULL;
	spec.uuid = "11111111-2222-4333-8444-555555555555";
	spec.emulator = NULL;
	spec.controller_pid = 0;
	compare(&spec, "q35-exact-remote");
	spec = spec_of(&req);
	req.perturbation = 7;
	req.machine = (char *)"microvm";
	req.scratch = (char *)"none";
	req.extra_cmdline = (char *)"foo=\"a b\" <&'>";
	compare(&spec, "microvm-exact");
	req = base_request();
	req.mode = (char *)"time";
	req.accel = (char *)"kvm";
	req.scratch = (char *)"virtio-blk";
	req.vcpus = 2;
	spec.scratch_path = "/w/scratch & co.img";
	compare(&spec, "q35-kvm-disk");
	req.machine = (char *)"microvm";
	compare(&spec, "microvm-kvm-disk");
	req.accel = (char *)"tcg";
	req.machine = (char *)"pc";
	req.mode = (char *)"shell";
	req.scratch = (char *)"none";
	spec.tsc_khz = 2096000;
	spec.uuid = "11111111-2222-4333-8444-555555555555";
	spec.emulator = NULL;
	spec.controller_pid = 0;
	compare(&spec, "pc-shell-remote");
}

static void perturbations_differ_in_length_and_content(void)
{
	struct kb_boot_request req = base_request();
	struct kb_domxml_spec spec = spec_of(&req);
	KB_AUTO(kb_strv_free) struct kb_strv lines = {0};
	bool lengths[256] = {false};
	int different = 0, same = 0;

	for (req.perturbation = 0; req.perturbation < 40; req.perturbation++) {
		char *line = NULL, *again = NULL;

		if (kb_domxml_cmdline(&spec, &line, NULL) ||
		    kb_domxml_cmdline(&spec, &again, NULL))
			abort();
		if (!kb_streq(line, again))
			same++;
		for (size_t i = 0; i < lines.count; i++)
			if (kb_streq(lines.items[i], line))
				same++;
		kb_strv_add(&lines, line);
		const char *pad = strstr(line, " kbpad=");
		size_t len = strcspn(pad + 1, " ");
		different += !lengths[len];
		lengths[len] = true;
		free(line);
		free(again);
	}
	is_int(same, 0,
	       "every perturbation has a command line of its own, always the same");
	ok(different >= 20, "of many lengths (%d)", different);
}

static void scratch_memory_avoids_the_hole(void)
{
	static const struct {
		const char *machine;
		uint64_t memory, scratch, start; /* start 0: does not fit */
	} rows[] = {
		{"q35", 128, 320, 128 - 32}, /* 32 stay above, for the initrd */
		{"q35", 64, 320, 64 - 16},
		{"q35", 2815 - 320, 320, 2815 - 320 - 32},
		{"q35", 2816 - 320, 320,
		 4096 + 768 - 320}, /* split: 2048 below, 768 above */
		{"q35", 4096, 1024, 4096 + 3072 - 1024},
		{"q35", 1024, 1880, 2048 - 1880 - 32}, /* above: 856; below it fits */
		{"q35", 864, 1952, 0},		  /* 768 above, too tight below */
		{"pc", 3000, 500, 3000 - 32},
		{"pc", 3084, 500, 4096 + 512 - 500},
		{"microvm", 2752, 320, 2752 - 32},
		{"microvm", 3072, 320, 4096 + 320 - 320},
	};

	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		uint64_t start = 0;
		int r = kb_domxml_place_scratch(rows[i].machine, rows[i].memory,
						rows[i].scratch, &start, NULL);

		is_int(r, rows[i].start ? 0 : KB_ECONFIG, "%s %d+%d MiB", rows[i].machine,
		       (int)rows[i].memory, (int)rows[i].scratch);
		is_int(start, rows[i].start, "starts there");
	}
}

static void impossible_requests_are_refused(void)
{
	struct kb_boot_request good = base_request();

	for (int i = 0; i < 10; i++) {
		struct kb_boot_request req = good;
		struct kb_domxml_spec spec = spec_of(&req);
		KB_AUTO_FREE char *xml = NULL;
		struct kb_error err = {0};

		switch (i) {
		case 0:
			req.vcpus = 2;
			break;
		case 1:
			req.accel = (char *)"kvm";
			break;
		case 2:
			req.scratch = (char *)"virtio-blk";
			break;
		case 3:
			req.machine = (char *)"raspi3b";
			break;
		case 4:
			req.mode = NULL;
			break;
		case 5:
			req.memory_mib = 0;
			break;
		case 6:
			req.scratch_mib = 0;
			break;
		case 7:
			req.scratch = (char *)"nvme";
			break;
		case 8:
			req.extra_cmdline = (char *)"a\nb";
			break;
		default:
			spec.name = "a\x1b";
			break;
		}
		is_int(kb_domxml_make(&spec, &xml, &err), KB_ECONFIG, "refused %d: %s", i,
		       err.message);
	}
	struct kb_domxml_spec spec = spec_of(&good);
	KB_AUTO_FREE char *extra = kb_calloc(1, 2100);
	KB_AUTO_FREE char *xml = NULL;
	memset(extra, 'x', 2099);
	good.extra_cmdline = extra;
	is_int(kb_domxml_make(&spec, &xml, NULL), KB_ECONFIG, "a command line too long");
}

int main(void)
{
	domains_are_as_before();
	perturbations_differ_in_length_and_content();
	scratch_memory_avoids_the_hole();
	impossible_requests_are_refused();
	return tap_done();
}
