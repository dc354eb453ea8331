/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host checks, on this host and with programs hidden or faked through PATH. */
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "harness/doctor.h"
#include "tests/tap.h"

static char root[] = "/tmp/kb-test-doctor-XXXXXX";

static const struct kb_doctor_check *check(const struct kb_doctor_report *report,
					   const char *name)
{
	for (size_t i = 0; i < report->count; i++)
		if (kb_streq(report->checks[i].name, name))
			return &report->checks[i];
	return NULL;
}

static void fake_program(const char *name, const char *script)
{
	KB_AUTO_FREE char *path = kb_path_join(root, name);
	KB_AUTO_FREE char *text = kb_asprintf("#!/bin/sh\n%s\n", script);

	kb_write_file_atomic(path, text, strlen(text), NULL);
	chmod(path, 0755);
}

/* Whatever this host is like, a report is complete and consistent. */
static void on_this_host(void)
{
	KB_AUTO(kb_doctor_report_free) struct kb_doctor_report report = { 0 };
	bool complete = true, fixes = true;

	kb_doctor_run("/tmp", &report);
	ok(report.count >= 15, "%zu checks", report.count);
	for (size_t i = 0; i < report.count; i++) {
		const struct kb_doctor_check *c = &report.checks[i];

		complete = complete && c->name && c->fact && *c->fact && !strchr(c->fact, '\n');
		fixes = fixes && (c->status == KB_DOCTOR_OK) == (c->fix == NULL);
	}
	ok(complete, "each has a name and a one-line fact");
	ok(fixes, "each that is not ok says what to do, the others do not");
	const struct kb_doctor_check *kvm = check(&report, "kvm");
	KB_AUTO_FREE char *why = NULL;
	bool usable = kb_doctor_kvm_usable(&why);
	ok(usable == (why == NULL), "KVM: usable, or a reason: %s", why ? why : "usable");
	is_int(kvm->status, usable ? KB_DOCTOR_OK : KB_DOCTOR_WARN,
	       "no KVM is a warning: exact mode does without");
}

static void json(void)
{
	struct kb_doctor_check rows[] = {
		{ "one", KB_DOCTOR_OK, (char[]){ "a \"quoted\" back\\slash\ttab" }, NULL },
		{ "two", KB_DOCTOR_MISSING, (char[]){ "gr\xc3\xbc\xc3\x9f" },
		  (char[]){ "apt install x" } },
	};
	struct kb_doctor_report report = { .checks = rows, .count = 2 };
	KB_AUTO_FREE char *text = kb_doctor_json(&report);
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *checks = json_object_get(doc, "checks");

	ok(doc != NULL, "it is JSON");
	is_str(json_string_value(json_object_get(json_object_get(doc, "format"), "name")),
	       "kbisect-doctor", "format");
	is_int(json_integer_value(json_object_get(json_object_get(doc, "format"), "major")), 1,
	       "major version");
	is_int(json_array_size(checks), 2, "both checks");
	json_t *one = json_array_get(checks, 0), *two = json_array_get(checks, 1);
	is_str(json_string_value(json_object_get(one, "fact")), rows[0].fact, "escapes");
	ok(json_is_null(json_object_get(one, "fix")), "no fix is null");
	is_str(json_string_value(json_object_get(two, "status")), "missing", "status");
	is_str(json_string_value(json_object_get(two, "fact")), rows[1].fact, "UTF-8");
	is_str(json_string_value(json_object_get(two, "fix")), "apt install x", "fix");
	json_decref(doc);
	ok(kb_doctor_is_missing(&report), "something is missing");
	report.count = 1;
	ok(!kb_doctor_is_missing(&report), "nothing is");
}

static void without_programs(void)
{
	static const struct {
		const char *name, *package;
	} rows[] = {
		{ "flex", "apt install flex" },	    { "bison", "apt install bison" },
		{ "bc", "apt install bc" },	    { "gcc", "apt install gcc" },
		{ "ld", "apt install binutils" },   { "make", "apt install make" },
		{ "qemu", "apt install qemu-system-x86" },
		{ "qemu-tcg", "apt install qemu-system-x86" },
	};
	KB_AUTO(kb_doctor_report_free) struct kb_doctor_report report = { 0 };

	setenv("PATH", root, 1);
	kb_doctor_run("/tmp", &report);
	for (size_t i = 0; i < KB_COUNT_OF(rows); i++) {
		const struct kb_doctor_check *c = check(&report, rows[i].name);

		is_int(c->status, KB_DOCTOR_MISSING, "%s is missing", rows[i].name);
		is_str(c->fix, rows[i].package, "%s: the package", rows[i].name);
	}
	ok(kb_doctor_is_missing(&report), "the report as a whole says so");
}

static void with_fakes(void)
{
	KB_AUTO(kb_doctor_report_free) struct kb_doctor_report report = { 0 };

	fake_program("flex", "printf 'flex 9.9\\nmore\\n'");
	fake_program("busybox", "exit 0");
	fake_program("readelf", "echo '  INTERP  0x1'");
	fake_program("qemu-system-x86_64",
		     "case $* in *-accel*) echo kvm;; *-plugin*) echo 'invalid option' >&2; exit 1;; "
		     "*) echo 'QEMU emulator version 99';; esac");
	kb_doctor_run("/tmp", &report);
	is_str(check(&report, "flex")->fact, "flex 9.9", "a version is its first line");
	is_str(check(&report, "qemu")->fact, "QEMU emulator version 99", "QEMU's too");
	is_int(check(&report, "qemu-tcg")->status, KB_DOCTOR_MISSING, "a QEMU without TCG");
	is_int(check(&report, "qemu-plugins")->status, KB_DOCTOR_WARN, "and without plugins");
	is_int(check(&report, "busybox")->status, KB_DOCTOR_MISSING, "a dynamic busybox");
	ok(strstr(check(&report, "busybox")->fix, "busybox-static"), "names the static one");
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	on_this_host();
	json();
	without_programs();
	with_fakes();
	kb_remove_tree(root, NULL);
	return tap_done();
}
