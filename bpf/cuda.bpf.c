/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of the functions of libcuda, or of libcudart where a process has no libcuda.  A site
 * says what its function does (include/pyprofd/cuda.h); ends of calls are sites of their own. */
#include "lib/cuda.bpf.h"
#include "lib/budget.bpf.h"
#include "lib/cuda_memory.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/text.bpf.h"
#include "lib/user_probe.bpf.h"
#include "lib/user_registers.bpf.h"

/* ---- calls under way ---- */

/* Remembers a call until it returns.  slot: 1 + that of the walk of its stack; 0: it has none. */
__noinline int cuda_call_remember(__u64 sp, __u64 id, __u32 stands_for, __u32 slot)
{
	struct cuda_call call = {.id = id, .stands_for = stands_for};
	struct pp_walk *w = slot ? walk_get(slot - 1) : NULL;

	if (w)
		fill_count_key(w, &call.row);
	else
		call.stands_for = 0;
	/* The walk is ours, not the program's. */
	call.began_ns = bpf_ktime_get_ns();
	return cuda_call_put(sp, &call);
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

/* Remembers what a function was asked for until it returns: struct cuda_call. */
__noinline int cuda_note(__u64 sp, __u64 id, __u64 what, __u64 more)
{
	const struct cuda_call call = {.id = id, .what = what, .more = more};

	return cuda_call_put(sp, &call);
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

/* A call whose stack is taken, which stands for so many.  Walks have a budget of their own. */
static __always_inline void cuda_call_walk(struct pt_regs *ctx, const struct cuda_hit *h,
					   struct cuda_thread *thread, __u32 stands_for,
					   __u64 bytes)
{
	struct task_struct *task = task_current();
	const __u64 sp = PT_REGS_SP(ctx);
	struct scratch taken;
	__u32 walked = 0;

	thread->timed_ns = 0;
	scratch_enter_pool(&taken);
	if (taken.walk &&
	    identify(taken.walk, task, h->thread, CURRENT_READ(task, flags), false, h->cfg)) {
		cuda_walk(ctx, taken.walk, taken.slot, h->id);
		cuda_count(taken.slot, stands_for, bytes);
		times_add(PP_PROGRAM_PROBE, bpf_ktime_get_ns() - taken.walk->started_ns);
		walked = taken.slot + 1;
	} else {
		cuda_walk_failed(h->id, stands_for);
	}
	if (h->site->has_end && cuda_open_take(h->user))
		cuda_call_remember(sp, h->id, stands_for, walked);
	if (taken.walk)
		scratch_leave(&taken);
}

/* ---- beginnings ---- */

/* Returns the capture that records a call; 0: it runs. */
static __always_inline __u64 cuda_capture_now(const struct cuda_hit *h,
					      const struct cuda_thread *thread)
{
	if (likely(!thread->captures) || !h->site->node)
		return 0;
	return cuda_captured(h->thread, thread->generation, h->what.stream);
}

static __always_inline void cuda_call_record(const struct cuda_hit *h, __u64 capture, __u64 bytes)
{
	const __u32 node = h->site->node;

	cuda_node_add(h->what.id.generation, capture, PP_CUDA_OBJECT_CAPTURE << 8 | node,
		      node == PP_CUDA_NODE_INSTANCE ? h->what.ident : bytes);
}

/* Returns whether a call allocates memory of the device. */
static __always_inline bool cuda_allocates(const struct pp_cuda_site *site)
{
	return unlikely(site->object) && site->out;
}

/* Takes the stack of a call that runs, if it is due, and notes what its end needs. */
static __always_inline void cuda_call_follow(struct pt_regs *ctx, const struct cuda_hit *h,
					     struct cuda_thread *thread,
					     const struct pp_cuda_totals *totals, __u32 count,
					     __u64 bytes)
{
	const struct pp_cuda_site *site = h->site;
	const __u32 stands_for = cuda_allocates(site) ? cuda_block_walk(h->id)
						      : cuda_walk_due(totals, h->cfg, h->id, count);

	if (stands_for)
		cuda_call_walk(ctx, h, thread, stands_for, bytes);
	else if (site->has_end && cuda_open_take(h->user))
		cuda_call_remember(PT_REGS_SP(ctx), h->id, 0, 0);
	if (unlikely(site->object))
		cuda_block_begin(PT_REGS_SP(ctx),
				 cuda_parameter(ctx, site->out ? site->out : site->text),
				 site->out ? bytes : 0, h->what.id.generation, site->object);
}

/* Returns whether the call leaves no work in its stream, as it is recorded into a graph. */
static __always_inline bool cuda_call_begin(struct pt_regs *ctx, struct cuda_hit *h,
					    struct cuda_thread *thread)
{
	const struct pp_cuda_site *site = h->site;
	struct pp_cuda_totals *totals;
	__u64 bytes, capture, count;

	bytes = cuda_bytes(ctx, site, &h->what.direction);
	h->what.api = site->api;
	if (site->ident)
		h->what.ident = cuda_parameter(ctx, site->ident);
	h->what.stream = cuda_stream(ctx, site);
	if (site->node == PP_CUDA_NODE_KERNEL)
		h->what.life = thread->life;
	capture = cuda_capture_now(h, thread);
	if (capture)
		cuda_call_record(h, capture, bytes);
	totals = h->scale ? cuda_totals_make(h) : NULL;
	if (!totals)
		return capture;
	if (capture) {
		__sync_fetch_and_add(&totals->captured, scaled(1, h->scale));
		return true;
	}
	if (site->node == PP_CUDA_NODE_INSTANCE)
		bytes = cuda_graph_run(h->id, h->what.id.generation,
				       cuda_parameter(ctx, site->ident), h->scale);
	if (bytes)
		__sync_fetch_and_add(&totals->bytes, bytes);
	count = scaled(1, h->scale);
	__sync_fetch_and_add(&totals->calls, count);
	cuda_call_follow(ctx, h, thread, totals, count, bytes);
	return false;
}

/* ---- contexts ---- */

static __always_inline __u32 cuda_device_of(const struct cuda_thread *thread, __u64 id,
					    __u64 context)
{
	struct pp_cuda_handle key = {.handle = context};
	const __u32 *device;

	key.id.tgid = id >> 32;
	key.id.generation = thread->generation;
	device = bpf_map_lookup_elem(&cuda_contexts, &key);
	return device ? *device : 0;
}

static __always_inline void cuda_context_push(struct cuda_thread *thread, __u32 device)
{
	thread->contexts = thread->contexts << 8 | (thread->device & 0xff);
	thread->device = device;
}

/* The thread goes on with the device of a context. */
__noinline int cuda_context_set(__u64 id, __u64 context, __u32 does)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);

	if (!thread)
		return 1;
	/* cuda.h: who chooses none goes back to the one below. */
	if (does == PP_CUDA_SET_CONTEXT && !context)
		does = PP_CUDA_POP_CONTEXT;
	cuda_context_choose(context, does);
	if (does == PP_CUDA_POP_CONTEXT) {
		thread->device = thread->contexts & 0xff;
		thread->contexts >>= 8;
	} else if (does == PP_CUDA_PUSH_CONTEXT) {
		cuda_context_push(thread, cuda_device_of(thread, id, context));
	} else {
		thread->device = cuda_device_of(thread, id, context);
	}
	return 0;
}

