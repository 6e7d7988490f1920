/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/record.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "profile/profile_data.h"

static struct intern *strings;
static struct profile *profile;

/* A profile with values of one kind, and behind them those of resident. */
static void make(enum pp_profile kind)
{
	const enum pp_profile both[] = {kind, PP_PROFILE_RESIDENT};
	struct profile_options options = {.kind = kind_get(kind)->name};

	for (unsigned int i = 0; i < (kind == PP_PROFILE_RESIDENT ? 1 : 2); i++)
		for (const struct kind_value *value = kind_get(both[i])->value; value->type;
		     value++)
			options.value_type[options.value_count++] =
				(struct profile_value_type){value->type, value->unit};
	assert_int_equal(profile_new(&options, strings, &profile), 0);
}

static int setup(void **state)
{
	(void)state;
	profile = NULL;
	return intern_new(&strings);
}

static int teardown(void **state)
{
	(void)state;
	profile_free(profile);
	intern_free(strings);
	return 0;
}

static struct record begun(uint32_t pid, const char *comm)
{
	struct record record;

	assert_int_equal(record_begin(&record, strings, PP_PROFILE_RESIDENT,
				      (struct pp_process_id){.tgid = pid}, comm),
			 0);
	return record;
}

static void record__rows_of_a_process_have_its_labels(void **state)
{
	struct record record = begun(7, "a b");

	(void)state;
	make(PP_PROFILE_RESIDENT);
	record.sample.value[PP_RESIDENT_PROCESSES] = 1;
	assert_int_equal(profile_add_record(profile, &record), 0);
	record_next(&record);
	record.sample.value[PP_RESIDENT_BYTES] = 5;
	assert_int_equal(record_about(&record, strings, "memory", "file"), 0);
	assert_int_equal(profile_add_record(profile, &record), 0);
	assert_int_equal(profile->row_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(record_number(profile, i, "pid"), 7);
		assert_string_equal(record_text(profile, i, "comm"), "a b");
		assert_string_equal(record_text(profile, i, "memory"), i ? "file" : "");
		assert_int_equal(profile_row_values(profile, i)[PP_RESIDENT_BYTES], i ? 5 : 0);
		assert_int_equal(profile_row_values(profile, i)[PP_RESIDENT_PROCESSES], i ? 0 : 1);
	}
	/* A number is no text, and a text no number. */
	assert_string_equal(record_text(profile, 0, "pid"), "");
	assert_int_equal(record_number(profile, 0, "comm"), 0);
}

static void record__others_are_summed_up(void **state)
{
	(void)state;
	make(PP_PROFILE_RESIDENT);
	for (uint32_t pid = 1; pid <= 3; pid++) {
		struct record record = begun(pid, pid == 3 ? "" : "a");

		record.sample.value[PP_RESIDENT_BYTES] = 5;
		assert_int_equal(record_about(&record, strings, "memory", "file"), 0);
		assert_int_equal(record_make_other(&record, strings), 0);
		assert_int_equal(profile_add_record(profile, &record), 0);
		record_next(&record);
		record.sample.value[PP_RESIDENT_PROCESSES] = 1;
		assert_int_equal(record_make_other(&record, strings), 0);
		assert_int_equal(profile_add_record(profile, &record), 0);
	}
	assert_int_equal(profile->row_count, 2);
	assert_int_equal(record_number(profile, 0, "pid"), 0);
	assert_string_equal(record_text(profile, 0, "comm"), RECORD_OTHERS);
	assert_string_equal(record_text(profile, 0, "memory"), "file");
	assert_int_equal(profile_row_values(profile, 0)[PP_RESIDENT_BYTES], 15);
	assert_int_equal(profile_row_values(profile, 1)[PP_RESIDENT_PROCESSES], 3);
}

static void record__is_behind_the_values_of_another_kind(void **state)
{
	struct record record = begun(7, "a");

	(void)state;
	make(PP_PROFILE_MEM);
	record.sample.value[PP_RESIDENT_PEAK] = 9;
	assert_int_equal(profile_add_record(profile, &record), 0);
	assert_int_equal(record_values_at(profile, PP_PROFILE_RESIDENT),
			 kind_value_count(PP_PROFILE_MEM));
	assert_int_equal(profile_row_values(profile,
					    0)[kind_value_count(PP_PROFILE_MEM) + PP_RESIDENT_PEAK],
			 9);
	assert_int_equal(profile_row_values(profile, 0)[PP_RESIDENT_PEAK], 0);
}

static void record__is_left_out_where_no_value_is_of_its_kind(void **state)
{
	const struct profile_options options = {
		.kind = "cpu", .value_type = {{"cpu", "nanoseconds"}}, .value_count = 1};
	const struct record record = begun(7, "a");

	(void)state;
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	assert_int_equal(profile_add_record(profile, &record), 0);
	assert_int_equal(profile->row_count, 0);
	assert_int_equal(record_values_at(profile, PP_PROFILE_RESIDENT), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(record__rows_of_a_process_have_its_labels),
		TEST(record__others_are_summed_up),
		TEST(record__is_behind_the_values_of_another_kind),
		TEST(record__is_left_out_where_no_value_is_of_its_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
