/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RENDER_HTML_TEXT_H
#define RENDER_HTML_TEXT_H

#include <stdio.h>

/* Text with what HTML takes for markup escaped; good in attributes in double quotes, too. */
static inline void html_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc(*text, out);
		}
	}
}

#endif
