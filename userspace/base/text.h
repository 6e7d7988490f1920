/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts that command lines, files and requests have in common. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Parses a decimal number without sign or blanks.  Returns 0, -EINVAL, -ERANGE. */
static inline int decimal_parse(const char *text, size_t size, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!size)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (number > (UINT64_MAX - 9) / 10)
			return -ERANGE;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	*ret_number = number;
	return 0;
}

/* Of FILE:FUNC, as pyprofd --lines and pyprof lines take it: returns how many bytes FILE has.  The
 * colon before the function follows them, or the text's end where none is named.  A path may have
 * colons, but a function's name has no slash. */
static inline size_t line_target_file_bytes(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && !strchr(colon, '/') ? (size_t)(colon - text) : strlen(text);
}

#endif
