/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option table of a job; shared by job*.c only. */
#ifndef KB_HARNESS_JOB_INTERNAL_H
#define KB_HARNESS_JOB_INTERNAL_H

#include "harness/job.h"

enum job_type {
	JOB_TEXT,    /* char * */
	JOB_CHOICE,  /* char *, one of `choices` */
	JOB_U32,
	JOB_U64,
	JOB_DOUBLE,
	JOB_BOOL,
	JOB_LIST,    /* struct kb_strv */
	JOB_PARAMS,  /* workload_params */
	JOB_EXPECTS, /* expects, expect_count */
};

struct job_option {
	const char *key; /* "section.name" or "name" */
	enum job_type type;
	size_t offset;        /* in struct kb_job; not used for JOB_EXPECTS */
	const char *fallback; /* written as for kb_job_set(); NULL: null */
	uint64_t min, max;    /* JOB_U32, JOB_U64 */
	double low, high;     /* JOB_DOUBLE */
	const char *unit;     /* NULL: none */
	const char *choices;  /* separated by '|' */
	bool nullable;        /* JOB_TEXT: null means "not given" */
	bool required;        /* JOB_TEXT, JOB_LIST: not empty */
	bool measured;        /* part of kb_job_measurement_hash() */
	const char *help;
};

extern const struct job_option job_options[];
extern const size_t job_option_count;

const struct job_option *job_option_find(const char *key); /* or NULL */
/** Is there an option below "section."? */
bool job_option_is_section(const char *section);
/** Errors: KB_ECONFIG, always; suggests the nearest key. */
int job_option_unknown(const char *key, struct kb_error *err);

void *job_field(struct kb_job *job, const struct job_option *o);
const void *job_field_const(const struct kb_job *job, const struct job_option *o);

/* Store one value after checking it; messages begin with the key. Errors: KB_ECONFIG. */
int job_put_text(struct kb_job *job, const struct job_option *o, const char *value,
		 struct kb_error *err); /* NULL for null */
int job_put_u64(struct kb_job *job, const struct job_option *o, uint64_t value,
		struct kb_error *err);
int job_put_double(struct kb_job *job, const struct job_option *o, double value,
		   struct kb_error *err);
int job_put_list(struct kb_job *job, const struct job_option *o, const struct kb_strv *value,
		 struct kb_error *err);
int job_put_param(struct kb_pairs *params, const char *name, const char *value,
		  struct kb_error *err); /* replaces an older value */
/** One line of valid UTF-8? `key` only names it in messages. */
int job_check_text(const char *key, const char *value, struct kb_error *err);

void job_expects_free(struct kb_expect *expects, size_t count);

/** "expect" from JSON text; in job.c, where jansson is. */
int job_set_expects(struct kb_job *job, const char *json_text, struct kb_error *err);

#endif
