/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/io.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers have an allocator of their own. */
#if !defined(__SANITIZE_ADDRESS__)
void *__libc_realloc(void *old, size_t size);

static unsigned int reallocs_left = -1U;

void *realloc(void *old, size_t size)
{
	if (!reallocs_left)
		return NULL;
	reallocs_left--;
	return __libc_realloc(old, size);
}

static void close_memory_file__without_memory_is_told(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		char *text = NULL;
		size_t size;
		FILE *stream = open_memstream(&text, &size);

		assert_non_null(stream);
		fputs("facts", stream);
		reallocs_left = i;
		/* The only one is that of fclose(), which returns 0. */
		assert_int_equal(close_memory_file(stream, &text), i ? 0 : -ENOMEM);
		reallocs_left = -1U;
		free(text);
	}
}
#endif

static void close_memory_file__leaves_the_whole_text(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	for (unsigned int i = 0; i < 10000; i++)
		fputs("abcdefghij", stream);
	assert_int_equal(close_memory_file(stream, &text), 0);
	assert_int_equal(size, 100000);
	assert_int_equal(strlen(text), 100000);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_ADDRESS__)
		cmocka_unit_test(close_memory_file__without_memory_is_told),
#endif
		cmocka_unit_test(close_memory_file__leaves_the_whole_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
