/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/kept_about.c base/io.c base/utf8.c */
/* The file `about` of a kept profile: a store may be anybody's. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "reader/kept_about.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char text[KEPT_TEXT_BYTES])
{
	const size_t size = strnlen(text, KEPT_TEXT_BYTES);

	assert(size < KEPT_TEXT_BYTES);
	assert(utf8_is_clean(text, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct kept_about about;

	assert(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	kept_about_parse(text, size, &about);
	check_text(about.reason);
	check_text(about.pid);
	check_text(about.comm);
	check_text(about.time);
	check_text(about.from);
	check_text(about.to);
	free(text);
	return 0;
}
