/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands as assemblers write them, on both machines. */
#include "elf/usdt_notes.h"

#include <cmocka.h>
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

#define NONE 0xffU

struct expected {
	const char *text;
	struct pp_probe_arg arg;
};

static void check(uint16_t machine, const struct expected *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct pp_probe_arg arg[PP_PROBE_ARGS];

		assert_int_equal(usdt_args_parse(machine, cases[i].text, arg), 1);
		if (memcmp(&arg[0], &cases[i].arg, sizeof(arg[0])))
			fail_msg("'%s': kind %u, %u bytes, signed %u, base %u, index %u, scale "
				 "%u, value %lld",
				 cases[i].text, arg[0].kind, arg[0].bytes, arg[0].is_signed,
				 arg[0].base, arg[0].index, arg[0].scale, arg[0].value);
	}
}

#define CONSTANT(value_, bytes_, signed_)                                                          \
	{.kind = PP_ARG_CONSTANT,                                                                  \
	 .value = value_,                                                                          \
	 .bytes = bytes_,                                                                          \
	 .is_signed = signed_,                                                                     \
	 .index = NONE}
#define REGISTER(base_, bytes_, signed_)                                                           \
	{.kind = PP_ARG_REGISTER,                                                                  \
	 .base = base_,                                                                            \
	 .bytes = bytes_,                                                                          \
	 .is_signed = signed_,                                                                     \
	 .index = NONE}
#define MEMORY(base_, index_, scale_, value_, bytes_, signed_)                                     \
	{.kind = PP_ARG_MEMORY,                                                                    \
	 .base = base_,                                                                            \
	 .index = index_,                                                                          \
	 .scale = scale_,                                                                          \
	 .value = value_,                                                                          \
	 .bytes = bytes_,                                                                          \
	 .is_signed = signed_}

static void args__of_x86_64(void **state)
{
	static const struct expected cases[] = {
		{"8@%rdi", REGISTER(5, 8, 0)},
		{"-8@%rdx", REGISTER(1, 8, 1)},
		{"-4@%edi", REGISTER(5, 4, 1)},
		{"2@%si", REGISTER(4, 2, 0)},
		{"1@%al", REGISTER(0, 1, 0)},
		{"1@%spl", REGISTER(7, 1, 0)},
		{"4@%r8d", REGISTER(8, 4, 0)},
		{"-2@%r15w", REGISTER(15, 2, 1)},
		{"1@%r10b", REGISTER(10, 1, 0)},
		{"-4@$5", CONSTANT(5, 4, 1)},
		{"-4@$-5", CONSTANT(-5, 4, 1)},
		{"8@$0x10", CONSTANT(16, 8, 0)},
		{"8@$18446744073709551615", CONSTANT(-1, 8, 0)},
		{"4@-20(%rbp)", MEMORY(6, NONE, 0, -20, 4, 0)},
		{"8@(%rsp)", MEMORY(7, NONE, 0, 0, 8, 0)},
		{"8@(%rax,%rbx,8)", MEMORY(0, 3, 3, 0, 8, 0)},
		{"8@16(%rax,%r9,1)", MEMORY(0, 9, 0, 16, 8, 0)},
		{"8@(%rax,%rbx)", MEMORY(0, 3, 0, 0, 8, 0)},
	};

	(void)state;
	check(EM_X86_64, cases, ARRAY_SIZE(cases));
}

