/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kb_repo_checkout(): what it writes, what it leaves alone, and what it refuses. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/component/gitfix.h"
#include "tests/tap.h"

static char *out_dir, *state;

static int checkout(struct kb_repo *repo, const char *spec, uint64_t *ret_changed,
		    struct kb_error *err)
{
	struct kb_oid oid = rev(repo, spec);

	return kb_repo_checkout(repo, &oid, out_dir, state, ret_changed, err);
}

/* Compares the folder with what `git archive` makes of the commit, all filters off. */
static bool matches(const char *repo_name, const char *spec)
{
	KB_AUTO_FREE char *answer = sh_line(
		"rm -rf want mirror.git; mkdir want; git clone -q --bare %s mirror.git;"
		"mkdir -p mirror.git/info; printf '* -text -ident\\n' > "
		"mirror.git/info/attributes;"
		"git --git-dir=mirror.git archive %s | tar x -C want;"
		"{ cd want; find . -printf '%%P %%y %%l\\n' | sort > ../want.list; cd "
		"..; };"
		"{ cd out; find . -printf '%%P %%y %%l\\n' | sort > ../out.list; cd ..; "
		"};"
		"find want -type f -perm -u+x -printf '%%P\\n' | sort > want.exec;"
		"find out -type f -perm -u+x -printf '%%P\\n' | sort > out.exec;"
		"if diff want.list out.list >&2 && diff want.exec out.exec >&2 &&"
		" diff -r --no-dereference want out >&2; then echo same; else echo "
		"differ; fi",
		repo_name, spec);

	return kb_streq(answer, "same");
}

static struct timespec mtime_of(const char *name)
{
	KB_AUTO_FREE char *path = kb_asprintf("%s/%s", out_dir, name);
	struct stat st = {0};

