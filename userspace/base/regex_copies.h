/* SPDX-License-Identifier: BSD-2-Clause */
/* How large a POSIX extended expression becomes.  regcomp(3) copies what is repeated, so that
 * nested repeats, ((a{9}){9}){9} or a++++++++, take all memory: whoever takes expressions asks
 * first. */
#ifndef BASE_REGEX_COPIES_H
#define BASE_REGEX_COPIES_H

#include <stdbool.h>

/* Parts of an expression beside those that are written: some 10 MiB of memory, 10 ms. */
#define REGEX_COPIES_MAX 1000U

/* Returns whether repeats make more copies than that, or groups are nested more than 63 deep.
 * What is no expression is for regcomp() to refuse. */
bool regex_copies_too_much(const char *regex);

#endif