static void args__of_aarch64(void **state)
{
	static const struct expected cases[] = {
		{"8@x0", REGISTER(0, 8, 0)},
		{"-4@w30", REGISTER(30, 4, 1)},
		{"8@sp", REGISTER(31, 8, 0)},
		{"-4@5", CONSTANT(5, 4, 1)},
		{"-8@-7", CONSTANT(-7, 8, 1)},
		{"4@wzr", CONSTANT(0, 4, 0)},
		{"-4@[sp, 16]", MEMORY(31, NONE, 0, 16, 4, 1)},
		{"-4@[x29, #-8]", MEMORY(29, NONE, 0, -8, 4, 1)},
		{"8@[x1]", MEMORY(1, NONE, 0, 0, 8, 0)},
		{"8@[x1, x2]", MEMORY(1, 2, 0, 0, 8, 0)},
		{"8@[x1, x2, lsl 3]", MEMORY(1, 2, 3, 0, 8, 0)},
	};

	(void)state;
	check(EM_AARCH64, cases, ARRAY_SIZE(cases));
}

static void assert_none(uint16_t machine, const char *text)
{
	const struct expected none = {text, {.index = NONE}};

	check(machine, &none, 1);
}

static void args__that_are_not_known_are_none(void **state)
{
	static const char *const x86[] = {
		"8@sym(%rip)",
		"8@sym",
		"8@%ah",
		"8@%xmm0",
		"8f@%rax",
		"8@%fs:16",
		"3@%rax",
		"16@%rax",
		"8@",
		"@%rax",
		"-@%rax",
		"%rax",
		"8@$",
		"8@$sym",
		"8@$99999999999999999999",
		"8@(%eax)",
		"8@(%rax",
		"8@(%rax)x",
		"8@4+8(%rsp)",
		"8@(,%rax,8)",
		"8@(%rax,%rsp,8)",
		"8@(%rax,%rbx,3)",
		"8@(%rax,%rbx,16)",
		"8@(%rax,%rbx,)",
		"8@%rax%rbx",
		"8@%r16",
		"8@-%rax",
		"8@0x(%rax)",
		"8@()",
		"8@a_symbol_so_long_that_no_operand_which_we_can_read_could_have_it(%rip)"};
	static const char *const arm[] = {"8@x31",
					  "8@x-1",
					  "8@d0",
					  "8@[w0]",
					  "8@[x0",
					  "8@[x0]!",
					  "8@[x0, w1, sxtw 3]",
					  "8@[x0, x1, lsl 4]",
					  "8@[x0, sp]",
					  "8@[x0, 8, lsl 1]",
					  "8@[x0, x1, lsl -1]",
					  "8@%rax",
					  "8@[]",
					  "8@x",
					  "8@#"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(x86); i++)
		assert_none(EM_X86_64, x86[i]);
	for (size_t i = 0; i < ARRAY_SIZE(arm); i++)
		assert_none(EM_AARCH64, arm[i]);
}

static void args__are_counted_up_to_their_room(void **state)
{
	struct pp_probe_arg arg[PP_PROBE_ARGS];

	(void)state;
	assert_int_equal(usdt_args_parse(EM_X86_64, "", arg), 0);
	assert_int_equal(arg[0].kind, PP_ARG_NONE);
	assert_int_equal(usdt_args_parse(EM_X86_64, "  8@%rax   -4@%ebx ", arg), 2);
	assert_int_equal(arg[1].base, 3);
	assert_int_equal(arg[2].kind, PP_ARG_NONE);
	assert_int_equal(usdt_args_parse(EM_X86_64, "1@$1 1@$2 1@$3 1@$4 1@$5", arg), 4);
	assert_int_equal(arg[3].value, 4);
	/* A space inside of brackets belongs to them. */
	assert_int_equal(usdt_args_parse(EM_AARCH64, "4@[sp, 16] 8@x3", arg), 2);
	assert_int_equal(arg[1].base, 3);
	assert_int_equal(usdt_args_parse(EM_AARCH64, "4@[sp, 16 8@x3", arg), 1);
	assert_int_equal(arg[0].kind, PP_ARG_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args__of_x86_64),
		cmocka_unit_test(args__of_aarch64),
		cmocka_unit_test(args__that_are_not_known_are_none),
		cmocka_unit_test(args__are_counted_up_to_their_room),
	};

	return cmocka_run_group_tests_name("elf/usdt_args", tests, NULL, NULL);
}
