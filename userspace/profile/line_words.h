/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of comments that are written and read again: "memory pid=12 comm=python3 ...". */
#ifndef PROFILE_LINE_WORDS_H
#define PROFILE_LINE_WORDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a name, cut to size: a blank would end the word, and control characters move the cursor of
 * whoever prints it. */
static inline void line_set_word(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
	for (; *to; to++)
		if ((unsigned char)*to <= ' ' || *to == 0x7f)
			*to = '_';
}

/* Reads what must stand before a number, and its digits. */
static inline bool line_read_number(const char **at, const char *before, uint64_t *ret_number)
{
	const size_t size = strlen(before);
	char *end;

	if (strncmp(*at, before, size) != 0 || (*at)[size] < '0' || (*at)[size] > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(*at + size, &end, 10);
	*at = end;
	return !errno;
}

/* Reads what must stand before a word, and the word.  Returns false also where it is too long. */
static inline bool line_read_word(const char **at, const char *before, char *ret_word, size_t size)
{
	const size_t before_size = strlen(before);
	size_t length;

	if (strncmp(*at, before, before_size) != 0)
		return false;
	length = strcspn(*at + before_size, " ");
	if (length >= size)
		return false;
	memcpy(ret_word, *at + before_size, length);
	ret_word[length] = '\0';
	*at += before_size + length;
	return true;
}

#endif
