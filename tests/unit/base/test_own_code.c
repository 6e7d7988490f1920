/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/task.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static int in_bss[4096];

static __attribute__((noinline)) int function(int value)
{
	return value * 3 + in_bss[0];
}

static void own_code_offset__function_has_the_bytes_of_the_file(void **state)
{
	OWNED_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t bytes[16];
	uint64_t offset;

	(void)state;
	assert_int_equal(own_code_offset((const void *)function, &offset), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offset), sizeof(bytes));
	assert_memory_equal(bytes, (const void *)function, sizeof(bytes));
}

static void own_code_offset__address_without_file_is_enoent(void **state)
{
	int on_stack = 0;
	uint64_t offset = 7;

	(void)state;
	assert_int_equal(own_code_offset(&on_stack, &offset), -ENOENT);
	assert_int_equal(own_code_offset((const void *)getpid, &offset), -ENOENT);
	assert_int_equal(own_code_offset(in_bss + 4000, &offset), -ENOENT);
	assert_int_equal(offset, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_code_offset__function_has_the_bytes_of_the_file),
		cmocka_unit_test(own_code_offset__address_without_file_is_enoent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
