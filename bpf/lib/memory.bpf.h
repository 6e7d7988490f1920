/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which pages that the kernel allocates are memory that a program touches, what they are for, and
 * which of them are walked (docs/design/memory.md). */
#ifndef BPF_LIB_MEMORY_H
#define BPF_LIB_MEMORY_H

#include "lib/budget.bpf.h"
#include "lib/maps.bpf.h"

/* Finds the mapping of an address of the current process while a page fault there is handled.  No
 * lock is taken: bpf_find_vma() (5.17) has to try for one, which a writer that waits makes fail. */

/* A reference to a node has its type in bits 3 to 6; nodes begin at multiples of 256.  That to the
 * root has bit 1 set, without which the root is an entry (include/linux/maple_tree.h,
 * lib/maple_tree.c: mte_to_node, mte_node_type, mte_mk_root). */
#define MAPLE_NODE_MASK 255ULL
#define MAPLE_ROOT_NODE 2U
#define MAPLE_TYPE(reference) ((__u32)(reference) >> 3 & 15)
#define MAPLE_ARANGE 3U /* the others have MAPLE_PIVOTS */
#define MAPLE_LEAVES 2U /* types below have entries instead of nodes */
#define MAPLE_DEPTH 12U /* of a tree of ten branches a node, with more mappings than there can be */
#define MAPLE_PIVOTS 15U /* of the widest node */
#define MAPLE_ARANGE_PIVOTS 9U

/* Returns the entry of a node under which the address is.  `pivot` has room for MAPLE_PIVOTS. */
static __always_inline __u64 maple_step(__u64 reference, __u64 address, __u64 *pivot)
{
	const bool is_arange = MAPLE_TYPE(reference) == MAPLE_ARANGE;
	const struct maple_range_64 *range = (void *)(reference & ~MAPLE_NODE_MASK);
	const struct maple_arange_64 *arange = (void *)(reference & ~MAPLE_NODE_MASK);
	const __u32 count = is_arange ? MAPLE_ARANGE_PIVOTS : MAPLE_PIVOTS;
	const void *slots = is_arange ? (const void *)arange->slot : (const void *)range->slot;
	__u64 entry = 0;
	__u32 at;

	if (bpf_probe_read_kernel(pivot, MAPLE_PIVOTS * 8,
				  is_arange ? (const void *)arange->pivot : range->pivot))
		return 0;
	/* A pivot is the last address of its slot; 0 behind the first: no more of them are used. */
	for (at = 0; at < MAPLE_PIVOTS; at++)
		if (at >= count || address <= pivot[at] || (at && !pivot[at]))
			break;
	bpf_probe_read_kernel(&entry, sizeof(entry), slots + at * 8);
	return entry;
}

/* Returns the mapping of the current process that the maple tree has for an address; 0: none.
 * Not inlined, and with external linkage: its loops are verified once, not on each path to them. */
