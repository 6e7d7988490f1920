/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/return_probe.bpf.h: where the kernel lets a program run code of its own because of a
 * probe.  Replaced return addresses are in test_walk_twin.c. */
#include "host.h"

#include <lib/walk.bpf.h>

#define UPROBES_PAGE 0x7fffffffe000ULL

static struct mm_struct memory;
static struct xol_area area = {.vaddr = UPROBES_PAGE};
static struct uprobe_task probed;

static struct pp_walk *in_uprobes_page(uint64_t pc)
{
	memory.uprobes_state.xol_area = &area;
	host->task.mm = &memory;
	host->task.utask = &probed;
	host->walk.pc = pc;
	host->walk.sp = STACK + 0x100;
	host->walk.is_leaf = 1;
	return &host->walk;
}

static void leave_uprobes_page__copied_instruction_is_the_programs_own(void **state)
{
	struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + 0x80);
	int active;

	(void)state;
	probed = (struct uprobe_task){.vaddr = library_pc(3),
				      .xol_vaddr = UPROBES_PAGE + 0x80,
				      .active_uprobe = &active};
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(3));
	assert_int_equal(w->is_leaf, 1);
	assert_int_equal(w->sp, STACK + 0x100);
	/* It was run, and the kernel has not gone back yet. */
	w->pc = UPROBES_PAGE + 0x84;
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(3) + 4);
}

static void leave_uprobes_page__trampoline_is_the_caller(void **state)
{
	struct return_instance instance = {.stack = STACK + 0x108 - RETURN_ADDRESS_BELOW_CFA,
					   .orig_ret_vaddr = library_pc(2)};
	struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + 1);

	(void)state;
	probed = (struct uprobe_task){.return_instances = &instance,
				      .xol_vaddr = UPROBES_PAGE + 0x80};
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(2));
	assert_int_equal(w->is_leaf, 0);
	/* The trampoline had pushed something. */
	assert_int_equal(w->sp, STACK + 0x108);
}

static void leave_uprobes_page__other_code_is_left_alone(void **state)
{
	struct return_instance instance = {.stack = STACK, .orig_ret_vaddr = library_pc(2)};
	struct pp_walk *w = in_uprobes_page(library_pc(1));

	(void)state;
	probed = (struct uprobe_task){.return_instances = &instance};
	assert_int_not_equal(leave_uprobes_page(0), 0);
	w->pc = UPROBES_PAGE + 0x1000;
	assert_int_not_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, UPROBES_PAGE + 0x1000);
	/* Nothing returns there. */
	w->pc = UPROBES_PAGE;
	probed.return_instances = NULL;
	assert_int_not_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->is_leaf, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(leave_uprobes_page__copied_instruction_is_the_programs_own),
		host_test(leave_uprobes_page__trampoline_is_the_caller),
		host_test(leave_uprobes_page__other_code_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
