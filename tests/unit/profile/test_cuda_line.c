/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_line.h"

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"

static struct cuda_line full_line(void)
{
	struct cuda_line line = {.pid = UINT64_MAX};

	memset(&line.sums, 0xff, sizeof(line.sums));
	memset(line.comm, 'c', sizeof(line.comm) - 1);
	memset(line.device, 'd', sizeof(line.device) - 1);
	memset(line.api, 'a', sizeof(line.api) - 1);
	memset(line.direction, 'x', sizeof(line.direction) - 1);
	memset(line.kernel, 'k', sizeof(line.kernel) - 1);
	line.is_around = true;
	return line;
}

static void cuda_line__the_longest_comes_back(void **state)
{
	const struct cuda_line written = full_line();
	char text[CUDA_LINE_CHARS], again[CUDA_LINE_CHARS];
	struct cuda_line line;

	(void)state;
	cuda_line_format(&written, text);
	assert_true(strlen(text) < CUDA_LINE_CHARS - 1);
	assert_true(cuda_line_parse(text, &line));
	assert_true(line.is_around && line.pid == UINT64_MAX);
	assert_memory_equal(&line.sums, &written.sums, sizeof(line.sums));
	assert_int_equal(strlen(line.kernel), CUDA_LINE_KERNEL_BYTES - 1);
	cuda_line_format(&line, again);
	assert_string_equal(again, text);
}

static void cuda_line__reads_as_it_is_documented(void **state)
{
	struct cuda_line line = {.pid = 12,
				 .sums = {.calls = 40, .host_ns = 1200, .wait_ns = 1200}};
	char text[CUDA_LINE_CHARS];

	(void)state;
	line.sums.histogram[0] = 38;
	line.sums.histogram[5] = 2;
	cuda_line_set_word(line.comm, "python3");
	cuda_line_set_word(line.device, "0");
	cuda_line_set_word(line.api, "cuStreamSynchronize");
	cuda_line_format(&line, text);
	assert_string_equal(text, "cuda pid=12 comm=python3 device=0 api=cuStreamSynchronize "
				  "direction=- calls=40 captured=0 nodes=0 bytes=0 host_ns=1200 "
				  "wait_ns=1200 spread=0 hist=0:38,5:2 kernel=");
	line = (struct cuda_line){.others = 44, .sums = {.calls = 7, .bytes = 5}};
	cuda_line_format(&line, text);
	assert_string_equal(text, "cuda others=44 calls=7 captured=0 nodes=0 bytes=5 host_ns=0 "
				  "wait_ns=0 spread=0 hist=-");
	assert_true(cuda_line_parse(text, &line));
	assert_int_equal(line.pid, 0);
	assert_int_equal(line.sums.bytes, 5);
}

/* Templates have blanks in their names. */
static void kernel__is_the_rest_of_the_line(void **state)
{
	struct cuda_line line = {.pid = 1}, back;
	char text[CUDA_LINE_CHARS];

	(void)state;
	cuda_line_set_word(line.api, "cuLaunchKernel");
	cuda_line_set_kernel(&line, "void add<int, 2>(float*, pid=7 kernel=x)\n\x1b[0m");
	cuda_line_format(&line, text);
	assert_null(strpbrk(text, "\n\x1b"));
	assert_true(cuda_line_parse(text, &back));
	assert_string_equal(back.kernel, "void add<int, 2>(float*, pid=7 kernel=x)__[0m");
	assert_int_equal(back.pid, 1);
}

/* Whoever runs a program chooses its name. */
static void set_word__leaves_one_word_of_whole_characters(void **state)
{
	struct cuda_line line = {.pid = 1}, back;
	char text[CUDA_LINE_CHARS], wide[100] = "";

	(void)state;
	cuda_line_set_word(line.api, "a");
	cuda_line_set_word(line.comm, "a b\n\x1b\x7f calls=9");
	assert_string_equal(line.comm, "a_b____calls=9");
	cuda_line_format(&line, text);
	assert_true(cuda_line_parse(text, &back));
	assert_int_equal(back.sums.calls, 0);
	for (size_t i = 0; i < 32; i++)
		memcpy(wide + 3 * i, "\xe2\x82\xac", 3); /* an euro sign */
	cuda_line_set_word(line.comm, wide);
	assert_int_equal(strlen(line.comm), 63);
	cuda_line_set_word(line.comm, "");
	cuda_line_format(&line, text);
	assert_non_null(strstr(text, " comm=- "));
	assert_true(cuda_line_parse(text, &back));
	assert_string_equal(back.comm, "");
}

static void parse__passes_over_words_of_later_versions(void **state)
{
	struct cuda_line line;

	(void)state;
	assert_true(cuda_line_parse("cuda pid=1 stream=7 api=cuMemAlloc calls=3 hist=2:1 kernel=",
				    &line));
	assert_string_equal(line.api, "cuMemAlloc");
	assert_int_equal(line.sums.calls, 3);
	assert_int_equal(line.sums.histogram[2], 1);
	assert_true(cuda_line_parse("cuda pid=1 api=cuMemAlloc", &line));
}

