/* SPDX-License-Identifier: BSD-2-Clause */
/* Files are slots: 1 the driver, 2 the runtime, others the program's. */
#include "gpu/launch_site.h"

#include <cmocka.h>
#include <string.h>

#define DRIVER 1U
#define RUNTIME 2U

packed_frame packed_native(enum pp_frame_kind kind, uint32_t file, uint64_t address)
{
	return (uint64_t)kind << 61 | (uint64_t)file << 40 | address;
}

static union {
	struct dict_stack stack;
	uint8_t room[sizeof(struct dict_stack) + 64 * sizeof(packed_frame)];
} made;

static enum launch_file file_of(void *context, uint32_t slot)
{
	assert_ptr_equal(context, &made);
	return slot == DRIVER	 ? LAUNCH_FILE_DRIVER
	       : slot == RUNTIME ? LAUNCH_FILE_RUNTIME
				 : LAUNCH_FILE_OTHER;
}

static struct launch_site site;

static void begin(void)
{
	memset(&made, 0, sizeof(made));
	/* Python frames come first, and are none of a launch's. */
	made.stack.python_stored = 2;
	made.stack.frame[0] = packed_native(PP_FRAME_PYTHON, DRIVER, 1);
	made.stack.frame[1] = packed_native(PP_FRAME_PYTHON, DRIVER, 2);
}

static void add(enum pp_frame_kind kind, uint32_t file, uint64_t vaddr)
{
	made.stack.frame[2 + made.stack.native_stored++] = packed_native(kind, file, vaddr);
}
#define ADD(file, vaddr) add(PP_FRAME_NATIVE, file, vaddr)

static bool find(void)
{
	memset(&site, 0xee, sizeof(site));
	return launch_site_find(&made.stack, file_of, &made, &site);
}

static void site__is_behind_the_driver_and_the_runtime(void **state)
{
	(void)state;
	begin();
	ADD(DRIVER, 0x10);
	ADD(DRIVER, 0x20);
	ADD(RUNTIME, 0x30);
	ADD(RUNTIME, 0x40);
	ADD(7, 0x50);
	ADD(7, 0x60);
	ADD(8, 0x70);
	ADD(7, 0x80);
	assert_true(find());
	assert_int_equal(site.file, 7);
	assert_int_equal(site.count, 2);
	assert_int_equal(site.vaddr[0], 0x50);
	assert_int_equal(site.vaddr[1], 0x60);
}

static void site__may_have_the_runtime_in_itself(void **state)
{
	(void)state;
	begin();
	ADD(DRIVER, 0x10);
	for (uint64_t i = 0; i < 20; i++)
		ADD(7, 0x50 + i);
	assert_true(find());
	assert_int_equal(site.count, LAUNCH_SITE_FRAMES);
	assert_int_equal(site.vaddr[LAUNCH_SITE_FRAMES - 1], 0x50 + LAUNCH_SITE_FRAMES - 1);
}

static void site__of_the_runtime_alone_is_behind_it(void **state)
{
	(void)state;
	begin();
	ADD(RUNTIME, 0x30);
	ADD(7, 0x50);
	assert_true(find());
	assert_int_equal(site.file, 7);
}

/* Another library between them, as an injected one, called the runtime itself. */
static void site__ends_at_another_file_or_what_has_none(void **state)
{
	(void)state;
	begin();
	ADD(DRIVER, 0x10);
	ADD(9, 0x20);
	ADD(RUNTIME, 0x30);
	ADD(7, 0x50);
	assert_true(find());
	assert_int_equal(site.file, 9);
	assert_int_equal(site.count, 1);
	begin();
	ADD(DRIVER, 0x10);
	add(PP_FRAME_SEGMENT, 0, 3);
	ADD(7, 0x50);
	assert_false(find());
	begin();
	ADD(DRIVER, 0x10);
	ADD(7, 0x50);
	add(PP_FRAME_GAP, 0, 0);
	ADD(7, 0x60);
	assert_true(find());
	assert_int_equal(site.count, 1);
	begin();
	ADD(DRIVER, 0x10);
	add(PP_FRAME_ANONYMOUS, 7, 0x50);
	assert_false(find());
}

static void site__is_none_where_the_stack_does_not_begin_in_cuda(void **state)
{
	(void)state;
	begin();
	assert_false(find());
	ADD(7, 0x50);
	ADD(DRIVER, 0x60);
	assert_false(find());
	begin();
	ADD(DRIVER, 0x60);
	ADD(RUNTIME, 0x60);
	assert_false(find());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(site__is_behind_the_driver_and_the_runtime),
		cmocka_unit_test(site__may_have_the_runtime_in_itself),
		cmocka_unit_test(site__of_the_runtime_alone_is_behind_it),
		cmocka_unit_test(site__ends_at_another_file_or_what_has_none),
		cmocka_unit_test(site__is_none_where_the_stack_does_not_begin_in_cuda),
	};

	return cmocka_run_group_tests_name("agent/launch_site", tests, NULL, NULL);
}
