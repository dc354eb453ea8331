/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The libgit2 adapter on histories made by git: revisions, ranges, common ancestors. */
#include "bisect/repo.h"

#include "tests/component/gitfix.h"
#include "tests/tap.h"

#define DATE 1600000000L
#define FILE_OF_OWN "M 100644 inline f%d\ndata 2\n1\n"

/* Asks for goods..bad; @return what kb_repo_range() does. */
static int range_of(struct kb_repo *repo, const char *goods, const char *bad,
		    const char *paths, struct kb_range *ret_range, struct kb_error *err)
{
	KB_AUTO(kb_strv_free) struct kb_strv specs = {0};
	KB_AUTO(kb_strv_free) struct kb_strv limit = {0};
	struct kb_oid oids[8];

	kb_range_init(ret_range);
	kb_strv_split(&specs, goods, " ");
	kb_strv_split(&limit, paths, " ");
	for (size_t i = 0; i < specs.count; i++)
		oids[i] = rev(repo, specs.items[i]);
	struct kb_range_spec spec = {.goods = oids,
				     .good_count = specs.count,
				     .bad = rev(repo, bad),
				     .paths = &limit};
	return kb_repo_range(repo, &spec, ret_range, err);
}

/* Candidates must be exactly the commits named "c<from>".."c<to>". */
static void range_is(struct kb_repo *repo, const char *goods, const char *bad, int from,
		     int to, const char *name)
{
	KB_AUTO(kb_range_free) struct kb_range range;
	struct kb_error err = {0};
	int missing = 0;
	int r = range_of(repo, goods, bad, "", &range, &err);

	ok(r == 0, "%s: has a range %s", name, err.message);
	for (int i = from; i <= to; i++) {
		KB_AUTO_FREE char *spec = kb_asprintf("c%d", i);
		struct kb_oid oid = rev(repo, spec);

		missing += kb_range_find(&range, &oid) == UINT32_MAX;
	}
	is_int(missing, 0, "%s: no candidate is missing", name);
	is_int(range.dag.node_count, to - from + 1, "%s: and none is too many", name);
}

static void expect_refusal(struct kb_repo *repo, const char *goods, const char *bad,
			   const char *paths, const char *text)
{
	KB_AUTO(kb_range_free) struct kb_range range;
	struct kb_error err = {0};
	int r = range_of(repo, goods, bad, paths, &range, &err);

	is_int(r, KB_EREPO, "%s..%s %s is refused", goods, bad, paths);
	ok(strstr(err.message, text), "saying '%s': %s", text, err.message);
	ok(range.oids == NULL, "and nothing is returned");
}

/* A line c1 .. c5 and, unrelated, c6 - c7. */
static void endpoints_checked(void)
{
	FILE *in = import_begin("ends.git");

	for (int i = 1; i <= 7; i++) {
		KB_AUTO_FREE char *file = kb_asprintf(FILE_OF_OWN, i);
		KB_AUTO_FREE char *parent = kb_asprintf("%d", i - 1);

		import_commit(in, i, DATE + i, i == 1 || i == 6 ? "" : parent, file);
	}
	import_end(in);
	sh("git --git-dir=ends.git tag -a -m 'a tag' v1 c2");

	struct kb_repo *repo = open_repo("ends.git");
	struct kb_oid c2 = rev(repo, "c2"), tagged = rev(repo, "v1"), out = c2;
	struct kb_error err;
	is_str(tagged.hex, c2.hex, "an annotated tag is peeled");
	range_is(repo, "v1", "c5", 3, 5, "tag..branch");
	range_is(repo, "c1 c3", "c5", 4, 5, "two goods");
	expect_refusal(repo, "c3", "c3", "", "same commit");
	expect_refusal(repo, "c4", "c2", "", "swap them");
	expect_refusal(repo, "c7", "c5", "", "no common history");
	expect_refusal(repo, "c1", "c5", "nowhere", "touches nowhere");
	expect_refusal(repo, "c1", "c5", ":!f3", "plain paths");
	expect_refusal(repo, "c1", "c5", "a/../f3", "plain paths");

	is_int(kb_repo_resolve(repo, "v6.99", &out, &err), KB_EREPO, "an unknown tag");
	ok(strstr(err.message, "v6.99") && strstr(err.message, "ends.git") &&
		   strstr(err.message, "git fetch --tags"),
	   "is named with the repository and the fix: %s", err.message);
	is_int(kb_repo_resolve(repo, "c1^{tree}", &out, &err), KB_EREPO,
	       "a tree is no commit");
	ok(strstr(err.message, "is a tree"), "and that is said: %s", err.message);
	is_int(kb_repo_resolve(repo, "", &out, &err), KB_EREPO, "an empty name");
	is_int(kb_repo_resolve(repo, "c1..c2", &out, &err), KB_EREPO,
	       "a range is no commit");
	is_str(out.hex, c2.hex, "failures leave the output alone");
	kb_repo_free(repo);

	repo = NULL;
	is_int(kb_repo_open("/nonexistent", &repo, &err), KB_EREPO, "no repository");
	ok(strstr(err.message, "/nonexistent") && !repo, "is said: %s", err.message);
}

