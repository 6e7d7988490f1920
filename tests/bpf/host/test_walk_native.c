/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk_native.bpf.h on synthetic stacks: x86-64's rules. */
#include "host.h"

#define SP (STACK + 0x1000) /* of the leaf */

/* From the leaf at pc on. */
static void walk_from(uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct pp_walk *w = &host->walk;

	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	for (uint32_t i = 0; i < PP_MAX_STEPS; i++)
		if (native_step())
			return;
	w->stop = PP_STOP_MAX_STEPS;
}

#define assert_walked(frames, why)                                                                 \
	do {                                                                                       \
		assert_int_equal(host->walk.stop, why);                                            \
		assert_int_equal(host->walk.native_count, frames);                                 \
	} while (0)

/* ---- leaving a frame ---- */

static void walk_native__sp_rule_finds_the_caller(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(32);
	put_word(SP + 24, library_pc(2));
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_library(0, 1, true);
	assert_library(1, 2, false);
	assert_int_equal(host->walk.sp, SP + 32);
}

static void walk_native__fp_rule_restores_the_frame_pointer(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_CFA_FP,
					    .cfa_offset = 16,
					    .fp_kind = PP_FP_AT_CFA,
					    .fp_offset = -16,
					    .ra_offset = -8};
	put_word(SP + 0x40, SP + 0x80);
	put_word(SP + 0x48, library_pc(1));
	put_word(SP + 0x80, 0);
	put_word(SP + 0x88, library_pc(2));
	walk_from(library_pc(1), SP, SP + 0x40);
	assert_walked(3, PP_STOP_ROOT);
	assert_library(2, 2, false);
	assert_int_equal(host->walk.sp, SP + 0x90);
	assert_int_equal(host->walk.fp, 0);
}

static void walk_native__saved_fp_apart_from_the_return_address_is_read(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_CFA_SP,
					    .cfa_offset = 48,
					    .fp_kind = PP_FP_AT_CFA,
					    .fp_offset = -40,
					    .ra_offset = -8};
	put_word(SP + 8, 0x1234);
	put_word(SP + 40, library_pc(2));
	walk_from(library_pc(1), SP, 0x99);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.fp, 0x1234);
}

/* GCC's realigned frames: the old frame pointer is found through the current one. */
static void walk_native__deref_rule_and_fp_at_fp(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_CFA_DEREF,
					    .cfa_register = PP_REG_FP,
					    .cfa_offset = -8,
					    .cfa_add = 16,
					    .fp_kind = PP_FP_AT_FP,
					    .fp_offset = 0,
					    .ra_offset = -8};
	put_word(SP + 0x40 - 8, SP + 0x100);
	put_word(SP + 0x40, 0x5678);
	put_word(SP + 0x108, library_pc(2));
	walk_from(library_pc(1), SP, SP + 0x40);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.sp, SP + 0x110);
	assert_int_equal(host->walk.fp, 0x5678);
}

static void walk_native__register_rule_works_at_the_leaf(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){
		.kind = PP_RULE_CFA_REGISTER, .cfa_register = 10, .cfa_offset = 0, .ra_offset = -8};
	host->walk.registers[10] = SP + 0x80;
	put_word(SP + 0x78, library_pc(2));
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.sp, SP + 0x80);
}

static void walk_native__return_address_may_be_in_a_register_at_the_leaf(void **state)
{
	const struct pp_rule rdi = {
		.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER, .ra_offset = 5};

	(void)state;
	*library_rule(1) = rdi;
	host->walk.registers[5] = library_pc(2);
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.sp, SP);
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = rdi;
	put_word(SP + 8, library_pc(2));
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_BAD_RULE);
}

static void walk_native__register_rule_in_a_caller_is_a_bad_rule(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = (struct pp_rule){
		.kind = PP_RULE_CFA_REGISTER, .cfa_register = 10, .cfa_offset = 0, .ra_offset = -8};
	put_word(SP + 8, library_pc(2));
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_BAD_RULE);
	assert_library(1, 2, false);
}

