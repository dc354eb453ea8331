/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target over files, without libFuzzer: how `make check` replays the corpus. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;

	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		fprintf(stderr, "cannot read %s\n", path);
		return -1;
	}
	size_t size = (size_t)st.st_size;
	uint8_t *data = malloc(size ? size : 1); /* exact: a sanitizer sees any overrun */
	if (!data || fread(data, 1, size, f) != size)
		abort();
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *e;

		if (!dir)
			return 1;
		while ((e = readdir(dir))) {
			char path[PATH_MAX];

			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (run_file(path))
				return 1;
			count++;
		}
		closedir(dir);
	}
	printf("%u inputs\n", count);
	return count ? 0 : 1;
}
