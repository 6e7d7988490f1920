/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of the functions of libcuda, or of libcudart where a process has no libcuda.  A site
 * says what its function does (include/pyprofd/cuda.h); ends of calls are sites of their own. */
#include "lib/cuda.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/private_stack.bpf.h"
#include "lib/scratch_pool.bpf.h"
#include "lib/text.bpf.h"
#include "lib/times.bpf.h"
#include "lib/user_registers.bpf.h"

static __always_inline __u32 cuda_site_number(struct pt_regs *ctx)
{
	__u32 zero = 0, *stubs;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	stubs = bpf_map_lookup_elem(&cuda_site_now, &zero);
	return stubs ? *stubs : 0;
}

/* ---- calls under way ---- */

/* Remembers a call until it returns.  slot: 1 + that of the walk of its stack; 0: it has none. */
__noinline int cuda_call_remember(__u64 sp, __u64 id, __u64 what, __u32 stands_for, __u32 slot)
{
	struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = sp};
	struct cuda_call call = {.id = id, .what = what, .stands_for = stands_for};
	struct pp_walk *w = slot ? walk_get(slot - 1) : NULL;

	if (w)
		fill_count_key(w, &call.row);
	else
		call.stands_for = 0;
	/* The walk is ours, not the program's. */
	call.began_ns = bpf_ktime_get_ns();
	if (!bpf_map_update_elem(&cuda_calls, &key, &call, BPF_ANY))
		return 0;
	count_loss(PP_LOSS_PROBE_CALLS_FULL);
	return 1;
}

/* Counts under the stack that was taken. */
__noinline int cuda_count(__u32 slot, __u64 calls, __u64 bytes)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_count_key key = {};

	if (!w || !cfg)
		return 1;
	fill_count_key(w, &key);
	if (count_add(&key, calls, bytes * calls, table_number(cfg)) > 0)
		news_add(w->user);
	return 0;
}

/* ---- stacks ---- */

/* Walks from the function's first instruction: its frame is the leaf. */
static __always_inline void cuda_walk(struct pt_regs *ctx, struct pp_walk *w, __u32 slot, __u64 id)
{
	struct task_struct *task = task_current();

	walk_reset(w, 0, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
	w->is_modest = 1;
	w->kind = PP_KIND_CUDA;
	w->detail = id;
	if (!take_user_registers(w, task, (struct bpf_perf_event_data *)ctx, true)) {
		w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
		walk_user(slot);
	}
	walk_emit_stacks(slot);
}

/* A call whose stack is taken, which stands for so many. */
static __always_inline void cuda_call_walk(struct pt_regs *ctx, const struct cuda_hit *h,
					   __u32 stands_for, __u64 bytes)
{
	struct task_struct *task = task_current();
	const __u64 sp = PT_REGS_SP(ctx);
	struct scratch taken;
	__u32 walked = 0;

	scratch_enter_pool(&taken);
	if (taken.walk &&
	    identify(taken.walk, task, h->thread, CURRENT_READ(task, flags), false, h->cfg)) {
		cuda_walk(ctx, taken.walk, taken.slot, h->id);
		cuda_count(taken.slot, stands_for, bytes);
		times_add(PP_PROGRAM_PROBE, bpf_ktime_get_ns() - taken.walk->started_ns);
		walked = taken.slot + 1;
	}
	if (h->site->has_end)
		cuda_call_remember(sp, h->id, 0, stands_for, walked);
	if (taken.walk)
		scratch_leave(&taken);
}

/* ---- beginnings ---- */

static __always_inline void cuda_call_begin(struct pt_regs *ctx, struct cuda_hit *h)
{
	struct pp_cuda_totals *totals;
	__u64 bytes;
	__u32 stands_for;

	bytes = cuda_bytes(ctx, h->site, &h->what.direction);
	h->what.api = h->site->api;
	if (h->site->ident)
		h->what.ident = cuda_parameter(ctx, h->site->ident);
	totals = cuda_totals_make(h);
	if (!totals)
		return;
	__sync_fetch_and_add(&totals->calls, scaled(1, h->scale));
	if (bytes)
		__sync_fetch_and_add(&totals->bytes, bytes);
	stands_for = cuda_walk_due(totals, h->cfg, h->id);
	if (stands_for)
		cuda_call_walk(ctx, h, stands_for, bytes);
	else if (h->site->has_end)
		cuda_call_remember(PT_REGS_SP(ctx), h->id, 0, 0, 0);
}

/* The thread goes on with the device of a context. */
__noinline int cuda_context_set(__u64 thread_id, __u64 context)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &thread_id);
	struct pp_cuda_handle key = {.handle = context};
	const __u32 *device;

	if (!thread)
		return 1;
	key.id.tgid = thread_id >> 32;
	key.id.generation = thread->generation;
	device = bpf_map_lookup_elem(&cuda_contexts, &key);
	thread->device = device ? *device : 0;
	return 0;
}

static __always_inline void cuda_begin(struct pt_regs *ctx, struct cuda_hit *h,
				       struct cuda_thread *thread)
{
	const struct pp_cuda_site *site = h->site;
	__u64 ident;

	switch (site->does) {
	case PP_CUDA_CALL:
		cuda_call_begin(ctx, h);
		return;
	case PP_CUDA_SET_DEVICE:
		ident = (__u32)cuda_parameter(ctx, site->ident);
		thread->device = ident < CUDA_DEVICE_MAX ? ident + 1 : 0;
		return;
	case PP_CUDA_SET_CONTEXT:
		cuda_context_set(h->thread, cuda_parameter(ctx, site->ident));
		return;
	case PP_CUDA_NAME:
		ident = cuda_parameter(ctx, site->text);
		break;
	default: /* PP_CUDA_ALIAS, PP_CUDA_GET_CONTEXT */
		ident = cuda_parameter(ctx, site->ident);
	}
	cuda_call_remember(PT_REGS_SP(ctx), cuda_parameter(ctx, site->out), ident, 0, 0);
}

