/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/opts.h"

#include <ctype.h>
#include <string.h>

#include "harness/base/mem.h"

#define HELP_WIDTH 80
#define HELP_INDENT 26
#define NEAREST_MAX_WORD 63

/* ---- nearest word ---- */

/* Optimal string alignment distance: a swap of neighbours counts as one mistake. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][NEAREST_MAX_WORD + 2];
	size_t an = strlen(a), bn = strlen(b);

	if (an > NEAREST_MAX_WORD || bn > NEAREST_MAX_WORD)
		return SIZE_MAX;
	for (size_t j = 0; j <= bn; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= an; i++) {
		size_t *now = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= bn; j++) {
			size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    up2[j - 2] + 1 < best)
				best = up2[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[an % 3][bn];
}

const char *kb_opts_nearest(const char *word, const char *const *names, size_t count)
{
	const char *best = NULL;
	/* a third of the word may be wrong, and always one letter */
	size_t limit = strlen(word) / 3 + 1;

	for (size_t i = 0; i < count; i++) {
		size_t d = edit_distance(word, names[i]);

		if (strlen(word) >= 3 && kb_starts_with(names[i], word))
			d = 1;
		if (d < strlen(word) && d <= limit) {
			best = names[i];
			limit = d - (d > 0); /* only a nearer one may replace it */
			if (d == 0)
				break;
		}
	}
	return best;
}

/* ---- parsing ---- */

struct opts_parser {
	const struct kb_command *cmd;
	int argc, at;
	char *const *argv;
	struct kb_strv *positional, *paths;
	struct kb_error *err;
};

