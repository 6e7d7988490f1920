/* SPDX-License-Identifier: BSD-2-Clause */
/* Cleans names that come from other processes: they may not be UTF-8, and may contain terminal
 * control codes. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_CLEAN_MAX_GROWTH 3U /* one bad byte becomes U+FFFD, three bytes */

/* Returns whether the bytes are valid UTF-8 without control codes, so that utf8_clean() would not
 * change them. */
bool utf8_is_clean(const char *bytes, size_t size);
/* Writes at most UTF8_CLEAN_MAX_GROWTH * size bytes, no NUL.  Tab, CR and LF become spaces; other
 * control codes (C0, DEL, C1) and each maximal part of a broken sequence become U+FFFD.
 * Source: Unicode 15, table 3-7 and section 3.9 "U+FFFD Substitution of Maximal Subparts". */
size_t utf8_clean(const char *bytes, size_t size, char *ret_clean);

#endif
