/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/demangle.c */
/* A linker name. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "elf/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[DEMANGLE_MAX_BYTES];

	if (demangle((const char *)data, size, text))
		assert(strlen(text) && strlen(text) < DEMANGLE_MAX_BYTES);
	return 0;
}
