/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/str.h"

#define BAR_CELLS 20
#define REDRAW_MS 200

void kb_progress_init(struct kb_progress *p, bool quiet)
{
	struct winsize ws = { 0 };

	memset(p, 0, sizeof(*p));
	p->quiet = quiet;
	p->terminal = isatty(STDERR_FILENO);
	p->columns = 80;
	if (p->terminal && !ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) && ws.ws_col > 20)
		p->columns = ws.ws_col;
}

static const char *phase_word(const struct kb_session_status *st)
{
	if (st->step == KB_STEP_REPLAYED)
		return "forecast";
	if (st->phase == KB_PHASE_CONFIRM)
		return st->step == KB_STEP_BUILD ? "confirming: building"
						 : "confirming: booting";
	if (st->phase == KB_PHASE_CALIBRATE)
		return st->step == KB_STEP_BUILD ? "calibrating: building"
						 : "calibrating: booting";
	if (st->phase == KB_PHASE_DONE || st->step == KB_STEP_DECIDED)
		return "deciding";
	return st->step == KB_STEP_BUILD ? "building" : "booting";
}

/* Share of the work that is done, by time where it is known, else by tests. */
static double share_done(const struct kb_session_status *st)
{
	double done = (double)st->elapsed_ms, left = (double)st->left_ms;

	if (st->phase == KB_PHASE_DONE)
		return 1;
	return st->left_ms ? done / (done + left) : 0;
}

static void append_bar(struct kb_str *line, const struct kb_session_status *st)
{
	unsigned full = (unsigned)(share_done(st) * BAR_CELLS);

	kb_str_append(line, "[");
	for (unsigned i = 0; i < BAR_CELLS; i++)
		kb_str_append(line, i < full ? "#" : ".");
	kb_str_append(line, "]");
}

static void make_line(struct kb_str *line, const struct kb_session_status *st)
{
	char elapsed[32], left[32];

	append_bar(line, st);
	kb_str_appendf(line, " %s", phase_word(st));
	if (st->commit)
		kb_str_appendf(line, " %.12s", st->commit);
	if (st->boots_wanted && st->step == KB_STEP_BOOT)
		kb_str_appendf(line, " %u/%u", st->boots_done, st->boots_wanted);
	kb_str_appendf(line, " | %u left | %u builds %u boots | %s", st->candidates_left,
		       st->builds, st->boots, kb_duration_string(st->elapsed_ms, elapsed));
	if (st->left_ms)
		kb_str_appendf(line, ", ~%s left", kb_duration_string(st->left_ms, left));
	if (st->top_commit)
		kb_str_appendf(line, " | top %.12s %.0f%%", st->top_commit,
			       100 * st->top_probability);
}

static void clear_live(void)
{
	fputs("\r\033[K", stderr);
}

static void draw(struct kb_progress *p, const struct kb_session_status *st)
{
	struct kb_str line = { 0 };

	make_line(&line, st);
	if (line.len >= p->columns)
		line.data[p->columns - 1] = '\0';
	clear_live();
	fputs(kb_str_get(&line), stderr);
	fflush(stderr);
	kb_str_free(&line);
}

/* What just ended, or what begins: these lines stay. */
static void print_lasting(struct kb_progress *p, const struct kb_session_status *st)
{
	char elapsed[32], left[32];

	if (p->terminal)
		clear_live();
	fprintf(stderr, "%7s  %-22s %s", kb_duration_string(st->elapsed_ms, elapsed),
		phase_word(st), st->text);
	if (!p->terminal && st->left_ms)
		fprintf(stderr, "  (~%s left)", kb_duration_string(st->left_ms, left));
	fputc('\n', stderr);
}

void kb_progress_status(void *ctx, const struct kb_session_status *st)
{
	struct kb_progress *p = ctx;
	unsigned long now = (unsigned long)kb_now_ms();

	if (p->quiet)
		return;
	if (st->text)
		print_lasting(p, st);
	if (!p->terminal || (!st->text && now - p->drawn_ms < REDRAW_MS))
		return;
	p->drawn_ms = now;
	draw(p, st);
}

void kb_progress_end(struct kb_progress *p)
{
	if (p->terminal && !p->quiet) {
		clear_live();
		fflush(stderr);
	}
}
