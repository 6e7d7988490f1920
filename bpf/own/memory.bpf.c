/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts memory that programs touch for the first time, and pages that are copied on write, at the
 * stack of the access.  A page fault says who touches what; that a page is added, and how large it
 * is, only its allocation says.  So faults are remembered and allocations counted
 * (docs/design/memory.md).  Programs of tracepoints run with preemption off. */
#include "lib/memory.bpf.h"
#include "lib/budget.bpf.h"
#include "lib/count.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk.bpf.h"

const volatile __u32 page_shift; /* (agent) */

/* One allocation of pages, while it is handled. */
struct page_taken {
	struct task_struct *task;
	struct pp_config *cfg;
	struct memory_use use;
	__u64 address, pc; /* of the fault for which the pages are */
	__u32 error_code;
	__u64 thread; /* pid and tgid */
	__u32 task_flags;
	__u32 gfp;
	__u32 order;
	__u32 weight; /* pages, for which it counts */
	bool has_fault;
};

/* ---- faults: x86-64 only, aarch64 has no such tracepoint ---- */

#if !defined(__TARGET_ARCH_arm64)
/* Returns whether a fault is an error of the access, which gets no page: one of our own walks. */
static __always_inline bool faults_are_disabled(struct task_struct *task)
{
	if (task_fields_can_be_loaded())
		return task->pagefault_disabled;
	/* The helper that reads the field disables faults meanwhile. */
	return BPF_CORE_READ(task, pagefault_disabled) > 1;
}

static __always_inline int fault_begins(__u64 address, const struct pt_regs___kernel *registers,
					__u64 error_code)
{
	struct task_struct *task = task_current();
	__u64 thread = bpf_get_current_pid_tgid();
	struct fault *fault = fault_of(thread);
	struct pp_config *cfg = config_get();

	if (!fault || !cfg || cfg->flags & PP_CONFIG_PAUSED)
		return 0;
	/* Addresses of the kernel's own are negative. */
	if ((__s64)address < 0 || faults_are_disabled(task))
		return 0;
	fault->thread = thread;
	fault->address = address;
	fault->registers_at = (__u64)registers;
	fault->pc = registers->ip;
	fault->error_code = error_code;
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address, struct pt_regs___kernel *registers,
	     unsigned long error_code)
{
	return fault_begins(address, registers, error_code);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_kernel_fault, unsigned long address, struct pt_regs___kernel *registers,
	     unsigned long error_code)
{
	return fault_begins(address, registers, error_code);
}
#endif

/* ---- the walk ---- */

#define FAULT_DEPTH 32U /* of the kernel's functions from a fault to the allocation */

/* Returns how many of the kernel stack's frames lie in the handling of the fault; 0: not found.
 * Functions with external linkage are verified once, not on each path to them. */
__noinline int frames_of_fault(__u32 slot, __u64 pc)
{
	const struct pp_walk *w = walk_get(slot);

	if (!w)
		return 0;
	for (__u32 i = 0; i < FAULT_DEPTH; i++)
		if (i * 8 < w->kernel_bytes && w->kernel.address[i] == pc)
			return i;
	return 0;
}

/* Takes the kernel's part of the stack up to where it accessed the memory. */
static __always_inline void take_stack_of_access(struct pp_walk *w, __u32 slot, void *ctx,
						 const struct page_taken *taken)
{
	long bytes = bpf_get_stack(ctx, w->kernel.address, PP_MAX_KERNEL_FRAMES * 8, 0);
	__u32 skipped;

	if (bytes <= 0)
		return;
	w->kernel_bytes = bytes;
	skipped = taken->has_fault ? frames_of_fault(slot, taken->pc) : 0;
	if (skipped)
		bytes = bpf_get_stack(ctx, w->kernel.address, PP_MAX_KERNEL_FRAMES * 8,
				      skipped & BPF_F_SKIP_FIELD_MASK);
	w->kernel_bytes = bytes > 0 ? bytes : 0;
	walk_kernel_hash(slot);
}

/* Verified once, as its arguments are numbers. */
__noinline int count_pages(__u32 slot, __u32 weight, __u32 order)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_count_key key = {};
	__u32 hits = (weight + (1U << (order & 15)) / 2) >> (order & 15);

	if (!w || !cfg)
		return 1;
	fill_count_key(w, &key);
	count_add(&key, hits ? hits : 1, (__u64)weight << page_shift, table_number(cfg));
	return 0;
}

/* Says what the pages are.  Returns false if they are not counted. */
static __always_inline bool find_use(struct page_taken *taken, const struct pp_walk *w, __u32 slot)
{
	const struct vm_area_struct *mapping;

	taken->use.kind = PP_KIND_TOUCH;
	taken->use.memory = PP_MEMORY_ANONYMOUS;
	if (!taken->has_fault)
		return true;
	taken->use.memory = use_of_address(taken->task, taken->address, w->registers[PP_REG_SP]);
	if (taken->gfp & GFP_ZERO)
		return true;
	mapping = find_mapping(taken->task, taken->address, slot);
	if (mapping)
		return use_of_mapping(mapping, taken->error_code, taken->order, &taken->use);
	count_loss(PP_LOSS_PAGES_UNKNOWN);
	return false;
}