/* A context of a device is there. */
__noinline int cuda_context_note(__u64 id, __u64 context, __u64 device, __u32 does)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	struct pp_cuda_handle key = {.handle = context};
	__u32 value = device < CUDA_DEVICE_MAX ? device + 1 : 0;

	if (!thread)
		return 1;
	key.id.tgid = id >> 32;
	key.id.generation = thread->generation;
	if (does == PP_CUDA_MAKE_CONTEXT) {
		cuda_context_choose(context, PP_CUDA_PUSH_CONTEXT);
		cuda_context_push(thread, value);
	}
	if (!bpf_map_lookup_elem(&cuda_contexts, &key) && cuda_news_take(user_of_current()))
		return 1;
	return bpf_map_update_elem(&cuda_contexts, &key, &value, BPF_ANY) ? 1 : 0;
}

/* A context ends, and with it all modules in it.  The thread goes back to the one below. */
__noinline int cuda_context_ended(__u64 id, __u32 generation, __u64 context)
{
	const struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	struct pp_cuda_handle key = {.handle = context};

	if (thread && context && thread->context == context)
		cuda_context_set(id, 0, PP_CUDA_POP_CONTEXT);
	key.id.tgid = id >> 32;
	key.id.generation = generation;
	bpf_map_delete_elem(&cuda_contexts, &key);
	cuda_memory_ended(generation, context);
	return cuda_unload(generation, context);
}

/* The context of a device's runtime begins anew. */
__noinline int cuda_device_ended(__u32 generation, __u32 device)
{
	cuda_memory_ended(generation, PP_CUDA_ALL_OF_DEVICE | device);
	return cuda_unload(generation, 0);
}

