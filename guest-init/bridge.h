/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries sessions between the channel's port and a program that talks on stdin/stdout.
 */
#ifndef KB_GUEST_BRIDGE_H
#define KB_GUEST_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_bridge {
	int port;		 /* made non-blocking */
	const char *const *argv; /* started anew for each session; looked up in PATH */
	const char *bye_path;	 /* its existence ends everything */
	uint64_t deadline_ns;	 /* of CLOCK_MONOTONIC; 0: none */
	bool busy;		 /* exact mode: never sleep */
	bool use_pipes;		 /* not a socket pair, as if the kernel had no AF_UNIX */
};

enum kb_bridge_end { KB_BRIDGE_BYE, KB_BRIDGE_DEADLINE };

/**
 * Serves one session after another. Also reaps every child of the process that dies
 * meanwhile, as PID 1 has to.
 */
enum kb_bridge_end kb_bridge_serve(const struct kb_bridge *b);

/**
 * Finds and opens the virtio-serial port of that name. @return the fd, or -1 with errno
 * (ENODEV: no such port)
 */
int kb_bridge_open_port(const char *name);

#endif
