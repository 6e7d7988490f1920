/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes untrusted text inside HTML and SVG. */
#ifndef RENDER_MARKUP_H
#define RENDER_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/* Writes text so that a browser shows it as text: it is cleaned (base/utf8.h), & < > " ' become
 * references, and what is no character of XML 1.0 becomes U+FFFD.  Returns 0, -ENOMEM or -errno of
 * writing. */
int markup_write(FILE *out, const char *text, size_t size);

/* Returns the number of characters of UTF-8 text (of malformed text: some number up to `size`). */
size_t markup_length(const char *text, size_t size);
/* Returns the number of bytes in the first `count` characters. */
size_t markup_prefix(const char *text, size_t size, size_t count);

#endif
