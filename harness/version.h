/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KB_HARNESS_VERSION_H
#define KB_HARNESS_VERSION_H

#define KB_VERSION "0.1.0"

#endif
