/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/markup.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Returns what is written instead of the character at `text`; NULL: the character itself. */
static const char *instead_of(const char *text, size_t size)
{
	switch (text[0]) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		/* U+FFFE and U+FFFF. */
		return size >= 3 && !memcmp(text, "\xef\xbf", 2) && (unsigned char)text[2] >= 0xbe
			       ? REPLACEMENT
			       : NULL;
	}
}

static int put(FILE *out, const char *bytes, size_t size)
{
	if (size && fwrite(bytes, 1, size, out) != size)
		return errno ? -errno : -EIO;
	return 0;
}

static int write_clean(FILE *out, const char *text, size_t size)
{
	size_t done = 0;
	int err;

	for (size_t at = 0; at < size; at++) {
		const char *named = instead_of(text + at, size - at);

		if (!named)
			continue;
		err = put(out, text + done, at - done);
		if (!err)
			err = put(out, named, strlen(named));
		if (err)
			return err;
		if (text[at] == '\xef')
			at += 2;
		done = at + 1;
	}
	return put(out, text + done, size - done);
}

int markup_write(FILE *out, const char *text, size_t size)
{
	OWNED_MEM char *clean = NULL;

	errno = 0;
	if (utf8_is_clean(text, size))
		return write_clean(out, text, size);
	clean = malloc(size * UTF8_CLEAN_MAX_GROWTH);
	if (!clean)
		return -ENOMEM;
	return write_clean(out, clean, utf8_clean(text, size, clean));
}

static int begins_character(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t markup_length(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t at = 0; at < size; at++)
		count += begins_character(text[at]);
	return count;
}

size_t markup_prefix(const char *text, size_t size, size_t count)
{
	size_t at = 0;

	for (; at < size; at++) {
		if (begins_character(text[at]) && !count--)
			break;
	}
	return at;
}
