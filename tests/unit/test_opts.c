/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/opts.h"

#include <stdlib.h>

#include "harness/base/mem.h"
#include "tests/tap.h"

struct values {
	bool json, quiet;
	const char *job;
	uint64_t boots;
	struct kb_strv goods, args, paths;
};

/* Parses a command line given as words separated by blanks ("" stays away). */
static int parse(const char *line, bool takes_paths, struct values *v, struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv words = { 0 };
	static struct kb_strv kept; /* strings are borrowed from argv: keep them */
	const struct kb_opt opts[] = {
		{ .name = "json", .type = KB_OPT_FLAG, .target = &v->json, .help = "as JSON" },
		{ .name = "quiet", .short_name = 'q', .type = KB_OPT_FLAG, .target = &v->quiet,
		  .help = "less" },
		{ .name = "job", .short_name = 'j', .type = KB_OPT_STRING, .target = &v->job,
		  .arg_name = "FILE", .help = "job file" },
		{ .name = "boots", .short_name = 'n', .type = KB_OPT_U64, .target = &v->boots,
		  .arg_name = "N", .help = "how many", .min = 1, .max = 100 },
		{ .name = "good", .short_name = 'g', .type = KB_OPT_LIST, .target = &v->goods,
		  .arg_name = "REV", .help = "good one" },
		{ .name = "secret", .type = KB_OPT_FLAG, .target = &v->json },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "test", .summary = "tests", .usage = "REV", .opts = opts,
		.args_min = 1, .args_max = 2, .takes_paths = takes_paths,
	};

	kb_strv_split(&words, line, " ");
	char **argv = kb_calloc(words.count + 1, sizeof(*argv));
	for (size_t i = 0; i < words.count; i++) {
		kb_strv_add(&kept, words.items[i]);
		argv[i] = kept.items[kept.count - 1];
	}
	*v = (struct values){ 0 };
	int r = kb_opts_parse(&cmd, (int)words.count, argv, &v->args, takes_paths ? &v->paths : NULL,
			      err);
	free(argv);
	return r;
}

static void values_free(struct values *v)
{
	kb_strv_free(&v->goods);
	kb_strv_free(&v->args);
	kb_strv_free(&v->paths);
}

static void parses_all_spellings(void)
{
	struct values v;
	struct kb_error err = { 0 };

	is_int(parse("test --job a.json HEAD --boots=7 -q -g x --good=y -gz", false, &v, &err), 0,
	       "all spellings: %s", err.message);
	is_str(v.job, "a.json", "--name value");
	is_int((long long)v.boots, 7, "--name=value");
	ok(v.quiet && !v.json, "short flag");
	is_int((long long)v.goods.count, 3, "a list collects");
	is_str(v.goods.items[2], "z", "-nvalue");
	is_int((long long)v.args.count, 1, "options may follow arguments");
	is_str(v.args.items[0], "HEAD", "the argument");
	values_free(&v);

	is_int(parse("test -qn5 a -", false, &v, &err), 0, "joined short options");
	ok(v.quiet && v.boots == 5, "flag and value");
	is_str(v.args.items[1], "-", "a single dash is an argument");
	values_free(&v);

	is_int(parse("test --job one --job two x", false, &v, &err), 0, "an option given twice");
	is_str(v.job, "two", "the last one wins");
	values_free(&v);

	is_int(parse("test --job= x", false, &v, &err), 0, "an empty value");
	is_str(v.job, "", "is a value");
	values_free(&v);
}

static void splits_paths(void)
{
	struct values v;
	struct kb_error err = { 0 };

	is_int(parse("test HEAD -- mm --job fs/xfs", true, &v, &err), 0, "paths after --");
	is_int((long long)v.paths.count, 3, "all of them, dashes or not");
	is_str(v.paths.items[1], "--job", "no option after --");
	ok(!v.job, "nor taken as one");
	values_free(&v);
	is_int(parse("test -- -x", false, &v, &err), 0, "without paths, -- protects arguments");
	is_str(v.args.items[0], "-x", "that begin with a dash");
	values_free(&v);
}

