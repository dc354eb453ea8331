/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Temporary repositories for tests, made by the git program. */
#ifndef KB_TESTS_GITFIX_H
#define KB_TESTS_GITFIX_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bisect/repo.h"
#include "harness/base/fs.h"
#include "harness/base/mem.h"

static char *gitfix_dir; /* everything is made below it */

/* Runs a shell command in gitfix_dir with settings of our own; a failure ends the test.
 */
__attribute__((format(printf, 1, 2), unused)) static void sh(const char *fmt, ...)
{
	KB_AUTO_FREE char *command = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&command, fmt, ap) < 0)
		abort();
	va_end(ap);
	KB_AUTO_FREE char *whole =
		kb_asprintf("set -e; cd '%s'; %s", gitfix_dir, command);
	int status = system(whole);
	if (status != 0) {
		printf("Bail out! command failed (%d): %s\n", status, command);
		exit(1);
	}
}

/* First line that a shell command prints. */
__attribute__((format(printf, 1, 2), unused)) static char *sh_line(const char *fmt, ...)
{
	KB_AUTO_FREE char *command = NULL;
	KB_AUTO_FREE char *path = kb_asprintf("%s/.line", gitfix_dir);
	char *text = NULL;
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&command, fmt, ap) < 0)
		abort();
	va_end(ap);
	sh("{ %s; } > .line", command);
	if (kb_read_file(path, 1 << 20, &text, &len, NULL))
		abort();
	return kb_str_rstrip(text);
}

static void gitfix_begin(void)
{
	char template[] = "/tmp/kbisect-test-XXXXXX";

	gitfix_dir = kb_strdup(mkdtemp(template));
	if (!gitfix_dir)
		abort();
	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
	unsetenv("GIT_INDEX_FILE");
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_AUTHOR_NAME", "tester", 1);
	setenv("GIT_AUTHOR_EMAIL", "t@example.org", 1);
	setenv("GIT_COMMITTER_NAME", "tester", 1);
	setenv("GIT_COMMITTER_EMAIL", "t@example.org", 1);
}

static void gitfix_end(void)
{
	kb_remove_tree(gitfix_dir, NULL);
	free(gitfix_dir);
}

/* Appends one commit to a fast-import script; parents as "1 2", files as import lines. */
__attribute__((unused)) static void import_commit(FILE *in, int mark, long date,
						  const char *parents, const char *files)
{
	KB_AUTO(kb_strv_free) struct kb_strv list = {0};

	kb_strv_split(&list, parents, " ");
	fprintf(in, "reset refs/heads/c%d\n", mark);
	fprintf(in,
		"commit refs/heads/c%d\nmark :%d\ncommitter t <t@example.org> %ld "
		"+0000\n",
		mark, mark, date);
	fprintf(in, "data 3\nc%02d\n", mark % 100);
	for (size_t i = 0; i < list.count; i++)
		fprintf(in, "%s :%s\n", i ? "merge" : "from", list.items[i]);
	fputs(files, in);
}

__attribute__((unused)) static FILE *import_begin(const char *name)
{
	sh("git init -q --bare %s", name);
	KB_AUTO_FREE char *command = kb_asprintf(
		"git --git-dir='%s/%s' fast-import --quiet", gitfix_dir, name);
	FILE *in = popen(command, "w");

	if (!in)
		abort();
	return in;
}

__attribute__((unused)) static void import_end(FILE *in)
{
	if (pclose(in) != 0) {
		printf("Bail out! fast-import failed\n");
		exit(1);
	}
}

__attribute__((unused)) static struct kb_repo *open_repo(const char *name)
{
	KB_AUTO_FREE char *path = kb_path_join(gitfix_dir, name);
	struct kb_repo *repo = NULL;
	struct kb_error err;

	if (kb_repo_open(path, &repo, &err)) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return repo;
}

__attribute__((unused)) static struct kb_oid rev(struct kb_repo *repo, const char *spec)
{
	struct kb_oid oid;
	struct kb_error err;

	if (kb_repo_resolve(repo, spec, &oid, &err)) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return oid;
}

#endif
