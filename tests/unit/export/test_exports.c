/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with values that no profiler counts: anyone may write them.  What the formats look like is
 * tested end to end. */
#include "export/exports.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../render/render_fixture.h"

#define HUGE_COUNT (INT64_MAX / PERIOD)
#define TRACE_MAX_BYTES (128U << 20)

struct written {
	char *text;
	size_t size;
};

static struct written trace_of(struct fixture *f, int count_index)
{
	const struct export_facts facts = {
		.value_index = 1, .count_index = count_index, .duration_ns = 1000000000};
	struct written written = {0};
	FILE *out = open_memstream(&written.text, &written.size);

	assert_non_null(out);
	assert_int_equal(export_perfetto(f->profile, &facts, out), 0);
	fclose(out);
	return written;
}

/* A trace has about a million samples at most, whatever the sum of all values is. */
static void export_perfetto__negative_values_make_no_room_for_others(void **state)
{
	struct fixture f = {};
	struct written written;

	(void)state;
	fixture_init(&f);
	add(&f, "main;work", HUGE_COUNT / 2, 1);
	add(&f, "main;rest", -HUGE_COUNT / 2, 1);
	for (int count_index = -1; count_index <= 0; count_index++) {
		written = trace_of(&f, count_index);
		assert_in_range(written.size, 1000, TRACE_MAX_BYTES);
		free(written.text);
	}
	/* Three sums that are more than fits. */
	add(&f, "main;more", HUGE_COUNT, 1);
	add(&f, "main;most", HUGE_COUNT, 2);
	written = trace_of(&f, 0);
	assert_in_range(written.size, 1000, TRACE_MAX_BYTES);
	free(written.text);
	fixture_release(&f);
}

static struct written tree_as(struct fixture *f,
			      int (*export)(const struct flame_tree *tree,
					    const struct export_facts *facts, FILE *out))
{
	const struct flame_options options = {.value_index = 1,
					      .group_by = {.keys = GROUP_BY_THREAD}};
	const struct export_facts facts = {.title = "t", .value_index = 1, .count_index = 0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	struct written written = {0};
	FILE *out = open_memstream(&written.text, &written.size);

	assert_non_null(out);
	assert_int_equal(flame_tree_new(f->profile, &options, &tree), 0);
	assert_int_equal(export(tree, &facts, out), 0);
	fclose(out);
	return written;
}

static void exports__sums_beyond_the_largest_number_are_the_largest(void **state)
{
	struct fixture f = {};
	struct written written;

	(void)state;
	fixture_init(&f);
	add(&f, "main;work", HUGE_COUNT, 1);
	add(&f, "main;rest", HUGE_COUNT, 1);
	written = tree_as(&f, export_speedscope);
	assert_non_null(strstr(written.text, "\"endValue\":9223372036854775807"));
	free(written.text);
	written = tree_as(&f, export_chrome);
	assert_null(strstr(written.text, "\"ts\":-"));
	assert_null(strstr(written.text, "\"dur\":-"));
	assert_non_null(strstr(written.text, "\"dur\":9007199254740992"));
	free(written.text);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(export_perfetto__negative_values_make_no_room_for_others),
		cmocka_unit_test(exports__sums_beyond_the_largest_number_are_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