static void paths_limit_the_range(void)
{
	KB_AUTO(kb_range_free) struct kb_range range;
	struct kb_error err;
	struct kb_repo *repo = open_repo("ends.git");
	uint32_t touching = 0;

	is_int(range_of(repo, "c1", "c5", "f3 ./f4/", &range, &err), 0, "two paths");
	for (uint32_t n = 0; n < range.dag.node_count; n++)
		touching += range.interesting[n];
	is_int(touching, 2, "two commits touch them");
	is_int(range.bad, range.dag.node_count - 1, "bad is the last node");
	ok(!range.interesting[range.bad], "though it does not touch them");
	kb_repo_free(repo);
}

/* c2, c3 on c1; c4 = c2 + c3, c5 = c3 + c2; then c6 on c4, c7 on c5. */
static void criss_cross_has_two_bases(void)
{
	static const char *const parents[] = {"", "1", "1", "2 3", "3 2", "4", "5"};
	KB_AUTO_FREE struct kb_oid *bases = NULL;
	FILE *in = import_begin("cross.git");
	struct kb_error err;
	size_t count = 0;

	for (int i = 1; i <= 7; i++)
		import_commit(in, i, DATE + i, parents[i - 1], "");
	import_end(in);

	struct kb_repo *repo = open_repo("cross.git");
	struct kb_oid c2 = rev(repo, "c2"), c3 = rev(repo, "c3"), c6 = rev(repo, "c6"),
		      c7 = rev(repo, "c7"), c1 = rev(repo, "c1");
	is_int(kb_repo_merge_bases(repo, &c6, &c7, &bases, &count, &err), 0,
	       "bases found");
	is_int(count, 2, "there are two");
	ok(count == 2 &&
		   ((kb_streq(bases[0].hex, c2.hex) && kb_streq(bases[1].hex, c3.hex)) ||
		    (kb_streq(bases[0].hex, c3.hex) && kb_streq(bases[1].hex, c2.hex))),
	   "the two crossed commits, not the older root");
	ok(kb_repo_is_ancestor(repo, &c1, &c7), "the root is an ancestor");
	ok(kb_repo_is_ancestor(repo, &c7, &c7), "a commit is its own ancestor");
	ok(!kb_repo_is_ancestor(repo, &c7, &c1), "not the other way round");
	ok(!kb_repo_is_ancestor(repo, &c6, &c7), "branches are not each other's");

	struct kb_oid *parents_of = NULL;
	is_int(kb_repo_parents(repo, &c7, &parents_of, &count, &err), 0, "parents");
	is_int(count, 1, "one");
	free(parents_of);
	free(KB_STEAL(bases));
	struct kb_oid goods[] = {c6, c3};
	is_int(kb_repo_merge_bases_many(repo, &c7, goods, 2, &bases, &count, &err), 0,
	       "many");
	is_int(count, 2, "of one against several");
	kb_repo_free(repo);
}

/*
 * c1 .. c40 is a line; c5 is good. c60, good too, is reached from c20 by ten commits
 * c50 .. c59 that a machine made whose clock stood at 1970: a walk by date meets them
 * last.
 */
static void wrong_clocks_do_not_matter(void)
{
	FILE *in = import_begin("skew.git");

	for (int i = 1; i <= 40; i++) {
		KB_AUTO_FREE char *parent = kb_asprintf("%d", i - 1);

		import_commit(in, i, DATE + 86400L * 40 * i, i == 1 ? "" : parent, "");
	}
	for (int i = 50; i <= 60; i++) {
		KB_AUTO_FREE char *parent = kb_asprintf("%d", i == 50 ? 20 : i - 1);

		import_commit(in, i, i == 60 ? DATE + 86400L * 1600 : i, parent, "");
	}
	/* A child that is decades older than its parent, and one from the future. */
	import_commit(in, 61, 5, "40", "");
	import_commit(in, 62, 4000000000L, "61", "");
	import_end(in);

	struct kb_repo *repo = open_repo("skew.git");
	struct kb_oid c20 = rev(repo, "c20"), c60 = rev(repo, "c60"),
		      c40 = rev(repo, "c40"), c62 = rev(repo, "c62");
	KB_AUTO_FREE struct kb_oid *bases = NULL;
	struct kb_error err;
	size_t count = 0;
	range_is(repo, "c5 c60", "c40", 21, 40, "clock at 1970 on the good side");
	range_is(repo, "c39", "c40", 40, 40, "one commit");
	range_is(repo, "c40", "c62", 61, 62, "old child, future grandchild");
	ok(kb_repo_is_ancestor(repo, &c20, &c60), "ancestry ignores dates");
	ok(kb_repo_is_ancestor(repo, &c40, &c62), "in both directions");
	is_int(kb_repo_merge_bases(repo, &c60, &c62, &bases, &count, &err), 0, "a base");
	ok(count == 1 && kb_streq(bases[0].hex, c20.hex), "is the fork point");
	kb_repo_free(repo);
}

