/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/memory.bpf.h and find_mapping.bpf.h: which pages may be a program's, which of them are
 * drawn and for how many they count, and what they are for. */
#include "host.h"

#include <lib/memory.bpf.h>

/* ---- allocations, with the flags that kernels give them ---- */

static void pages_are_of_users__by_their_flags(void **state)
{
	static const struct {
		uint32_t gfp;
		bool are_users, are_read_ahead;
	} cases[] = {
		{0x140dca, true, false},  /* anonymous, zeroed */
		{0x140cca, true, false},  /* a copy, or of tmpfs */
		{0x3d24ca, true, false},  /* a huge one */
		{0x152c4a, true, true},	  /* of the page cache, read ahead */
		{0x153cca, true, true},	  /* of the page cache, written */
		{0x400dc0, false, false}, /* a page table: GFP_KERNEL_ACCOUNT | __GFP_ZERO */
		{0xdc0, false, false},	  /* GFP_KERNEL | __GFP_ZERO */
		{0x820, false, false},	  /* GFP_ATOMIC */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(pages_are_of_users(cases[i].gfp), cases[i].are_users);
		assert_int_equal(pages_are_read_ahead(cases[i].gfp), cases[i].are_read_ahead);
	}
}

/* ---- faults ---- */

/* A program can choose its threads' ids, but not knows the salt. */
static void fault_places__of_near_and_chosen_threads_differ(void **state)
{
	uint32_t near = 0, chosen = 0;

	(void)state;
	for (uint32_t i = 1; i < FAULT_PLACES; i++) {
		near += fault_place(4711) == fault_place(4711 + i);
		chosen += fault_place(4711) == fault_place(4711 + i * FAULT_PLACES);
		assert_in_range(fault_place(i), 0, FAULT_PLACES - 1);
	}
	assert_in_range(near, 0, 3);
	assert_in_range(chosen, 0, 3);
}

/* ---- draws ---- */

/* What the allocation of so many pages counts for. */
static uint32_t allocate(struct memory_state *memory, uint32_t size)
{
	if (!memory->left)
		group_begin(memory, 0);
	if (memory->left > size) {
		memory->left -= size;
		return 0;
	}
	return pages_drawn(memory, size);
}

/* Each whole group counts for what it is: only the last one is open. */
static void pages_drawn__differ_by_a_group_at_most(void **state)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 16, 1, 512, 2, 1, 64};

	(void)state;
	for (uint32_t shift = 0; shift <= BUDGET_MAX_SHIFT; shift++) {
		struct memory_state memory = {.budget.shift = shift};
		uint64_t pages = 0, counted = 0;

		for (uint32_t i = 0; i < 20000; i++) {
			const uint32_t size = sizes[i % 10];

			pages += size;
			counted += allocate(&memory, size);
			assert_in_range(counted + (1U << shift), pages, pages + (2U << shift));
		}
	}
}

static void pages_drawn__differ_by_a_group_when_its_size_changes(void **state)
{
	struct memory_state memory = {};
	uint64_t pages = 0, counted = 0;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		memory.budget.shift = bpf_get_prandom_u32() % 8;
		pages += 1 + i % 3;
		counted += allocate(&memory, 1 + i % 3);
		assert_in_range(counted + 128, pages, pages + 256);
	}
}

static void pages_drawn__of_lines_in_step_are_unbiased(void **state)
{
	struct memory_state memory = {.budget.shift = 4};
	uint64_t counted[16] = {};

	(void)state;
	for (uint32_t i = 0; i < 1U << 20; i++)
		counted[i % 16] += allocate(&memory, 1);
	for (uint32_t line = 0; line < 16; line++)
		assert_in_range(counted[line], 0.93 * (1 << 16), 1.07 * (1 << 16));
}

static void group_end__leaves_sums_unbiased(void **state)
{
	struct pp_config cfg = {.memory_budget_ns = 100000};
	struct memory_state memory = {.left = 1};
	uint64_t counted = 0;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		memory.budget = (struct budget){.started_ns = host->now_ns, .shift = 6};
		memory.shift = 6;
		cfg.token_round = 4 * (i + 1);
		group_end(&memory, &cfg);
		assert_int_equal(memory.second, i + 1);
		for (uint32_t page = 0; page < 10; page++)
			counted += allocate(&memory, 1);
	}
	assert_in_range(counted, 950000, 1050000);
}

