/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_lines.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct cuda_lines *lines;

static int setup(void **state)
{
	(void)state;
	return cuda_lines_new(&lines);
}

static int teardown(void **state)
{
	(void)state;
	cuda_lines_free(lines);
	return 0;
}

static struct cuda_line line_of(uint64_t pid, const char *api, const char *kernel)
{
	struct cuda_line line = {.pid = pid};

	cuda_line_set_word(line.comm, "python3");
	cuda_line_set_word(line.device, "0");
	cuda_line_set_word(line.api, api);
	cuda_line_set_kernel(&line, kernel);
	return line;
}

static void add(uint64_t pid, const char *api, const char *kernel, uint64_t calls, uint32_t user)
{
	struct cuda_line line = line_of(pid, api, kernel);

	line.sums.calls = calls;
	line.sums.histogram[3] = calls;
	assert_int_equal(cuda_lines_add(lines, &line, user), 0);
}

/* What was written, added up again. */
struct written {
	struct cuda_lines *lines;
	struct cuda_line_sums sums;
	uint32_t count;
	int err;
};

static int on_text(void *context, const char *text)
{
	struct written *written = context;
	struct cuda_line line;

	assert_true(cuda_line_parse(text, &line));
	written->count++;
	cuda_line_sums_add(&written->sums, &line.sums);
	return written->err ? written->err : cuda_lines_add(written->lines, &line, 0);
}

static struct written write_all(void)
{
	struct written written = {0};

	assert_int_equal(cuda_lines_new(&written.lines), 0);
	assert_int_equal(cuda_lines_write(lines, on_text, &written), 0);
	return written;
}

static uint64_t calls_of(const struct cuda_lines *of, uint64_t pid, const char *api,
			 const char *kernel)
{
	const struct cuda_line line = line_of(pid, api, kernel);
	const uint32_t at = cuda_lines_find(of, &line);

	return at < cuda_lines_count(of) ? cuda_lines_sums(of, at)->calls : 0;
}

static void add__lines_about_the_same_are_one(void **state)
{
	struct cuda_line line;

	(void)state;
	add(7, "cuLaunchKernel", "add", 3, 0);
	add(7, "cuLaunchKernel", "add", 4, 0);
	add(7, "cuLaunchKernel", "sub", 5, 0);
	add(8, "cuLaunchKernel", "add", 6, 0);
	assert_int_equal(cuda_lines_count(lines), 3);
	assert_int_equal(calls_of(lines, 7, "cuLaunchKernel", "add"), 7);
	cuda_lines_get(lines, 0, &line);
	assert_string_equal(line.kernel, "add");
	assert_int_equal(line.sums.histogram[3], 7);
	assert_int_equal(calls_of(lines, 9, "cuLaunchKernel", "add"), 0);
	assert_null(cuda_lines_others(lines));
}

static void write__few_lines_are_as_they_were(void **state)
{
	struct written written;

	(void)state;
	for (unsigned int i = 0; i < CUDA_LINES_MAX; i++) {
		char kernel[16];

		snprintf(kernel, sizeof(kernel), "k%u", i);
		add(7, "cuLaunchKernel", kernel, i + 1, 0);
	}
	written = write_all();
	assert_int_equal(written.count, CUDA_LINES_MAX);
	assert_int_equal(calls_of(written.lines, 7, "cuLaunchKernel", "k0"), 1);
	assert_null(cuda_lines_others(written.lines));
	cuda_lines_free(written.lines);
}

