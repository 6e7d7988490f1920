/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/comments.h"

#include <cmocka.h>
#include <string.h>

static void writer__is_read_as_it_was_written(void **state)
{
	const struct profile_writer writer = {
		.version = "0.1.0", .kind = "cpu", .hz = 99, .host = "box"};
	struct profile_writer read;
	char text[WRITER_TEXT_BYTES];

	(void)state;
	profile_writer_format(&writer, text);
	assert_string_equal(text, "pyprofd 0.1.0 cpu 99Hz host=box");
	assert_true(profile_writer_parse(text, &read));
	assert_string_equal(read.version, "0.1.0");
	assert_string_equal(read.kind, "cpu");
	assert_int_equal(read.hz, 99);
	assert_string_equal(read.host, "box");
}

static void writer__with_its_longest_names_fits(void **state)
{
	struct profile_writer writer = {.hz = 10000}, read;
	char text[WRITER_TEXT_BYTES];

	(void)state;
	memset(writer.version, '1', sizeof(writer.version) - 1);
	memset(writer.kind, 'k', sizeof(writer.kind) - 1);
	memset(writer.host, 'h', sizeof(writer.host) - 1);
	profile_writer_format(&writer, text);
	assert_true(profile_writer_parse(text, &read));
	assert_memory_equal(&read, &writer, sizeof(read));
}

static void writer__of_another_version_is_read_as_far_as_it_goes(void **state)
{
	struct profile_writer read = {.hz = 7};

	(void)state;
	assert_true(profile_writer_parse("pyprofd 2.0.0", &read));
	assert_string_equal(read.version, "2.0.0");
	assert_string_equal(read.kind, "");
	assert_int_equal(read.hz, 0);
	assert_true(profile_writer_parse("pyprofd 2.0.0 wall often host=x", &read));
	assert_string_equal(read.kind, "wall");
	assert_int_equal(read.hz, 0);
	assert_string_equal(read.host, "");
}

static void writer__is_no_other_comment(void **state)
{
	struct profile_writer read = {.hz = 7};

	(void)state;
	assert_false(profile_writer_parse("", &read));
	assert_false(profile_writer_parse("pyprofd", &read));
	assert_false(profile_writer_parse("facts samples=1", &read));
	assert_false(profile_writer_parse("by pyprofd 1.0.0", &read));
	assert_int_equal(read.hz, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writer__is_read_as_it_was_written),
		cmocka_unit_test(writer__with_its_longest_names_fits),
		cmocka_unit_test(writer__of_another_version_is_read_as_far_as_it_goes),
		cmocka_unit_test(writer__is_no_other_comment),
	};

	return cmocka_run_group_tests_name("profile/writer", tests, NULL, NULL);
}
