/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats figures for people. */
#ifndef RENDER_FORMAT_H
#define RENDER_FORMAT_H

#include <stdint.h>

#define FORMAT_BYTES 40U

/* Formats "1.98 s", "12.3 ms", "5 ns" for nanoseconds (also for micro-, milliseconds, seconds);
 * "1.5 MiB" for bytes; "12345" for anything else.  Returns its buffer. */
const char *format_value(int64_t value, const char *unit, char buffer[FORMAT_BYTES]);
/* Returns how many nanoseconds one unit has; 0: it is not a unit of time. */
double format_unit_ns(const char *unit);
/* Formats a share from 0 to 1 as "12.3 %". */
const char *format_share(double share, char buffer[FORMAT_BYTES]);
/* Formats "40 s", "12 min", "3.5 h", "2 days": rounded up, for "record as long". */
const char *format_span(uint64_t ns, char buffer[FORMAT_BYTES]);

/* Formats values for people: three digits and a unit that fits; the same as web/base.js. */

#define HUMAN_BYTES 64

/* unit: "nanoseconds" to "seconds" (1.23 s, 4 min 10 s), "bytes" (12.0 MiB), "count" or ""
 * (1234567), or any other word, which follows the number and is cut when it is long. */
void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES]);

#endif
