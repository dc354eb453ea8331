/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words that the guest's init and the controller say to each other. Shared by both,
 * so only macros here. docs/guest-protocol.md explains the exchange.
 */
#ifndef KB_GUEST_PROTO_H
#define KB_GUEST_PROTO_H

#define KB_PROTO_VERSION 1

/* Parameters: appended to the initramfs by the controller as one text file. Lines of
 * "key value", value to the end of the line, first line PARAMS_MAGIC, last line "end". */
#define KB_PROTO_PARAMS_PATH "/kbisect/params"
#define KB_PROTO_PARAMS_MAGIC "kbisect-params 1"
/* keys: nonce, mode (exact|time|shell), scratch.device, scratch.mkfs,
 * scratch.mount_options, workload, param.NAME (any number), ssh (0|1), keep_ms,
 * timeout_ms, end (reboot|poweroff) */
#define KB_PROTO_PARAMS_MAX_BYTES (64u << 10)
#define KB_PROTO_NONCE_MAX 64 /* hex digits, lower case; at least 8 */
#define KB_PROTO_NAME_MAX 63  /* [A-Za-z0-9_.-], of keys, metrics, counters, workloads */
#define KB_PROTO_LINE_MAX                                                                \
	4095 /* bytes of a params or result line, newline not counted                    \
	      */

/* SSH keys in the same archive. */
#define KB_PROTO_AUTHORIZED_KEYS "/root/.ssh/authorized_keys"
#define KB_PROTO_HOST_KEY "/etc/dropbear/dropbear_ed25519_host_key"

/* Console lines (serial port, each at the start of a line):
 *   @kb start nonce=HEX version=1
 *   @kb phase NAME                          mkfs, mount, workload, collect, ssh, bye
 *   @kb fail step=NAME errno=N text=FREE TEXT
 *   @kb result nonce=HEX bytes=N sha256=HEX  the positive end marker, of the result file
 * Kernel messages may split such a line, so the marker is printed KB_PROTO_MARKER_COPIES
 * times; one whole valid copy counts.
 */
#define KB_PROTO_CONSOLE_PREFIX "@kb "
#define KB_PROTO_MARKER_COPIES 2

/* The result document, a text file of lines, collected over SSH with `cat`:
 *   kbisect-result 1
 *   nonce HEX
 *   kernel RELEASE|VERSION                   uname -r and -v
 *   workload NAME
 *   param NAME VALUE                         what was used, echoed
 *   metric NAME UNIT lower|higher V1 V2 ...  one value a repetition
 *   counter POINT REP NAME VALUE             vmstat / meminfo / zoneinfo / slab numbers
 *                                            POINT: before, after, start, stop
 *                                            REP: 1, 2, ...; 0 for before and after
 *   note FREE TEXT
 *   invalid FREE TEXT                        the workload disowns its values, and why
 *   end LINES                                lines before this one
 */
#define KB_PROTO_RESULT_PATH "/kbisect/result"
#define KB_PROTO_RESULT_MAGIC "kbisect-result 1"
#define KB_PROTO_RESULT_MAX_BYTES (8u << 20)

/* The virtio-serial port that carries SSH, and its hand-shake lines:
 * host sends  "KB-HELLO NONCE\n" every 250 ms until the guest answers "KB-READY NONCE\n";
 * host then sends "KB-GO NONCE\n" and the bytes that follow are SSH. */
#define KB_PROTO_CHANNEL_NAME "org.kbisect.ssh.0"
#define KB_PROTO_HELLO "KB-HELLO "
#define KB_PROTO_READY "KB-READY "
#define KB_PROTO_GO "KB-GO "

/* A command over SSH that ends the VM: creates this file; init then powers off. */
#define KB_PROTO_BYE_PATH "/kbisect/bye"

/* Executed by workloads around each measured part (xchg %bx,%bx: no effect on x86); a
 * QEMU plugin sees it. */
#define KB_PROTO_MARKER_ASM ".byte 0x66, 0x87, 0xdb"

#endif
