/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/build_toolchain.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"
#include "harness/base/proc.h"

#define PROBE_TIMEOUT_MS 30000
#define PROBE_MAX_BYTES 4096

/* Value of the last NAME=value argument; NULL when there is none. */
static const char *make_variable(const struct kb_strv *args, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = args->count; i-- > 0;)
		if (strncmp(args->items[i], name, n) == 0 && args->items[i][n] == '=')
			return args->items[i] + n + 1;
	return NULL;
}

void kb_toolchain_programs(const struct kb_strv *make_args, struct kb_strv *ret_cc,
			   char **ret_ld)
{
	const char *cc = make_variable(make_args, "CC");
	const char *ld = make_variable(make_args, "LD");
	const char *llvm = make_variable(make_args, "LLVM");
	const char *cross = make_variable(make_args, "CROSS_COMPILE");

	if (!cross)
		cross = "";
	/* LLVM=1, LLVM=-14 or LLVM=/folder/, as the kernel documents it; LLVM=0 is no LLVM
	 * for us as it is for kernels that read the value */
	if (llvm && (*llvm == '\0' || kb_streq(llvm, "0")))
		llvm = NULL;
	const char *dir = llvm && kb_ends_with(llvm, "/") ? llvm : "";
	const char *suffix = llvm && *llvm == '-' ? llvm : "";
	if (cc)
		kb_strv_split(ret_cc, cc, " \t");
	if (ret_cc->count == 0)
		kb_strv_addf(ret_cc, "%s%s%s", llvm ? dir : cross, llvm ? "clang" : "gcc",
			     suffix);
	if (ld && *ld)
		*ret_ld = kb_strdup(ld);
	else
		*ret_ld = kb_asprintf("%s%s%s", llvm ? dir : cross, llvm ? "ld.lld" : "ld",
				      suffix);
}

static int first_line_of_version(const struct kb_strv *program, char **ret_line,
				 struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv argv = { 0 };
	KB_AUTO_FREE char *out = NULL;
	struct kb_proc_result res = { 0 };

	for (size_t i = 0; i < program->count; i++)
		kb_strv_add(&argv, program->items[i]);
	kb_strv_add(&argv, "--version");
	int r = kb_proc_capture((const char *const *)argv.items, PROBE_TIMEOUT_MS,
				PROBE_MAX_BYTES, &out, &res, err);
	if (r)
		return kb_error_set(err, KB_EBUILD,
				    "%s cannot be run: install it (apt install %s) or choose "
				    "another one with kernel.make_args",
				    program->items[0],
				    strstr(program->items[0], "clang")	? "clang" :
				    strstr(program->items[0], "ld.lld") ? "lld" :
				    strstr(program->items[0], "ld")	? "binutils" :
									  "gcc");
	if (res.interrupted)
		return kb_error_set(err, KB_EINTERRUPTED, "interrupted");
	if (res.exit_code != 0 || out[0] == '\0')
		return kb_error_set(err, KB_EBUILD, "%s --version failed", program->items[0]);
	size_t len = strcspn(out, "\n");
	*ret_line = kb_str_sanitize(out, len, 200);
	return 0;
}

int kb_toolchain_probe(const struct kb_strv *make_args, char **ret_description,
		       struct kb_error *err)
{
	static const struct {
		const char *program, *package;
	} needed[] = {
		{ "make", "make" },   { "gcc", "gcc" }, { "ld", "binutils" },
		{ "flex", "flex" },   { "bison", "bison" }, { "bc", "bc" },
		{ "perl", "perl" },   { "strip", "binutils" },
	};
	KB_AUTO(kb_strv_free) struct kb_strv cc = { 0 };
	KB_AUTO(kb_strv_free) struct kb_strv ld = { 0 };
	KB_AUTO_FREE char *ld_name = NULL;
	KB_AUTO_FREE char *cc_line = NULL;
	KB_AUTO_FREE char *ld_line = NULL;

	for (size_t i = 0; i < KB_COUNT_OF(needed); i++) {
		KB_AUTO_FREE char *path = kb_proc_find(needed[i].program);

		if (!path)
			return kb_error_set(err, KB_EBUILD,
					    "%s is missing, a kernel build needs it: apt "
					    "install %s",
					    needed[i].program, needed[i].package);
	}
	kb_toolchain_programs(make_args, &cc, &ld_name);
	kb_strv_add(&ld, ld_name);
	int r = first_line_of_version(&cc, &cc_line, err);
	if (!r)
		r = first_line_of_version(&ld, &ld_line, err);
	if (r)
		return r;
	*ret_description = kb_asprintf("%s / %s", cc_line, ld_line);
	return 0;
}