/* ---- what else begins ---- */

static __always_inline void cuda_object_end(const struct cuda_hit *h, __u64 handle)
{
	const __u32 generation = h->what.id.generation;

	switch (h->site->object) {
	case PP_CUDA_OBJECT_STREAM:
		cuda_stream_drop(generation, handle);
		cuda_stream_ended(generation, handle);
		return;
	case PP_CUDA_OBJECT_CONTEXT:
		cuda_context_ended(h->thread, generation, handle);
		return;
	case PP_CUDA_OBJECT_DEVICE:
		cuda_device_ended(generation, h->site->ident ? (__u32)handle + 1 : h->what.device);
		return;
	case PP_CUDA_OBJECT_MODULE:
		cuda_unload(generation, handle);
		return;
	default:
		cuda_forget(generation, handle, h->site->object);
	}
}

static __always_inline void cuda_event(struct pt_regs *ctx, const struct cuda_hit *h,
				       const struct cuda_thread *thread)
{
	const __u64 event = cuda_parameter(ctx, h->site->ident);

	if (likely(!thread->captures))
		return;
	if (h->site->kind && cuda_parameter(ctx, h->site->kind) & EVENT_RECORD_EXTERNAL)
		cuda_forget(thread->generation, event, PP_CUDA_OBJECT_EVENT);
	else if (h->site->does == PP_CUDA_RECORD_EVENT)
		cuda_event_recorded(h->thread, thread->generation, cuda_stream(ctx, h->site),
				    event);
	else
		cuda_event_awaited(h->thread, thread->generation, cuda_stream(ctx, h->site), event);
}

static __always_inline void cuda_node_begin(struct pt_regs *ctx, const struct cuda_hit *h)
{
	__u32 node = h->site->node;
	__u64 what = 0, address;
	__u8 unused;

	if (node == PP_CUDA_NODE_BY_LAYOUT) {
		address = cuda_parameter(ctx, h->site->bytes[0]);
		node = cuda_read_node(address);
		what = cuda_read_node_what(address, node);
	} else if (node == PP_CUDA_NODE_GRAPH) {
		what = cuda_parameter(ctx, h->site->text);
	} else if (node == PP_CUDA_NODE_COPY) {
		what = cuda_bytes(ctx, h->site, &unused);
	}
	if (cuda_open_take(h->user))
		cuda_note(PT_REGS_SP(ctx), cuda_parameter(ctx, h->site->ident), what, node);
}

/* Of what has an end: it is noted what the end needs. */
static __always_inline void cuda_note_begin(struct pt_regs *ctx, const struct cuda_hit *h)
{
	const struct pp_cuda_site *site = h->site;
	const __u64 sp = PT_REGS_SP(ctx);
	const __u64 ident = site->ident ? cuda_parameter(ctx, site->ident) : 0;

	if (!cuda_open_take(h->user))
		return;
	switch (site->does) {
	case PP_CUDA_NAME:
		cuda_note(sp, cuda_parameter(ctx, site->out), cuda_parameter(ctx, site->text),
			  ident);
		return;
	case PP_CUDA_BEGIN_CAPTURE:
		cuda_note(sp, cuda_stream(ctx, site), ident, 0);
		return;
	case PP_CUDA_END_CAPTURE:
		cuda_note(sp, cuda_parameter(ctx, site->out), cuda_stream(ctx, site), 0);
		return;
	case PP_CUDA_UPDATE_GRAPH:
		cuda_note(sp, ident, cuda_parameter(ctx, site->text), 0);
		return;
	default:
		cuda_note(sp, cuda_parameter(ctx, site->out), ident, 0);
	}
}

/* Returns the stream or the context that a call synchronises; 0: the thread's context. */
static __always_inline __u64 cuda_synced_by(struct pt_regs *ctx, const struct cuda_hit *h)
{
	if (h->site->syncs == PP_CUDA_SYNC_STREAM)
		return cuda_stream_name(h->what.stream, h->site->is_twin);
	return h->site->context ? cuda_parameter(ctx, h->site->context) : 0;
}

static __always_inline void cuda_begin(struct pt_regs *ctx, struct cuda_hit *h,
				       struct cuda_thread *thread)
{
	const struct pp_cuda_site *site = h->site;
	__u64 ident;

