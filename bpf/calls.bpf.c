/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entry and return of Python functions.  A hit of a known thread in a known function walks
 * nothing. */
#include "lib/calls.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/private_stack.bpf.h"
#include "lib/scratch_pool.bpf.h"
#include "lib/user_registers.bpf.h"

/* ---- arguments ---- */

#if defined(__TARGET_ARCH_arm64)
#define REGISTER_AT(number) ((number) * 8U) /* struct user_pt_regs: x0 .. x30, sp */
#define REGISTERS 32U
static __always_inline __u64 register_at(__u32 number)
{
	return REGISTER_AT(number & (REGISTERS - 1));
}
#else
#define REGISTERS 16U
/* By DWARF number: psABI x86-64 figure 3.36. */
static const __u8 register_offset[REGISTERS] = {
	__builtin_offsetof(struct pt_regs, rax), __builtin_offsetof(struct pt_regs, rdx),
	__builtin_offsetof(struct pt_regs, rcx), __builtin_offsetof(struct pt_regs, rbx),
	__builtin_offsetof(struct pt_regs, rsi), __builtin_offsetof(struct pt_regs, rdi),
	__builtin_offsetof(struct pt_regs, rbp), __builtin_offsetof(struct pt_regs, rsp),
	__builtin_offsetof(struct pt_regs, r8),	 __builtin_offsetof(struct pt_regs, r9),
	__builtin_offsetof(struct pt_regs, r10), __builtin_offsetof(struct pt_regs, r11),
	__builtin_offsetof(struct pt_regs, r12), __builtin_offsetof(struct pt_regs, r13),
	__builtin_offsetof(struct pt_regs, r14), __builtin_offsetof(struct pt_regs, r15),
};
static __always_inline __u64 register_at(__u32 number)
{
	return register_offset[number & (REGISTERS - 1)];
}
#endif

/* Reads a register; the verifier allows only constant offsets from the context itself. */
static __always_inline __u64 register_of(void *ctx, __u32 number)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const char *)ctx + register_at(number));
	return value;
}

static __always_inline __u64 argument(void *ctx, const struct pp_probe_arg *arg)
{
	__u64 value = register_of(ctx, arg->base);

	if (arg->kind == PP_ARG_MEMORY) {
		__u64 address = value + arg->value;

		value = 0;
		if (arg->bytes == 4)
			bpf_probe_read_user(&value, 4, (const void *)address);
		else
			bpf_probe_read_user(&value, 8, (const void *)address);
	}
	return arg->bytes == 4 ? (__u32)value : value;
}

/* The addresses of a function's names tell it apart, and the first bytes of its own name whether
 * the memory was used again for another one. */
static __always_inline void take_names(struct call_hit *h, void *ctx)
{
	__u64 file = argument(ctx, &h->site->arg[PP_CALL_FILE]);
	__u64 name = argument(ctx, &h->site->arg[PP_CALL_NAME]);
	__u64 head[PP_CALL_NAME_BYTES / 8] = {};

	bpf_probe_read_user_str(head, sizeof(head), (const void *)name);
	h->line = argument(ctx, &h->site->arg[PP_CALL_LINE]);
	h->names = hash_mix(hash_mix(hash_mix(file, name), head[0]), head[1]) | 1;
}

/* ---- what needs a walk: new threads and new paths ---- */

/* Begins the shadow stack of a thread whose process w is of. */
__noinline int thread_add(__u32 slot, __u64 start_time, __u64 now_ns, __u32 event)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_call_thread thread = {.start_time = start_time, .last_ns = now_ns, .last = event};

	if (!w)
		return 1;
	thread.id = w->id;
	thread.tid = w->tid;
	thread.root = hash_mix(hash_mix((__u64)w->id.tgid << 32 | w->tid, start_time), 0x5eed);
	return bpf_map_update_elem(&call_threads, &w->tid, &thread, BPF_ANY) ? 1 : 0;
}

/* Makes a node of a caller that was walked. */
__noinline int caller_add(__u32 slot, __u32 at)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_call_thread *thread = w ? bpf_map_lookup_elem(&call_threads, &w->tid) : NULL;
	__u64 code, id;

	if (!thread)
		return 1;
	BARRIER(at);
	code = w->out.frame[at & (PP_MAX_FRAMES - 1)].where;
	id = hash_mix(hash_mix(parent_hash(thread), code), 1) | 1;
	if (!node_get(id))
		return thread_enter_new(w->tid, id, code, 0, 0);
	thread->top = id;
	return 0;
}

/* Makes nodes of the callers, from the root to the one before the leaf frames.  What is nearer to
 * the root than PP_CALL_CALLERS_MAX is left out. */
__noinline int callers_add(__u32 slot, __u32 leaves)
{
	struct pp_walk *w = walk_get(slot);
	__u32 count;

	if (!w)
		return 1;
	count = w->python_count;
	if (count > PP_CALL_CALLERS_MAX)
		count = PP_CALL_CALLERS_MAX;
	for (__u32 i = 0; i < PP_CALL_CALLERS_MAX; i++) {
		if (i + leaves >= count)
			break;
		if (caller_add(slot, count - 1 - i))
			return 1;
	}
	return 0;
}

