/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of the functions that allocate and free memory.  Where the kernel has sessions (6.13)
 * it runs at the end of a call only where it has asked for that at the beginning; elsewhere the
 * ends of all calls are sites of their own. */
#include "lib/chance.bpf.h"
#include "lib/probe.bpf.h"

#include <pyprofd/probe.h>

/* Allocations: which are sampled (include/pyprofd/probe.h), and which sampled ones are still held.
 * Most calls are not: for these all that is done is a subtraction. */

/* One call of an allocator, as its first instruction shows it. */
struct alloc_call {
	__u64 thread; /* pid and tgid */
	__u64 pc, sp;
	__u64 back; /* where it returns to */
	__u64 size;
};

/* Programs of probes can be preempted, and another one of the CPU may write between two accesses:
 * then one call's bytes are not taken off, or an inner call counts as one of its own. */
struct alloc_cpu {
	__u64 left; /* bytes until the next one that is chosen */
	__u64 has_drawn;
	__u64 hits;
	struct alloc_call last;
};
MAP(alloc_cpus, PERCPU_ARRAY, 1, __u32, struct alloc_cpu);

/* A sampled call that has not returned, by pid and tgid.  Threads may end in it: the oldest go. */
struct allocating {
	struct pp_block block;
	__u64 sp;
	__u64 result_at; /* where the block's address will be stored; 0: it is returned */
	__u64 function;
};
MAP(allocatings, LRU_HASH, 4096, __u64, struct allocating);

/* Sampled blocks that are held (agent: size). */
MAP(blocks, HASH, 1, struct pp_block_key, struct pp_block);

/* Bytes that were freed unseen, by stack. */
MAP(debts, LRU_HASH, PP_DEBTS_MAX, struct pp_debt_key, __u64);

/* Files with allocators in them, by their number in frames (agent). */
MAP(allocators, HASH, 256, __u32, __u32);

#define MAP_ANONYMOUS_FLAG 0x20U
#define ERRNO_MAX 4095U
/* Functions that call others of their allocator do so from so near their beginning. */
#define NEAR_BYTES 4096U
/* One hit in so many is timed. */
#define HITS_TIMED 64U

/* All are read first: the verifier wants constant offsets from the context. */
static __always_inline __u64 parameter(struct pt_regs *ctx, __u8 number)
{
	__u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx), third = PT_REGS_PARM3(ctx);

	BARRIER(first);
	BARRIER(second);
	BARRIER(third);
	return number == 1 ? first : number == 2 ? second : number == 3 ? third : 0;
}

/* Returns the size of the block that is asked for.  A product that is too large stays so. */
static __always_inline __u64 size_asked(struct pt_regs *ctx, const struct pp_alloc_site *of)
{
	__u64 size = parameter(ctx, of->size[0]), count;

	if (of->size[1]) {
		count = parameter(ctx, of->size[1]);
		if ((size | count) >> 32)
			return size && count ? PP_ALLOC_SIZE_MAX : 0;
		size *= count;
	}
	return size < PP_ALLOC_SIZE_MAX ? size : PP_ALLOC_SIZE_MAX;
}

/* Returns where the function returns to; 0: it cannot be read. */
static __always_inline __u64 return_address(struct pt_regs *ctx)
{
	__u64 address = 0;

#if defined(__TARGET_ARCH_arm64)
	address = PT_REGS_RET(ctx);
#else
	bpf_probe_read_user(&address, sizeof(address), (const void *)PT_REGS_SP(ctx));
#endif
	return address;
}

/* Returns whether the call comes from another one of the same allocator, which was seen just
 * before: glibc's realloc() without a block jumps to malloc(), its reallocarray() to realloc(). */
static __always_inline bool is_inner(const struct alloc_cpu *cpu, const struct alloc_call *call)
{
	const struct alloc_call *last = &cpu->last;

	if (last->thread != call->thread || last->pc == call->pc)
		return false;
	if (last->sp == call->sp)
		return last->back == call->back && last->size == call->size;
	return call->sp < last->sp && call->back - last->pc < NEAR_BYTES;
}

/* Returns whether one of the block's bytes is chosen. */
static __always_inline bool is_chosen(struct alloc_cpu *cpu, __u64 size)
{
	bool is_chosen;

	if (!cpu->has_drawn) {
		cpu->has_drawn = 1;
		cpu->left = draw_exponential() << (PP_ALLOC_MEAN_SHIFT - 16);
	}
	is_chosen = cpu->left < size;
	/* The distribution has no memory: behind the block it begins anew. */
	if (is_chosen)
		cpu->left = draw_exponential() << (PP_ALLOC_MEAN_SHIFT - 16);
	else
		cpu->left -= size;
	return is_chosen;
}

/* ---- a sampled call ---- */

