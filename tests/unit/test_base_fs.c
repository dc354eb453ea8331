/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/fs.h"
#include "harness/base/hash.h"
#include "harness/base/mem.h"
#include "harness/base/str.h"
#include "tests/tap.h"

static char root[] = "/tmp/kb-test-fs-XXXXXX";

static char *in_root(const char *name)
{
	return kb_path_join(root, name);
}

static void paths(void)
{
	KB_AUTO_FREE char *a = kb_path_join("x", "y");
	KB_AUTO_FREE char *b = kb_path_join("x/", "y");
	KB_AUTO_FREE char *c = kb_path_join("x", "/y");

	is_str(a, "x/y", "join");
	is_str(b, "x/y", "join with a slash there");
	is_str(c, "/y", "an absolute second part wins");
}

static void files(void)
{
	KB_AUTO_FREE char *dir = in_root("a/b/c");
	KB_AUTO_FREE char *path = in_root("a/b/c/file");
	KB_AUTO_FREE char *data = NULL;
	struct kb_error err = { 0 };
	size_t len = 0;

	is_int(kb_mkdirs(dir, &err), 0, "mkdirs %s", err.message);
	is_int(kb_mkdirs(dir, &err), 0, "mkdirs again");
	is_int(kb_write_file_atomic(path, "he\0lo", 5, &err), 0, "write");
	is_int(kb_read_file(path, 5, &data, &len, &err), 0, "read at the limit");
	ok(len == 5 && memcmp(data, "he\0lo", 6) == 0, "read what was written");
	is_int(kb_read_file(path, 4, &data, &len, &err), KB_EIO, "one byte over the limit");
	is_int(kb_mkdirs(path, &err), KB_EIO, "a file is in the way");
	ok(strstr(err.message, path) != NULL, "the message names it");
	KB_AUTO_FREE char *gone = in_root("nowhere/file");
	is_int(kb_write_file_atomic(gone, "x", 1, &err), KB_EIO, "no such folder");
	ok(kb_path_is_dir(dir) && !kb_path_is_dir(path) && kb_path_exists(path), "questions");
}

static int count_names(const char *name, void *ctx)
{
	kb_str_appendf(ctx, "%s ", name);
	return 0;
}

static int stop_at_first(const char *name, void *ctx)
{
	(void)name;
	++*(int *)ctx;
	return 5;
}

static void listing(void)
{
	KB_AUTO_FREE char *dir = in_root("list");
	KB_AUTO(kb_str_free) struct kb_str names = { 0 };
	int calls = 0;

	kb_mkdirs(dir, NULL);
	for (const char *const *n = (const char *const[]){ "b", "a", "C", NULL }; *n; n++) {
		KB_AUTO_FREE char *f = kb_path_join(dir, *n);
		kb_write_file_atomic(f, "", 0, NULL);
	}
	is_int(kb_list_dir(dir, count_names, &names, NULL), 0, "list");
	is_str(kb_str_get(&names), "C a b ", "sorted, no temporary file left");
	is_int(kb_list_dir(dir, stop_at_first, &calls, NULL), 5, "stops with the code");
	is_int(calls, 1, "after one call");
	KB_AUTO_FREE char *gone = in_root("nowhere");
	is_int(kb_list_dir(gone, stop_at_first, &calls, NULL), 0, "a missing folder is empty");
}

static void removing(void)
{
	KB_AUTO_FREE char *dir = in_root("rm/x/y");
	KB_AUTO_FREE char *top = in_root("rm");
	KB_AUTO_FREE char *link = in_root("rm/x/link");
	KB_AUTO_FREE char *outside = in_root("outside");
	KB_AUTO_FREE char *kept = in_root("outside/kept");
	KB_AUTO_FREE char *toplink = in_root("toplink");

	kb_mkdirs(dir, NULL);
	kb_mkdirs(outside, NULL);
	kb_write_file_atomic(kept, "x", 1, NULL);
	ok(symlink(outside, link) == 0 && symlink(outside, toplink) == 0, "links are made");
	is_int(kb_remove_tree(top, NULL), 0, "remove");
	ok(!kb_path_exists(top), "gone");
	is_int(kb_remove_tree(toplink, NULL), 0, "remove a link");
	ok(kb_path_exists(kept), "links were not followed");
	is_int(kb_remove_tree(top, NULL), 0, "removing nothing is success");
}

static void copying(void)
{
	KB_AUTO_FREE char *from = in_root("sparse");
	KB_AUTO_FREE char *to = in_root("sparse.copy");
	struct stat a = { 0 }, b = { 0 };
	char ha[KB_HASH_HEX_LEN + 1], hb[KB_HASH_HEX_LEN + 1];
	int fd = open(from, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

	ok(fd >= 0 && ftruncate(fd, 64 << 20) == 0 && pwrite(fd, "mid", 3, 32 << 20) == 3 &&
		   fchmod(fd, 0754) == 0,
	   "a sparse file is made");
	kb_close(&fd);
	is_int(kb_copy_file(from, to, NULL), 0, "copy");
	stat(from, &a);
	stat(to, &b);
	is_int(b.st_size, a.st_size, "same size");
	is_int(b.st_mode, a.st_mode, "same mode");
	ok(b.st_blocks * 512 < 8 << 20, "holes stay holes");
	kb_hash_file(from, ha, NULL);
	kb_hash_file(to, hb, NULL);
	is_str(hb, ha, "same bytes");
	ok(kb_tree_bytes(root) < 32u << 20, "tree bytes count what is allocated");
	ok(kb_tree_bytes(to) >= 3, "and count something");
	is_int(kb_copy_file(root, to, NULL), KB_EIO, "a folder is not copied");
}

static void locking(void)
{
	KB_AUTO_FREE char *path = in_root("lock");
	int a = -1, b = -1;

	is_int(kb_lock_file(path, false, &a, NULL), 0, "lock");
	is_int(kb_lock_file(path, false, &b, NULL), 1, "held elsewhere");
	is_int(b, -1, "the fd is left alone");
	kb_close(&a);
	is_int(kb_lock_file(path, true, &b, NULL), 0, "free again after close");
	kb_close(&b);
	uint64_t bytes = 0;
	ok(kb_free_space(root, &bytes, NULL) == 0 && bytes > 0, "free space");
}

/* Vectors: FIPS 180-4 examples. */
static void hashing(void)
{
	char hex[KB_HASH_HEX_LEN + 1], other[KB_HASH_HEX_LEN + 1];
	struct kb_hash *h;

	kb_hash_bytes("abc", 3, hex);
	is_str(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
	kb_hash_bytes("", 0, hex);
	is_str(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	       "nothing");
	h = kb_hash_new();
	kb_hash_update_str(h, "ab");
	kb_hash_update_str(h, "c");
	kb_hash_finish(h, hex);
	h = kb_hash_new();
	kb_hash_update_str(h, "a");
	kb_hash_update_str(h, "bc");
	kb_hash_finish(h, other);
	ok(strcmp(hex, other) != 0, "fields do not run together");
	is_int(kb_hash_file("/nonexistent/x", hex, NULL), KB_EIO, "a missing file");
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	paths();
	files();
	listing();
	removing();
	copying();
	locking();
	hashing();
	is_int(kb_remove_tree(root, NULL), 0, "clean up");
	return tap_done();
}
