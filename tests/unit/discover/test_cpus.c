/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/cpus.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int parse(const char *text, struct cpu_list *ret_list)
{
	return cpu_list_parse(text, strlen(text), ret_list);
}

static void cpu_list_parse__ranges_and_single_cpus(void **state)
{
	const uint32_t expected[] = {0, 1, 2, 3, 8, 10, 11};
	struct cpu_list list;

	(void)state;
	assert_int_equal(parse("0-3,8,10-11\n", &list), 0);
	assert_int_equal(list.count, 7);
	assert_memory_equal(list.cpu, expected, sizeof(expected));
	cpu_list_release(&list);
}

static void cpu_list_parse__one_cpu_and_none(void **state)
{
	struct cpu_list list;

	(void)state;
	assert_int_equal(parse("0\n", &list), 0);
	assert_int_equal(list.count, 1);
	cpu_list_release(&list);
	assert_int_equal(parse("\n", &list), 0);
	assert_int_equal(list.count, 0);
	cpu_list_release(&list);
}

static void cpu_list_parse__refuses_what_the_kernel_never_writes(void **state)
{
	const char *const bad[] = {"0-",  "3-1", ",1",	   "1,",   "1,1",	 "2,1",
				   "0-x", "a",	 "0-8192", "8192", "4294967296", "1 2"};
	struct cpu_list list = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &list), -EBADMSG);
	assert_null(list.cpu);
}

static void cpus__agree_with_sysconf(void **state)
{
	struct cpu_list list;
	uint32_t possible;

	(void)state;
	assert_int_equal(cpus_online(&list), 0);
	assert_int_equal(list.count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(cpus_possible_count(&possible), 0);
	assert_true(possible >= list.count);
	cpu_list_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_list_parse__ranges_and_single_cpus),
		cmocka_unit_test(cpu_list_parse__one_cpu_and_none),
		cmocka_unit_test(cpu_list_parse__refuses_what_the_kernel_never_writes),
		cmocka_unit_test(cpus__agree_with_sysconf),
	};

	return cmocka_run_group_tests_name("discover/cpus", tests, NULL, NULL);
}