static void parse__other_comments_are_none(void **state)
{
	static const char *const others[] = {
		"",
		"cuda",
		"cuda ",
		"memory pid=1 comm=a at=1 anon=1 file=1 shmem=1 peak=1",
		"cuda pid=0 api=a calls=1 kernel=",
		"cuda pid=1 calls=1 kernel=",
		"cuda pid=1 api=- calls=1 kernel=",
		"cuda pid=1 api=a calls=-1 kernel=",
		"cuda pid=1 api=a calls=1x kernel=",
		"cuda pid=1 api=a calls=18446744073709551616 kernel=",
		"cuda pid=1 api=a calls= kernel=",
		"cuda pid=1  api=a kernel=",
		"cuda pid=1 api kernel=",
		"cuda pid=1 api=a hist=24:1 kernel=",
		"cuda pid=1 api=a hist=1:1, kernel=",
		"cuda pid=1 api=a hist=1:1,2 kernel=",
		"cuda pid=1 api=a hist= kernel=",
		"cuda pid=1 api=0123456789012345678901234567890123456789012345678901234567890123",
		"cuda others=1 calls=1 hist=- kernel=x",
		"cuda others=1 calls=1 ",
	};
	struct cuda_line line = {.pid = 77};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (cuda_line_parse(others[i], &line))
			fail_msg("%s", others[i]);
	assert_int_equal(line.pid, 77);
}

static void sums__saturate(void **state)
{
	struct cuda_line_sums sums = {.calls = 5, .bytes = UINT64_MAX - 1};
	const struct cuda_line_sums more = {.calls = 6, .bytes = 2, .histogram = {[3] = 4}};

	(void)state;
	cuda_line_sums_add(&sums, &more);
	assert_int_equal(sums.calls, 11);
	assert_true(sums.bytes == UINT64_MAX);
	assert_int_equal(sums.histogram[3], 4);
}

static void quantile__lies_in_its_bucket(void **state)
{
	struct cuda_line_sums sums = {.host_ns = 1ULL << 40};

	(void)state;
	assert_true(isnan(cuda_line_quantile(&sums, 0.5)));
	sums.histogram[0] = 50; /* below 512 ns */
	sums.histogram[4] = 49; /* from 4096 ns on */
	sums.histogram[9] = 1;	/* from 131072 ns on */
	assert_true(fabs(cuda_line_quantile(&sums, 0.25) - 256) < 1e-6);
	assert_true(fabs(cuda_line_quantile(&sums, 0.5) - 512) < 1e-6);
	/* The middle of a bucket on a scale of logarithms. */
	assert_true(fabs(cuda_line_quantile(&sums, 0.745) - 4096 * sqrt(2)) < 1e-6);
	assert_true(fabs(cuda_line_quantile(&sums, 0.99) - 8192) < 1e-6);
	assert_true(fabs(cuda_line_quantile(&sums, 1) - 262144) < 1e-6);
	assert_int_equal(cuda_line_bucket_ns(4), 4096);
	assert_int_equal(cuda_line_bucket_ns(9), 131072);
}

static void quantile__is_not_above_the_sum_of_all_times(void **state)
{
	struct cuda_line_sums sums = {.host_ns = 5000, .histogram = {[4] = 1}};

	(void)state;
	assert_true(fabs(cuda_line_quantile(&sums, 0.99) - 5000) < 1e-6);
	sums.host_ns = 1; /* a lie */
	assert_true(fabs(cuda_line_quantile(&sums, 0.99) - 4096) < 1e-6);
}

static void unevenness__is_1_of_times_that_are_alike(void **state)
{
	struct cuda_line_sums sums = {.histogram = {[7] = 900}};

	(void)state;
	assert_true(fabs(cuda_line_unevenness(&sums) - 1) < 1e-9);
	sums.histogram[17] = 1; /* 1024 times as long */
	assert_true(cuda_line_unevenness(&sums) > 200);
	sums = (struct cuda_line_sums){0};
	assert_true(fabs(cuda_line_unevenness(&sums) - 1) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuda_line__the_longest_comes_back),
		cmocka_unit_test(cuda_line__reads_as_it_is_documented),
		cmocka_unit_test(kernel__is_the_rest_of_the_line),
		cmocka_unit_test(set_word__leaves_one_word_of_whole_characters),
		cmocka_unit_test(parse__passes_over_words_of_later_versions),
		cmocka_unit_test(parse__other_comments_are_none),
		cmocka_unit_test(sums__saturate),
		cmocka_unit_test(quantile__lies_in_its_bucket),
		cmocka_unit_test(quantile__is_not_above_the_sum_of_all_times),
		cmocka_unit_test(unevenness__is_1_of_times_that_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