static void group_end__leaves_a_page_a_group_alone(void **state)
{
	const struct pp_config cfg = {.token_round = 5};
	struct memory_state memory = {.left = 1, .budget.shift = 3};

	(void)state;
	group_end(&memory, &cfg);
	assert_int_equal(memory.left, 1);
	assert_int_equal(memory.shift, 0);
}

struct adjusted {
	int64_t credit_ns;
	uint32_t spent_ns, shift, periods;
	int64_t new_credit_ns;
	uint32_t new_shift;
};

/* 100 us come in each period. */
static const struct adjusted adjusted[] = {
	/* Too early. */
	{-1000, 500000, 3, 0, -1000, 3},
	/* More was spent than came in, and no credit is left. */
	{-200000, 100001, 3, 1, -100000, 4},
	{-200000, 100000, 3, 1, -100000, 3},
	{-200000, 200001, 3, 2, 0, 3},
	{-200001, 200001, 3, 2, -1, 4},
	{-200000, 100001, 14, 1, -100000, 14},
	{0, 100001, 3, 1, 100000, 3},
	/* Less than an eighth. */
	{-200000, 12500, 3, 1, -100000, 3},
	{-200000, 12499, 3, 1, -100000, 2},
	{-900000, 0, 3, 2, -700000, 1},
	{-900000, 0, 3, 3, -600000, 0},
	{-900000, 0, 3, 4, -500000, 0},
	/* Credit and debt have an end. */
	{9950000, 50000, 0, 1, 10000000, 0},
	{-20000000, 100001, 0, 1, -10000000, 1},
	{0, 0, 14, 5000, 10000000, 0},
};

static void memory_adjust__sizes_groups_by_their_cost(void **state)
{
	const struct pp_config cfg = {.memory_budget_ns = 100000};

	(void)state;
	for (size_t i = 0; i < sizeof(adjusted) / sizeof(adjusted[0]); i++) {
		const struct adjusted *wanted = &adjusted[i];
		struct memory_state memory = {.budget = {.started_ns = 1000,
							 .credit_ns = wanted->credit_ns,
							 .spent_ns = wanted->spent_ns,
							 .shift = wanted->shift}};

		memory_adjust(&memory, 1000 + (uint64_t)wanted->periods * PP_BUDGET_PERIOD_NS,
			      &cfg);
		if (memory.budget.credit_ns != wanted->new_credit_ns ||
		    memory.budget.shift != wanted->new_shift)
			fail_msg("case %zu: credit %lld, shift %u", i,
				 (long long)memory.budget.credit_ns, memory.budget.shift);
		assert_int_equal(memory.budget.spent_ns, wanted->periods ? 0 : wanted->spent_ns);
	}
}

/* ---- mappings ---- */

/* As in the kernel but for what bpf/lib does not read. */
union node {
	struct maple_range_64 range;
	struct maple_arange_64 arange;
	uint8_t bytes[256];
} __attribute__((aligned(256)));

#define LEAF(node) ((void *)((uintptr_t)(node) | 1U << 3 | 4U))
#define ARANGE(node) ((void *)((uintptr_t)(node) | MAPLE_ARANGE << 3 | 4U))
#define ROOT(reference) ((void *)((uintptr_t)(reference) | MAPLE_ROOT_NODE))

/* Mappings of a page at each 0x10000, ten leaves of ten. */
#define MAPPINGS 100U
static struct vm_area_struct mapping[MAPPINGS];
static union node root, leaf[10];

static struct task_struct *make_process(void)
{
	static struct mm_struct mm;

