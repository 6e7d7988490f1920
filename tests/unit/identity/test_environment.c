/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <cmocka.h>
#include <string.h>

#define PICK(text) pick(text, sizeof(text) - 1)

static struct environment pick(const char *text, size_t size)
{
	struct environment environment;

	environment_pick(text, size, &environment);
	return environment;
}

static void environment_pick__keeps_only_what_labels_need(void **state)
{
	const struct environment environment =
		PICK("PATH=/bin\0AWS_SECRET_ACCESS_KEY=canary\0OTEL_SERVICE_NAME=shop\0"
		     "SLURM_JOB_ID=4711\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=16\0HOME=/root\0");

	(void)state;
	assert_string_equal(environment.label[ENVIRONMENT_SERVICE], "shop");
	assert_string_equal(environment.label[ENVIRONMENT_SLURM_JOB], "4711");
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "3");
	assert_string_equal(environment.label[ENVIRONMENT_LOCAL_RANK], "1");
	assert_string_equal(environment.label[ENVIRONMENT_WORLD_SIZE], "16");
	assert_null(memmem(&environment, sizeof(environment), "canary", 6));
}

static void environment_pick__first_variable_of_a_label_counts(void **state)
{
	struct environment environment = PICK("DD_SERVICE=dog\0OTEL_SERVICE_NAME=otel\0");

	(void)state;
	assert_string_equal(environment.label[ENVIRONMENT_SERVICE], "otel");
	environment = PICK("DD_SERVICE=dog\0OTEL_SERVICE_NAME=\0");
	assert_string_equal(environment.label[ENVIRONMENT_SERVICE], "dog");
	environment = PICK("SLURM_PROCID=0\0RANK=7\0PMI_RANK=9\0");
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "7");
	environment = PICK("RANK=x\0SLURM_PROCID=2\0");
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "2");
	environment = PICK("RANK=1\0RANK=2\0");
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "1");
}

static void environment_pick__names_are_whole(void **state)
{
	const struct environment environment =
		PICK("RANK2=1\0MY_RANK=2\0RANK\0=3\0rank=4\0OTEL_SERVICE_NAMES=x\0\0\0");

	(void)state;
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "");
	assert_string_equal(environment.label[ENVIRONMENT_SERVICE], "");
}

static void environment_pick__numbers_are_numbers(void **state)
{
	const struct environment environment =
		PICK("SLURM_JOB_ID=password\0RANK=-1\0LOCAL_RANK=\0WORLD_SIZE=99999999999\0");

	(void)state;
	for (size_t label = 0; label < ENVIRONMENT_LABELS; label++)
		assert_string_equal(environment.label[label], "");
}

static void environment_pick__cut_value_is_taken_as_it_is(void **state)
{
	const struct environment environment = PICK("A=b\0DD_SERVICE=sho");

	(void)state;
	assert_string_equal(environment.label[ENVIRONMENT_SERVICE], "sho");
}

static void environment_pick__empty_entries_are_skipped(void **state)
{
	static char text[ENVIRONMENT_BYTES + 1]; /* as many NULs, but for the end */
	const char last[] = "RANK=3";
	struct environment environment;

	(void)state;
	memcpy(text + ENVIRONMENT_BYTES - sizeof(last), last, sizeof(last));
	assert_true(environment_pick(text, ENVIRONMENT_BYTES, &environment));
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "3");
}

static void environment_pick__too_many_entries_are_left(void **state)
{
	static char text[2 * ENVIRONMENT_ENTRIES_MAX + sizeof("RANK=3")];
	struct environment environment;

	(void)state;
	for (size_t i = 0; i < ENVIRONMENT_ENTRIES_MAX; i++)
		text[2 * i] = 'a';
	memcpy(text + 2 * ENVIRONMENT_ENTRIES_MAX, "RANK=3", sizeof("RANK=3"));
	assert_false(environment_pick(text, sizeof(text) - 1, &environment));
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "");
	assert_true(environment_pick(text + 2, sizeof(text) - 3, &environment));
	assert_string_equal(environment.label[ENVIRONMENT_RANK], "3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environment_pick__keeps_only_what_labels_need),
		cmocka_unit_test(environment_pick__first_variable_of_a_label_counts),
		cmocka_unit_test(environment_pick__names_are_whole),
		cmocka_unit_test(environment_pick__numbers_are_numbers),
		cmocka_unit_test(environment_pick__cut_value_is_taken_as_it_is),
		cmocka_unit_test(environment_pick__empty_entries_are_skipped),
		cmocka_unit_test(environment_pick__too_many_entries_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
