/* SPDX-License-Identifier: BSD-2-Clause */
/* Where FILE:FUNC has its colon, for whoever names lines: pyprofd --lines and pyprof lines. */
#ifndef BASE_LINE_TARGET_H
#define BASE_LINE_TARGET_H

#include <string.h>

/* Returns how many bytes FILE has: the colon before the function follows them, or the text's end
 * where none is named.  A path may contain colons, but a function's name contains no slash. */
static inline size_t line_target_file_bytes(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && !strchr(colon, '/') ? (size_t)(colon - text) : strlen(text);
}

#endif