/* Functions keep their sums when kernels are too many. */
static void write__kernels_beyond_the_bound_are_one_line_of_their_function(void **state)
{
	struct written written;

	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		char kernel[16];

		snprintf(kernel, sizeof(kernel), "k%u", i);
		add(7, "cuLaunchKernel", kernel, i + 1, 0);
	}
	add(7, "cuStreamSynchronize", "", 1, 0);
	written = write_all();
	assert_int_equal(written.count, CUDA_LINES_WHOLE + 2);
	assert_int_equal(written.sums.calls, 2000 * 2001 / 2 + 1);
	assert_int_equal(written.sums.histogram[3], 2000 * 2001 / 2 + 1);
	assert_int_equal(calls_of(written.lines, 7, "cuStreamSynchronize", ""), 1);
	assert_int_equal(calls_of(written.lines, 7, "cuLaunchKernel", "k1999"), 2000);
	assert_int_equal(calls_of(written.lines, 7, "cuLaunchKernel", CUDA_LINE_OTHER_KERNELS),
			 (2000 - CUDA_LINES_WHOLE) * (2001 - CUDA_LINES_WHOLE) / 2);
	assert_null(cuda_lines_others(written.lines));
	cuda_lines_free(written.lines);
}

static void write__beyond_all_lines_one_sums_up_the_others(void **state)
{
	struct written written;

	(void)state;
	for (unsigned int i = 0; i < 3000; i++)
		add(i + 1, "cuStreamSynchronize", "", 2, i);
	written = write_all();
	assert_int_equal(written.count, CUDA_LINES_MAX + 1);
	assert_int_equal(written.sums.calls, 6000);
	assert_int_equal(cuda_lines_others(written.lines)->others, 3000 - CUDA_LINES_MAX);
	assert_int_equal(cuda_lines_others(written.lines)->sums.calls, 2 * (3000 - CUDA_LINES_MAX));
	cuda_lines_free(written.lines);
}

/* A user with a thousand busy programs leaves the line of another's idle one. */
static void write__users_take_turns(void **state)
{
	struct written written;

	(void)state;
	for (unsigned int i = 0; i < 3000; i++)
		add(i + 1, "cuStreamSynchronize", "", 1000000, 1000);
	add(9999, "cuMemAlloc", "", 1, 2000);
	written = write_all();
	assert_int_equal(calls_of(written.lines, 9999, "cuMemAlloc", ""), 1);
	cuda_lines_free(written.lines);
}

static void write__time_counts_more_than_calls(void **state)
{
	struct cuda_line line = line_of(7, "cuStreamSynchronize", "");
	struct written written;

	(void)state;
	for (unsigned int i = 0; i < 600; i++)
		add(7, "cuMemcpyHtoDAsync", "", 1, 0);
	line.sums = (struct cuda_line_sums){.calls = 1, .host_ns = 1000000};
	assert_int_equal(cuda_lines_add(lines, &line, 0), 0);
	written = write_all();
	cuda_lines_get(written.lines, 0, &line);
	assert_string_equal(line.api, "cuStreamSynchronize");
	cuda_lines_free(written.lines);
}

static void add__is_bounded(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CUDA_LINES_KEPT_MAX + 10; i++)
		add(i + 1, "cuMemAlloc", "", 1, 0);
	assert_int_equal(cuda_lines_count(lines), CUDA_LINES_KEPT_MAX);
	assert_int_equal(cuda_lines_others(lines)->others, 10);
	assert_int_equal(cuda_lines_others(lines)->sums.calls, 10);
}

static void write__ends_with_an_error(void **state)
{
	struct written written = {.err = -ENOSPC};

	(void)state;
	add(7, "cuMemAlloc", "", 1, 0);
	add(8, "cuMemAlloc", "", 1, 0);
	assert_int_equal(cuda_lines_write(lines, on_text, &written), -ENOSPC);
	assert_int_equal(written.count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(add__lines_about_the_same_are_one),
		TEST(write__few_lines_are_as_they_were),
		TEST(write__kernels_beyond_the_bound_are_one_line_of_their_function),
		TEST(write__beyond_all_lines_one_sums_up_the_others),
		TEST(write__users_take_turns),
		TEST(write__time_counts_more_than_calls),
		TEST(add__is_bounded),
		TEST(write__ends_with_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