	if (lstat(path, &st))
		printf("# %s is missing\n", path);
	return st.st_mtim;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void make_history(void)
{
	sh("git init -q r; cd r; git config core.safecrlf false;"
	   "printf '* text=auto eol=crlf\\n*.id ident\\n' > .gitattributes;"
	   "mkdir -p same/deep gone/deep; echo kept > same/deep/file; echo kept > "
	   "same/top;"
	   "echo gone > gone/deep/file; printf 'lf\\n' > lf; printf '$Id$\\n' > x.id;"
	   "echo '#!/bin/sh' > tool; chmod +x tool; echo plain > plain; : > empty;"
	   "echo f > link-to-file; ln -s plain file-to-link; ln -s nowhere link-to-dir;"
	   "mkdir dir-to-link; echo x > dir-to-link/x; echo f > file-to-dir;"
	   "mkdir dir-to-file; echo x > dir-to-file/x; ln -s same link;"
	   "rm link-to-file; ln -s plain link-to-file; rm file-to-link; echo f > "
	   "file-to-link;"
	   "printf 'a\\0b' > binary; git add -f .; git commit -qm one; git tag one;"
	   "rm -rf gone dir-to-link dir-to-file link-to-dir file-to-dir file-to-link "
	   "link-to-file;"
	   "ln -s same dir-to-link; echo f > dir-to-file; mkdir link-to-dir file-to-dir;"
	   "echo x > link-to-dir/x; echo x > file-to-dir/x; ln -s lf file-to-link;"
	   "echo f > link-to-file; chmod -x tool; chmod +x plain; echo more >> lf;"
	   "ln -sfn same/deep link; git add -f -A .; git commit -qm two; git tag two;"
	   "git config core.autocrlf true");
}

static void only_differences_written(void)
{
	struct kb_repo *repo = open_repo("r");
	struct kb_error err = {0};
	uint64_t changed = 99;
	KB_AUTO_FREE char *before =
		sh_line("find r -type f | sort | xargs sha256sum | sha256sum");

	is_int(checkout(repo, "one", &changed, &err), 0, "first checkout %s",
	       err.message);
	ok(matches("r", "one"), "holds exactly the commit, filters off");
	KB_AUTO_FREE char *bytes = sh_line("od -An -c out/lf | tr -d ' '");
	is_str(bytes, "lf\\n", "no line ending is converted");
	KB_AUTO_FREE char *files = sh_line("git -C r ls-tree -r one | wc -l");
	is_int(changed, strtol(files, NULL, 10), "every file counts");

	struct timespec kept = mtime_of("same/deep/file"), lf = mtime_of("lf");
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	is_int(checkout(repo, "one", &changed, &err), 0, "the same again");
	is_int(changed, 0, "changes nothing");
	is_int(checkout(repo, "two", &changed, &err), 0, "another commit");
	ok(matches("r", "two"), "through all changes of kind");
	ok(same_time(mtime_of("same/deep/file"), kept),
	   "an untouched file keeps its date");
	ok(!same_time(mtime_of("lf"), lf), "a changed one does not");
	is_int(checkout(repo, "one", &changed, &err), 0, "and back");
	ok(matches("r", "one"), "is complete");
	ok(same_time(mtime_of("same/deep/file"), kept), "with the date still kept");

	KB_AUTO_FREE char *after =
		sh_line("find r -type f | sort | xargs sha256sum | sha256sum");
	is_str(after, before, "the user's repository is untouched, to the byte");
	kb_repo_free(repo);
}

static void doubt_means_comparing(void)
{
	struct kb_repo *repo = open_repo("r");
	struct kb_error err = {0};
	uint64_t changed = 99;

	checkout(repo, "two", NULL, &err);
	struct timespec kept = mtime_of("same/deep/file"), tool = mtime_of("tool");
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	sh("rm state; printf 'LEPT\\n' > out/same/top; rm out/lf; mkdir -p out/new/deep;"
	   "echo x > out/new/deep/file; echo x > out/file-to-dir/y; chmod +x out/tool;"
	   "ln -sf elsewhere out/link; rm -r out/link-to-dir; ln -s /etc "
	   "out/link-to-dir");
	is_int(checkout(repo, "two", &changed, &err), 0, "without memory %s",
	       err.message);
	ok(matches("r", "two"), "everything foreign is undone");
	/* top, lf, tool, link, link-to-dir/x written; new/deep/file, y, link-to-dir
	 * removed */
	is_int(changed, 8, "by exactly so many changes");
	ok(same_time(mtime_of("same/deep/file"), kept), "sound files keep their dates");
	ok(!same_time(mtime_of("tool"), tool), "a wrong mode is repaired");

	sh("printf 'LEPT\\n' > out/same/top; sed -i 's/^boot .*/boot another/' state");
	is_int(checkout(repo, "two", &changed, &err), 0, "after a reboot");
	is_int(changed, 1, "the memory is not believed");
	sh("printf 'LEPT\\n' > out/same/top; mv out old; mkdir out; mv old/* old/.g* "
	   "out; rmdir old");
	is_int(checkout(repo, "two", &changed, &err), 0, "nor in another folder");
	is_int(changed, 1, "of the same name");
	sh("printf 'LEPT\\n' > out/same/top; printf 'garbage' > state");
	is_int(checkout(repo, "two", &changed, &err), 0, "nor garbage");
	ok(matches("r", "two"), "in the end all is well");
	kb_repo_free(repo);
}

/* A child is killed at random moments; whoever comes next has to end with the right
 * files. */
static void killed_checkouts_repaired(void)
{
	int wrong = 0, killed = 0;
	unsigned seed = 7;
	const char *before = "two";

	sh("git init -q big; cd big; mkdir a b c; for d in a b c; do for i in $(seq "
	   "200); do"
	   " echo one $i > $d/$i; done; done; git add .; git commit -qm one; git tag one;"
	   "for i in $(seq 1 200); do echo two two $i > a/$i; echo new > a/new$i; done; "
	   "rm -r b;"
	   "git add -A .; git commit -qm two; git tag two; rm -rf ../out ../state");
	for (int round = 0; round < 12; round++) {
		const char *target = kb_streq(before, "one") ? "two" : "one";
		struct kb_error err;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			struct kb_repo *repo = open_repo("big");

			checkout(repo, target, NULL, &err);
			_exit(0);
		}
		seed = seed * 1103515245u + 12345u;
		usleep(5000 + (seed >> 16) % 25000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		killed += WIFSIGNALED(status) && !kb_path_exists(state);

		struct kb_repo *repo = open_repo("big");
		/* Also back to what was there before: its memory must be gone. */
		const char *other = round % 3 ? before : target;
		before = other;
		wrong += checkout(repo, other, NULL, &err) != 0 || !matches("big", other);
		kb_repo_free(repo);
	}
	is_int(wrong, 0, "after 12 kills the next checkout is right each time");
	ok(killed > 0, "%d of them struck in the middle", killed);
}

/* A tree object from raw entries, as no sane program writes; @return its commit. */
static char *hostile_commit(const char *entries)
{
	return sh_line(
		"cd bare.git; t=$(%s | git hash-object -t tree --literally -w --stdin);"
		"git commit-tree -m hostile $t; cd ..",
		entries);
}

static void hostile_trees_refused(void)
{
	static const char *const names[] = {"..",
					    ".git",
					    ".GIT",
					    "../escaped",
					    "a/../../escaped",
					    "/tmp/kbisect-escaped",
					    "."};

	sh("git init -q --bare bare.git; rm -rf out state; mkdir victim; echo safe > "
	   "victim/f");
	KB_AUTO_FREE char *blob =
		sh_line("echo evil | git --git-dir=bare.git hash-object -w --stdin"
			" | sed 's/../\\\\x&/g'");
	for (size_t i = 0; i < KB_COUNT_OF(names); i++) {
		KB_AUTO_FREE char *entry = kb_asprintf(
			"bash -c \"printf '100644 %s\\\\0%s'\"", names[i], blob);
		KB_AUTO_FREE char *commit = hostile_commit(entry);
		struct kb_repo *repo = open_repo("bare.git");
		struct kb_error err = {0};

		is_int(checkout(repo, commit, NULL, &err), KB_EREPO,
		       "a file named '%s' is refused: %s", names[i], err.message);
		kb_repo_free(repo);
	}
	KB_AUTO_FREE char *escaped = sh_line(
		"find . -maxdepth 1 -name 'escaped*'; ls /tmp/kbisect-escaped 2>/dev/null"
		" || true");
	is_str(escaped, "", "nothing was written elsewhere");
}

/* A link and a folder of one name: whoever follows the link writes into its target. */
static void links_never_followed(void)
{
	struct kb_error err = {0};

	sh("git init -q twice; cd twice; mkdir d; echo evil > d/f; git add .; git commit "
	   "-qm d;"
	   "git tag folder; rm -r d; ln -s ../victim d; git add .; git commit -qm l;"
	   "git tag link; rm -rf ../out ../state");
	KB_AUTO_FREE char *both =
		sh_line("cd twice; l=$(git rev-parse link:d | sed 's/../\\\\x&/g');"
			"f=$(git rev-parse folder:d | sed 's/../\\\\x&/g');"
			"t=$(bash -c \"printf '120000 d\\\\0$l''40000 d\\\\0$f'\" |"
			" git hash-object -t tree --literally -w --stdin);"
			"git commit-tree -m both $t; cd ..");
	struct kb_repo *repo = open_repo("twice");
	is_int(checkout(repo, "link", NULL, &err), 0, "a link to a foreign folder");
	is_int(checkout(repo, "folder", NULL, &err), 0, "becomes a folder");
	ok(matches("twice", "folder"), "of its own");
	sh("rm -r out/d; ln -s ../victim out/d; rm state");
	is_int(checkout(repo, "folder", NULL, &err), 0, "a planted link");
	ok(matches("twice", "folder"), "is replaced");
	sh("rm -r out/d; ln -s ../victim out/d");
	is_int(checkout(repo, "link", NULL, &err), 0, "even when the memory says folder");
	is_int(checkout(repo, both, NULL, &err), 0, "both in one tree");
	KB_AUTO_FREE char *victim = sh_line("ls victim; cat victim/f");
	KB_AUTO_FREE char *content = sh_line("cat victim/f");
	is_str(victim, "f\nsafe", "the foreign folder has no new files");
	is_str(content, "safe", "and its file is as before");
	kb_repo_free(repo);
}

static void full_disk_named(void)
{
	int status;
	pid_t pid;

	sh("git init -q wide; cd wide; mkdir d; head -c 300000 /dev/zero > d/wide; git "
	   "add .;"
	   "git commit -qm w; rm -rf ../out ../state");
	pid = fork();
	if (pid == 0) {
		struct rlimit limit = {65536, 65536};
		struct kb_error err = {0};
		struct kb_repo *repo = open_repo("wide");

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		int r = checkout(repo, "HEAD", NULL, &err);
		fprintf(stderr, "# %s\n", err.message);
		_exit(r == KB_EIO && strstr(err.message, "out/d/wide") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "a failing write names the file");
	ok(!kb_path_exists(state), "and nothing is remembered");
}

static void special_entries(void)
{
	struct kb_error err = {0};
	KB_AUTO_FREE char *id = sh_line("git -C r rev-parse HEAD");

	sh("git init -q sub; cd sub; echo x > x; git add .;"
	   "git update-index --add --cacheinfo 160000,%s,module; git commit -qm s;"
	   "rm -rf ../out ../state",
	   id);
	struct kb_repo *repo = open_repo("sub");
	is_int(checkout(repo, "HEAD", NULL, &err), 0, "a submodule");
	KB_AUTO_FREE char *list = sh_line("find out -mindepth 1 | sort | tr '\\n' ' '");
	is_str(list, "out/module out/x", "is an empty folder");
	sh("mkdir out/.git");
	is_int(checkout(repo, "HEAD", NULL, &err), KB_EIO,
	       "a git work tree is left alone");
	ok(strstr(err.message, "work tree"), "and the error says so: %s", err.message);
	kb_repo_free(repo);
}

int main(void)
{
	umask(022);
	gitfix_begin();
	out_dir = kb_path_join(gitfix_dir, "out");
	state = kb_path_join(gitfix_dir, "state");
	make_history();
	only_differences_written();
	doubt_means_comparing();
	killed_checkouts_repaired();
	hostile_trees_refused();
	links_never_followed();
	full_disk_named();
	special_entries();
	gitfix_end();
	free(out_dir);
	free(state);
	return tap_done();
}