/* Each takes 8 frames (walk.bpf.c).  Not by walk_python_only(): before Linux 6.0 its call would be
 * one too many for the stack. */
#define CALLER_TURNS (PP_CALL_CALLERS_MAX / 8 + 1)

/* Walks the Python frames of the current thread; w is its. */
static __always_inline void walk_frames(struct call_hit *h, struct pp_walk *w, __u32 slot,
					void *ctx, bool wants_all)
{
	struct task_struct *task = h->task;

	if (take_user_registers(w, task, ctx, true))
		return;
	w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
	if (walk_python_begin(slot))
		return;
	for (__u32 i = 0; i < CALLER_TURNS; i++)
		if (walk_python_steps(slot) || !wants_all)
			break;
}

static __always_inline __u64 leaf_code(const struct pp_walk *w)
{
	/* Its names could not be read: the call counts all the same, under no name. */
	if (!w->python_count || w->out.frame[0].kind != PP_FRAME_PYTHON)
		return hash_mix(w->tid, w->started_ns) | 1;
	return w->out.frame[0].where;
}

static __always_inline void entry_walked(struct call_hit *h, struct pp_walk *w)
{
	struct pp_call_thread *thread = h->thread;

	thread_pass(h, thread->top ? node_get(thread->top) : NULL);
	if (!thread->lost)
		thread_enter_new(h->tid, child_id(h), h->site->is_ours ? h->line : leaf_code(w),
				 h->names, 1);
}

/* A function that a walk has found returns: from here on it is known by its names. */
static __always_inline void return_walked(struct call_hit *h, struct pp_walk *w)
{
	struct pp_call_thread *thread = h->thread;
	struct pp_call_node *top = thread->top ? node_get(thread->top) : NULL;
	struct pp_call_sums *sums = sums_get();

	thread_pass(h, top);
	if (!top)
		return;
	if (!top->names && top->code == leaf_code(w)) {
		top->names = h->names;
		thread->top = top->parent;
		return;
	}
	if (sums)
		sums->unmatched++;
	bpf_map_delete_elem(&call_threads, &h->tid);
}

static __always_inline void handle_walked(struct call_hit *h, struct pp_walk *w, __u32 slot,
					  void *ctx)
{
	const bool is_new = !h->thread;

	walk_reset(w, 0, h->now_ns, PP_SAMPLE_WALK_NS);
	if (!h->site->is_ours)
		walk_frames(h, w, slot, ctx, is_new);
	if (is_new) {
		thread_add(slot, h->start_time, h->now_ns, h->event);
		h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
		if (!h->thread)
			return;
		/* A function that returns was called, too, before its thread was known. */
		if (!h->site->is_ours)
			callers_add(slot, h->event == PP_CALL_ENTRY);
	}
	if (h->event == PP_CALL_ENTRY)
		entry_walked(h, w);
	else
		return_walked(h, w);
	/* The walk is no time of the program's. */
	h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
	if (h->thread)
		h->thread->last_ns = bpf_ktime_get_ns();
}

static __always_inline void handle_new(struct call_hit *h, void *ctx)
{
	struct pp_config *cfg = config_get();
	struct task_struct *task = h->task;
	struct scratch taken;

	if (!cfg || (cfg->flags & PP_CONFIG_PAUSED && !h->site->is_ours))
		return;
	scratch_enter_pool(&taken);
	if (!taken.walk)
		return;
	if (identify(taken.walk, task, (__u64)h->tgid << 32 | h->tid, CURRENT_READ(task, flags),
		     false, cfg) ||
	    h->site->is_ours)
		handle_walked(h, taken.walk, taken.slot, ctx);
	scratch_leave(&taken);
}

/* ---- the programs ---- */

static __always_inline __u32 site_number(void *ctx)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	return 0; /* there is one interpreter file */
}

static __always_inline bool hit_begin(struct call_hit *h, void *ctx, enum pp_call_event event)
{
	struct task_struct *task = task_current();
	__u32 number;
	__u64 thread;

	h->now_ns = bpf_ktime_get_ns();
	h->event = event;
	number = 2 * site_number(ctx) + event;
	h->site = bpf_map_lookup_elem(&call_sites, &number);
	if (!h->site || !h->site->is_used)
		return false;
	thread = bpf_get_current_pid_tgid();
	h->tid = (__u32)thread;
	h->tgid = thread >> 32;
	h->task = task;
	h->start_time = CURRENT_READ(task, start_time);
	h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
	if (h->thread && unlikely(h->thread->start_time != h->start_time))
		h->thread = NULL; /* another thread had its number */
	take_names(h, ctx);
	return true;
}

SEC("uprobe")
int on_call_entry(struct pt_regs *ctx)
{
	struct call_hit h;

	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (hit_begin(&h, ctx, PP_CALL_ENTRY) && (!h.thread || !entry_is_known(&h)))
		handle_new(&h, ctx);
	return 0;
}

SEC("uprobe")
int on_call_return(struct pt_regs *ctx)
{
	struct call_hit h;

	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (hit_begin(&h, ctx, PP_CALL_RETURN) && (!h.thread || !return_is_known(&h)))
		handle_new(&h, ctx);
	return 0;
}
