/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

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

/* Returns the length of the sequence at bytes, or of its well-formed part (at least 1). */
static size_t sequence(const unsigned char *bytes, size_t size, bool *ret_is_clean)
{
	unsigned char low, high;
	unsigned int wanted;
	size_t length = 1;

	*ret_is_clean = false;
	if (bytes[0] < 0x80) {
		*ret_is_clean = bytes[0] >= 0x20 && bytes[0] != 0x7f;
		return 1;
	}
	wanted = following(bytes[0], &low, &high);
	if (!wanted)
		return 1;
	for (; length <= wanted; length++) {
		if (length == size || bytes[length] < low || bytes[length] > high)
			return length;
		low = 0x80;
		high = 0xbf;
	}
	*ret_is_clean = bytes[0] != 0xc2 || bytes[1] >= 0xa0;
	return length;
}

bool utf8_is_clean(const char *bytes, size_t size)
{
	const unsigned char *at = (const unsigned char *)bytes;

	for (size_t i = 0; i < size;) {
		bool is_clean = true;

		if (at[i] >= 0x20 && at[i] < 0x7f)
			i++;
		else
			i += sequence(at + i, size - i, &is_clean);
		if (!is_clean)
			return false;
	}
	return true;
}

size_t utf8_clean(const char *bytes, size_t size, char *ret_clean)
{
	const unsigned char *at = (const unsigned char *)bytes;
	char *put = ret_clean;

	for (size_t i = 0; i < size;) {
		bool is_clean;
		size_t length = sequence(at + i, size - i, &is_clean);

		if (is_clean) {
			memcpy(put, at + i, length);
			put += length;
		} else if (at[i] == '\t' || at[i] == '\n' || at[i] == '\r') {
			*put++ = ' ';
		} else {
			memcpy(put, REPLACEMENT, strlen(REPLACEMENT));
			put += strlen(REPLACEMENT);
		}
		i += length;
	}
	return (size_t)(put - ret_clean);
}
