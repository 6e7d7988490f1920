/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define ESCAPE_BYTES 7U /* "\\u202e" and a NUL */

enum form {
	FORM_SHOWN,  /* a character as it stands */
	FORM_HIDDEN, /* a character that a view may obey instead of showing it */
	FORM_BROKEN, /* not UTF-8 */
};

/* Returns how many bytes follow a lead byte, and the bounds of the first of them. */
static unsigned int following(unsigned char lead, unsigned char *low, unsigned char *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 1;
	if (lead >= 0xe0 && lead <= 0xef) {
		if (lead == 0xe0)
			*low = 0xa0; /* no overlong forms */
		if (lead == 0xed)
			*high = 0x9f; /* no surrogates */
		return 2;
	}
	if (lead >= 0xf0 && lead <= 0xf4) {
		if (lead == 0xf0)
			*low = 0x90;
		if (lead == 0xf4)
			*high = 0x8f; /* nothing above U+10FFFF */
		return 3;
	}
	return 0;
}

/* Returns the character of a whole sequence of one to three bytes; 0 for longer ones. */
static uint32_t character_of(const unsigned char *bytes, size_t length)
{
	switch (length) {
	case 1:
		return bytes[0];
	case 2:
		return (bytes[0] & 0x1fU) << 6 | (bytes[1] & 0x3fU);
	case 3:
		return (bytes[0] & 0xfU) << 12 | (bytes[1] & 0x3fU) << 6 | (bytes[2] & 0x3fU);
	default:
		return 0;
	}
}

/* Returns whether a terminal, a browser or a line of text does something else with the character
 * than to show it: C0, DEL and C1; U+061C, U+200E to 200F, U+202A to 202E and U+2066 to 206F turn
 * the direction of what follows; U+2028 and U+2029 end a line; U+FEFF has no width. */
static bool is_hidden(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
	       character == 0x200e || character == 0x200f ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x206f) || character == 0xfeff;
}

/* Returns the length of the sequence at bytes, or of its well-formed part (at least 1). */
static size_t sequence(const unsigned char *bytes, size_t size, enum form *ret_form)
{
	unsigned char low, high;
	unsigned int wanted = 0;
	size_t length = 1;

	*ret_form = FORM_BROKEN;
	if (bytes[0] >= 0x80) {
		wanted = following(bytes[0], &low, &high);
		if (!wanted)
			return 1;
	}
	for (; length <= wanted; length++) {
		if (length == size || bytes[length] < low || bytes[length] > high)
			return length;
		low = 0x80;
		high = 0xbf;
	}
	/* None of four bytes is hidden. */
	*ret_form = length < 4 && is_hidden(character_of(bytes, length)) ? FORM_HIDDEN : FORM_SHOWN;
	return length;
}

bool utf8_is_clean(const char *bytes, size_t size)
{
	const unsigned char *at = (const unsigned char *)bytes;

	for (size_t i = 0; i < size;) {
		enum form form = FORM_SHOWN;

		if (at[i] >= 0x20 && at[i] < 0x7f)
			i++;
		else
			i += sequence(at + i, size - i, &form);
		if (form != FORM_SHOWN)
			return false;
	}
	return true;
}

static size_t escape(uint32_t character, char *ret_text)
{
	static const char letter[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r'};
	char text[ESCAPE_BYTES];
	int size;

	if (character < sizeof(letter) && letter[character])
		size = snprintf(text, sizeof(text), "\\%c", letter[character]);
	else
		size = snprintf(text, sizeof(text), character < 0x80 ? "\\x%02x" : "\\u%04x",
				character & 0xffffU);
	memcpy(ret_text, text, (size_t)size);
	return (size_t)size;
}

size_t utf8_clean(const char *bytes, size_t size, char *ret_clean)
{
	const unsigned char *at = (const unsigned char *)bytes;
	char *put = ret_clean;

	for (size_t i = 0; i < size;) {
		enum form form;
		size_t length = sequence(at + i, size - i, &form);

		if (form == FORM_HIDDEN) {
			put += escape(character_of(at + i, length), put);
		} else if (form == FORM_SHOWN) {
			memcpy(put, at + i, length);
			put += length;
		} else {
			memcpy(put, REPLACEMENT, strlen(REPLACEMENT));
			put += strlen(REPLACEMENT);
		}
		i += length;
	}
	return (size_t)(put - ret_clean);
}
