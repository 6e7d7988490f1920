/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_figures.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEGABYTES 32U

static int parse(const char *text, struct resident_memory *ret_memory)
{
	return resident_memory_parse(text, strlen(text), ret_memory);
}

static void parse__takes_the_four_figures(void **state)
{
	struct resident_memory memory;

	(void)state;
	assert_int_equal(parse("Name:\tpython3\nUmask:\t0022\nVmPeak:\t   99 kB\nVmHWM:\t    9 kB\n"
			       "VmRSS:\t    6 kB\nRssAnon:\t       1 kB\nRssFile:\t       2 kB\n"
			       "RssShmem:\t       3 kB\nThreads:\t1\n",
			       &memory),
			 0);
	assert_int_equal(memory.anonymous_bytes, 1024);
	assert_int_equal(memory.file_bytes, 2048);
	assert_int_equal(memory.shared_bytes, 3072);
	assert_int_equal(memory.peak_bytes, 9216);
}

/* A name may hold anything but a line break, which the kernel escapes. */
static void parse__name_is_no_figure(void **state)
{
	struct resident_memory memory;

	(void)state;
	assert_int_equal(parse("Name:\tRssAnon: 7 kB\nVmHWM:\t9 kB\nRssAnon:\t1 kB\n"
			       "RssFile:\t2 kB\nRssShmem:\t3 kB",
			       &memory),
			 0);
	assert_int_equal(memory.anonymous_bytes, 1024);
}

static void parse__without_memory_is_no_data(void **state)
{
	struct resident_memory memory = {.peak_bytes = 5};

	(void)state;
	assert_int_equal(parse("Name:\tkthreadd\nState:\tS (sleeping)\n", &memory), -ENODATA);
	assert_int_equal(parse("", &memory), -ENODATA);
	assert_int_equal(memory.peak_bytes, 5);
}

static void parse__what_is_no_number_of_kb_is_refused(void **state)
{
	static const char *const broken[] = {
		"VmHWM:\t9 kB\n", /* the others are missing */
		"VmHWM:\t9 kB\nRssAnon:\t1\nRssFile:\t2 kB\nRssShmem:\t3 kB\n",
		"VmHWM:\t9 kB\nRssAnon:\t1 MB\nRssFile:\t2 kB\nRssShmem:\t3 kB\n",
		"VmHWM:\t9 kB\nRssAnon:\t kB\nRssFile:\t2 kB\nRssShmem:\t3 kB\n",
		"VmHWM:\t9 kB\nRssAnon:\t-1 kB\nRssFile:\t2 kB\nRssShmem:\t3 kB\n",
		"VmHWM:\t9 kB\nRssAnon:\t1 kBx\nRssFile:\t2 kB\nRssShmem:\t3 kB\n",
		"VmHWM:\t9 kB\nRssAnon:\t18446744073709551616 kB\nRssFile:\t2 kB\nRssShmem:\t3 kB",
		"VmHWM:\t9 kB\nRssAnon:\t18446744073709551615 kB\nRssFile:\t2 kB\nRssShmem:\t3 kB",
	};
	struct resident_memory memory;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		assert_int_equal(parse(broken[i], &memory), -EBADMSG);
}

static void read__sees_memory_that_was_touched(void **state)
{
	const size_t size = MEGABYTES << 20;
	struct resident_memory before, after;
	char *bytes;

	(void)state;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(resident_memory_read((uint32_t)getpid(), &before), 0);
	memset(bytes, 1, size);
	assert_int_equal(resident_memory_read((uint32_t)getpid(), &after), 0);
	munmap(bytes, size);
	assert_true(after.anonymous_bytes >= before.anonymous_bytes + size - (1U << 20));
	assert_true(after.peak_bytes >= size);
	assert_int_equal(resident_memory_read(0x7fffffff, &after), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__takes_the_four_figures),
		cmocka_unit_test(parse__name_is_no_figure),
		cmocka_unit_test(parse__without_memory_is_no_data),
		cmocka_unit_test(parse__what_is_no_number_of_kb_is_refused),
		cmocka_unit_test(read__sees_memory_that_was_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
