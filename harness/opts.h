/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command-line options: one table per command gives the parser, --help and the manual page.
 * Includes only base; commands use it, and the job parser for its "did you mean". Writes to
 * stdout only for --help and --man.
 */
#ifndef KB_HARNESS_OPTS_H
#define KB_HARNESS_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

enum kb_opt_type {
	KB_OPT_FLAG,   /* target: bool *, set to true */
	KB_OPT_STRING, /* target: const char **, borrowed from argv; the last one wins */
	KB_OPT_U64,    /* target: uint64_t *, within [min, max] */
	KB_OPT_LIST,   /* target: struct kb_strv *, a copy is added each time */
};

/* A table ends with a row whose name is NULL. The caller puts defaults into the targets. */
struct kb_opt {
	const char *name; /* without the dashes */
	char short_name;  /* 0: none */
	enum kb_opt_type type;
	void *target;
	const char *arg_name; /* "FILE"; NULL for flags */
	const char *help;     /* lower case, no full stop; wrapped when shown; NULL: hidden */
	uint64_t min, max;    /* U64 only; max 0: no limit */
};

#define KB_OPTS_ANY_NUMBER UINT32_MAX

struct kb_command {
	const char *name;        /* "bisect" */
	const char *summary;     /* one line, lower case, no full stop */
	const char *usage;       /* what follows "kbisect NAME ", e.g. "--repo R REV" */
	const char *description; /* paragraphs separated by an empty line; may be NULL */
	const struct kb_opt *opts; /* borrowed; NULL: only --help */
	uint32_t args_min, args_max; /* positional arguments; KB_OPTS_ANY_NUMBER */
	bool takes_paths;        /* "-- PATH..." is meaningful */
};

/**
 * Parses argv[1..]; argv[0] is the command's own name. Options may stand after positional
 * arguments; "--name value", "--name=value", "-n value" and "-nvalue" are understood.
 * Everything after "--" goes to *ret_paths (or, without takes_paths, to *ret_positional).
 * `--help`, `-h` print kb_opts_help() and `--man` kb_opts_man() on stdout.
 * @param ret_positional, ret_paths added to; NULL means that none are allowed
 * @return 0; 1 when help was printed and the command should end with success
 * Errors: KB_EUSAGE, naming the nearest option for an unknown one.
 */
int kb_opts_parse(const struct kb_command *cmd, int argc, char *const *argv,
		  struct kb_strv *ret_positional, struct kb_strv *ret_paths,
		  struct kb_error *err);

void kb_opts_help(const struct kb_command *cmd, FILE *out);

/** A manual page in man(7) macros, section 1, named kbisect-NAME. */
void kb_opts_man(const struct kb_command *cmd, FILE *out);

/**
 * The name nearest to a mistyped word by edit distance, or NULL when none is near enough.
 * For "did you mean" with sub-commands and keys too. @return borrowed from `names`
 */
const char *kb_opts_nearest(const char *word, const char *const *names, size_t count);

#endif
