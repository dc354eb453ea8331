/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report as text for a mail. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/mem.h"
#include "results/report.h"

#define WIDTH 76
#define ID_DIGITS 12 /* as Documentation/process asks for */
#define CANDIDATES_SHOWN 20

/* ---- pieces ---- */

/* One line of text that can do no harm to a terminal. */
static char *one_line(const char *text)
{
	char *clean = kb_str_sanitize(text ? text : "", text ? strlen(text) : 0, 4096);

	for (char *c = clean; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	return clean;
}

/* `1234567890ab ("subject")`, the way kernel people cite a commit. */
static char *cite(const struct kb_report_commit *c)
{
	KB_AUTO_FREE char *subject = one_line(c->subject);

	return kb_asprintf("%.*s (\"%s\")", ID_DIGITS, c->commit ? c->commit : "?", subject);
}

static void write_paragraph(FILE *out, const char *text, int indent)
{
	size_t column = 0;

	for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (column && column + 1 + len > WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		if (column)
			fputc(' ', out);
		else
			column = (size_t)fprintf(out, "%*s", indent, "");
		fprintf(out, "%.*s", (int)len, at);
		column += len + 1;
		at += len;
	}
	fputc('\n', out);
}

static bool shows_us(const struct kb_report *r)
{
	return kb_streq(r->unit, "ns");
}

static char *number(const struct kb_report *r, double value)
{
	if (!isfinite(value))
		return kb_strdup("-");
	return kb_asprintf("%.6f", shows_us(r) ? value / 1000 : value);
}

/* Numbers that are compared have the same digits. */
static char *percent(double ratio)
{
	return kb_asprintf("%+.2f%%", (ratio - 1) * 100);
}

static bool is_culprit(const struct kb_report *r, const struct kb_report_commit *c)
{
	return kb_streq(r->verdict, "culprit") && r->candidate_count &&
	       kb_streq(r->candidates[0].commit, c->commit);
}

/* ---- first line ---- */

static void write_headline(FILE *out, const struct kb_report *r)
{
	KB_AUTO_FREE char *reason = one_line(r->reason);

	if (kb_streq(r->verdict, "culprit") && r->candidate_count) {
		KB_AUTO_FREE char *culprit = cite(&r->candidates[0]);

		fprintf(out, "First bad commit%s: %s\n", r->confirmed ? "" : " (NOT confirmed)",
			culprit);
		return;
	}
	if (kb_streq(r->verdict, "set"))
		fprintf(out, "The first bad commit is one of %zu; they could not be told apart.\n",
			r->candidate_count);
	else if (kb_streq(r->verdict, "multi"))
		fprintf(out, "More than one commit changed %s.\n", r->metric ? r->metric : "it");
	else if (kb_streq(r->verdict, "not-reproducible"))
		fputs("The regression does not reproduce between the endpoints.\n", out);
	else if (kb_streq(r->verdict, "infrastructure"))
		fputs("No answer: the infrastructure is broken.\n", out);
	else if (kb_streq(r->verdict, "interrupted"))
		fputs("Not finished; so far:\n", out);
	else if (kb_streq(r->verdict, "fixed-on-good-side"))
		fputs("The good side repaired what the bad side still has.\n", out);
	else if (!kb_streq(r->verdict, "measured"))
		fprintf(out, "Result: %s\n", r->verdict);
	if (*reason && !kb_streq(r->verdict, "measured")) {
		KB_AUTO_FREE char *line = kb_asprintf("Reason: %s", reason);

		write_paragraph(out, line, 0);
	}
}

/* ---- table ---- */

/* A comparison has no verdicts; what was measured matters more there. */
static char *last_cell(const struct kb_report *r, const struct kb_report_commit *c)
{
	if (kb_streq(r->verdict, "measured"))
		return one_line(c->subject);
	return kb_asprintf("%s%s%s", c->verdict ? c->verdict : "",
			   c->endpoint ? " (endpoint)" : "",
			   is_culprit(r, c) ? " <- first bad commit" : "");
}

static void write_table(FILE *out, const struct kb_report *r)
{
	int avg_width = 3, sd_width = 6;

	if (!r->tested_count)
		return;
	for (size_t i = 0; i < r->tested_count; i++) {
		KB_AUTO_FREE char *avg = number(r, r->tested[i].mean);
		KB_AUTO_FREE char *sd = number(r, r->tested[i].sd);

		avg_width = (int)strlen(avg) > avg_width ? (int)strlen(avg) : avg_width;
		sd_width = (int)strlen(sd) > sd_width ? (int)strlen(sd) : sd_width;
	}
	bool is_survey = kb_streq(r->verdict, "measured");
	fprintf(out, "%s%-*s  %-*s  %-*s  %3s  %s\n", is_survey ? "" : "\n", ID_DIGITS, "COMMIT",
		avg_width, "AVG", sd_width, "STDDEV", "N", is_survey ? "SUBJECT" : "VERDICT");
	for (size_t i = 0; i < r->tested_count; i++) {
		const struct kb_report_commit *c = &r->tested[i];
		KB_AUTO_FREE char *avg = number(r, c->mean);
		KB_AUTO_FREE char *sd = number(r, c->sd);
		KB_AUTO_FREE char *verdict = last_cell(r, c);

		fprintf(out, "%-*.*s  %-*s  %-*s  %3u  %s\n", ID_DIGITS, ID_DIGITS, c->commit,
			avg_width, avg, sd_width, sd, c->boots, verdict);
	}
	KB_AUTO_FREE char *note = kb_asprintf(
		"AVG and STDDEV of %s in %s%s, over the means of N boots; %s is better.",
		r->metric ? r->metric : "the metric", shows_us(r) ? "us" : r->unit ? r->unit : "",
		kb_streq(r->mode, "exact") && shows_us(r)
			? " (1000 guest instructions each: exact mode)"
			: "",
		r->higher_is_better ? "higher" : "lower");
	fputc('\n', out);
	write_paragraph(out, note, 0);
}

/* ---- answer ---- */

static void write_culprit(FILE *out, const struct kb_report *r)
{
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	const struct kb_report_commit *c = &r->candidates[0];
	const char *metric = r->metric ? r->metric : "the metric";

	kb_str_appendf(&text, "Commit %s", c->commit);
	if (r->has_effect) {
		KB_AUTO_FREE char *effect = percent(r->effect_ratio);
		KB_AUTO_FREE char *low = percent(r->effect_low);
		KB_AUTO_FREE char *high = percent(r->effect_high);

		kb_str_appendf(&text, " changes %s by %s", metric, effect);
		if (isfinite(r->effect_low) && isfinite(r->effect_high))
			kb_str_appendf(&text, " (95%% confidence interval %s to %s)", low, high);
		kb_str_append(&text, " against its parent.");
	} else {
		kb_str_appendf(&text, " is where %s changes; its effect was not measured.", metric);
	}
	if (r->confirmed)
		kb_str_append(&text, " Confirmed: fresh boots of the commit differ from those of "
				     "every parent");
	else
		kb_str_append(&text, " This is NOT confirmed by fresh boots of commit and parent");
	if (isfinite(r->confirm_p))
		kb_str_appendf(&text, ", one-sided exact p = %.2g", r->confirm_p);
	kb_str_append(&text, ".");
	fputc('\n', out);
	write_paragraph(out, kb_str_get(&text), 0);
	if (r->confirmed) {
		KB_AUTO_FREE char *tag = cite(c);

		fprintf(out, "\nFixes: %s\n", tag);
	}
}

static void write_candidates(FILE *out, const struct kb_report *r)
{
	if (!r->candidate_count || kb_streq(r->verdict, "measured"))
		return;
	fputs("\nCandidates:\n", out);
	for (size_t i = 0; i < r->candidate_count && i < CANDIDATES_SHOWN; i++) {
		const struct kb_report_commit *c = &r->candidates[i];
		KB_AUTO_FREE char *name = cite(c);

		if (isfinite(c->probability) && c->probability > 0)
			fprintf(out, "%6.1f%%  %s\n", c->probability * 100, name);
		else
			fprintf(out, "%9s%s\n", "", name);
	}
	if (r->candidate_count > CANDIDATES_SHOWN)
		fprintf(out, "%9sand %zu more\n", "", r->candidate_count - CANDIDATES_SHOWN);
}

static void write_untestable(FILE *out, const struct kb_report *r)
{
	bool any = false;

	for (size_t i = 0; i < r->tested_count; i++) {
		const struct kb_report_commit *c = &r->tested[i];

		if (!kb_streq(c->verdict, "untestable"))
			continue;
		if (!any)
			fputs("\nCould not be tested:\n", out);
		any = true;
		KB_AUTO_FREE char *name = cite(c);
		KB_AUTO_FREE char *reason = one_line(c->reason);
		fprintf(out, "  %s\n", name);
		if (*reason)
			write_paragraph(out, reason, 4);
	}
}

/* ---- evidence ---- */

static void write_evidence(FILE *out, const struct kb_report *r)
{
	KB_AUTO(kb_str_free) struct kb_str text = { 0 };
	uint32_t failed = 0;
	char took[32];

	for (size_t i = 0; i < r->tested_count; i++)
		failed += r->tested[i].failed;
	kb_str_append(&text, "Evidence: ");
	if (!kb_streq(r->verdict, "measured"))
		kb_str_appendf(&text, "%u commits in the range, ", r->range_size);
	if (r->pruned)
		kb_str_appendf(&text, "%u of them pruned without a boot, ", r->pruned);
	kb_str_appendf(&text, "%zu tested, %u builds (%u from the cache), %u boots "
			      "(%u known before, %u failed), %s.",
		       r->tested_count, r->builds, r->builds_cached, r->boots, r->boots_cached,
		       failed, kb_duration_string(r->wall_ms, took));
	if (isfinite(r->endpoint_ratio) && r->endpoint_ratio > 0) {
		KB_AUTO_FREE char *change = percent(r->endpoint_ratio);

		kb_str_appendf(&text, " From the good to the bad endpoint: %s.", change);
	}
	if (r->mode)
		kb_str_appendf(&text, " Mode %s, job %s.", r->mode, r->job_name ? r->job_name : "?");
	fputc('\n', out);
	write_paragraph(out, kb_str_get(&text), 0);
	if (r->image_sha256)
		fprintf(out, "  guest image    sha256 %.16s\n", r->image_sha256);
	if (r->kernel_config)
		fprintf(out, "  kernel config  sha256 %.16s\n", r->kernel_config);
}

/* ---- how to reproduce ---- */

/* As a shell wants it; most arguments need nothing. */
static char *quoted(const char *arg)
{
	KB_AUTO(kb_str_free) struct kb_str out = { 0 };

	if (*arg && !arg[strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_-+=:,./@%^~")] &&
	    *arg != '~')
		return kb_strdup(arg);
	kb_str_append(&out, "'");
	for (; *arg; arg++) {
		if (*arg == '\'')
			kb_str_append(&out, "'\\''");
		else
			kb_str_append_bytes(&out, arg, 1);
	}
	kb_str_append(&out, "'");
	return kb_str_steal(&out);
}

/* Is there "--NAME VALUE" or "--NAME=VALUE" at i? @return the value, borrowed, or NULL */
static const char *value_of(const struct kb_strv *argv, size_t i, const char *name)
{
	const char *arg = argv->items[i];
	size_t len = strlen(name);

	if (!kb_starts_with(arg, name))
		return NULL;
	if (arg[len] == '=')
		return arg + len + 1;
	return !arg[len] && i + 1 < argv->count ? argv->items[i + 1] : NULL;
}

static size_t count_option(const struct kb_strv *argv, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < argv->count && strcmp(argv->items[i], "--") != 0; i++)
		count += value_of(argv, i, name) != NULL;
	return count;
}

static void write_argument(FILE *out, const char *name, const char *value)
{
	KB_AUTO_FREE char *first = *name ? quoted(name) : NULL;
	KB_AUTO_FREE char *text = quoted(value);

	fprintf(out, " \\\n      %s%s%s", first ? first : "", first ? " " : "", text);
}

/* @return the index of the last argument that was written */
static size_t write_option(FILE *out, const struct kb_strv *argv, size_t i)
{
	const char *arg = argv->items[i];
	const char *next = i + 1 < argv->count ? argv->items[i + 1] : NULL;

	/* Whether the next one is its value is only a guess, and only about line breaks. */
	if (*arg == '-' && !strchr(arg, '=') && next && *next != '-') {
		write_argument(out, arg, next);
		return i + 1;
	}
	write_argument(out, "", arg);
	return i;
}

static void write_paths(FILE *out, const struct kb_strv *argv, size_t from)
{
	fputs(" \\\n      --", out);
	for (size_t i = from; i < argv->count; i++) {
		KB_AUTO_FREE char *path = quoted(argv->items[i]);

		fprintf(out, " %s", path);
	}
}

/*
 * The command as it was given, except that names of revisions, which move, are replaced by
 * the commits that they stood for, and that the repository is named in full.
 */
static void write_given_command(FILE *out, const struct kb_report *r)
{
	const struct kb_strv *argv = &r->argv;
	const struct {
		const char *name, *fixed;
	} fixed[] = {
		{ "--repo", r->repo_path },
		{ "--good", count_option(argv, "--good") == 1 ? r->good : NULL },
		{ "--bad", r->bad },
	};

	fprintf(out, "  kbisect %s", argv->items[0]);
	if (r->repo_path && !count_option(argv, "--repo"))
		write_argument(out, "--repo", r->repo_path);
	for (size_t i = 1; i < argv->count; i++) {
		const char *value = NULL;
		size_t k = 0;

		if (!strcmp(argv->items[i], "--")) {
			write_paths(out, argv, i + 1);
			break;
		}
		if (!strcmp(argv->items[i], "--json") || !strcmp(argv->items[i], "--quiet"))
			continue;
		for (; k < KB_COUNT_OF(fixed) && !value; k += !value)
			value = value_of(argv, i, fixed[k].name);
		if (!value) {
			i = write_option(out, argv, i);
			continue;
		}
		write_argument(out, fixed[k].name, fixed[k].fixed ? fixed[k].fixed : value);
		i += i + 1 < argv->count && value == argv->items[i + 1];
	}
	fputc('\n', out);
}

static void write_plain_command(FILE *out, const struct kb_report *r)
{
	const char *job = r->job_name ? r->job_name : "default";

	fputs("  kbisect bisect", out);
	write_argument(out, "--repo", r->repo_path ? r->repo_path : ".");
	write_argument(out, "--good", r->good);
	write_argument(out, "--bad", r->bad);
	/* the built-in job has a name, but no file */
	if (!kb_streq(job, "default"))
		write_argument(out, "--job", job);
	fputc('\n', out);
}

static void write_reproduce(FILE *out, const struct kb_report *r)
{
	bool is_bisection = kb_streq(r->command, "bisect") && r->good && r->bad;

	if (!r->argv.count && !is_bisection)
		return;
	fputs("\nTo reproduce:\n", out);
	if (r->argv.count)
		write_given_command(out, r);
	else
		write_plain_command(out, r);
	if (r->run_id)
		fprintf(out, "Every boot, console and counter: run %s\n", r->run_id);
}

static void write_all(const struct kb_report *r, FILE *out)
{
	bool has_culprit = kb_streq(r->verdict, "culprit") && r->candidate_count;

	write_headline(out, r);
	write_table(out, r);
	if (has_culprit)
		write_culprit(out, r);
	if (!has_culprit || r->candidate_count > 1)
		write_candidates(out, r);
	write_untestable(out, r);
	write_evidence(out, r);
	write_reproduce(out, r);
}

/* Ids, paths and names come out of a file, too: nothing in them may reach a terminal raw. */
void kb_report_text(const struct kb_report *r, FILE *out)
{
	KB_AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (!memory)
		return;
	write_all(r, memory);
	fclose(memory);
	KB_AUTO_FREE char *clean = kb_str_sanitize(text, len, len);
	for (char *c = clean; *c; c++)
		if (*c == '\t')
			*c = ' ';
	fputs(clean, out);
}