/* A lazy PLT entry pushes its index at byte 11. */
static void walk_native__plt_rule_depends_on_the_address(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_PLT, .cfa_offset = 11, .ra_offset = -8};
	put_word(SP, library_pc(2));
	put_word(SP + 8, library_pc(3));
	walk_from(LIBRARY + FUNCTION_BYTES + 10, SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_library(1, 2, false);
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_PLT, .cfa_offset = 11, .ra_offset = -8};
	put_word(SP, library_pc(2));
	put_word(SP + 8, library_pc(3));
	walk_from(LIBRARY + FUNCTION_BYTES + 11, SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_library(1, 3, false);
}

/* arch/x86/include/uapi/asm/sigcontext.h: r8..r15 di si bp bx dx ax cx sp ip, 40 bytes into the
 * ucontext. */
static void walk_native__signal_frame_restores_all_registers(void **state)
{
	const uint64_t at = SP + 40, interrupted = SP + 0x800;
	const __u64 *r = host->walk.registers;

	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_SIGNAL};
	/* A register rule at the interrupted frame: legal again, as all registers are known. */
	*library_rule(2) = (struct pp_rule){
		.kind = PP_RULE_CFA_REGISTER, .cfa_register = 12, .cfa_offset = 8, .ra_offset = -8};
	for (uint64_t i = 0; i < 15; i++)
		put_word(at + 8 * i, 0x1000 + i);
	put_word(at + 8 * 4, interrupted + 0x20); /* r12 */
	put_word(at + 8 * 10, 0xb9);		  /* bp */
	put_word(at + 8 * 15, interrupted);
	put_word(at + 8 * 16, library_pc(2));
	put_word(interrupted + 0x20, library_pc(3));
	host->walk.user_key = 0x77; /* lies behind the registers */
	walk_from(library_pc(1), SP, 0);
	assert_walked(3, PP_STOP_ROOT);
	assert_int_equal(host->walk.user_key, 0x77);
	/* Not a call: the interrupted address is exact. */
	assert_library(1, 2, true);
	assert_library(2, 3, false);
	assert_int_equal(r[8], 0x1000);
	assert_int_equal(r[15], 0x1007);
	assert_int_equal(r[5], 0x1008); /* di */
	assert_int_equal(r[4], 0x1009);
	assert_int_equal(r[6], 0xb9);
	assert_int_equal(r[3], 0x100b);
	assert_int_equal(r[1], 0x100c);
	assert_int_equal(r[0], 0x100d);
	assert_int_equal(r[2], 0x100e);
	assert_int_equal(r[7], interrupted);
	assert_int_equal(host->walk.fp, 0xb9);
}

/* On an alternative stack the interrupted one may lie below. */
static void walk_native__signal_frame_may_move_down(void **state)
{
	const uint64_t at = STACK + 0x20000 + 40;

	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_SIGNAL};
	put_word(at + 8 * 15, SP);
	put_word(at + 8 * 16, library_pc(2));
	walk_from(library_pc(1), STACK + 0x20000, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.sp, SP);
}

static void walk_native__no_info_takes_a_checked_frame_pointer(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	put_word(SP + 0x20, 0x77);
	put_word(SP + 0x28, library_pc(2));
	walk_from(library_pc(1), SP, SP + 0x20);
	assert_walked(2, PP_STOP_ROOT);
	assert_int_equal(host->walk.fp, 0x77);
	assert_int_equal(host->walk.sp, SP + 0x30);
}

static void walk_native__frame_pointer_of_0_ends_a_chain_of_them(void **state)
{
	(void)state;
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	*library_rule(2) = *library_rule(1);
	put_word(SP + 0x20, 0);
	put_word(SP + 0x28, library_pc(2));
	walk_from(library_pc(1), SP, SP + 0x20);
	assert_walked(2, PP_STOP_ROOT);
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_NO_INFO);
}

static void no_info_stops(uint64_t fp)
{
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	put_word(SP + 0x20, 0x77);
	put_word(SP + 0x28, 0x123456); /* no code there */
	put_word(STACK + 0x8, library_pc(2));
	put_word(SP + 0x2c, library_pc(2));
	walk_from(library_pc(1), SP, fp);
	assert_walked(1, PP_STOP_NO_INFO);
	assert_library(0, 1, true);
}

