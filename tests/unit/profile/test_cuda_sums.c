/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_sums.h"

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "profile/profile_data.h"

static int put(const void *context, struct record *record)
{
	return profile_add_record(*(struct profile *const *)context, record);
}

static int refuse(const void *context, struct record *record)
{
	(void)record;
	++*(int *)context;
	return -ENOMEM;
}

static struct profile *empty_profile(struct intern *strings)
{
	const struct kind *kind = kind_get(PP_PROFILE_CUDA_CALLS);
	struct profile_options options = {.kind = kind->name,
					  .value_count = kind_value_count(PP_PROFILE_CUDA_CALLS)};
	struct profile *profile;

	for (size_t i = 0; i < options.value_count; i++)
		options.value_type[i] =
			(struct profile_value_type){kind->value[i].type, kind->value[i].unit};
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	return profile;
}

/* Puts sums twice and reads them again.  Returns how many rows these are. */
static uint32_t put_twice(const struct cuda_sums *sums, struct cuda_sums *ret_read)
{
	const struct pp_process_id id = {.tgid = 7};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	struct record record;
	uint32_t rows;

	assert_int_equal(intern_new(&strings), 0);
	profile = empty_profile(strings);
	*ret_read = (struct cuda_sums){0};
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(
			record_begin(&record, strings, PP_PROFILE_CUDA_CALLS, id, "python3"), 0);
		assert_int_equal(cuda_sums_put(sums, &record, put, &profile), 0);
	}
	rows = profile->row_count;
	for (uint32_t i = 0; i < rows; i++)
		cuda_sums_add_row(ret_read, profile, i, 0);
	return rows;
}

/* The times of a function have a row each, and rows about the same are one. */
static void sums__come_back_from_rows(void **state)
{
	struct cuda_sums sums = {0}, read;

	(void)state;
	assert_int_equal(put_twice(&sums, &read), 0);
	for (unsigned int i = 0; i < PP_EXACT_TIMED; i++)
		sums.value[i] = 10 + (int64_t)i;
	assert_int_equal(put_twice(&sums, &read), 1);
	sums.histogram[0] = 5;
	sums.histogram[PP_CUDA_HISTOGRAM - 1] = 6;
	assert_int_equal(put_twice(&sums, &read), 3);
	cuda_sums_add(&sums, &sums);
	assert_memory_equal(&read, &sums, sizeof(sums));
}

/* Another program may have written them. */
static void add_row__leaves_out_what_pyprofd_does_not_write(void **state)
{
	const struct frame frame = {.kind = FRAME_MARKER};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	struct profile_sample sample = {
		.frame = &frame,
		.frame_count = 1,
		.value = {-5, [PP_EXACT_TIMED] = 9},
		.label = {{.key = "below", .number = 777, .is_number = 1}},
		.label_count = 1,
	};
	struct cuda_sums sums = {0};

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	profile = empty_profile(strings);
	assert_int_equal(profile_add(profile, &sample), 0);
	cuda_sums_add_row(&sums, profile, 0, 0);
	assert_memory_equal(&sums, &(struct cuda_sums){0}, sizeof(sums));
}

static void put__ends_with_an_error(void **state)
{
	const struct cuda_sums sums = {.value = {1}, .histogram = {2}};
	OWNED(intern) struct intern *strings = NULL;
	struct record record;
	int calls = 0;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(record_begin(&record, strings, PP_PROFILE_CUDA_CALLS,
				      (struct pp_process_id){.tgid = 7}, "python3"),
			 0);
	assert_int_equal(cuda_sums_put(&sums, &record, refuse, &calls), -ENOMEM);
	assert_int_equal(calls, 1);
}

static void sums__saturate(void **state)
{
	struct cuda_sums sums = {.value = {5, [PP_EXACT_BYTES] = INT64_MAX - 1}};
	const struct cuda_sums more = {.value = {6, [PP_EXACT_BYTES] = 2}, .histogram = {[3] = 4}};

	(void)state;
	cuda_sums_add(&sums, &more);
	assert_int_equal(sums.value[PP_EXACT_CALLS], 11);
	assert_true(sums.value[PP_EXACT_BYTES] == INT64_MAX);
	assert_int_equal(sums.histogram[3], 4);
}

static void quantile__lies_in_its_bucket(void **state)
{
	struct cuda_sums sums = {.value = {[PP_EXACT_HOST] = 1LL << 40}};

	(void)state;
	assert_true(isnan(cuda_sums_quantile(&sums, 0.5)));
	sums.histogram[0] = 50; /* below 512 ns */
	sums.histogram[4] = 49; /* from 4096 ns on */
	sums.histogram[9] = 1;	/* from 131072 ns on */
	assert_true(fabs(cuda_sums_quantile(&sums, 0.25) - 256) < 1e-6);
	assert_true(fabs(cuda_sums_quantile(&sums, 0.5) - 512) < 1e-6);
	/* The middle of a bucket on a scale of logarithms. */
	assert_true(fabs(cuda_sums_quantile(&sums, 0.745) - 4096 * sqrt(2)) < 1e-6);
	assert_true(fabs(cuda_sums_quantile(&sums, 0.99) - 8192) < 1e-6);
	assert_true(fabs(cuda_sums_quantile(&sums, 1) - 262144) < 1e-6);
	assert_int_equal(cuda_sums_bucket_ns(4), 4096);
	assert_int_equal(cuda_sums_bucket_ns(9), 131072);
}

static void quantile__is_not_above_the_sum_of_all_times(void **state)
{
	struct cuda_sums sums = {.value = {[PP_EXACT_HOST] = 5000}, .histogram = {[4] = 1}};

	(void)state;
	assert_true(fabs(cuda_sums_quantile(&sums, 0.99) - 5000) < 1e-6);
	sums.value[PP_EXACT_HOST] = 1; /* a lie */
	assert_true(fabs(cuda_sums_quantile(&sums, 0.99) - 4096) < 1e-6);
}

static void unevenness__is_1_of_times_that_are_alike(void **state)
{
	struct cuda_sums sums = {.histogram = {[7] = 900}};

	(void)state;
	assert_true(fabs(cuda_sums_unevenness(&sums) - 1) < 1e-9);
	sums.histogram[17] = 1; /* 1024 times as long */
	assert_true(cuda_sums_unevenness(&sums) > 200);
	sums = (struct cuda_sums){0};
	assert_true(fabs(cuda_sums_unevenness(&sums) - 1) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums__come_back_from_rows),
		cmocka_unit_test(add_row__leaves_out_what_pyprofd_does_not_write),
		cmocka_unit_test(put__ends_with_an_error),
		cmocka_unit_test(sums__saturate),
		cmocka_unit_test(quantile__lies_in_its_bucket),
		cmocka_unit_test(quantile__is_not_above_the_sum_of_all_times),
		cmocka_unit_test(unevenness__is_1_of_times_that_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
