/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/comments.h"

struct seen {
	unsigned int count;
	char name[4][32];
	uint64_t value[4];
};

static void on_fact(void *context, const char *name, size_t size, uint64_t value)
{
	struct seen *seen = context;

	assert_true(seen->count < 4 && size < sizeof(seen->name[0]));
	memcpy(seen->name[seen->count], name, size);
	seen->value[seen->count++] = value;
}

static void facts__are_read_as_they_were_written(void **state)
{
	struct seen seen = {};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	facts_begin(out);
	facts_put(out, "", "samples", 0);
	facts_put(out, "lost_", "ring_full", UINT64_MAX);
	assert_int_equal(fclose(out), 0);
	errno = ERANGE; /* left by what ran before */
	facts_read(text, on_fact, &seen);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.name[0], "samples");
	assert_int_equal(seen.value[0], 0);
	assert_string_equal(seen.name[1], "lost_ring_full");
	assert_true(seen.value[1] == UINT64_MAX);
	free(text);
}

static void facts__without_any_are_none(void **state)
{
	struct seen seen = {};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	facts_begin(out);
	assert_int_equal(fclose(out), 0);
	facts_read(text, on_fact, &seen);
	free(text);
	facts_read("factsamples=1", on_fact, &seen);
	facts_read("pyprofd 0.1.0 cpu 99Hz host=box", on_fact, &seen);
	assert_int_equal(seen.count, 0);
}

static void facts_read__ends_at_what_is_no_fact(void **state)
{
	struct seen seen = {};

	(void)state;
	facts_read("facts a=1 b c=2", on_fact, &seen);
	assert_int_equal(seen.count, 1);
	facts_read("facts a=x", on_fact, &seen);
	facts_read("facts a=99999999999999999999999", on_fact, &seen);
	assert_int_equal(seen.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts__are_read_as_they_were_written),
		cmocka_unit_test(facts__without_any_are_none),
		cmocka_unit_test(facts_read__ends_at_what_is_no_fact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
