/* SPDX-License-Identifier: BSD-2-Clause */
/* The file's bytes and rules are stand-ins. */
#include "files/stack_starts.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static struct elf_image image;
static struct pp_rule rule;
static int rule_error;
static uint64_t code[8]; /* what elf_image_at() finds before an address */
static bool has_code;
static uint64_t code_vaddr;
static uint8_t after[8]; /* what it finds behind 0x9001 */

int cfi_rule_at(struct cfi *cfi, uint64_t vaddr, struct pp_rule *ret_rule)
{
	(void)cfi, (void)vaddr;
	*ret_rule = rule;
	return rule_error;
}

const uint8_t *elf_image_at(const struct elf_image *of, uint64_t vaddr, size_t size)
{
	assert_ptr_equal(of, &image);
	if (size != sizeof(code))
		return vaddr >= 0x9002 && vaddr + size <= 0x9002 + sizeof(after)
			       ? after + (vaddr - 0x9002)
			       : NULL;
	code_vaddr = vaddr;
	return has_code ? (const uint8_t *)code : NULL;
}

static int setup(void **state)
{
	(void)state;
	image = (struct elf_image){.machine = EM_X86_64, .entry = 0x4001};
	rule = (struct pp_rule){.kind = PP_RULE_STOP};
	rule_error = 0;
	has_code = false;
	memset(code, 0, sizeof(code));
	memset(after, 0, sizeof(after));
	return 0;
}

static const char *name_of(uint64_t vaddr)
{
	return thread_start_name(&image, NULL, vaddr);
}

static void thread_start_name__start_function_is_told_by_the_entry_point(void **state)
{
	(void)state;
	assert_string_equal(name_of(0x4001), "_start");
	assert_string_equal(name_of(0x4001 + 63), "_start");
	assert_null(name_of(0x4001 + 64));
	assert_null(name_of(0x4000)); /* before it */
	rule.kind = PP_RULE_STOP + 1;
	assert_null(name_of(0x4001));
	rule.kind = PP_RULE_STOP;
	rule_error = -ENOMEM;
	assert_null(name_of(0x4001));
	rule_error = 0;
	image.machine = EM_AARCH64;
	assert_null(name_of(0x4001));
}

static void thread_start_name__thread_start_is_told_by_its_system_call(void **state)
{
	static const uint8_t clone3[] = {0xb8, 0xb3, 0x01, 0, 0}, clone[] = {0xb8, 0x38, 0, 0, 0};
	uint8_t *bytes = (uint8_t *)code;

	(void)state;
	assert_null(name_of(0x9001));
	assert_int_equal(code_vaddr, 0x9001 - 64);
	has_code = true;
	assert_null(name_of(0x9001));
	memcpy(bytes + 64 - sizeof(clone), clone, sizeof(clone));
	assert_string_equal(name_of(0x9001), "clone");
	memcpy(bytes, clone3, sizeof(clone3)); /* glibc tries it first */
	assert_string_equal(name_of(0x9001), "clone3");
	bytes[4] = 1;
	assert_string_equal(name_of(0x9001), "clone");
}

static void thread_start_name__end_of_a_coroutine_is_told_by_its_code(void **state)
{
	static const uint8_t start_context[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xdc};
	static const uint8_t fcontext[] = {0x48, 0x31, 0xff, 0xe8};

	(void)state;
	memcpy(after, start_context, sizeof(start_context));
	assert_string_equal(name_of(0x9001), "__start_context");
	memcpy(after, start_context + 4, 3);
	assert_string_equal(name_of(0x9001), "__start_context");
	memcpy(after, fcontext, sizeof(fcontext));
	assert_string_equal(name_of(0x9001), "make_fcontext");
	after[2]++;
	assert_null(name_of(0x9001));
}

#define test(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(thread_start_name__start_function_is_told_by_the_entry_point),
		test(thread_start_name__thread_start_is_told_by_its_system_call),
		test(thread_start_name__end_of_a_coroutine_is_told_by_its_code),
	};

	return cmocka_run_group_tests_name("files/thread_start", tests, NULL, NULL);
}