static void walk_native__frame_pointer_that_is_none_is_not_followed(void **state)
{
	(void)state;
	no_info_stops(SP + 0x20);		 /* its return address is no code */
	no_info_stops(STACK);			 /* below the stack pointer */
	no_info_stops(SP + 0x24);		 /* not aligned */
	no_info_stops(SP + MAX_FRAME_BYTES + 8); /* too far */
	no_info_stops(STACK + STACK_BYTES);	 /* not there */
}

/* Cases are those of tests/unit/finish/test_stack_finish_rules.c; the twin's test compares. */
static void walk_native__unsure_leaf_is_followed_by_a_gap(void **state)
{
	static const uint8_t code[] = {0xe8, 0, 0, 0, 0x70, 0x90}; /* of something far away */

	(void)state;
	put_bytes(ANONYMOUS + 16, code, sizeof(code));
	put_word(SP, ANONYMOUS + 21);
	put_word(SP + 0x20, 0x77);
	put_word(SP + 0x28, library_pc(2));
	walk_from(ANONYMOUS + 64, SP, SP + 0x20);
	assert_walked(3, PP_STOP_ROOT); /* what walk_user() makes of it: test_sample_incomplete.c */
	assert_int_equal(host->walk.is_unsure, 1);
	assert_int_equal(native_frame(1)->kind, PP_FRAME_GAP);
	/* The call goes to the leaf: that has no frame yet. */
	host_teardown(NULL);
	host_setup(NULL);
	put_bytes(ANONYMOUS + 16, "\xe8\x20\0\0", 5);
	put_word(SP, ANONYMOUS + 21);
	walk_from(ANONYMOUS + 64, SP, 0);
	assert_int_equal(host->walk.native_count, 2);
	assert_int_equal(native_frame(1)->where, ANONYMOUS + 20);
}

/* As stack_finish__code_without_information_at_the_stacks_end_is_the_root. */
static void no_info_at(uint64_t first_word, uint64_t thread_pointer, bool is_leaf,
		       enum pp_stop stop)
{
	struct mm_struct mm = {.start_stack = first_word};

	host_teardown(NULL);
	host_setup(NULL);
	host->task.mm = &mm;
	host->walk.thread_pointer = thread_pointer;
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	put_word(SP + 8, library_pc(2));
	walk_from(library_pc(is_leaf ? 2 : 1), SP, 0);
	assert_walked(is_leaf ? 1 : 2, stop);
}

static void walk_native__code_without_information_at_the_stacks_end_is_the_root(void **state)
{
	(void)state;
	no_info_at(SP + 16, 0, false, PP_STOP_ROOT);
	no_info_at(SP + 16 + 256, 0, false, PP_STOP_ROOT);
	no_info_at(SP + 16 + 257, 0, false, PP_STOP_NO_INFO);
	no_info_at(SP + 15, 0, false, PP_STOP_NO_INFO);
	no_info_at(0, SP + 16 + 1024, false, PP_STOP_ROOT);
	no_info_at(0, SP + 16 + 1025, false, PP_STOP_NO_INFO);
	no_info_at(SP + 32, 0, true, PP_STOP_ROOT);
	no_info_at(SP + 40, SP + 40, true, PP_STOP_NO_INFO);
}

static void walk_native__root_by_undefined_return_address_and_by_zero(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	library_rule(1)->ra_kind = PP_RA_UNDEFINED;
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_ROOT);
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, 0);
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_ROOT);
}

/* ---- what ends a walk ---- */

static void walk_native__fault_on_return_address_is_read_fault(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = rule_sp(16);
	put_word(SP + 8, library_pc(2));
	put_fault(SP + 24, 8);
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_READ_FAULT);
	assert_library(1, 2, false);
}

static void walk_native__fault_beside_what_is_needed_is_none(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp_fp(32);
	*library_rule(2) = rule_sp(16);
	put_word(SP + 16, 0x31);
	put_word(SP + 24, library_pc(2));
	put_word(SP + 40, library_pc(3));
	put_fault(SP, 16);
	put_fault(SP + 48, 8);
	walk_from(library_pc(1), SP, 0);
	assert_walked(3, PP_STOP_ROOT);
	assert_int_equal(host->walk.fp, 0x31);
}

