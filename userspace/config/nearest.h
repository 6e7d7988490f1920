/* SPDX-License-Identifier: BSD-2-Clause */
/* What somebody may have meant by a name that is not known. */
#ifndef CONFIG_NEAREST_H
#define CONFIG_NEAREST_H

#include "config/config.h"

/* Writes a hint that begins with "; ", or "" when nothing is near: a section for "[htp]", and for a
 * key one of its section, or the section that it belongs to. */
#define CONFIG_HINT_BYTES 192U
void config_hint_at_section(const char *name, size_t size, char ret_hint[CONFIG_HINT_BYTES]);
void config_hint_at_key(enum config_kind kind, const char *name, char ret_hint[CONFIG_HINT_BYTES]);

#endif
