/* SPDX-License-Identifier: BSD-2-Clause */
/* Cleans names that come from other processes: they may not be UTF-8, and may contain characters
 * that a terminal or a browser obeys.  Every name that a file, a line or a page shows has passed
 * here. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_CLEAN_MAX_GROWTH 4U /* ESC, one byte, becomes \x1b, four of them */

/* Returns whether the bytes are valid UTF-8 and every character is one that a view shows, so that
 * utf8_clean() would not change them. */
bool utf8_is_clean(const char *bytes, size_t size);
/* Writes at most UTF8_CLEAN_MAX_GROWTH * size bytes, no NUL.  Control codes become escapes: \t, \n
 * and \r; \x1b (other C0, DEL); \u009b (C1).  So do the characters that turn the direction of what
 * follows (\u202e), U+2028 and U+2029, which end a line, and U+FEFF.  Each maximal part of a broken
 * sequence becomes U+FFFD.  Cleaning twice changes nothing more.
 * Sources: Unicode 15, table 3-7 and section 3.9 "U+FFFD Substitution of Maximal Subparts";
 * UAX 9, section 2; CVE-2021-42574 for what such characters hide in source code. */
size_t utf8_clean(const char *bytes, size_t size, char *ret_clean);

#endif