static void walk_native__faults_in_each_kind_of_read(void **state)
{
	static const struct pp_rule rule[] = {
		{.kind = PP_RULE_CFA_SP,
		 .cfa_offset = 32,
		 .fp_kind = PP_FP_AT_CFA,
		 .fp_offset = -16,
		 .ra_offset = -8},
		{.kind = PP_RULE_CFA_SP,
		 .cfa_offset = 32,
		 .fp_kind = PP_FP_AT_CFA,
		 .fp_offset = -24,
		 .ra_offset = -8},
		{.kind = PP_RULE_CFA_DEREF,
		 .cfa_register = PP_REG_SP,
		 .cfa_offset = 16,
		 .ra_offset = -8},
		{.kind = PP_RULE_SIGNAL},
	};
	static const uint64_t fault[] = {16, 8, 16, 40 + 128};

	(void)state;
	for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		host_teardown(NULL);
		host_setup(NULL);
		*library_rule(1) = rule[i];
		put_word(SP + 24, library_pc(2));
		put_fault(SP + fault[i], 8);
		walk_from(library_pc(1), SP, 0);
		assert_walked(1, PP_STOP_READ_FAULT);
	}
}

static void walk_native__page_that_is_not_loaded_is_no_rows(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, interpreter_pc(2));
	host->page[INTERPRETER_PAGE0] = 0;
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_NO_ROWS);
	/* The frame to go on with is untouched. */
	assert_int_equal(host->walk.pc, interpreter_pc(2));
	assert_int_equal(host->walk.sp, SP + 16);
	assert_int_equal(host->walk.is_leaf, 0);
}

static void walk_native__address_outside_of_mappings_is_no_mapping(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, INTERPRETER + FILE_BYTES + 1);
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_NO_MAPPING);
	host_teardown(NULL);
	host_setup(NULL);
	walk_from(0, SP, 0);
	assert_walked(0, PP_STOP_NO_MAPPING);
}

static void walk_native__process_without_a_map_set_has_no_context(void **state)
{
	(void)state;
	host->walk.context.map_set = 0;
	walk_from(library_pc(1), SP, 0);
	assert_walked(0, PP_STOP_NO_IMAGE);
}

static void walk_native__caller_that_does_not_move_stops(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = rule_sp(0);
	put_word(SP + 8, library_pc(2));
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_NOT_MOVING);
	host_teardown(NULL);
	host_setup(NULL);
	*library_rule(1) = rule_sp(-16);
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_NOT_MOVING);
}

static void endless(void)
{
	*library_rule(1) = rule_sp(16);
	for (uint64_t at = SP + 8; at < STACK + STACK_BYTES; at += 16)
		put_word(at, library_pc(1));
}

#define LIMIT_NS 200000U

/* The step that finds the end pushes nothing. */
static void walk_native__too_long_ends_by_time(void **state)
{
	(void)state;
	endless();
	host->ns_a_reading = LIMIT_NS / 4;
	walk_clock_start(&host->walk, bpf_ktime_get_ns(), LIMIT_NS);
	walk_from(library_pc(1), SP, 0);
	assert_walked(4 * PP_CLOCK_STEPS - 1, PP_STOP_MAX_TIME);
}

/* A second walk has what the first one has left. */
static void walk_native__deadline_is_the_events(void **state)
{
	(void)state;
	walk_native__too_long_ends_by_time(state);
	host->walk.native_count = host->walk.native_stored = 0;
	host->walk.stop = PP_STOP_NONE;
	walk_from(library_pc(1), SP, 0);
	assert_walked(PP_CLOCK_STEPS - 1, PP_STOP_MAX_TIME);
}

/* In time that really passed: the CPU was not the program's either. */
static void walk_native__pause_by_the_hypervisor_ends_it(void **state)
{
	(void)state;
	endless();
	host->ns_a_reading = 10 * LIMIT_NS;
	walk_clock_start(&host->walk, bpf_ktime_get_ns(), LIMIT_NS);
	walk_from(library_pc(1), SP, 0);
	assert_walked(PP_CLOCK_STEPS - 1, PP_STOP_MAX_TIME);
}

