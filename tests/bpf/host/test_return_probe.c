/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/return_probe.bpf.h: where the kernel lets a program run code of its own because of a
 * probe.  Replaced return addresses are in test_walk_twin.c. */
#include "host.h"

#include <lib/walk.bpf.h>

#define UPROBES_PAGE ANONYMOUS
#define UPROBES_COPY (UPROBES_PAGE + 0x80)

static struct mm_struct memory;
static struct xol_area area = {.vaddr = UPROBES_PAGE};
static struct uprobe_task probed;

/* arch/x86/kernel/uprobes.c: uretprobe_trampoline_entry, uprobe_trampoline_entry. */
static const uint8_t return_trampoline[] = {0x50, 0x51, 0x41, 0x53,			/* push */
					    0x48, 0xc7, 0xc0, 0x4f, 0x01, 0x00, 0x00, /* mov */
					    0x0f, 0x05, 0x41, 0x5b, 0x59, 0xc3};
static const uint8_t call_trampoline[] = {0x51, 0x41, 0x53, 0x50,		      /* push */
					  0x48, 0xc7, 0xc0, 0x50, 0x01, 0x00, 0x00, /* mov */
					  0x0f, 0x05, 0x58, 0x41, 0x5b, 0x59, 0xc3};
#define AFTER_SYSCALL 13U

static struct pp_walk *in_uprobes_page(uint64_t pc)
{
	memory.uprobes_state = (struct uprobes_state){.xol_area = &area};
	host->task.mm = &memory;
	host->task.utask = &probed;
	host->walk.pc = pc;
	host->walk.sp = STACK + 0x100;
	host->walk.is_leaf = 1;
	return &host->walk;
}

static void leave_uprobes_page__copied_instruction_is_the_programs_own(void **state)
{
	struct pp_walk *w = in_uprobes_page(UPROBES_COPY);

	(void)state;
	probed = (struct uprobe_task){.vaddr = library_pc(3), .xol_vaddr = UPROBES_COPY};
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(3));
	assert_int_equal(w->is_leaf, 1);
	assert_int_equal(w->sp, STACK + 0x100);
	/* It was run, and the kernel has not gone back yet. */
	w->pc = UPROBES_COPY + 4;
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(3) + 4);
}

static void leave_uprobes_page__trampoline_is_the_caller(void **state)
{
	struct return_instance instance = {.stack = STACK + 0x108 - RETURN_ADDRESS_BELOW_CFA,
					   .orig_ret_vaddr = library_pc(2)};
	struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + 1);

	(void)state;
	put_bytes(UPROBES_PAGE, return_trampoline, sizeof(return_trampoline));
	probed = (struct uprobe_task){.return_instances = &instance, .xol_vaddr = UPROBES_COPY};
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(2));
	assert_int_equal(w->is_leaf, 0);
	/* The trampoline had pushed something. */
	assert_int_equal(w->sp, STACK + 0x108);
	/* Inside of its call the kernel takes away what was pushed. */
	w->pc = UPROBES_PAGE + AFTER_SYSCALL;
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(2));
	assert_int_equal(w->sp, STACK + 0x108);
}

/* The address lies where rax was saved, and the newest call is that of a function above. */
static void leave_uprobes_page__trampoline_that_is_handled_returns_itself(void **state)
{
	static const struct {
		uint32_t at, pushed;
	} place[] = {{AFTER_SYSCALL, 24}, {AFTER_SYSCALL + 2, 16}, {AFTER_SYSCALL + 3, 8}};
	struct return_instance outer = {.stack = STACK + 0x800, .orig_ret_vaddr = library_pc(9)};

	(void)state;
	put_bytes(UPROBES_PAGE, return_trampoline, sizeof(return_trampoline));
	put_word(STACK + 0x100, library_pc(2));
	for (size_t i = 0; i < 2 * sizeof(place) / sizeof(place[0]); i++) {
		struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + place[i / 2].at);

		probed = (struct uprobe_task){.return_instances = i % 2 ? &outer : NULL};
		w->sp = STACK + 0x108 - place[i / 2].pushed;
		assert_int_equal(leave_uprobes_page(0), 0);
		assert_int_equal(w->pc, library_pc(2));
		assert_int_equal(w->sp, STACK + 0x108);
		assert_int_equal(w->is_leaf, 0);
	}
}

static void leave_uprobes_page__call_in_place_of_a_breakpoint_is_left_behind(void **state)
{
	struct breakpoint_trampoline second = {.start = UPROBES_PAGE},
				     first = {.next = &second, .start = LIBRARY};
	struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + 14);

	(void)state;
	put_bytes(UPROBES_PAGE, call_trampoline, sizeof(call_trampoline));
	probed = (struct uprobe_task){};
	memory.uprobes_state = (struct uprobes_state){.head_tramps.first = (void *)&first};
	put_word(STACK + 0x110, library_pc(3) + 5);
	assert_int_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, library_pc(3) + 5);
	assert_int_equal(w->sp, STACK + 0x118);
	assert_int_equal(w->is_leaf, 1);
	/* Other code than the kernel's is not believed. */
	w = in_uprobes_page(UPROBES_PAGE + 14);
	memory.uprobes_state = (struct uprobes_state){.head_tramps.first = (void *)&first};
	put_bytes(UPROBES_PAGE, (const uint8_t[]){0xe8}, 1);
	assert_int_not_equal(leave_uprobes_page(0), 0);
	assert_int_equal(w->pc, UPROBES_PAGE + 14);
}

static struct pp_walk *behind_breakpoint(uint64_t top)
{
	struct pp_walk *w = in_uprobes_page(UPROBES_PAGE + 0x101);

	probed = (struct uprobe_task){};
	memory.uprobes_state = (struct uprobes_state){};
	put_bytes(UPROBES_PAGE + 0x100, (const uint8_t[]){0xcc, 0x48}, 2);
	w->is_in_kernel = 1;
	w->registers[6] = STACK + 0x400;
	put_word(w->sp, top);
	return w;
}

static void leave_uprobes_page__breakpoint_that_is_not_handled_yet_has_not_pushed(void **state)
{
	struct pp_walk *w = behind_breakpoint(library_pc(2));

	(void)state;
	leave_uprobes_page(0);
	assert_int_equal(w->pc, UPROBES_PAGE + 0x100);
	/* The kernel has pushed for the program. */
	w = behind_breakpoint(STACK + 0x400);
	leave_uprobes_page(0);
	assert_int_equal(w->pc, UPROBES_PAGE + 0x101);
	/* The program runs, so it is done. */
	w = behind_breakpoint(library_pc(2));
	w->is_in_kernel = 0;
	leave_uprobes_page(0);
	assert_int_equal(w->pc, UPROBES_PAGE + 0x101);
	/* pc is set back already: the function lies behind one that ends with such bytes. */
	w = behind_breakpoint(library_pc(2));
	put_bytes(UPROBES_PAGE + 0x101, (const uint8_t[]){0xcc}, 1);
	leave_uprobes_page(0);
	assert_int_equal(w->pc, UPROBES_PAGE + 0x101);
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
		host_test(leave_uprobes_page__trampoline_that_is_handled_returns_itself),
		host_test(leave_uprobes_page__call_in_place_of_a_breakpoint_is_left_behind),
		host_test(leave_uprobes_page__breakpoint_that_is_not_handled_yet_has_not_pushed),
		host_test(leave_uprobes_page__other_code_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