/* Allocators map memory for themselves: what they give of it is counted when they do. */
static __always_inline bool is_allocators_own(const struct pp_walk *w)
{
	__u32 at = w->python_stored + 1, file;

	/* Who has called is not known: it may have been an allocator. */
	if (w->native_stored < 2) {
		count_loss(PP_LOSS_PROBE_ARGUMENT);
		return true;
	}
	BARRIER(at);
	if (w->out.frame[at & (PP_MAX_FRAMES - 1)].kind != PP_FRAME_NATIVE)
		return false;
	file = w->out.frame[at & (PP_MAX_FRAMES - 1)].what;
	return bpf_map_lookup_elem(&allocators, &file);
}

static __always_inline bool walk_for_block(struct hit *h)
{
	struct task_struct *task = h->task; /* h is no struct of the kernel's */

	h->w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
	walk_user(h->taken.slot);
	if (h->site->alloc.mapping && is_allocators_own(h->w))
		return false;
	walk_emit_stacks(h->taken.slot);
	return true;
}

/* Returns whether the thread is inside of a sampled call. */
static __always_inline bool is_inside(__u64 thread, __u64 sp)
{
	const struct allocating *outer = bpf_map_lookup_elem(&allocatings, &thread);

	return outer && outer->sp > sp;
}

#define FUNCTION_SHIFT 56 /* above a stack pointer */

/* Remembers a sampled call until it returns.  Not inlined, as alloc_returned(): a walk leaves none
 * of the stack to what calls it.  at: its stack pointer, and the function above it. */
__noinline int alloc_remember(__u32 slot, __u64 size, __u64 scale, __u64 result_at, __u64 at)
{
	struct allocating call = {
		.sp = at << 8 >> 8, .function = at >> FUNCTION_SHIFT, .result_at = result_at};
	__u64 thread = bpf_get_current_pid_tgid(), weight = scaled(pp_alloc_weight(size), scale);
	struct pp_walk *w = walk_get(slot);

	if (!w)
		return 1;
	w->kind = PP_KIND_ALLOC;
	fill_count_key(w, &call.block.key);
	call.block.bytes = size * weight >> 16;
	/* Rounded at random: the sums stay right. */
	call.block.objects = (weight + (bpf_get_prandom_u32() & 0xffff)) >> 16;
	call.block.since_ns = w->started_ns;
	if (!bpf_map_update_elem(&allocatings, &thread, &call, BPF_ANY))
		return 0;
	count_loss(PP_LOSS_PROBE_CALLS_FULL);
	return 1;
}

/* Returns whether the call's end is wanted. */
static __always_inline bool alloc_begin(struct hit *h, struct pt_regs *ctx, __u64 size)
{
	const struct pp_alloc_site *of = &h->site->alloc;
	__u64 at = PT_REGS_SP(ctx) | (__u64)of->function << FUNCTION_SHIFT, result_at = 0;

	if (!h->scale || !hit_registers(h, ctx) || !walk_for_block(h))
		return false;
	if (of->result_at)
		result_at = parameter(ctx, of->result_at);
	return !alloc_remember(h->taken.slot, size, h->scale, result_at, at);
}

static __always_inline __u64 result_address(__u64 result, const struct allocating *call)
{
	if (!call->result_at)
		return result < -(__u64)ERRNO_MAX ? result : 0;
	if (result || bpf_probe_read_user(&result, sizeof(result), (const void *)call->result_at))
		return 0;
	return result;
}

static __always_inline void debt_add(const struct pp_block *block, __u32 tgid, __u64 bytes)
{
	struct pp_debt_key key = {.user_stack = block->key.user_stack, .tgid = tgid};
	__u64 *debt = bpf_map_lookup_elem(&debts, &key);

	if (debt)
		__sync_fetch_and_add(debt, bytes);
	else
		bpf_map_update_elem(&debts, &key, &bytes, BPF_ANY);
}

/* Adds what was freed unseen for a block that is freed now. */
static __always_inline void debt_of(const struct pp_block *block, __u32 tgid, __u32 probe)
{
	const struct pp_gate *gate = bpf_map_lookup_elem(&gates, &probe);
	__u64 now_ns = bpf_ktime_get_ns(), age_ns = now_ns - block->since_ns, left_ns;

	if (!gate || !gate->until_ns || now_ns >= gate->until_ns || block->since_ns < gate->from_ns)
		return;
	left_ns = gate->until_ns - gate->from_ns - age_ns;
	if (age_ns >> 32 || !(left_ns >> 10))
		return; /* no such gate */
	debt_add(block, tgid, (block->bytes >> 10) * (age_ns >> 10) / (left_ns >> 10) << 10);
}