	for (uint32_t i = 0; i < MAPPINGS; i++)
		mapping[i] = (struct vm_area_struct){.vm_start = (i + 1) * 0x10000UL,
						     .vm_end = (i + 1) * 0x10000UL + 0x1000};
	for (uint32_t l = 0; l < 10; l++) {
		leaf[l] = (union node){};
		/* A gap, a mapping, a gap, ...; behind the last pivot there are no more. */
		for (uint32_t i = 0; i < 7; i++) {
			struct vm_area_struct *of = &mapping[l * 7 + i];

			leaf[l].range.pivot[2 * i] = of->vm_start - 1;
			leaf[l].range.pivot[2 * i + 1] = of->vm_end - 1;
			leaf[l].range.slot[2 * i + 1] = of;
		}
		if (l < 9)
			root.arange.pivot[l] = mapping[l * 7 + 6].vm_end - 1;
		root.arange.slot[l] = LEAF(&leaf[l]);
	}
	mm = (struct mm_struct){.mm_mt.ma_root = ROOT(ARANGE(&root)),
				.start_stack = 0x7ffe00001000,
				.start_brk = 0x10000,
				.brk = 0x30000};
	host->task.mm = &mm;
	host->missing_field[0] = "old->vmacache";
	return &host->task;
}

/* As in a history that nobody has asked for by name. */
static void memory_adjust__groups_have_a_least_size(void **state)
{
	const struct pp_config cfg = {.memory_budget_ns = 100000, .memory_shift_min = 3};
	struct memory_state memory = {.budget = {.started_ns = 1000}};

	(void)state;
	memory_adjust(&memory, 1000 + PP_BUDGET_PERIOD_NS, &cfg);
	assert_int_equal(memory.budget.shift, 3);
	memory_adjust(&memory, 1000 + 2 * PP_BUDGET_PERIOD_NS, &cfg);
	assert_int_equal(memory.budget.shift, 3);
}

static void find_mapping__goes_down_the_tree(void **state)
{
	struct task_struct *task = make_process();

	(void)state;
	for (uint32_t i = 0; i < 70; i++) {
		assert_ptr_equal(find_mapping(task, (i + 1) * 0x10000UL, 0), &mapping[i]);
		assert_ptr_equal(find_mapping(task, (i + 1) * 0x10000UL + 0xfff, 0),
				 &mapping[i]);
		assert_null(find_mapping(task, (i + 1) * 0x10000UL + 0x1000, 0));
		assert_null(find_mapping(task, (i + 1) * 0x10000UL - 1, 0));
	}
	assert_null(find_mapping(task, 0, 0));
	assert_null(find_mapping(task, ~0UL >> 1, 0));
}

static void find_mapping__of_a_tree_without_nodes(void **state)
{
	struct task_struct *task = make_process();

	(void)state;
	task->mm->mm_mt.ma_root = &mapping[3];
	assert_ptr_equal(find_mapping(task, 0x40000, 0), &mapping[3]);
	assert_null(find_mapping(task, 0x50000, 0));
	task->mm->mm_mt.ma_root = NULL;
	assert_null(find_mapping(task, 0x40000, 0));
}

static void find_mapping__ends_in_a_circle(void **state)
{
	struct task_struct *task = make_process();

	(void)state;
	root.arange.slot[0] = ARANGE(&root);
	assert_null(find_mapping(task, 0x10000, 0));
}

static void find_mapping__before_6_1_takes_the_last_ones(void **state)
{
	union {
		struct task_struct task;
		struct task_struct___6_0 old;
	} of = {.old.vmacache.vmas = {&mapping[5], NULL, &mapping[9], NULL}};

	(void)state;
	(void)make_process();
	host->missing_field[0] = NULL;
	assert_ptr_equal(find_mapping(&of.task, 0xa0fff, 0), &mapping[9]);
	assert_null(find_mapping(&of.task, 0x20000, 0));
}

/* ---- uses ---- */

