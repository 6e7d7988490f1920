/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of files and the profiles are stand-ins. */
#include "windows/modules.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pyprofd/unwind.h>

#include "attach/file_table.h"
#include "base/intern.h"
#include "windows/profiles.h"

#define SLOT 700U

static struct file *file_at_slot;
static struct module added[8];
static size_t added_count;
static int add_err;
static struct intern *strings;
static struct modules *modules;

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	(void)table;
	return slot == SLOT ? file_at_slot : NULL;
}

int profiles_add_module(struct profiles *profiles, const struct module *module, uint32_t *ret_index)
{
	(void)profiles;
	if (add_err)
		return add_err;
	added[added_count++] = *module;
	*ret_index = (uint32_t)added_count;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	file_at_slot = NULL;
	added_count = 0;
	add_err = 0;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(modules_new(NULL, NULL, &modules), 0);
	modules_begin(modules, strings);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	modules_free(modules);
	modules_free(NULL);
	intern_free(strings);
	return 0;
}

static const char *text(uint32_t id)
{
	return intern_get(strings, id, NULL);
}

static void file__is_described_once(void **state)
{
	struct file file = {.id = SLOT,
			    .path = (char *)"/lib/libm.so.6",
			    .build_id = {0x0a, 0xff, 0x10},
			    .build_id_size = 3,
			    .max_vaddr = 0x9000,
			    .segment_count = 1,
			    .segment = {{.vaddr = 0x1000, .offset = 0x200}}};

	(void)state;
	file_at_slot = &file;
	assert_int_equal(modules_get(modules, SLOT), 1);
	assert_int_equal(modules_get(modules, SLOT), 1);
	assert_int_equal(added_count, 1);
	assert_string_equal(text(added[0].path), "/lib/libm.so.6");
	assert_string_equal(text(added[0].build_id), "0aff10");
	assert_int_equal(added[0].start, 0x1000);
	assert_int_equal(added[0].limit, 0x9000);
	assert_int_equal(added[0].offset, 0x200);
}

static void file__without_segments_has_no_range(void **state)
{
	struct file file = {.id = SLOT, .path = (char *)"/a", .max_vaddr = 0x9000};

	(void)state;
	file_at_slot = &file;
	assert_int_equal(modules_get(modules, SLOT), 1);
	assert_int_equal(added[0].limit, 0);
	assert_string_equal(text(added[0].build_id), "");
}

static void slot__of_another_file_has_another_number(void **state)
{
	struct file first = {.id = SLOT, .path = (char *)"/a"},
		    second = {.id = SLOT + 65536, .path = (char *)"/b"};

	(void)state;
	file_at_slot = &first;
	assert_int_equal(modules_get(modules, SLOT), 1);
	file_at_slot = &second;
	assert_int_equal(modules_get(modules, SLOT), 2);
	assert_string_equal(text(added[1].path), "/b");
	file_at_slot = NULL; /* unmapped meanwhile */
	assert_int_equal(modules_get(modules, SLOT), 3);
	assert_string_equal(text(added[2].path), "[unmapped file]");
}

static void slot__that_is_no_file_says_what_it_is(void **state)
{
	(void)state;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 1);
	assert_int_equal(modules_get(modules, PP_FILE_NONE), 2);
	assert_int_equal(modules_get(modules, 5), 3);
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 1);
	assert_int_equal(modules_get(modules, PP_FILE_NONE), 2);
	assert_string_equal(text(added[0].path), "[anon]");
	assert_string_equal(text(added[1].path), "[kernel.kallsyms]");
	assert_string_equal(text(added[2].path), "[unmapped file]");
}

static void gpu__has_a_number_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 1);
	assert_int_equal(modules_get_gpu(modules), 2);
	assert_int_equal(modules_get_gpu(modules), 2);
	assert_int_equal(added_count, 2);
	assert_string_equal(text(added[1].path), "[gpu]");
	modules_begin(modules, strings);
	assert_int_equal(modules_get_gpu(modules), 3);
	modules_begin(modules, strings);
	add_err = -ENOMEM;
	assert_int_equal(modules_get_gpu(modules), 0);
}

static void begin__forgets_the_numbers_of_the_last_profiles(void **state)
{
	(void)state;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 1);
	modules_begin(modules, strings);
	added_count = 4;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 5);
}

static void error__gives_no_number_and_is_tried_again(void **state)
{
	(void)state;
	add_err = -ENOMEM;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 0);
	add_err = 0;
	assert_int_equal(modules_get(modules, PP_FILE_ANONYMOUS), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file__is_described_once),
		TEST(file__without_segments_has_no_range),
		TEST(slot__of_another_file_has_another_number),
		TEST(slot__that_is_no_file_says_what_it_is),
		TEST(gpu__has_a_number_of_its_own),
		TEST(begin__forgets_the_numbers_of_the_last_profiles),
		TEST(error__gives_no_number_and_is_tried_again),
	};

	return cmocka_run_group_tests_name("agent/modules", tests, NULL, NULL);
}