	cuda_launch_left(thread, PT_REGS_SP(ctx));
	switch (site->does) {
	case PP_CUDA_CALL:
		/* A launch that does not count queues work all the same. */
		if (!cuda_call_begin(ctx, h, thread) && cuda_queues(h))
			cuda_queue(thread, cuda_stream_name(h->what.stream, site->is_twin),
				   site->node == PP_CUDA_NODE_KERNEL, PT_REGS_SP(ctx));
		if (site->waits)
			cuda_wait_begin(PT_REGS_SP(ctx), site->syncs, cuda_synced_by(ctx, h),
					h->user);
		return;
	case PP_CUDA_SET_DEVICE:
		ident = (__u32)cuda_parameter(ctx, site->ident);
		thread->device = ident < CUDA_DEVICE_MAX ? ident + 1 : 0;
		cuda_context_choose(thread->device, PP_CUDA_SET_CONTEXT);
		return;
	case PP_CUDA_SET_CONTEXT:
	case PP_CUDA_PUSH_CONTEXT:
	case PP_CUDA_POP_CONTEXT:
		cuda_context_set(h->thread, site->ident ? cuda_parameter(ctx, site->ident) : 0,
				 site->does);
		return;
	case PP_CUDA_FORGET:
		cuda_object_end(h, site->ident ? cuda_parameter(ctx, site->ident) : 0);
		return;
	case PP_CUDA_RECORD_EVENT:
	case PP_CUDA_AWAIT_EVENT:
		cuda_event(ctx, h, thread);
		return;
	case PP_CUDA_ADD_NODE:
		cuda_node_begin(ctx, h);
		return;
	default:
		cuda_note_begin(ctx, h);
	}
}

/* ---- ends ---- */

/* Adds a call's time to its row, and under its stack. */
__noinline int cuda_call_returned(__u64 sp, __u32 waits)
{
	struct cuda_call *call = cuda_call_at(sp);
	struct pp_config *cfg = config_get();
	__u64 ns;

	if (!call || !cfg)
		return 1;
	ns = bpf_ktime_get_ns() - call->began_ns;
	cuda_add_time(call->id, ns, waits & 1);
	/* Of a call that moves bytes these say where its time belongs. */
	if (call->stands_for && waits == 1)
		count_add(&call->row, 0, ns * call->stands_for, table_number(cfg));
	cuda_call_drop(sp);
	return 0;
}

/* Notes what a handle is called.  One that was called otherwise was given out again. */
static __always_inline int cuda_name_note(const struct pp_cuda_handle *key,
					  struct pp_cuda_name *name)
{
	const struct pp_cuda_name *known = bpf_map_lookup_elem(&cuda_names, key);
	struct cuda_process *process = cuda_process_of(key->id.tgid, key->id.generation);

	if (!process || (!known && cuda_news_take(user_of_current())))
		return 1;
	if (known && (known->text != name->text || known->of != name->of)) {
		__sync_fetch_and_add(&process->life, 1);
		tell_threads();
	}
	name->life = process->life;
	return bpf_map_update_elem(&cuda_names, key, name, BPF_ANY) ? 1 : 0;
}

/* Sends a kernel's name, and notes it for its handle.  w->id is the process. */
__noinline int cuda_name_set(__u32 slot, __u64 handle, __u64 text, __u64 module, __u64 context)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_cuda_handle key = {.handle = handle};
	struct pp_cuda_name name = {.module = module, .context = context};

	if (!w || !cfg || news_are_refused(w->user, cfg->token_round))
		return 1;
	text_send(slot, text);
	name.text = w->detail;
	key.id = w->id;
	return !name.text || cuda_name_note(&key, &name);
}

/* A handle stands for another one: they have one name, also where nobody knows it yet. */
__noinline int cuda_alias_set(__u32 generation, __u64 handle, __u64 other, __u64 context)
{
	struct pp_cuda_handle key = {.handle = other};
	struct pp_cuda_name name = {.of = other, .context = context};
	const struct pp_cuda_name *known;

	key.id.tgid = bpf_get_current_pid_tgid() >> 32;
	key.id.generation = generation;
	known = bpf_map_lookup_elem(&cuda_names, &key);
	if (known)
		name.module = known->module;
	key.handle = handle;
	return cuda_name_note(&key, &name);
}

/* Returns the context that a handle ends with; 0: it is not known, or there is none. */
static __always_inline __u64 cuda_context_of_name(const struct cuda_hit *h)
{
	const struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &h->thread);

	return thread && h->site->object == PP_CUDA_OBJECT_CONTEXT ? thread->context : 0;
}

