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

/* More digits for small effects: "9.5%", "0.52%". */
static char *percent(double ratio)
{
	double p = (ratio - 1) * 100;

	return kb_asprintf(fabs(p) < 9.995 ? "%+.2f%%" : "%+.1f%%", p);
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
	if (*reason && !kb_streq(r->verdict, "measured"))
		write_paragraph(out, reason, 0);
}

/* ---- table ---- */

static char *verdict_cell(const struct kb_report *r, const struct kb_report_commit *c)
{
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
	fprintf(out, "\n%-*s  %-*s  %-*s  %3s  VERDICT\n", ID_DIGITS, "COMMIT", avg_width, "AVG",
		sd_width, "STDDEV", "N");
	for (size_t i = 0; i < r->tested_count; i++) {
		const struct kb_report_commit *c = &r->tested[i];
		KB_AUTO_FREE char *avg = number(r, c->mean);
		KB_AUTO_FREE char *sd = number(r, c->sd);
		KB_AUTO_FREE char *verdict = verdict_cell(r, c);

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
	kb_str_appendf(&text, "Evidence: %u commits in the range", r->range_size);
	if (r->pruned)
		kb_str_appendf(&text, " (%u of them pruned without a boot)", r->pruned);
	kb_str_appendf(&text, ", %zu tested, %u builds (%u from the cache), %u boots "
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

static void write_reproduce(FILE *out, const struct kb_report *r)
{
	const char *job = r->job_name ? r->job_name : "default";
	const char *repo = r->repo_path ? r->repo_path : ".";

	if (!kb_streq(r->command, "bisect") || !r->good || !r->bad)
		return;
	fputs("\nTo reproduce:\n", out);
	fprintf(out, "  kbisect bisect --repo %s \\\n      --good %s \\\n      --bad %s", repo,
		r->good, r->bad);
	/* the built-in job has a name, but no file */
	if (strcmp(job, "default"))
		fprintf(out, " \\\n      --job %s", job);
	fputc('\n', out);
	if (r->run_id)
		fprintf(out, "Every boot, with its console and counters, is in run %s.\n", r->run_id);
}

void kb_report_text(const struct kb_report *r, FILE *out)
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