static const struct kb_opt *find_long(const struct kb_command *cmd, const char *name, size_t len)
{
	for (const struct kb_opt *o = cmd->opts; o && o->name; o++)
		if (strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	return NULL;
}

static const struct kb_opt *find_short(const struct kb_command *cmd, char c)
{
	for (const struct kb_opt *o = cmd->opts; o && o->name; o++)
		if (o->short_name && o->short_name == c)
			return o;
	return NULL;
}

static int unknown_long(const struct opts_parser *p, const char *name, size_t len)
{
	KB_AUTO_FREE char *word = kb_strndup(name, len);
	KB_AUTO_FREE const char **names = NULL;
	size_t count = 0, cap = 0;

	for (const struct kb_opt *o = p->cmd->opts; o && o->name; o++) {
		if (!o->help)
			continue;
		KB_GROW(names, count, cap);
		names[count++] = o->name;
	}
	KB_GROW(names, count, cap);
	names[count++] = "help";
	const char *near = kb_opts_nearest(word, names, count);
	if (near)
		return kb_error_set(p->err, KB_EUSAGE,
				    "%s: unknown option --%s: did you mean --%s?", p->cmd->name,
				    word, near);
	return kb_error_set(p->err, KB_EUSAGE, "%s: unknown option --%s; see kbisect %s --help",
			    p->cmd->name, word, p->cmd->name);
}

/* @param inline_value text after '=' or after the letter, NULL when there is none */
static int take_option(struct opts_parser *p, const struct kb_opt *o, const char *inline_value)
{
	const char *value = inline_value;
	KB_AUTO_FREE char *what = kb_asprintf("--%s", o->name);

	if (o->type == KB_OPT_FLAG) {
		if (inline_value)
			return kb_error_set(p->err, KB_EUSAGE, "%s: %s takes no value",
					    p->cmd->name, what);
		*(bool *)o->target = true;
		return 0;
	}
	if (!value) {
		if (p->at + 1 >= p->argc)
			return kb_error_set(p->err, KB_EUSAGE, "%s: %s needs a value (%s)",
					    p->cmd->name, what, o->arg_name);
		value = p->argv[++p->at];
	}
	if (o->type == KB_OPT_STRING) {
		*(const char **)o->target = value;
	} else if (o->type == KB_OPT_LIST) {
		kb_strv_add(o->target, value);
	} else {
		struct kb_error why;

		if (kb_parse_u64(value, o->min, o->max ? o->max : UINT64_MAX, what, o->target,
				 &why))
			return kb_error_set(p->err, KB_EUSAGE, "%s: %s", p->cmd->name,
					    why.message);
	}
	return 0;
}

static int take_long(struct opts_parser *p, const char *text)
{
	const char *eq = strchr(text, '=');
	size_t len = eq ? (size_t)(eq - text) : strlen(text);
	const struct kb_opt *o = find_long(p->cmd, text, len);

	if (!o)
		return unknown_long(p, text, len);
	return take_option(p, o, eq ? eq + 1 : NULL);
}

/* "-v", "-vv", "-j4", "-j 4": flags may be joined, a value ends the word. */
static int take_short(struct opts_parser *p, const char *letters)
{
	for (const char *c = letters; *c; c++) {
		const struct kb_opt *o = find_short(p->cmd, *c);
		int r;

		if (!o)
			return kb_error_set(p->err, KB_EUSAGE,
					    "%s: unknown option -%c; see kbisect %s --help",
					    p->cmd->name, *c, p->cmd->name);
		if (o->type != KB_OPT_FLAG)
			return take_option(p, o, c[1] ? c + 1 : NULL);
		r = take_option(p, o, NULL);
		if (r)
			return r;
	}
	return 0;
}

static int take_rest(struct opts_parser *p)
{
	struct kb_strv *to = p->cmd->takes_paths ? p->paths : p->positional;

	for (p->at++; p->at < p->argc; p->at++) {
		if (!to)
			return kb_error_set(p->err, KB_EUSAGE, "%s: unexpected argument '%s'",
					    p->cmd->name, p->argv[p->at]);
		kb_strv_add(to, p->argv[p->at]);
	}
	return 0;
}

static int check_count(const struct opts_parser *p, size_t before)
{
	size_t given = p->positional ? p->positional->count - before : 0;

	if (given < p->cmd->args_min)
		return kb_error_set(p->err, KB_EUSAGE,
				    "%s: an argument is missing; usage: kbisect %s %s",
				    p->cmd->name, p->cmd->name, p->cmd->usage);
	if (p->cmd->args_max != KB_OPTS_ANY_NUMBER && given > p->cmd->args_max)
		return kb_error_set(p->err, KB_EUSAGE, "%s: unexpected argument '%s'",
				    p->cmd->name,
				    p->positional->items[before + p->cmd->args_max]);
	return 0;
}

int kb_opts_parse(const struct kb_command *cmd, int argc, char *const *argv,
		  struct kb_strv *ret_positional, struct kb_strv *ret_paths,
		  struct kb_error *err)
{
	struct opts_parser p = { .cmd = cmd, .argc = argc, .argv = argv,
				 .positional = ret_positional, .paths = ret_paths, .err = err };
	size_t before = ret_positional ? ret_positional->count : 0;
	int r = 0;

	for (p.at = 1; p.at < argc && !r; p.at++) {
		const char *word = argv[p.at];

		if (kb_streq(word, "--")) {
			r = take_rest(&p);
		} else if (kb_streq(word, "--help") || kb_streq(word, "-h")) {
			kb_opts_help(cmd, stdout);
			return 1;
		} else if (kb_streq(word, "--man")) {
			kb_opts_man(cmd, stdout);
			return 1;
		} else if (kb_starts_with(word, "--")) {
			r = take_long(&p, word + 2);
		} else if (word[0] == '-' && word[1]) {
			r = take_short(&p, word + 1);
		} else if (ret_positional) {
			kb_strv_add(ret_positional, word);
		} else {
			r = kb_error_set(err, KB_EUSAGE, "%s: unexpected argument '%s'",
					 cmd->name, word);
		}
	}
	return r ? r : check_count(&p, before);
}

/* ---- help ---- */

/* Writes text wrapped to HELP_WIDTH; the cursor stands at `column`, later lines start at
 * `indent`. Ends with a newline. An empty line in the text starts a new paragraph. */
static void write_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text) {
		if (*text == '\n' && text[1] == '\n') {
			fprintf(out, "\n\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		text += strspn(text, " \n");
		size_t len = strcspn(text, " \n");
		if (len == 0)
			break;
		if (!first && column + 1 + len > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		fprintf(out, "%s%.*s", first ? "" : " ", (int)len, text);
		column += len + !first;
		first = false;
		text += len;
	}
	fputc('\n', out);
}

static void help_row(FILE *out, char short_name, const char *name, const char *arg_name,
		     const char *help)
{
	int n = short_name ? fprintf(out, "  -%c, --%s", short_name, name)
			   : fprintf(out, "      --%s", name);

	if (arg_name)
		n += fprintf(out, " %s", arg_name);
	if (n >= HELP_INDENT - 1) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", HELP_INDENT - n, "");
	write_wrapped(out, help, HELP_INDENT, HELP_INDENT);
}

void kb_opts_help(const struct kb_command *cmd, FILE *out)
{
	fprintf(out, "usage: kbisect %s %s\n\n", cmd->name, cmd->usage);
	if (cmd->description)
		write_wrapped(out, cmd->description, 0, 0);
	else
		fprintf(out, "kbisect %s: %s\n", cmd->name, cmd->summary);
	fputs("\nOptions:\n", out);
	for (const struct kb_opt *o = cmd->opts; o && o->name; o++)
		if (o->help)
			help_row(out, o->short_name, o->name, o->arg_name, o->help);
	help_row(out, 'h', "help", NULL, "show this text");
}

/* ---- manual page ---- */

/* Text for man(7): no line may start a request, and a dash is a minus (it gets copied). */
static void write_roff(FILE *out, const char *text)
{
	bool line_start = true;

	for (const char *c = text; *c; c++) {
		if (*c == '\n' && c[1] == '\n') {
			fputs("\n.PP\n", out);
			c++;
			line_start = true;
			continue;
		}
		if (line_start && (*c == '.' || *c == '\''))
			fputs("\\&", out);
		if (*c == '\\')
			fputs("\\e", out);
		else if (*c == '-')
			fputs("\\-", out);
		else
			fputc(*c, out);
		line_start = *c == '\n';
	}
}

static void man_row(FILE *out, char short_name, const char *name, const char *arg_name,
		    const char *help)
{
	fputs(".TP\n", out);
	if (short_name)
		fprintf(out, "\\fB\\-%c\\fR, ", short_name);
	fputs("\\fB\\-\\-", out);
	write_roff(out, name);
	fputs("\\fR", out);
	if (arg_name) {
		fputs(" \\fI", out);
		write_roff(out, arg_name);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	write_roff(out, help);
	fputc('\n', out);
}

void kb_opts_man(const struct kb_command *cmd, FILE *out)
{
	fputs(".\\\" SPDX-License-Identifier: GPL-2.0-or-later\n.TH KBISECT\\-", out);
	for (const char *c = cmd->name; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fputs(" 1 \"\" kbisect \"kbisect manual\"\n.SH NAME\nkbisect\\-", out);
	write_roff(out, cmd->name);
	fputs(" \\- ", out);
	write_roff(out, cmd->summary);
	fputs("\n.SH SYNOPSIS\n\\fBkbisect ", out);
	write_roff(out, cmd->name);
	fputs("\\fR ", out);
	write_roff(out, cmd->usage);
	fputs("\n.SH DESCRIPTION\n", out);
	write_roff(out, cmd->description ? cmd->description : cmd->summary);
	fputs("\n.SH OPTIONS\n", out);
	for (const struct kb_opt *o = cmd->opts; o && o->name; o++)
		if (o->help)
			man_row(out, o->short_name, o->name, o->arg_name, o->help);
	man_row(out, 'h', "help", NULL, "show a short help text");
	fputs(".SH SEE ALSO\n\\fBkbisect\\fR(1)\n", out);
}