static __always_inline void cuda_name_found(const struct cuda_hit *h, __u64 handle, __u64 text,
					    __u64 module)
{
	struct task_struct *task = task_current();
	struct scratch taken;

	scratch_enter_pool(&taken);
	if (!taken.walk)
		return;
	if (identify(taken.walk, task, h->thread, CURRENT_READ(task, flags), false, h->cfg))
		cuda_name_set(taken.slot, handle, text, module, cuda_context_of_name(h));
	scratch_leave(&taken);
}

/* A function that gives a handle has returned with success. */
static __always_inline void cuda_handle_got(const struct cuda_hit *h, const struct cuda_call *call,
					    __u64 handle)
{
	const __u32 generation = h->what.id.generation;

	switch (h->site->does) {
	case PP_CUDA_NAME:
		cuda_name_found(h, handle, call->what, call->more);
		return;
	case PP_CUDA_ALIAS:
		cuda_alias_set(generation, handle, call->what, cuda_context_of_name(h));
		return;
	case PP_CUDA_MAKE_GRAPH:
		cuda_graph_made(generation, handle);
		return;
	case PP_CUDA_COPY_GRAPH:
		cuda_graph_copied(generation, handle, h->site->object, call->what);
		return;
	default: /* PP_CUDA_GET_CONTEXT, PP_CUDA_MAKE_CONTEXT */
		cuda_context_note(h->thread, handle, (__u32)call->what, h->site->does);
	}
}

/* A function of which something was noted has returned. */
static __always_inline void cuda_noted(const struct cuda_hit *h, const struct cuda_call *call,
				       __u32 result)
{
	__u64 handle = 0;

	switch (h->site->does) {
	case PP_CUDA_BEGIN_CAPTURE:
		if (!result)
			cuda_capture_begin(h->thread, call->id, call->what);
		return;
	case PP_CUDA_UPDATE_GRAPH:
		if (!result)
			cuda_graph_copied(h->what.id.generation, call->id, PP_CUDA_OBJECT_INSTANCE,
					  call->what);
		return;
	case PP_CUDA_ADD_NODE:
		if (!result)
			cuda_node_add(h->what.id.generation, call->id,
				      PP_CUDA_OBJECT_GRAPH << 8 | (__u8)call->more, call->what);
		return;
	}
	bpf_probe_read_user(&handle, sizeof(handle), (const void *)call->id);
	if (h->site->does == PP_CUDA_END_CAPTURE)
		cuda_capture_end(h->thread, call->what, handle, result);
	else if (!result && handle)
		cuda_handle_got(h, call, handle);
}

static __always_inline void cuda_block_returned(const struct cuda_hit *h, __u64 sp)
{
	if (h->site->out)
		cuda_block_got(sp, h->what.id.generation, h->site->object);
	else
		cuda_block_freed(sp, h->site->object);
}

static __always_inline void cuda_end(struct pt_regs *ctx, const struct cuda_hit *h)
{
	/* The return address is popped already. */
	const __u64 sp = PT_REGS_SP(ctx) - RETURN_ADDRESS_BELOW_CFA;
	const bool moves = h->site->bytes[0];
	const struct cuda_call *call;

	if (h->site->waits)
		cuda_wait_end(sp, h->site->syncs, PT_REGS_RC(ctx));
	if (h->site->does == PP_CUDA_CALL) {
		if (h->site->object && !(__u32)PT_REGS_RC(ctx))
			cuda_block_returned(h, sp);
		if (!cuda_call_returned(sp, h->site->waits | (moves ? 2 : 0)))
			cuda_open_give(h->user);
		return;
	}
	call = cuda_call_at(sp);
	if (!call)
		return;
	/* CUresult: 0 is success. */
	cuda_noted(h, call, PT_REGS_RC(ctx));
	cuda_call_drop(sp);
	cuda_open_give(h->user);
}

static __always_inline void cuda_handle(struct pt_regs *ctx)
{
	const __u32 number = site_hit(ctx, &cuda_site_now);
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
	if (!thread)
		return;
	cuda_hit_count(&h, thread);
	h.user = thread->user;
	h.what.id.tgid = h.thread >> 32;
	h.what.id.generation = thread->generation;
	h.what.device = thread->device;
	if (h.site->is_end)
		cuda_end(ctx, &h);
	else
		cuda_begin(ctx, &h, thread);
	cuda_hit_timed(thread);
}

SEC("uprobe")
int on_cuda(struct pt_regs *ctx)
{
	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	cuda_handle(ctx);
	return 0;
}