static void walk_native__return_address_after_a_last_call_is_its_callers(void **state)
{
	(void)state;
	*library_rule(1) = rule_sp(16);
	*library_rule(2) = (struct pp_rule){.kind = PP_RULE_STOP};
	*library_rule(3) = rule_sp(-1000);
	/* The call is the last instruction of function 2. */
	put_word(SP + 8, LIBRARY + 3 * FUNCTION_BYTES);
	walk_from(library_pc(1), SP, 0);
	assert_walked(2, PP_STOP_ROOT);
	assert_frame(native_frame(1), PP_FRAME_NATIVE, 3 * FUNCTION_BYTES - 1, LIBRARY_FILE);
}

/* ---- the window of the stack ---- */

static bool reads(uint64_t address)
{
	__u64 word;

	return read_word(&host->walk, 0, address, &word) && word == address;
}

static void put_own_addresses(uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += 8)
		put_word(at, at);
}

static void walk_window__is_read_once(void **state)
{
	(void)state;
	put_own_addresses(SP, SP + WALK_WINDOW_BYTES + 16);
	assert_true(reads(SP));
	assert_int_equal(host->user_reads, 1);
	assert_true(reads(SP + 8));
	assert_true(reads(SP + WALK_WINDOW_BYTES - 8));
	assert_int_equal(host->user_reads, 1);
	/* Part of that word lies behind it. */
	put_word(SP + WALK_WINDOW_BYTES - 7, SP + WALK_WINDOW_BYTES - 7);
	assert_true(reads(SP + WALK_WINDOW_BYTES - 7));
	assert_int_equal(host->user_reads, 2);
	/* Below its start. */
	assert_true(reads(SP));
	assert_int_equal(host->user_reads, 3);
}

/* Where the stack ends, two words are tried, then one. */
static void walk_window__ends_where_memory_does(void **state)
{
	__u64 word;

	(void)state;
	put_own_addresses(SP, SP + 64);
	put_fault(SP + 16, 8);
	assert_true(reads(SP));
	assert_int_equal(host->user_reads, 2);
	assert_true(reads(SP + 8));
	assert_int_equal(host->user_reads, 2);
	assert_false(read_word(&host->walk, 0, SP + 9, &word));
	assert_int_equal(host->user_reads, 5);
	assert_true(reads(SP + 8));
	assert_int_equal(host->user_reads, 8);
	assert_false(read_word(&host->walk, 0, SP + 9, &word));
	/* Nothing is there, the second time neither. */
	assert_false(read_word(&host->walk, 0, SP + 16, &word));
	assert_false(read_word(&host->walk, 0, SP + 16, &word));
}

/* ---- look-ups ---- */

static uint32_t sites_of(uint64_t stride)
{
	static bool is_used[WALK_SITES];
	uint32_t used = 0;

	memset(is_used, 0, sizeof(is_used));
	for (uint32_t i = 0; i < 4 * WALK_SITES; i++) {
		size_t at = (size_t)(site_of(&host->walk, LIBRARY + i * stride) - host->walk.site);

		assert_true(at < WALK_SITES);
		used += !is_used[at];
		is_used[at] = true;
	}
	return used;
}

/* Return addresses that lie close together or far apart use most of the memo. */
static void sites__spread_over_the_memo(void **state)
{
	static const uint64_t strides[] = {1, 5, 16, 0x100, 0x1000};

	(void)state;
	for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++)
		if (sites_of(strides[i]) < WALK_SITES * 3 / 4)
			fail_msg("stride %u: %u sites", (uint32_t)strides[i], sites_of(strides[i]));
}

/* An entry of the memo that another address had: what it said of its rule is forgotten. */
static void sites__rule_of_the_entry_before_is_forgotten(void **state)
{
	struct walk_site *site = site_of(&host->walk, library_pc(1));

	(void)state;
	memset(host->walk.site, 0xff, sizeof(host->walk.site));
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	host->walk.pc = library_pc(1);
	walk_any_step(0);
	assert_int_equal(site->is_plain, 0);
	memset(host->walk.site, 0, sizeof(host->walk.site));
	*library_rule(1) = rule_sp(16);
	host->walk.pc = library_pc(1);
	host->walk.is_leaf = 1;
	walk_any_step(0);
	assert_int_equal(site->is_plain, 1);
}

