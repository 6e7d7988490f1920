/* SPDX-License-Identifier: BSD-2-Clause */
/* Foreign text inside of HTML and SVG. */
#ifndef RENDER_MARKUP_H
#define RENDER_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/* Writes text so that a browser shows it and takes none of it for markup: & < > " ' as references; what
 * is no UTF-8 or no character of XML 1.0 as U+FFFD.  Returns 0, -ENOMEM or -errno of writing. */
int markup_write(FILE *out, const char *text, size_t size);

/* Characters of UTF-8 text (of broken text: some number up to `size`). */
size_t markup_length(const char *text, size_t size);
/* The bytes that its first `count` characters take. */
size_t markup_prefix(const char *text, size_t size, size_t count);

#endif
