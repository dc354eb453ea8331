/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kbisect-qemu: the emulator that embedded libvirt is given. It becomes
 * qemu-system-x86_64 after asking the kernel for SIGKILL when its parent dies, so that no
 * QEMU outlives the kbisect process that started it, whatever happened to that process.
 *
 * KBISECT_CONTROLLER (from the domain XML) is the process id that must be the parent by
 * now: kbisect is a child subreaper. Without it (libvirt probing capabilities) QEMU is
 * started plainly. Source: prctl(2), PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *controller = getenv("KBISECT_CONTROLLER");
	static char name[] = "qemu-system-x86_64";

	if (argc < 1)
		return 127;
	if (controller) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL)) {
			(void)fprintf(stderr, "kbisect-qemu: prctl: %s\n",
				      strerror(errno));
			return 127;
		}
		/* It may have died before prctl(): then we have another parent already.
		 */
		if (strtol(controller, NULL, 10) != (long)getppid()) {
			(void)fprintf(
				stderr,
				"kbisect-qemu: the controller %s is not our parent\n",
				controller);
			return 127;
		}
		unsetenv("KBISECT_CONTROLLER");
	}
	argv[0] = name;
	execvp(name, argv);
	(void)fprintf(stderr, "kbisect-qemu: cannot run %s: %s\n", name, strerror(errno));
	return 127;
}