static void eval_range__holds_its_first_address_and_not_its_end(void **state)
{
	struct pp_python py = {.eval_range_count = 2, .eval = {{0x100, 0x180}, {0x400, 0x500}}};

	(void)state;
	assert_false(in_eval_range(&py, 0xff));
	assert_true(in_eval_range(&py, 0x100));
	assert_true(in_eval_range(&py, 0x17f));
	assert_false(in_eval_range(&py, 0x180));
	assert_true(in_eval_range(&py, 0x400));
	py.eval_range_count = 1;
	assert_false(in_eval_range(&py, 0x400));
}

/* What is hashed tells stacks apart: the parts of each frame, and their order. */
static uint64_t hash_of_frames(uint64_t where, uint32_t what, uint16_t kind, bool is_native)
{
	host->walk.hash = 0;
	if (is_native) {
		native_push(&host->walk, where, what, kind);
		native_push(&host->walk, 0x1000, LIBRARY_FILE, PP_FRAME_NATIVE);
	} else {
		python_push(&host->walk, where, what, kind);
		python_push(&host->walk, 0x1000, 3, PP_FRAME_PYTHON);
	}
	return host->walk.hash;
}

static void frames__each_part_changes_the_hash(void **state)
{
	uint64_t hash = hash_of_frames(0x2000, LIBRARY_FILE, PP_FRAME_NATIVE, true);

	(void)state;
	assert_int_equal(hash_of_frames(0x2000, LIBRARY_FILE, PP_FRAME_NATIVE, true), hash);
	assert_int_not_equal(hash_of_frames(0x2001, LIBRARY_FILE, PP_FRAME_NATIVE, true), hash);
	assert_int_not_equal(hash_of_frames(0x2000, LIBRARY_FILE + 1, PP_FRAME_NATIVE, true), hash);
	assert_int_not_equal(hash_of_frames(0x2000, LIBRARY_FILE, PP_FRAME_EVAL, true), hash);
	hash = hash_of_frames(0x2000, 7, PP_FRAME_PYTHON, false);
	assert_int_equal(hash_of_frames(0x2000, 7, PP_FRAME_PYTHON, false), hash);
	assert_int_not_equal(hash_of_frames(0x2001, 7, PP_FRAME_PYTHON, false), hash);
	assert_int_not_equal(hash_of_frames(0x2000, 8, PP_FRAME_PYTHON, false), hash);
	assert_int_not_equal(hash_mix(hash_mix(0, 1), 2), hash_mix(hash_mix(0, 2), 1));
}

/* An address of an object says something in one process alone. */
static void frames__raw_ones_of_two_processes_differ(void **state)
{
	uint64_t hash;

	(void)state;
	host->walk.id = (struct pp_process_id){.tgid = 70, .generation = 3};
	hash = hash_of_frames(0x2000, 7, PP_FRAME_PYTHON_RAW, false);
	host->walk.id.generation = 4;
	assert_int_not_equal(hash_of_frames(0x2000, 7, PP_FRAME_PYTHON_RAW, false), hash);
	host->walk.id = (struct pp_process_id){.tgid = 71, .generation = 3};
	assert_int_not_equal(hash_of_frames(0x2000, 7, PP_FRAME_PYTHON_RAW, false), hash);
	hash = hash_of_frames(0x2000, 7, PP_FRAME_PYTHON, false);
	host->walk.id.tgid = 70;
	assert_int_equal(hash_of_frames(0x2000, 7, PP_FRAME_PYTHON, false), hash);
}