__noinline __u64 find_in_tree(__u32 slot, __u64 address)
{
	struct task_struct *task = task_current();
	struct pp_walk *w = walk_get(slot);
	__u64 entry;

	/* What has external linkage is verified where nobody calls it, too. */
	if (!w || !bpf_core_field_exists(task->mm->mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
	if (!(entry & MAPLE_ROOT_NODE))
		return entry; /* of all addresses, or none */
	for (__u32 i = 0; i < MAPLE_DEPTH && entry; i++) {
		const bool is_leaf = MAPLE_TYPE(entry) < MAPLE_LEAVES;

		entry = maple_step(entry, address, w->saved);
		if (is_leaf)
			return entry;
	}
	return 0;
}

static __always_inline bool mapping_covers(const struct vm_area_struct *mapping, __u64 address)
{
	return mapping && address >= BPF_CORE_READ(mapping, vm_start) &&
	       address < BPF_CORE_READ(mapping, vm_end);
}

/* The kernel has just looked up the address for this fault. */
static __always_inline const struct vm_area_struct *find_in_cache(struct task_struct *task,
								  __u64 address)
{
	struct task_struct___6_0 *old = (void *)task;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		const struct vm_area_struct *mapping = BPF_CORE_READ(old, vmacache.vmas[i]);

		if (mapping_covers(mapping, address))
			return mapping;
	}
	return NULL;
}

/* Returns the mapping, NULL if none was found.  Overwrites the `saved` of the walk in the slot. */
static __always_inline const struct vm_area_struct *find_mapping(struct task_struct *task,
								 __u64 address, __u32 slot)
{
	const struct vm_area_struct *mapping;
	struct task_struct___6_0 *old = (void *)task;

	if (bpf_core_field_exists(old->vmacache))
		return find_in_cache(task, address);
	mapping = (const void *)find_in_tree(slot, address);
	return mapping_covers(mapping, address) ? mapping : NULL;
}

/* ---- allocations ---- */

/* include/linux/gfp_types.h; the same from 5.10 to 7.2. */
#define GFP_HIGHMEM 0x02U
#define GFP_MOVABLE 0x08U
#define GFP_ZERO 0x100U
#define GFP_NORETRY 0x10000U
#define GFP_NOMEMALLOC 0x80000U
#define GFP_OF_USERS (GFP_HIGHMEM | GFP_MOVABLE)

/* Returns whether pages with these flags may be mapped by programs.  Slabs, page tables, kernel
 * stacks and what drivers take may not be moved. */
static __always_inline bool pages_are_of_users(__u32 gfp)
{
	return (gfp & GFP_OF_USERS) == GFP_OF_USERS;
}

/* Read-ahead gives up early (readahead_gfp_mask()), as huge pages do, which leave reserves alone
 * (GFP_TRANSHUGE). */
static __always_inline bool pages_are_read_ahead(__u32 gfp)
{
	return (gfp & (GFP_NORETRY | GFP_NOMEMALLOC)) == GFP_NORETRY;
}

/* ---- faults ---- */

/* Of a page fault's error code (arch/x86/include/asm/trap_pf.h). */
enum fault_bits { FAULT_PRESENT = 1, FAULT_WRITE = 2, FAULT_USER = 4 };

/* The last fault of a thread.  A thread that shares the place of another loses its fault when both
 * are handled at once. */
struct fault {
	__u64 thread;	    /* pid and tgid; 0: it has got its page */
	__u64 address;	    /* that was accessed */
	__u64 registers_at; /* in the kernel's stack */
	__u64 pc;	    /* among them */
	__u32 error_code;   /* enum fault_bits */
	/* whether the process matches the filter, as of this value of pp_config.process_changes */
	__u32 process_changes, matches, matches_tgid;
	__u64 pad[2]; /* to a cache line */
};
#define FAULT_PLACES_SHIFT 10U
#define FAULT_PLACES (1U << FAULT_PLACES_SHIFT)
MAP(last_faults, ARRAY, FAULT_PLACES, __u32, struct fault);

/* A number that nobody knows: a program can have threads whose ids are those of another program's
 * but for a multiple of FAULT_PLACES, and take that one's faults by its own. */
const volatile __u32 fault_salt; /* (agent) */

static __always_inline __u32 fault_place(__u64 thread)
{
	/* Fibonacci hashing: the high bits are those that all others go into. */
	return (((__u32)thread ^ fault_salt) * 0x9e3779b1U) >> (32 - FAULT_PLACES_SHIFT);
}

static __always_inline struct fault *fault_of(__u64 thread)
{
	__u32 place = fault_place(thread);

	return bpf_map_lookup_elem(&last_faults, &place);
}

/* Returns whether the fault is still being handled: its registers lie where they lay.  Those of a
 * program are overwritten by its next system call or interrupt, those of an access by the kernel by
 * what the kernel calls next.  aarch64 has no tracepoint of faults, and other registers. */
#if defined(__TARGET_ARCH_arm64)
static __always_inline bool fault_goes_on(const struct fault *fault, __u64 thread)
{
	return false;
}
#else
static __always_inline bool fault_goes_on(const struct fault *fault, __u64 thread)
{
	const struct pt_regs___kernel *registers = (void *)fault->registers_at;
	__u64 pc = 0;

	if (fault->thread != thread)
		return false;
	bpf_probe_read_kernel(&pc, sizeof(pc), &registers->ip);
	return pc == fault->pc;
}
#endif

/* ---- which pages are walked ---- */

/* One page of each 2^shift that come on this CPU, drawn from each such group anew.  A program that
 * touches much at one line is then counted to the page but for the first and last group, and none
 * can fall into step with us. */
struct memory_state {
	struct budget budget;
	__u32 left;   /* pages up to the next drawn one, with it; 0: at first */
	__u32 rest;   /* of its group, behind it */
	__u32 shift;  /* of its group */
	__u32 second; /* memory_second(): when a group was last ended */
};
MAP(memory_states, PERCPU_ARRAY, 1, __u32, struct memory_state);

/* Programs touch memory in bursts, when they start or load their data: what was not spent in a
 * second is there for one. */
#define MEMORY_CREDIT_NS 10000000LL
#define MEMORY_PERIODS_MAX 100U

/* Sizes the groups so that walks cost what config.memory_budget_ns says: larger when they cost more
 * than that and no credit is left, smaller when they cost less than an eighth.  The rule of
 * lib/budget.bpf.h is for events that are drawn one by one: after a burst it makes groups far
 * larger than needed, and a large group at the begin of the next burst is an error of its size. */
static __always_inline void memory_adjust(struct memory_state *state, __u64 now_ns,
					  const struct pp_config *cfg)
{
	struct budget *budget = &state->budget;
	__u64 periods = (now_ns - budget->started_ns) / PP_BUDGET_PERIOD_NS;
	const __u32 period_ns = cfg->memory_budget_ns;
	__s64 income_ns;

	if (!periods)
		return;
	if (periods > MEMORY_PERIODS_MAX)
		periods = MEMORY_PERIODS_MAX;
	income_ns = periods * period_ns;
	/* What was spent has been taken off by budget_spend(). */
	budget->credit_ns += income_ns;
	if (budget->credit_ns > MEMORY_CREDIT_NS)
		budget->credit_ns = MEMORY_CREDIT_NS;
	if (budget->credit_ns < -MEMORY_CREDIT_NS)
		budget->credit_ns = -MEMORY_CREDIT_NS;
	if (budget->spent_ns < income_ns / 8)
		budget->shift = periods < budget->shift ? budget->shift - (__u32)periods : 0;
	else if (budget->spent_ns > income_ns && budget->credit_ns < 0 &&
		 budget->shift < BUDGET_MAX_SHIFT)
		budget->shift++;
	if (budget->shift < cfg->memory_shift_min)
		budget->shift = cfg->memory_shift_min;
	budget->spent_ns = 0;
	budget->started_ns = now_ns;
}

/* Draws a page of the group behind `before` more pages. */
static __always_inline void group_begin(struct memory_state *state, __u32 before)
{
	__u32 size = 1U << (state->budget.shift & 15);
	__u32 at = bpf_get_prandom_u32() & (size - 1);

	state->shift = state->budget.shift & 15;
	state->left = before + at + 1;
	state->rest = size - at - 1;
}

/* pp_config.token_round changes four times a second. */
static __always_inline __u32 memory_second(const struct pp_config *cfg)
{
	return cfg->token_round / 4;
}

/* Ends a group before its time: when few pages come, one of a large group would hardly ever be
 * drawn.  When it ends does not depend on what is drawn, so sums stay unbiased. */
static __always_inline void group_end(struct memory_state *state, const struct pp_config *cfg)
{
	state->second = memory_second(cfg);
	if (state->left && !state->shift && !cfg->memory_shift_min)
		return;
	memory_adjust(state, bpf_ktime_get_ns(), cfg);
	group_begin(state, 0);
}

/* Returns for how many pages an allocation of `pages` counts, of which at least one is drawn.  It
 * ends in this group, or goes through others and ends in a last one. */
static __always_inline __u32 pages_drawn(struct memory_state *state, __u32 size)
{
	__u32 shift = state->shift & 15, group = 1U << shift, behind = size - state->left, at;
	__u32 drawn = 1;

	if (behind < state->rest) {
		group_begin(state, state->rest - behind);
		return group;
	}
	behind -= state->rest;
	drawn += behind >> shift;
	behind &= group - 1;
	if (!behind) {
		group_begin(state, 0);
		return drawn << shift;
	}
	at = bpf_get_prandom_u32() & (group - 1);
	if (at < behind) {
		drawn++;
		group_begin(state, group - behind);
	} else {
		state->left = at - behind + 1;
		state->rest = group - at - 1;
	}
	return drawn << shift;
}

/* ---- what the memory is for ---- */

#define VM_SHARED 8UL
#define TMPFS_MAGIC 0x01021994UL
/* A program may use what lies below its stack pointer (psABI x86-64 3.2.2), and a function that has
 * just lowered it touches what lies above. */
#define BELOW_STACK_BYTES 256U
#define ABOVE_STACK_BYTES (64U << 10)
#define MAIN_STACK_BYTES (8ULL << 20)

static __always_inline bool lies_in(__u64 address, __u64 start, __u64 bytes)
{
	return address - start < bytes;
}

/* Returns what private memory at an address is for. */
static __always_inline enum pp_memory use_of_address(struct task_struct *task, __u64 address,
						     __u64 sp)
{
	__u64 first = task_first_word(task), heap = BPF_CORE_READ(task, mm, start_brk);

	if (lies_in(address, heap, BPF_CORE_READ(task, mm, brk) - heap))
		return PP_MEMORY_HEAP;
	if (lies_in(address, sp - BELOW_STACK_BYTES, BELOW_STACK_BYTES + ABOVE_STACK_BYTES) ||
	    lies_in(address, first - MAIN_STACK_BYTES, MAIN_STACK_BYTES))
		return PP_MEMORY_STACK;
	return PP_MEMORY_ANONYMOUS;
}

/* What a page is counted as. */
struct memory_use {
	enum pp_count_kind kind;
	enum pp_memory memory;
};

/* Says what a page is that does not come zeroed, from the mapping for which it was allocated. 
 * Returns false for one that is not counted: of the page cache, or back from swap. */
static __always_inline bool use_of_mapping(const struct vm_area_struct *mapping, __u32 error_code,
					   bool is_huge, struct memory_use *ret_use)
{
	const struct file *file = BPF_CORE_READ(mapping, vm_file);
	const bool is_shared = BPF_CORE_READ(mapping, vm_flags) & VM_SHARED;
	const bool is_own = !is_shared && error_code & FAULT_WRITE;

	if (!file) {
		if (error_code & FAULT_PRESENT && !is_huge)
			ret_use->kind = PP_KIND_COPY;
		return is_huge || error_code & FAULT_PRESENT;
	}
	if (is_own) {
		ret_use->kind = error_code & FAULT_PRESENT ? PP_KIND_COPY : PP_KIND_TOUCH;
		ret_use->memory = PP_MEMORY_FILE;
		return true;
	}
	ret_use->memory = PP_MEMORY_SHARED;
	return BPF_CORE_READ(file, f_inode, i_sb, s_magic) == TMPFS_MAGIC;
}

#endif
