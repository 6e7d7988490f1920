/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures as people read them. */
#ifndef RENDER_FORMAT_H
#define RENDER_FORMAT_H

#include <stdint.h>

#define FORMAT_BYTES 40U

/* "1.98 s", "12.3 ms", "5 ns" of nanoseconds (also of micro-, milliseconds, seconds); "1.5 MiB" of
 * bytes; "12345" of anything else.  Returns its buffer. */
const char *format_value(int64_t value, const char *unit, char buffer[FORMAT_BYTES]);
/* Nanoseconds in one of that unit; 0: it is no time. */
double format_unit_ns(const char *unit);
/* "12.3 %", of a share from 0 to 1. */
const char *format_share(double share, char buffer[FORMAT_BYTES]);
/* "40 s", "12 min", "3.5 h", "2 days": rounded up, for "record as long". */
const char *format_span(uint64_t ns, char buffer[FORMAT_BYTES]);

#endif
