/* SPDX-License-Identifier: BSD-2-Clause */
/* The system call is a stand-in that keeps what it was asked for. */
#include "child/perf_opener.h"

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENT_FD 42

static struct {
	struct perf_event_attr attr;
	unsigned int calls;
	int cpu, error;
} asked;

long syscall(long number, ...)
{
	va_list arguments;

	assert_int_equal(number, SYS_perf_event_open);
	va_start(arguments, number);
	asked.attr = *va_arg(arguments, const struct perf_event_attr *);
	assert_int_equal(va_arg(arguments, int), -1); /* all processes */
	asked.cpu = va_arg(arguments, int);
	assert_int_equal(va_arg(arguments, int), -1); /* no group */
	assert_int_equal(va_arg(arguments, int), PERF_FLAG_FD_CLOEXEC);
	va_end(arguments);
	asked.calls++;
	errno = asked.error;
	return asked.error ? -1 : EVENT_FD;
}

static int setup(void **state)
{
	(void)state;
	asked.calls = 0;
	asked.error = 0;
	return 0;
}

static void open_kind(enum perf_event_kind kind)
{
	const struct perf_event_request request = {.kind = kind, .cpu = 3, .hz = 99};
	int fd = -1;

	assert_int_equal(perf_event_open_here(&request, &fd), 0);
	assert_int_equal(fd, EVENT_FD);
	assert_int_equal(asked.cpu, 3);
	assert_int_equal(asked.attr.size, sizeof(asked.attr));
}

/* Neither idle CPUs nor guests have threads to look at. */
static void clock__samples_each_period_of_busy_cpus(void **state)
{
	(void)state;
	open_kind(PERF_EVENT_CPU_CLOCK);
	assert_int_equal(asked.attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(asked.attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(asked.attr.freq, 0);
	assert_int_equal(asked.attr.sample_period, 1000000000 / 99);
	assert_true(asked.attr.exclude_idle && asked.attr.exclude_guest);
	assert_false(asked.attr.exclude_kernel);
}

static void cycles__have_a_target_frequency(void **state)
{
	(void)state;
	open_kind(PERF_EVENT_CYCLES);
	assert_int_equal(asked.attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(asked.attr.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_int_equal(asked.attr.freq, 1);
	assert_int_equal(asked.attr.sample_freq, 99);
	assert_true(asked.attr.exclude_guest);
}

/* Each record wakes who reads them: else a process that maps a library and ends is read too late.
 * Only mmap2 has inodes; names of threads are not told, who may change them all the time. */
static void mappings__are_records_alone_and_wake_at_the_first_byte(void **state)
{
	(void)state;
	open_kind(PERF_EVENT_MAPPINGS);
	assert_int_equal(asked.attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(asked.attr.config, PERF_COUNT_SW_DUMMY);
	assert_int_equal(asked.attr.sample_type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	assert_int_equal(asked.attr.sample_period, 0);
	assert_true(asked.attr.mmap && asked.attr.mmap2 && asked.attr.sample_id_all);
	assert_false(asked.attr.comm || asked.attr.task);
	assert_true(asked.attr.exclude_kernel);
	assert_true(asked.attr.use_clockid);
	assert_int_equal(asked.attr.clockid, CLOCK_MONOTONIC);
	assert_true(asked.attr.watermark);
	assert_int_equal(asked.attr.wakeup_watermark, 1);
}

static void open__what_cannot_be_is_not_asked_of_the_kernel(void **state)
{
	static const struct perf_event_request bad[] = {
		{.kind = PERF_EVENT_KINDS, .hz = 99},
		{.kind = PERF_EVENT_CPU_CLOCK, .hz = 0},
		{.kind = PERF_EVENT_CYCLES, .hz = 0},
		{.kind = PERF_EVENT_CPU_CLOCK, .hz = 99, .cpu = INT_MAX + 1U},
	};
	const struct perf_event_request last = {
		.kind = PERF_EVENT_MAPPINGS, .cpu = INT_MAX, .hz = 0};
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(perf_event_open_here(&bad[i], &fd), -EINVAL);
	assert_int_equal(asked.calls, 0);
	assert_int_equal(perf_event_open_here(&last, &fd), 0);
	assert_int_equal(asked.cpu, INT_MAX);
}

static void open__kernels_refusal_is_told(void **state)
{
	const struct perf_event_request request = {.kind = PERF_EVENT_CYCLES, .hz = 99};
	int fd = -1;

	(void)state;
	asked.error = ENOENT;
	assert_int_equal(perf_event_open_here(&request, &fd), -ENOENT);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(clock__samples_each_period_of_busy_cpus, setup),
		cmocka_unit_test_setup(cycles__have_a_target_frequency, setup),
		cmocka_unit_test_setup(mappings__are_records_alone_and_wake_at_the_first_byte,
				       setup),
		cmocka_unit_test_setup(open__what_cannot_be_is_not_asked_of_the_kernel, setup),
		cmocka_unit_test_setup(open__kernels_refusal_is_told, setup),
	};

	return cmocka_run_group_tests_name("child/perf_event", tests, NULL, NULL);
}
