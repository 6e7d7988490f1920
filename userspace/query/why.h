/* SPDX-License-Identifier: BSD-2-Clause */
/* Why something could not be read, as one line of text that the caller shows. */
#ifndef QUERY_WHY_H
#define QUERY_WHY_H

#define WHY_BYTES 8192U /* a path of 4 KiB and a sentence; longer ones are cut */

/* Writes the line, without a program's name before it or a newline behind it.  It may hold names
 * that others chose: clean it for where it is shown.  Returns -EINVAL. */
int say_why(char text[WHY_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
