/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/bisectlog.h"

#include <string.h>

#include "tests/tap.h"

#define ID(c) c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c

int main(void)
{
	static const char log[] = "# bad: [" ID("a") "] the tip\n"
				  "# good: [" ID("b") "] the start\n"
				  "git bisect start 'x' 'y'\n"
				  "# bad: [" ID("c") "] tested later\n"
				  "git bisect bad " ID("c") "\n";
	static const char other[] = "# new: [" ID("1") "] tip\n# old: [" ID("2") "] start\n";
	static const char half[] = "git bisect start\n# good: [" ID("b") "] s\n";
	static const char torn[] = "# bad: [abc] short\n# good: [" ID("b") "] s\n";
	char bad[41], good[41];
	struct kb_error err;

	is_int(kb_bisectlog_endpoints(log, strlen(log), "bad", "good", bad, good, &err), 0,
	       "a log with both endpoints");
	is_str(bad, ID("a"), "the first bad one, not the latest");
	is_str(good, ID("b"), "the good one");
	is_int(kb_bisectlog_endpoints(other, strlen(other), "new", "old", bad, good, &err), 0,
	       "other terms");
	is_str(bad, ID("1"), "new");
	is_int(kb_bisectlog_endpoints(half, strlen(half), "bad", "good", bad, good, &err), KB_EREPO,
	       "no bad commit yet");
	ok(strstr(err.message, "no bad commit") != NULL, "and the error says which");
	is_int(kb_bisectlog_endpoints(torn, strlen(torn), "bad", "good", bad, good, &err), KB_EREPO,
	       "a cut-off id is not one");
	is_int(kb_bisectlog_endpoints("", 0, "bad", "good", bad, good, &err), KB_EREPO, "empty");
	return tap_done();
}
