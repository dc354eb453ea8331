/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A build and a boot are units of work: one JSON request in, one JSON record out. A unit
 * knows nothing of the run that asked for it, so that it can run on another host.
 * docs/results-format.md describes the JSON; every document has "format" {name, major, minor}.
 */
#ifndef KB_RESULTS_RECORD_H
#define KB_RESULTS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/error.h"
#include "harness/base/str.h"

struct kb_pair { /* a name and a text */
	char *name;  /* owned */
	char *value; /* owned */
};

struct kb_pairs {
	struct kb_pair *items; /* owned */
	size_t count, cap;
};

void kb_pairs_add(struct kb_pairs *p, const char *name, const char *value);
const char *kb_pairs_get(const struct kb_pairs *p, const char *name); /* borrowed or NULL */
void kb_pairs_free(struct kb_pairs *p);

/* ---- build ---- */

struct kb_build_request { /* format name "kbisect-build-request" */
	char *repo_path;           /* owned, as all strings here */
	char *commit, *tree;       /* 40 hex digits */
	struct kb_strv fragments;  /* paths of configuration fragments, in order */
	struct kb_strv required;   /* CONFIG_ symbols (without prefix) the job needs */
	struct kb_strv make_args;  /* extra arguments for make, e.g. CC=clang-14 */
	char *cache_dir;           /* artifacts are put below it */
	char *slot_dir;            /* source tree and O= tree, reused from build to build */
	uint32_t jobs;             /* make -j */
	uint64_t timeout_ms;
};

enum kb_build_outcome {
	KB_BUILD_OK = 0,
	KB_BUILD_FAILED,         /* the compiler said no: untestable */
	KB_BUILD_CONFIG_MISSING, /* a required symbol did not survive: untestable */
	KB_BUILD_TIMEOUT,        /* over its limit: untestable */
};

struct kb_build_record { /* format name "kbisect-build" */
	enum kb_build_outcome outcome;
	char *reason;              /* one line; NULL when OK */
	char *log_excerpt;         /* the compiler's relevant lines; NULL when OK */
	char *commit, *tree;
	char *key;                 /* SHA-256 of (tree, configuration, toolchain): cache key */
	char *artifact_dir;        /* bzImage, System.map, vmlinux.xz?, config, build.json */
	char *kernel_sha256;       /* of bzImage */
	char *config_sha256;
	char *toolchain;           /* "gcc (Debian 12.2.0-14) 12.2.0 / GNU ld ..." */
	struct kb_strv missing_symbols; /* requested, not in the final .config */
	bool from_cache;
	uint64_t wall_ms, cpu_ms;
	uint64_t files_changed;    /* by the checkout */
};

/* ---- boot ---- */

struct kb_boot_request { /* format name "kbisect-boot-request" */
	char *kernel_path;         /* bzImage */
	char *kernel_sha256;
	char *image_path;          /* base initramfs */
	char *image_sha256;
	char *mode;                /* "exact" | "time" | "shell" */
	char *uri;                 /* libvirt URI, default qemu:///embed */
	char *accel;               /* "tcg" | "kvm" */
	char *machine;             /* "microvm" | "q35" | "pc" */
	char *scratch;             /* "pmem" | "virtio-blk" | "none" */
	uint32_t memory_mib;       /* what the guest may use, scratch not counted */
	uint32_t vcpus;
	uint32_t scratch_mib;
	uint32_t perturbation;     /* index; seed and command-line pad derive from it */
	uint64_t boot_timeout_ms;  /* until "@kb start" */
	uint64_t timeout_ms;       /* from create to the end marker */
	uint64_t console_max_bytes;
	char *extra_cmdline;       /* may be NULL */
	struct kb_pairs params;    /* params file: key -> value (docs/guest-protocol.md) */
	struct kb_strv console_deny; /* extra console patterns that invalidate; may be empty */
	char *work_dir;            /* console.log, domain.xml, result.txt are left here */
};

enum kb_boot_outcome {
	KB_BOOT_OK = 0,
	KB_BOOT_INVALID,   /* ran, but a precondition failed or the workload said so */
	KB_BOOT_PANIC,     /* kernel panic */
	KB_BOOT_OOPS,      /* oops, BUG, hung task, lockup, UBSAN..., even if it went on */
	KB_BOOT_OOM,       /* the guest ran out of memory */
	KB_BOOT_HANG,      /* time limit, no end marker */
	KB_BOOT_DIED,      /* powered off or reset without an end marker */
	KB_BOOT_KILLED,    /* QEMU itself went away */
	KB_BOOT_GARBAGE,   /* result truncated, checksum wrong, protocol broken */
	KB_BOOT_FLOOD,     /* console over its limit */
	KB_BOOT_FAILED,    /* init reported a failed step (mkfs, mount, ...) */
};
const char *kb_boot_outcome_name(enum kb_boot_outcome o); /* "ok", "panic", ... */
int kb_boot_outcome_parse(const char *name, enum kb_boot_outcome *ret_outcome); /* 0 or -1 */

struct kb_metric {
	char *name, *unit;
	bool higher_is_better;
	double *values; /* owned; one per repetition */
	size_t count;
};

struct kb_counter {
	char *point; /* "before", "after", "start", "stop" */
	uint32_t repetition;
	char *name;
	int64_t value;
};

struct kb_boot_record { /* format name "kbisect-boot" */
	enum kb_boot_outcome outcome;
	char *reason;              /* one line; NULL when OK */
	char *kernel_version;      /* uname -r | -v as the guest said; NULL if it did not */
	char *workload;
	struct kb_pairs params;    /* echoed by the guest */
	struct kb_metric *metrics; /* owned */
	size_t metric_count;
	struct kb_counter *counters; /* owned */
	size_t counter_count;
	struct kb_strv notes;
	char *console_path;        /* kept log, relative to work_dir */
	char *console_excerpt;     /* last lines or the panic, sanitized; NULL when OK */
	uint64_t console_bytes;
	char *domain_xml_sha256;
	char *qemu_version;
	char *libvirt_version;
	char *qemu_command;        /* argv as run; NULL if it could not be read */
	double host_load;          /* 1-minute load average when it started */
	uint32_t perturbation;
	uint64_t create_ms, run_ms, collect_ms, total_ms; /* host wall clock */
	uint64_t started_us;       /* epoch */
	char *kernel_sha256, *image_sha256;
};

void kb_build_request_free(struct kb_build_request *r);
void kb_build_record_free(struct kb_build_record *r);
void kb_boot_request_free(struct kb_boot_request *r);
void kb_boot_record_free(struct kb_boot_record *r);

/* JSON files. write: atomic. read: strict on known keys' types, unknown keys ignored, a
 * higher major version refused. Errors: KB_EIO, KB_ECONFIG (names file and key). */
int kb_build_request_write(const char *path, const struct kb_build_request *r, struct kb_error *err);
int kb_build_request_read(const char *path, struct kb_build_request *ret, struct kb_error *err);
int kb_build_record_write(const char *path, const struct kb_build_record *r, struct kb_error *err);
int kb_build_record_read(const char *path, struct kb_build_record *ret, struct kb_error *err);
int kb_boot_request_write(const char *path, const struct kb_boot_request *r, struct kb_error *err);
int kb_boot_request_read(const char *path, struct kb_boot_request *ret, struct kb_error *err);
int kb_boot_record_write(const char *path, const struct kb_boot_record *r, struct kb_error *err);
int kb_boot_record_read(const char *path, struct kb_boot_record *ret, struct kb_error *err);

const struct kb_metric *kb_boot_record_metric(const struct kb_boot_record *r,
					      const char *name); /* borrowed or NULL */

#endif
