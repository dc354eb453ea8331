/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel configuration texts: what was asked for and what came out. Pure. */
#ifndef KB_HARNESS_BUILD_CONFIG_H
#define KB_HARNESS_BUILD_CONFIG_H

#include <stdbool.h>

#include "harness/base/str.h"

/**
 * Value of a symbol in a .config text: "y", "m", a number, a quoted string; "n" when it says
 * "is not set"; NULL when it is not mentioned. The last mention wins.
 * @param symbol with or without CONFIG_
 * @return owned
 */
char *kb_config_get(const char *config, const char *symbol);

/** Is it set to anything but n? */
bool kb_config_is_set(const char *config, const char *symbol);

/**
 * Symbols (without CONFIG_) that `requested` sets to something and whose value in `final`
 * is another one, or that are absent there. A later request of the same symbol replaces an
 * earlier one; a symbol that was asked to be off is not looked at.
 */
void kb_config_missing(const char *requested, const char *final, struct kb_strv *ret_symbols);

#endif