static void use_of_address__by_address(void **state)
{
	struct task_struct *task = make_process();
	const uint64_t sp = 0x7f0000100000;
	static const struct {
		uint64_t address;
		enum pp_memory memory;
	} cases[] = {
		{0xffff, PP_MEMORY_ANONYMOUS},
		{0x10000, PP_MEMORY_HEAP},
		{0x2ffff, PP_MEMORY_HEAP},
		{0x30000, PP_MEMORY_ANONYMOUS},
		{0x7f00000fff00, PP_MEMORY_STACK},
		{0x7f00000ffeff, PP_MEMORY_ANONYMOUS},
		{0x7f000010ffff, PP_MEMORY_STACK},
		{0x7f0000110000, PP_MEMORY_ANONYMOUS},
		{0x7ffe00000fff, PP_MEMORY_STACK},
		{0x7ffdff801000, PP_MEMORY_STACK},
		{0x7ffdff800fff, PP_MEMORY_ANONYMOUS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(use_of_address(task, cases[i].address, sp), cases[i].memory);
}

static struct super_block tmpfs = {.s_magic = TMPFS_MAGIC}, disk = {.s_magic = 0xef53};
static struct inode inode_of_tmpfs = {.i_sb = &tmpfs}, inode_of_disk = {.i_sb = &disk};
static struct file in_memory = {.f_inode = &inode_of_tmpfs}, on_disk = {.f_inode = &inode_of_disk};

static void use_of_mapping__by_file_and_fault(void **state)
{
	static const struct {
		struct file *file;
		unsigned long flags;
		uint32_t error_code;
		bool is_huge, is_counted;
		enum pp_count_kind kind;
		enum pp_memory memory;
	} cases[] = {
		/* After a fork. */
		{NULL, 0, 7, false, true, PP_KIND_COPY, PP_MEMORY_HEAP},
		{NULL, 0, 3, false, true, PP_KIND_COPY, PP_MEMORY_HEAP},
		/* Back from swap. */
		{NULL, 0, 6, false, false, PP_KIND_TOUCH, PP_MEMORY_HEAP},
		/* Huge pages do not come zeroed; one that was read before is written. */
		{NULL, 0, 6, true, true, PP_KIND_TOUCH, PP_MEMORY_HEAP},
		{NULL, 0, 7, true, true, PP_KIND_TOUCH, PP_MEMORY_HEAP},
		/* Private pages of a file. */
		{&on_disk, 0, 6, false, true, PP_KIND_TOUCH, PP_MEMORY_FILE},
		{&on_disk, 0, 7, false, true, PP_KIND_COPY, PP_MEMORY_FILE},
		{&in_memory, 0, 6, false, true, PP_KIND_TOUCH, PP_MEMORY_FILE},
		/* The page cache. */
		{&on_disk, 0, 4, false, false, 0, 0},
		{&on_disk, VM_SHARED, 6, false, false, 0, 0},
		{&on_disk, VM_SHARED, 7, false, false, 0, 0},
		{&on_disk, 0, 4, true, false, 0, 0},
		/* Shared memory. */
		{&in_memory, VM_SHARED, 6, false, true, PP_KIND_TOUCH, PP_MEMORY_SHARED},
		{&in_memory, VM_SHARED, 4, true, true, PP_KIND_TOUCH, PP_MEMORY_SHARED},
		{&in_memory, 0, 4, false, true, PP_KIND_TOUCH, PP_MEMORY_SHARED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vm_area_struct of = {.vm_file = cases[i].file,
						  .vm_flags = cases[i].flags};
		struct memory_use use = {PP_KIND_TOUCH, PP_MEMORY_HEAP};

		if (use_of_mapping(&of, cases[i].error_code, cases[i].is_huge, &use) !=
		    cases[i].is_counted)
			fail_msg("case %zu", i);
		if (cases[i].is_counted) {
			assert_int_equal(use.kind, cases[i].kind);
			assert_int_equal(use.memory, cases[i].memory);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(pages_are_of_users__by_their_flags),
		host_test(fault_places__of_near_and_chosen_threads_differ),
		host_test(pages_drawn__differ_by_a_group_at_most),
		host_test(pages_drawn__differ_by_a_group_when_its_size_changes),
		host_test(pages_drawn__of_lines_in_step_are_unbiased),
		host_test(group_end__leaves_sums_unbiased),
		host_test(group_end__leaves_a_page_a_group_alone),
		host_test(memory_adjust__sizes_groups_by_their_cost),
		host_test(memory_adjust__groups_have_a_least_size),
		host_test(find_mapping__goes_down_the_tree),
		host_test(find_mapping__of_a_tree_without_nodes),
		host_test(find_mapping__ends_in_a_circle),
		host_test(find_mapping__before_6_1_takes_the_last_ones),
		host_test(use_of_address__by_address),
		host_test(use_of_mapping__by_file_and_fault),
	};

	return cmocka_run_group_tests_name("bpf/memory", tests, NULL, NULL);
}
