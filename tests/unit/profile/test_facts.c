/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/comments.h"

static void facts__are_read_as_they_were_written(void **state)
{
	char *text = NULL;
	const char *at;
	struct fact fact;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	facts_put(out, "", "samples", 0);
	facts_put(out, "lost_", "ring_full", UINT64_MAX);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "samples=0 lost_ring_full=18446744073709551615");
	errno = ERANGE; /* left by what ran before */
	at = text;
	assert_true(fact_next(&at, &fact) && fact_is(&fact, "samples"));
	assert_true(fact.is_number && !fact.number);
	assert_true(fact_next(&at, &fact) && fact_is(&fact, "lost_ring_full"));
	assert_true(fact.is_number && fact.number == UINT64_MAX);
	assert_false(fact_next(&at, &fact));
	assert_true(facts_number(text, "lost_ring_full") == UINT64_MAX);
	assert_int_equal(facts_number(text, "lost_ring"), 0);
	assert_false(facts_find(text, "lost", &fact));
	free(text);
}

static void facts__other_comments_have_none(void **state)
{
	static const char *const others[] = {"", "samples", "# a=1", "=1", " a=1", "a =1"};
	struct fact fact;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const char *at = others[i];

		assert_false(fact_next(&at, &fact));
		assert_ptr_equal(at, others[i]);
		assert_false(facts_are_of_window(others[i]));
		assert_false(facts_find(others[i], "a", &fact));
	}
}

static void facts__end_at_what_is_none(void **state)
{
	(void)state;
	assert_int_equal(facts_number("a=1 b c=2", "a"), 1);
	assert_int_equal(facts_number("a=1 b c=2", "c"), 0);
}

static void facts__are_numbers_or_texts(void **state)
{
	static const char *const texts[] = {"x", "", "1x", "-1", "0.5", "99999999999999999999999"};
	struct fact fact;
	char comment[64];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(comment, sizeof(comment), "a=%s b=7", texts[i]);
		assert_true(facts_find(comment, "a", &fact));
		assert_true(!fact.is_number && !fact.number);
		assert_int_equal(fact.text_size, strlen(texts[i]));
		assert_memory_equal(fact.text, texts[i], fact.text_size);
		assert_int_equal(facts_number(comment, "b"), 7);
		assert_false(facts_are_of_window(comment));
	}
	assert_true(facts_are_of_window("a=007 b=x"));
	assert_int_equal(facts_number("a=007 b=x", "a"), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts__are_read_as_they_were_written),
		cmocka_unit_test(facts__other_comments_have_none),
		cmocka_unit_test(facts__end_at_what_is_none),
		cmocka_unit_test(facts__are_numbers_or_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