/* ---- ends ---- */

/* Adds a call's time to its row, and under its stack. */
__noinline int cuda_call_returned(__u64 sp, __u32 waits)
{
	struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = sp};
	struct cuda_call *call = bpf_map_lookup_elem(&cuda_calls, &key);
	struct pp_config *cfg = config_get();
	__u64 ns;

	if (!call || !cfg)
		return 1;
	ns = bpf_ktime_get_ns() - call->began_ns;
	cuda_add_time(call->id, ns, waits & 1);
	/* Of a call that moves bytes these say where its time belongs. */
	if (call->stands_for && waits == 1)
		count_add(&call->row, 0, ns * call->stands_for, table_number(cfg));
	bpf_map_delete_elem(&cuda_calls, &key);
	return 0;
}

/* Sends a kernel's name, and notes it for its handle.  w->id is the process. */
__noinline int cuda_name_set(__u32 slot, __u64 handle, __u64 text)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_cuda_handle key = {.handle = handle};
	struct pp_cuda_name name = {};

	if (!w || !cfg || news_are_refused(w->user, cfg->token_round))
		return 1;
	text_send(slot, text);
	name.text = w->detail;
	key.id = w->id;
	return !name.text || bpf_map_update_elem(&cuda_names, &key, &name, BPF_ANY);
}

/* A handle stands for another one: they have one name, also where nobody knows it yet. */
__noinline int cuda_alias_set(__u32 generation, __u64 handle, __u64 other)
{
	struct pp_cuda_handle key = {.handle = handle};
	struct pp_cuda_name name = {.of = other};

	key.id.tgid = bpf_get_current_pid_tgid() >> 32;
	key.id.generation = generation;
	return bpf_map_update_elem(&cuda_names, &key, &name, BPF_ANY) ? 1 : 0;
}

__noinline int cuda_context_note(__u32 generation, __u64 context, __u64 device)
{
	struct pp_cuda_handle key = {.handle = context};
	__u32 value = device < CUDA_DEVICE_MAX ? device + 1 : 0;

	key.id.tgid = bpf_get_current_pid_tgid() >> 32;
	key.id.generation = generation;
	return bpf_map_update_elem(&cuda_contexts, &key, &value, BPF_ANY) ? 1 : 0;
}

static __always_inline void cuda_name_found(const struct cuda_hit *h, __u64 handle, __u64 text)
{
	struct task_struct *task = task_current();
	struct scratch taken;

	scratch_enter_pool(&taken);
	if (!taken.walk)
		return;
	if (identify(taken.walk, task, h->thread, CURRENT_READ(task, flags), false, h->cfg))
		cuda_name_set(taken.slot, handle, text);
	scratch_leave(&taken);
}

/* A function that gives a handle has returned. */
static __always_inline void cuda_handle_got(struct pt_regs *ctx, const struct cuda_hit *h, __u64 sp)
{
	struct cuda_call_key key = {.thread = h->thread, .sp = sp};
	const struct cuda_call *call = bpf_map_lookup_elem(&cuda_calls, &key);
	__u64 handle = 0, what;

	if (!call)
		return;
	what = call->what;
	bpf_probe_read_user(&handle, sizeof(handle), (const void *)call->id);
	bpf_map_delete_elem(&cuda_calls, &key);
	/* CUresult: 0 is success. */
	if ((__u32)PT_REGS_RC(ctx) || !handle)
		return;
	if (h->site->does == PP_CUDA_NAME)
		cuda_name_found(h, handle, what);
	else if (h->site->does == PP_CUDA_ALIAS)
		cuda_alias_set(h->what.id.generation, handle, what);
	else
		cuda_context_note(h->what.id.generation, handle, (__u32)what);
}

static __always_inline void cuda_end(struct pt_regs *ctx, const struct cuda_hit *h)
{
	/* The return address is popped already. */
	const __u64 sp = PT_REGS_SP(ctx) - RETURN_ADDRESS_BELOW_CFA;
	const bool moves = h->site->bytes[0] || h->site->layout;

	if (h->site->does == PP_CUDA_CALL)
		cuda_call_returned(sp, h->site->waits | (moves ? 2 : 0));
	else
		cuda_handle_got(ctx, h, sp);
}

static __always_inline void cuda_handle(struct pt_regs *ctx)
{
	const __u32 number = cuda_site_number(ctx);
	const struct pp_site *site = bpf_map_lookup_elem(&cuda_sites, &number);
	const struct pp_config *cfg = config_get();
	struct cuda_hit h = {};
	struct cuda_thread *thread;

	if (!site || !cfg || site->does != PP_SITE_CUDA || cfg->flags & PP_CONFIG_PAUSED)
		return;
	h.site = &site->cuda;
	h.cfg = cfg;
	h.thread = bpf_get_current_pid_tgid();
	thread = cuda_thread_get(h.thread, cfg);
	if (!thread || !cuda_hit_count(&h, thread))
		return;
	h.what.id.tgid = h.thread >> 32;
	h.what.id.generation = thread->generation;
	h.what.device = thread->device;
	if (h.site->is_end)
		cuda_end(ctx, &h);
	else
		cuda_begin(ctx, &h, thread);
}

SEC("uprobe")
int on_cuda(struct pt_regs *ctx)
{
	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	cuda_handle(ctx);
	return 0;
}