/* probe: free's, whose gate tells what is seen. */
static __always_inline void block_free(__u64 tgid, __u64 address, __u32 probe)
{
	struct pp_block_key key = {.address = address, .tgid = (__u32)tgid};
	const struct pp_block *block = bpf_map_lookup_elem(&blocks, &key);

	if (!block)
		return;
	debt_of(block, key.tgid, probe);
	bpf_map_delete_elem(&blocks, &key);
}

/* Counts the block that a sampled call returns, and keeps it until it is freed. */
__noinline int alloc_returned(__u32 function, __u64 result)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct allocating *call = bpf_map_lookup_elem(&allocatings, &thread);
	struct pp_block_key key = {.tgid = thread >> 32};
	struct pp_config *cfg = config_get();

	if (!call || !cfg || call->function != function)
		return 1;
	key.address = result_address(result, call);
	if (key.address) {
		count_add(&call->block.key, call->block.objects, call->block.bytes,
			  table_number(cfg));
		if (bpf_map_update_elem(&blocks, &key, &call->block, BPF_ANY))
			count_loss(PP_LOSS_BLOCKS_FULL);
	}
	bpf_map_delete_elem(&allocatings, &thread);
	return 0;
}

/* The program is a session's. */
const volatile bool is_session;

/* As probe_programs, for programs of another type. */
MAP(alloc_programs, PROG_ARRAY, 1, __u32, __u32);

static __always_inline struct alloc_cpu *alloc_cpu_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&alloc_cpus, &zero);
}

/* In a session the function's address stays the same, and pc is where it returns to. */
static __always_inline bool is_end(struct pt_regs *ctx, const struct pp_site *site)
{
	if (is_session)
		return bpf_get_func_ip(ctx) != PT_REGS_IP(ctx);
	return site->does == PP_SITE_ALLOC_END;
}

static __always_inline void hits_add(__u32 probe, __u64 began_ns)
{
	struct pp_hits *of = bpf_map_lookup_elem(&hits, &probe);

	if (!of)
		return;
	of->hits++;
	if (began_ns)
		of->ns += (bpf_ktime_get_ns() - began_ns) * HITS_TIMED;
}

/* Returns whether the call is sampled. */
static __always_inline bool call_begin(struct alloc_cpu *cpu, struct pt_regs *ctx,
				       const struct pp_site *site, __u64 thread, __u64 *ret_size)
{
	struct alloc_call call = {.thread = thread,
				  .pc = PT_REGS_IP(ctx),
				  .sp = PT_REGS_SP(ctx),
				  .back = return_address(ctx),
				  .size = size_asked(ctx, &site->alloc)};
	bool counts = !is_inner(cpu, &call);

	if (site->alloc.mapping == PP_MAPPING_BY_FLAGS &&
	    !(PT_REGS_PARM4(ctx) & MAP_ANONYMOUS_FLAG))
		counts = false;
	cpu->last = call;
	*ret_size = call.size;
	return counts && is_chosen(cpu, call.size);
}

/* Returns whether the call's end is wanted. */
static __always_inline bool call_sampled(struct pt_regs *ctx, __u32 number, __u64 thread,
					 __u64 size)
{
	struct hit h;
	bool is_wanted;

	if (is_inside(thread, PT_REGS_SP(ctx)) || !hit_begin(&h, number))
		return false;
	is_wanted = alloc_begin(&h, ctx, size);
	hit_end(&h);
	return is_wanted;
}

/* Returns whether the call's end is wanted. */
static __always_inline bool alloc_hit(struct pt_regs *ctx)
{
	const __u32 number = site_hit(ctx, &site_now);
	const struct pp_site *site = site_get(number);
	const struct pp_config *cfg = config_get();
	struct alloc_cpu *cpu = alloc_cpu_get();
	const __u64 thread = bpf_get_current_pid_tgid();
	__u64 began_ns = 0, size;

	if (!site || !cfg || !cpu || !site->does || cfg->flags & PP_CONFIG_PAUSED)
		return false;
	if (!(++cpu->hits & (HITS_TIMED - 1)))
		began_ns = bpf_ktime_get_ns();
	if (is_end(ctx, site)) {
		alloc_returned(site->alloc.function, PT_REGS_RC(ctx));
		return false;
	}
	if (site->alloc.frees)
		block_free(thread >> 32, parameter(ctx, site->alloc.frees), site->probe);
	if (site->does == PP_SITE_ALLOC_BEGIN && call_begin(cpu, ctx, site, thread, &size))
		return call_sampled(ctx, number, thread, size);
	hits_add(site->probe, began_ns);
	return false;
}

SEC("uprobe")
int on_alloc(struct pt_regs *ctx)
{
	bool wants_end;

	REFUSE_PRIVATE_STACK(ctx, alloc_programs);
	wants_end = alloc_hit(ctx);
	/* A session's 1: its end is not wanted.  Others return 0, or the event is recorded. */
	return is_session && !wants_end;
}