static void find_range__every_address_has_its_range_in_many_chunks(void **state)
{
	const uint32_t ranges = 5 * PP_MAP_CHUNK_RANGES + 7;

	(void)state;
	memset(host->chunk, 0xff, sizeof(host->chunk));
	for (uint32_t i = 0; i < ranges; i++) {
		struct pp_map_chunk *chunk = &host->chunk[3 + i / PP_MAP_CHUNK_RANGES];

		chunk->start[i % PP_MAP_CHUNK_RANGES] = i * 0x1000ULL;
		chunk->range[i % PP_MAP_CHUNK_RANGES] = (struct pp_range){.file = 100 + i};
	}
	host->walk.context.map_set = 4;
	host->walk.context.map_chunks = 6;
	for (uint32_t i = 0; i < ranges; i++) {
		assert_int_equal(walk_find_range(0, i * 0x1000ULL), 0);
		assert_int_equal(host->walk.range.file, 100 + i);
		assert_int_equal(walk_find_range(0, i * 0x1000ULL + 0xfff), 0);
		assert_int_equal(host->walk.range.file, 100 + i);
	}
	assert_int_equal(walk_find_range(0, UINT64_MAX - 1), 0);
	assert_int_equal(host->walk.range.file, 100 + ranges - 1);
}

static void find_rule__every_address_has_the_rule_in_force(void **state)
{
	const struct pp_range range = {.file = LIBRARY_FILE, .page0 = LIBRARY_PAGE0};

	(void)state;
	for (uint64_t address = 0; address < FILE_BYTES; address++)
		assert_ptr_equal(find_rule(&range, address),
				 library_rule((uint32_t)(address / FUNCTION_BYTES)));
}

static void find_rule__page_of_one_row_at_the_end_of_a_shard(void **state)
{
	const struct pp_range range = {.file = LIBRARY_FILE, .page0 = LIBRARY_PAGE0};

	(void)state;
	host->shard.row[PP_ROW_SHARD_ROWS - 1] = PP_ROW(0, 5);
	host->page[LIBRARY_PAGE0] = PP_PAGE(PP_ROW_SHARD_ROWS - 1, 1, PP_PAGE_LOADED);
	assert_ptr_equal(find_rule(&range, 0), library_rule(5));
	assert_ptr_equal(find_rule(&range, 0xffff), library_rule(5));
}

static void find_rule__page_is_marked_used_once(void **state)
{
	const struct pp_range range = {.file = LIBRARY_FILE, .page0 = LIBRARY_PAGE0};
	uint64_t marked;

	(void)state;
	assert_int_equal(PP_PAGE_FLAGS(host->page[LIBRARY_PAGE0]), PP_PAGE_LOADED);
	find_rule(&range, 0);
	marked = host->page[LIBRARY_PAGE0];
	assert_true(PP_PAGE_FLAGS(marked) & PP_PAGE_USED);
	find_rule(&range, 0);
	assert_int_equal(host->page[LIBRARY_PAGE0], marked);
}

static void sites__answer_holds_for_its_map_version_only(void **state)
{
	(void)state;
	host->page[LIBRARY_PAGE0] = PP_PAGE(0, FUNCTIONS, PP_PAGE_LOADED);
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_ROOT);
	host->page[LIBRARY_PAGE0] = 0;
	host->walk.native_count = host->walk.native_stored = 0;
	host->walk.stop = 0;
	host->walk.is_leaf = 1;
	walk_from(library_pc(1), SP, 0);
	assert_walked(1, PP_STOP_ROOT);
	host->walk.context.map_version = 2;
	host->walk.native_count = host->walk.native_stored = 0;
	host->walk.is_leaf = 1;
	walk_from(library_pc(1), SP, 0);
	assert_walked(0, PP_STOP_NO_ROWS);
}

/* ---- very deep stacks ---- */

static void walk_native__deep_stack_keeps_leaf_and_root(void **state)
{
	const uint32_t depth = 3000, ring = PP_MAX_FRAMES / PP_ROOT_SHARE;
	const uint32_t leaf = PP_MAX_FRAMES - ring;

	(void)state;
	/* Frame i returns into one of 200 functions: i % 200. */
	for (uint32_t i = 0; i < 200; i++)
		*library_rule(i) = rule_sp(16);
	for (uint32_t i = 1; i < depth; i++)
		put_word(SP + 16ULL * i - 8, library_pc(i % 200));
	put_word(SP + 16ULL * depth - 8, 0);
	walk_from(library_pc(0), SP, 0);
	assert_walked(depth, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_stored, PP_MAX_FRAMES);
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t slot = i < leaf ? i : leaf + (i - leaf) % ring;

		if (i >= leaf && i < depth - ring)
			continue;
		assert_int_equal(native_frame(slot)->where / FUNCTION_BYTES, i % 200);
	}
}

