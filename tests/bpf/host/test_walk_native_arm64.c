/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk_native.bpf.h as it is for aarch64, compiled for any machine. */
#ifndef __TARGET_ARCH_arm64
#define __TARGET_ARCH_arm64
#endif
#include "host.h"

#define SP (STACK + 0x1000) /* of the leaf */

static void walk_from(uint64_t pc)
{
	host->walk.pc = pc;
	host->walk.sp = SP;
	while (!native_step())
		continue;
}

static struct pp_rule rule_lr(int32_t cfa_offset)
{
	return (struct pp_rule){
		.kind = PP_RULE_CFA_SP, .cfa_offset = cfa_offset, .ra_kind = PP_RA_REGISTER};
}

/* stp x29, x30, [sp, #-bytes]! */
static struct pp_rule rule_pair(int32_t bytes)
{
	return (struct pp_rule){.kind = PP_RULE_CFA_SP,
				.cfa_offset = bytes,
				.fp_kind = PP_FP_AT_CFA,
				.fp_offset = -bytes,
				.ra_offset = (int16_t)(8 - bytes)};
}

static void walk_arm64__leaf_without_a_frame_returns_by_lr(void **state)
{
	(void)state;
	*library_rule(1) = rule_lr(0);
	*library_rule(2) = rule_pair(32);
	host->walk.registers[PP_REG_RA] = library_pc(2);
	put_word(SP, 0x77);
	put_word(SP + 8, library_pc(3));
	walk_from(library_pc(1));
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 3);
	assert_library(0, 1, true);
	assert_library(1, 2, false);
	assert_library(2, 3, false);
	assert_int_equal(host->walk.fp, 0x77);
	assert_int_equal(host->walk.sp, SP + 32);
}

static void walk_arm64__lr_of_a_caller_is_a_bad_rule(void **state)
{
	(void)state;
	*library_rule(1) = rule_pair(16);
	*library_rule(2) = rule_lr(16);
	put_word(SP + 8, library_pc(2));
	walk_from(library_pc(1));
	assert_int_equal(host->walk.stop, PP_STOP_BAD_RULE);
	assert_int_equal(host->walk.native_count, 2);
}

/* Pointer authentication puts a code into the bits that no user address has. */
static void walk_arm64__signed_return_address_is_stripped(void **state)
{
	(void)state;
	*library_rule(1) = rule_pair(16);
	put_word(SP + 8, library_pc(2) | 0x5a11000000000000ULL);
	walk_from(library_pc(1));
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_library(1, 2, false);
}

/* arch/arm64/kernel/signal.c: siginfo, then the ucontext; x0..x30, sp and pc at 312. */
static void walk_arm64__signal_frame_restores_lr(void **state)
{
	const uint64_t at = SP + 312;

	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_SIGNAL};
	*library_rule(2) = rule_lr(0);
	put_word(at + 8 * 29, 0xb9);
	put_word(at + 8 * 30, library_pc(3));
	put_word(at + 8 * 31, SP + 0x2000);
	put_word(at + 8 * 32, library_pc(2));
	walk_from(library_pc(1));
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 3);
	assert_library(1, 2, true);
	assert_library(2, 3, false);
	assert_int_equal(host->walk.fp, 0xb9);
	assert_int_equal(host->walk.sp, SP + 0x2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(walk_arm64__leaf_without_a_frame_returns_by_lr),
		host_test(walk_arm64__lr_of_a_caller_is_a_bad_rule),
		host_test(walk_arm64__signed_return_address_is_stripped),
		host_test(walk_arm64__signal_frame_restores_lr),
	};

	return cmocka_run_group_tests_name("bpf/walk_native (aarch64)", tests, NULL, NULL);
}
