/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats values for people: three digits and a unit that fits; the same as web/format.js. */
#ifndef RENDER_HUMAN_H
#define RENDER_HUMAN_H

#include <stdint.h>

#define HUMAN_BYTES 64

/* unit: "nanoseconds" to "seconds" (1.23 s, 4 min 10 s), "bytes" (12.0 MiB), "count" or ""
 * (1234567), or any other word, which follows the number and is cut when it is long. */
void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES]);

#endif
