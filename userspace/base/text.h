/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts that command lines, files and requests have in common. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <errno.h>
#include <stdbool.h>
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

/* A text of which parts are taken from its beginning on. */
struct cursor {
	const char *at, *end;
};

/* Takes a line, without its newline.  Returns false when none is left. */
static inline bool cursor_line(struct cursor *text, struct cursor *ret_line)
{
	const size_t left = (size_t)(text->end - text->at);
	const char *newline = left ? (const char *)memchr(text->at, '\n', left) : NULL;

	*ret_line = (struct cursor){text->at, newline ? newline : text->end};
	text->at = newline ? newline + 1 : text->end;
	return left;
}

static inline bool cursor_char(struct cursor *text, char wanted)
{
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

/* Takes a text that ends with a NUL.  Returns false when it is not there. */
static inline bool cursor_text(struct cursor *text, const char *wanted)
{
	const size_t size = strlen(wanted);

	if ((size_t)(text->end - text->at) < size || memcmp(text->at, wanted, size) != 0)
		return false;
	text->at += size;
	return true;
}

/* Takes a number, of base 10 or 16 with small letters.  Returns false when there is none, or it has
 * more than 64 bits. */
static inline bool cursor_number(struct cursor *text, unsigned int base, uint64_t *ret_number)
{
	const char *const digits = "0123456789abcdef", *first = text->at, *digit;
	uint64_t number = 0;

	for (; text->at < text->end && (digit = (const char *)memchr(digits, *text->at, base));
	     text->at++)
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(digit - digits), &number))
			return false;
	*ret_number = number;
	return text->at > first;
}

static inline bool cursor_u32(struct cursor *text, uint32_t *ret_number)
{
	uint64_t number;

	if (!cursor_number(text, 10, &number) || number > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

#endif