static void walk_native__area_behind_python_frames_stays_in_bounds(void **state)
{
	(void)state;
	endless();
	host->walk.python_stored = PP_MAX_PYTHON_FRAMES;
	host->walk.native_room = PP_MAX_FRAMES - PP_MAX_PYTHON_FRAMES;
	host->walk.out.frame[PP_MAX_PYTHON_FRAMES - 1].where = 0xc0de;
	walk_from(library_pc(1), SP, 0);
	assert_walked(PP_MAX_STEPS, PP_STOP_MAX_STEPS);
	assert_int_equal(host->walk.native_stored, PP_MAX_FRAMES - PP_MAX_PYTHON_FRAMES);
	assert_int_equal(python_frame(PP_MAX_PYTHON_FRAMES - 1)->where, 0xc0de);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(walk_native__sp_rule_finds_the_caller),
		host_test(walk_native__fp_rule_restores_the_frame_pointer),
		host_test(walk_native__saved_fp_apart_from_the_return_address_is_read),
		host_test(walk_native__deref_rule_and_fp_at_fp),
		host_test(walk_native__register_rule_works_at_the_leaf),
		host_test(walk_native__return_address_may_be_in_a_register_at_the_leaf),
		host_test(walk_native__register_rule_in_a_caller_is_a_bad_rule),
		host_test(walk_native__plt_rule_depends_on_the_address),
		host_test(walk_native__signal_frame_restores_all_registers),
		host_test(walk_native__signal_frame_may_move_down),
		host_test(walk_native__no_info_takes_a_checked_frame_pointer),
		host_test(walk_native__frame_pointer_of_0_ends_a_chain_of_them),
		host_test(walk_native__frame_pointer_that_is_none_is_not_followed),
		host_test(walk_native__unsure_leaf_is_followed_by_a_gap),
		host_test(walk_native__code_without_information_at_the_stacks_end_is_the_root),
		host_test(walk_native__root_by_undefined_return_address_and_by_zero),
		host_test(walk_native__fault_on_return_address_is_read_fault),
		host_test(walk_native__fault_beside_what_is_needed_is_none),
		host_test(walk_native__faults_in_each_kind_of_read),
		host_test(walk_native__page_that_is_not_loaded_is_no_rows),
		host_test(walk_native__address_outside_of_mappings_is_no_mapping),
		host_test(walk_native__process_without_a_map_set_has_no_context),
		host_test(walk_native__caller_that_does_not_move_stops),
		host_test(walk_native__too_long_ends_by_time),
		host_test(walk_native__deadline_is_the_events),
		host_test(walk_native__pause_by_the_hypervisor_ends_it),
		host_test(walk_native__return_address_after_a_last_call_is_its_callers),
		host_test(walk_window__is_read_once),
		host_test(walk_window__ends_where_memory_does),
		host_test(sites__spread_over_the_memo),
		host_test(sites__rule_of_the_entry_before_is_forgotten),
		host_test(eval_range__holds_its_first_address_and_not_its_end),
		host_test(frames__each_part_changes_the_hash),
		host_test(frames__raw_ones_of_two_processes_differ),
		host_test(find_range__every_address_has_its_range_in_many_chunks),
		host_test(find_rule__every_address_has_the_rule_in_force),
		host_test(find_rule__page_of_one_row_at_the_end_of_a_shard),
		host_test(find_rule__page_is_marked_used_once),
		host_test(sites__answer_holds_for_its_map_version_only),
		host_test(walk_native__deep_stack_keeps_leaf_and_root),
		host_test(walk_native__area_behind_python_frames_stays_in_bounds),
	};

	return cmocka_run_group_tests_name("bpf/walk_native", tests, NULL, NULL);
}