static void shallow_clone_ends_where_it_ends(void)
{
	struct kb_error err;
	struct kb_oid out;

	sh("git --git-dir=skew.git symbolic-ref HEAD refs/heads/c40");
	sh("git clone -q --bare --depth 10 \"file://$PWD/skew.git\" shallow.git");
	struct kb_repo *repo = open_repo("shallow.git");
	struct kb_oid head = rev(repo, "HEAD");
	KB_AUTO_FREE char *oldest =
		sh_line("git --git-dir=shallow.git rev-list HEAD | tail -1");
	KB_AUTO_FREE char *missing = sh_line("git --git-dir=skew.git rev-parse c20");
	struct kb_oid first = rev(repo, oldest);
	struct kb_oid *parents = NULL;
	size_t count = 9;

	is_int(kb_repo_resolve(repo, missing, &out, &err), KB_EREPO,
	       "what was not fetched");
	is_int(kb_repo_parents(repo, &first, &parents, &count, &err), 0,
	       "the oldest commit");
	is_int(count, 0, "has no parents here");
	free(parents);
	ok(kb_repo_is_ancestor(repo, &first, &head), "ancestry works");

	KB_AUTO(kb_range_free) struct kb_range range;
	is_int(range_of(repo, oldest, "HEAD", "", &range, &err), 0, "so does a range");
	is_int(range.dag.node_count, 9, "of nine");
	kb_repo_free(repo);
}

static void commits_described(void)
{
	struct kb_error err;
	KB_AUTO_FREE char *subject = NULL;
	KB_AUTO_FREE char *data = NULL;
	size_t len = 0;
	struct kb_oid tree;

	sh("git init -q plain; cd plain; mkdir d; printf 'one\\r\\n' > d/file;"
	   "git add .; printf 'red \\033[31mtext\\tx \\377\\n\\nbody\\n' > ../m;"
	   "git -c i18n.commitEncoding=ISO-8859-1 commit -q --cleanup=verbatim -F ../m; "
	   "git worktree add -q ../linked");
	struct kb_repo *repo = open_repo("plain");
	struct kb_oid head = rev(repo, "HEAD");
	is_int(kb_repo_subject(repo, &head, &subject, &err), 0, "subject");
	is_str(subject, "red ?[31mtext x ?", "has no control characters");
	KB_AUTO_FREE char *want = sh_line("git -C plain rev-parse HEAD^{tree}");
	is_int(kb_repo_tree(repo, &head, &tree, &err), 0, "tree");
	is_str(tree.hex, want, "as git says");
	is_int(kb_repo_read_file(repo, &head, "d/file", &data, &len, &err), 0, "a file");
	ok(len == 5 && memcmp(data, "one\r\n", 6) == 0, "is read as it is");
	free(KB_STEAL(data));
	is_int(kb_repo_read_file(repo, &head, "d/none", &data, &len, &err), 0, "none");
	ok(!data && len == 0, "is NULL");
	is_int(kb_repo_read_file(repo, &head, "d", &data, &len, &err), 0, "a folder");
	ok(!data, "is no file");
	kb_repo_free(repo);

	KB_AUTO_FREE char *common = sh_line("realpath plain/.git");
	KB_AUTO_FREE char *own = sh_line("realpath plain/.git/worktrees/linked");
	repo = open_repo("linked");
	is_str(kb_repo_git_dir(repo), common, "a linked work tree has the common folder");
	is_str(kb_repo_worktree_git_dir(repo), own, "and one of its own");
	kb_repo_free(repo);
	sh("mkdir -p plain/d/deep");
	repo = open_repo("plain/d/deep");
	is_str(kb_repo_git_dir(repo), common, "found from a folder below");
	kb_repo_free(repo);
}

int main(void)
{
	gitfix_begin();
	endpoints_checked();
	paths_limit_the_range();
	criss_cross_has_two_bases();
	wrong_clocks_do_not_matter();
	shallow_clone_ends_where_it_ends();
	commits_described();
	gitfix_end();
	return tap_done();
}