static __always_inline void walk_page(void *ctx, struct page_taken *taken, struct pp_walk *w,
				      __u32 slot)
{
	/* A macro that relocates fields would take those of *taken for the kernel's too. */
	struct task_struct *task = taken->task;
	bool is_of_user = !take_user_registers(w, task, ctx, false);

	if (!find_use(taken, w, slot))
		return;
	w->kind = taken->use.kind;
	w->detail = taken->use.memory;
	if (!(taken->has_fault && taken->error_code & FAULT_USER) &&
	    !(taken->cfg->flags & PP_CONFIG_NO_KERNEL))
		take_stack_of_access(w, slot, ctx, taken);
	if (is_of_user) {
		w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
		walk_user(slot);
	}
	walk_emit_stacks(slot);
	count_pages(slot, taken->weight, taken->order);
}

static __always_inline void take_page(void *ctx, struct page_taken *taken,
				      struct memory_state *state, __u64 now_ns)
{
	struct scratch scratch_slot;
	__u64 took_ns;

	scratch_enter(&scratch_slot);
	if (!scratch_slot.walk)
		return;
	if (identify(scratch_slot.walk, taken->task, taken->thread, taken->task_flags, true,
		     taken->cfg)) {
		walk_reset(scratch_slot.walk, 0, now_ns, PP_SAMPLE_WALK_NS);
		scratch_slot.walk->is_modest = 1;
		walk_page(ctx, taken, scratch_slot.walk, scratch_slot.slot);
	}
	scratch_leave(&scratch_slot);
	took_ns = bpf_ktime_get_ns() - now_ns;
	budget_spend(&state->budget, took_ns);
	times_add(PP_PROGRAM_PAGE, took_ns);
}

/* ---- allocations ---- */

static __noinline bool look_up_match(__u32 tgid)
{
	struct pp_process_id id = {.tgid = tgid};
	__u32 *generation = bpf_map_lookup_elem(&processes, &tgid);
	struct pp_process_context *context;

	if (!generation)
		return false;
	id.generation = *generation;
	context = bpf_map_lookup_elem(&contexts, &id);
	return context && context->flags & PP_CONTEXT_MATCHES;
}

/* Returns whether the process matches the filter.  Pages of others must not be drawn: most draws
 * would be theirs. */
static __always_inline bool process_matches(struct fault *fault, __u32 tgid,
					    const struct pp_config *cfg)
{
	__u32 changes = *(const volatile __u32 *)&cfg->process_changes;

	if (!(cfg->flags & PP_CONFIG_FILTER))
		return true;
	if (fault->matches_tgid != tgid || fault->process_changes != changes) {
		fault->matches = look_up_match(tgid);
		fault->process_changes = changes;
		fault->matches_tgid = tgid;
	}
	return fault->matches;
}

/* Returns whether the pages may be memory that the thread touches.  Without a fault only zeroed and
 * huge ones are, when the kernel fills a mapping (MAP_POPULATE, pinned memory). */
static __always_inline bool may_be_touched(__u32 gfp, __u32 order, bool has_fault)
{
	return gfp & GFP_ZERO || has_fault || (order && gfp & GFP_NOMEMALLOC);
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(on_page, void *page, unsigned int order, unsigned int gfp)
{
	struct page_taken taken = {.gfp = gfp, .order = order};
	struct memory_state *state;
	struct task_struct *task;
	struct fault *fault;
	__u32 zero = 0, size;
	__u64 now_ns;

	if (likely(!pages_are_of_users(gfp) || pages_are_read_ahead(gfp)))
		return 0;
	taken.cfg = config_get();
	taken.thread = bpf_get_current_pid_tgid();
	fault = fault_of(taken.thread);
	state = bpf_map_lookup_elem(&memory_states, &zero);
	if (!page || !taken.cfg || !fault || !state || taken.cfg->flags & PP_CONFIG_PAUSED)
		return 0;
	task = task_current();
	taken.task = task;
	taken.task_flags = CURRENT_READ(task, flags);
	if (taken.task_flags & PF_KTHREAD)
		return 0;
	taken.has_fault = fault_goes_on(fault, taken.thread);
	if (!may_be_touched(gfp, order, taken.has_fault) ||
	    !process_matches(fault, taken.thread >> 32, taken.cfg))
		return 0;
	if (taken.has_fault)
		fault->thread = 0;
	if (unlikely(!state->left || state->second != memory_second(taken.cfg)))
		group_end(state, taken.cfg);
	size = 1U << (order & 15);
	if (likely(state->left > size)) {
		state->left -= size;
		return 0;
	}
	taken.address = fault->address;
	taken.pc = fault->pc;
	taken.error_code = fault->error_code;
	now_ns = bpf_ktime_get_ns();
	memory_adjust(state, now_ns, taken.cfg);
	taken.weight = pages_drawn(state, size);
	take_page(ctx, &taken, state, now_ns);
	return 0;
}