static void refuses_what_is_wrong(void)
{
	static const struct {
		const char *line, *message;
	} table[] = {
		{ "test x --jbo f", "test: unknown option --jbo: did you mean --job?" },
		{ "test x --bots=3", "test: unknown option --bots: did you mean --boots?" },
		{ "test x --hlep", "test: unknown option --hlep: did you mean --help?" },
		{ "test x --qu", "test: unknown option --qu; see kbisect test --help" },
		{ "test x --secre", "test: unknown option --secre; see kbisect test --help" },
		{ "test x --frobnicate", "test: unknown option --frobnicate; see kbisect test --help" },
		{ "test x -z", "test: unknown option -z; see kbisect test --help" },
		{ "test x --json=1", "test: --json takes no value" },
		{ "test x --job", "test: --job needs a value (FILE)" },
		{ "test x -n", "test: --boots needs a value (N)" },
		{ "test", "test: an argument is missing; usage: kbisect test REV" },
		{ "test a b c", "test: unexpected argument 'c'" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++) {
		struct values v;
		struct kb_error err = { 0 };

		is_int(parse(table[i].line, false, &v, &err), KB_EUSAGE, "refused: %s",
		       table[i].line);
		is_str(err.message, table[i].message, "and says so");
		values_free(&v);
	}
	for (int i = 0; i < 3; i++) {
		static const char *const lines[] = { "test x -n 0", "test x --boots 101",
						     "test x --boots 3x" };
		struct values v;
		struct kb_error err = { 0 };

		is_int(parse(lines[i], false, &v, &err), KB_EUSAGE, "a bad number: %s", lines[i]);
		ok(strstr(err.message, "test: --boots") == err.message, "names the option: %s",
		   err.message);
		values_free(&v);
	}
}

static char *written(void (*write)(const struct kb_command *, FILE *),
		     const struct kb_command *cmd)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	write(cmd, out);
	fclose(out);
	return text;
}

static void help_and_manual_come_from_the_table(void)
{
	const struct kb_opt opts[] = {
		{ .name = "job", .short_name = 'j', .type = KB_OPT_STRING, .arg_name = "FILE",
		  .help = "a rather long sentence that does not fit into what is left of a line "
			  "of eighty columns" },
		{ .name = "an-option-with-a-long-name", .type = KB_OPT_LIST, .arg_name = "VALUE",
		  .help = "short" },
		{ .name = "hidden", .type = KB_OPT_FLAG },
		{ .name = NULL },
	};
	const struct kb_command cmd = {
		.name = "demo", .summary = "show a thing", .usage = "[--job FILE] REV",
		.description = "First paragraph.\n\n.second \\ one-two.", .opts = opts,
	};
	KB_AUTO_FREE char *help = written(kb_opts_help, &cmd);
	KB_AUTO_FREE char *man = written(kb_opts_man, &cmd);

	is_str(help,
	       "usage: kbisect demo [--job FILE] REV\n"
	       "\n"
	       "First paragraph.\n"
	       "\n"
	       ".second \\ one-two.\n"
	       "\n"
	       "Options:\n"
	       "  -j, --job FILE          a rather long sentence that does not fit into what is\n"
	       "                          left of a line of eighty columns\n"
	       "      --an-option-with-a-long-name VALUE\n"
	       "                          short\n"
	       "  -h, --help              show this text\n",
	       "help");
	is_str(man,
	       ".\\\" SPDX-License-Identifier: GPL-2.0-or-later\n"
	       ".TH KBISECT\\-DEMO 1 \"\" kbisect \"kbisect manual\"\n"
	       ".SH NAME\nkbisect\\-demo \\- show a thing\n"
	       ".SH SYNOPSIS\n\\fBkbisect demo\\fR [\\-\\-job FILE] REV\n"
	       ".SH DESCRIPTION\nFirst paragraph.\n.PP\n\\&.second \\e one\\-two.\n"
	       ".SH OPTIONS\n"
	       ".TP\n\\fB\\-j\\fR, \\fB\\-\\-job\\fR \\fIFILE\\fR\n"
	       "a rather long sentence that does not fit into what is left of a line of eighty "
	       "columns\n"
	       ".TP\n\\fB\\-\\-an\\-option\\-with\\-a\\-long\\-name\\fR \\fIVALUE\\fR\nshort\n"
	       ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow a short help text\n"
	       ".SH SEE ALSO\n\\fBkbisect\\fR(1)\n",
	       "manual page");
}

static void nearest_is_near_enough(void)
{
	static const char *const names[] = { "bisect", "measure", "report", "resume", "next" };
	static const struct {
		const char *word, *want;
	} table[] = {
		{ "bisetc", "bisect" }, { "bisec", "bisect" },   { "mesure", "measure" },
		{ "reprot", "report" }, { "resmue", "resume" },  { "netx", "next" },
		{ "meas", "measure" },  { "x", NULL },           { "", NULL },
		{ "gardening", NULL },  { "report", "report" },
	};

	for (size_t i = 0; i < KB_COUNT_OF(table); i++)
		is_str(kb_opts_nearest(table[i].word, names, KB_COUNT_OF(names)), table[i].want,
		       "nearest to '%s'", table[i].word);
	char longest[200];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ok(!kb_opts_nearest(longest, names, KB_COUNT_OF(names)), "a very long word has none");
}

int main(void)
{
	parses_all_spellings();
	splits_paths();
	refuses_what_is_wrong();
	help_and_manual_come_from_the_table();
	nearest_is_near_enough();
	return tap_done();
}
