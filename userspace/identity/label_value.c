/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/label_value.h"

#include <string.h>

#include "base/utf8.h"

#define DIGITS_MAX 10U
/* A character that the bound cuts off must be whole: else it would be cleaned as a broken one. */
#define LONGEST_REST 3U

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

void label_value(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES])
{
	char clean[(LABEL_VALUE_MAX_BYTES + LONGEST_REST) * UTF8_CLEAN_MAX_GROWTH];

	size = strnlen(bytes, size);
	for (; size && bytes[0] == ' '; size--)
		bytes++;
	if (size > LABEL_VALUE_MAX_BYTES + LONGEST_REST)
		size = LABEL_VALUE_MAX_BYTES + LONGEST_REST;
	size = utf8_clean(bytes, size, clean);
	if (size > LABEL_VALUE_MAX_BYTES)
		for (size = LABEL_VALUE_MAX_BYTES; is_continuation(clean[size]);)
			size--;
	while (size && clean[size - 1] == ' ')
		size--;
	memcpy(ret_value, clean, size);
	ret_value[size] = '\0';
}

bool label_value_number(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES])
{
	ret_value[0] = '\0';
	if (!size || size > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < size; i++)
		if (bytes[i] < '0' || bytes[i] > '9')
			return false;
	memcpy(ret_value, bytes, size);
	ret_value[size] = '\0';
	return true;
}
