/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One program for every site of a user probe, and one for tracepoints: the cookie of the link tells
 * which site was hit, and sites[] what a hit does (include/pyprofd/probe.h). */
#include "lib/probe.bpf.h"
#include "lib/text.bpf.h"

/* Follows calls from their beginning, where the stack is taken, to their end, where the time is
 * added.  Calls that end without having begun, and such as never end, are counted. */

/* A call that is under way: its beginning was seen. */
struct call_key {
	__u64 thread; /* pid and tgid */
	__u64 place;  /* tells calls of one thread apart */
};
struct call {
	__u64 began_ns;
	__u64 inner_ns;		 /* of calls inside that have ended, of the same probe */
	__u64 name;		 /* imports: address of the module's name */
	__u64 scale;		 /* struct pp_gate */
	__u64 user;		 /* who answers for the thread */
	struct pp_count_key key; /* under which its end is counted */
};
/* Threads may end in mid-call: the oldest go, and their ends count as unmatched. */
MAP(calls, LRU_HASH, PP_PROBE_CALLS_MAX, struct call_key, struct call);

/* A struct call does not fit on BPF's stack beside its key.  One a slot of `scratch`, whose claim
 * covers it (agent: size). */
MAP(call_scratch, ARRAY, PP_WALK_LEVELS, __u32, struct call);

/* What tells calls of one thread apart.  Functions: sp at their first instruction, below 2^48, and
 * the probe above it.  A thread collects garbage once at a time; imports are numbered by depth. */
#define PLACE_PROBE_SHIFT 48
#define PLACE_GC (0xff00ULL << PLACE_PROBE_SHIFT)
#define PLACE_IMPORT (0xff01ULL << PLACE_PROBE_SHIFT)
#define PLACE_IMPORT_TOP (0xff02ULL << PLACE_PROBE_SHIFT)
#define IMPORTS_DEEP 200U /* further ones inside count without their time */
#define IMPORTS_BACK 8U	  /* how many imports that never ended are skipped */

static __always_inline __u64 function_place(const struct hit *h, __u64 sp)
{
	return sp ^ (__u64)h->site->probe << PLACE_PROBE_SHIFT;
}

static __always_inline struct call *call_find(const struct hit *h, __u64 place)
{
	struct call_key key = {.thread = h->thread, .place = place};

	return bpf_map_lookup_elem(&calls, &key);
}

static __always_inline void call_forget(const struct hit *h, const struct call *call, __u64 place)
{
	struct call_key key = {.thread = h->thread, .place = place};
	__u32 user = call->user;

	if (!bpf_map_delete_elem(&calls, &key))
		open_calls_add(user, -1);
}

/* Remembers a call whose stack was sent.  is_alone: another call that is remembered at this place
 * has ended without its end being seen, by longjmp() or an exception for example. */
static __always_inline void call_remember(struct hit *h, __u64 place, __u64 name, bool is_alone)
{
	struct call_key key = {.thread = h->thread, .place = place};
	__u32 slot = h->taken.slot;
	struct call *call = bpf_map_lookup_elem(&call_scratch, &slot);
	bool is_new = !call_find(h, place);

	if (!call)
		return;
	fill_count_key(h->w, &call->key);
	call->inner_ns = 0;
	call->name = name;
	call->user = h->w->user;
	call->scale = h->scale;
	/* The walk is ours, not the program's. */
	call->began_ns = bpf_ktime_get_ns();
	if (!is_new && is_alone)
		count_loss(PP_LOSS_PROBE_UNMATCHED);
	if (is_new && open_calls_are_refused(h->w->user)) {
		count_loss(PP_LOSS_PROBE_SHARE);
		return;
	}
	if (bpf_map_update_elem(&calls, &key, call, BPF_ANY)) {
		count_loss(PP_LOSS_PROBE_CALLS_FULL);
		return;
	}
	open_calls_add(h->w->user, is_new);
	news_add(h->w->user);
}

static __always_inline void call_count(const struct hit *h, const struct call *call, __u64 ns)
{
	if (count_add(&call->key, scaled(1, call->scale), scaled(ns, call->scale),
		      table_number(h->cfg)) > 0)
		return; /* it stands for the call, which is not open any more */
	if (h->w)
		news_drop(h->w->user);
}

/* A call has ended that was not seen to begin. */
static __always_inline void count_unbegun(const struct hit *h)
{
	/* While hits do not count, or beginnings are not attached, no call begins. */
	if (h->scale && !h->is_thinned && !h->site->is_partial)
		count_loss(PP_LOSS_PROBE_UNMATCHED);
}

/* Ends the call of a place. */
static __always_inline void call_end(const struct hit *h, __u64 place)
{
	struct call *call = call_find(h, place);

	if (!call) {
		count_unbegun(h);
		return;
	}
	call_count(h, call, h->now_ns - call->began_ns);
	call_forget(h, call, place);
}

/* ---- imports, which nest ---- */

static __always_inline __u64 import_place(__u64 depth)
{
	return PLACE_IMPORT | depth;
}

static __always_inline void import_set_depth(struct hit *h, __u64 depth)
{
	struct call *top = call_find(h, PLACE_IMPORT_TOP);

	if (top && !depth)
		call_forget(h, top, PLACE_IMPORT_TOP);
	else if (top)
		top->name = depth;
	else
		call_remember(h, PLACE_IMPORT_TOP, depth, false);
}

static __always_inline __u64 import_depth(const struct hit *h)
{
	const struct call *top = call_find(h, PLACE_IMPORT_TOP);

	return top ? top->name : 0;
}

static __always_inline void import_begin(struct hit *h, __u64 name)
{
	__u64 depth = import_depth(h) + 1;

	import_set_depth(h, depth);
	if (depth > IMPORTS_DEEP)
		count_loss(PP_LOSS_PROBE_CALLS_FULL);
	else
		call_remember(h, import_place(depth), name, false);
}

/* Ends the import of a name.  Imports above it never ended: their thread's end was not seen. */
static __always_inline void import_end(struct hit *h, __u64 name)
{
	__u64 depth = import_depth(h), took_ns;
	struct call *call = NULL, *outer;
	__u32 i;

	if (depth > IMPORTS_DEEP) {
		import_set_depth(h, depth - 1);
		return;
	}
	for (i = 0; i < IMPORTS_BACK && depth; i++, depth--) {
		call = call_find(h, import_place(depth));
		if (call && call->name == name)
			break;
		call = NULL;
		count_loss(PP_LOSS_PROBE_UNMATCHED);
	}
	if (!call) {
		if (!depth)
			count_unbegun(h);
		return;
	}
	took_ns = h->now_ns - call->began_ns;
	call_count(h, call, took_ns > call->inner_ns ? took_ns - call->inner_ns : 0);
	outer = call_find(h, import_place(depth - 1));
	if (outer)
		outer->inner_ns += took_ns;
	call_forget(h, call, import_place(depth));
	import_set_depth(h, depth - 1);
}

/* On kernels without cookies for tracepoints (before 6.10) each tracepoint has an object of its
 * own, and this is its site.  0: the cookie tells. */
const volatile __u32 only_site;
/* 6.10: before, the verifier refuses the helper in a program of a tracepoint. */
const volatile bool tracepoints_have_cookies;

static __always_inline __u32 site_number(void *ctx)
{
	return only_site ? only_site : site_hit(ctx, &site_now);
}

/* Takes the stack and counts the hit. */
static __always_inline void hit_take(struct hit *h, enum pp_count_kind kind, __u64 weight)
{
	h->w->kind = kind;
	h->w->detail = h->site->probe;
	hit_walk(h);
	hit_count(h, 1, weight);
}

static __always_inline void gc_begin(struct hit *h)
{
	__u64 generation = 0;

	argument(h->w, &h->site->arg[0], &generation);
	hit_walk(h);
	h->w->kind = PP_KIND_GC;
	h->w->detail = (__u32)generation;
	call_remember(h, PLACE_GC, 0, true);
}

static __always_inline void import_of_site(struct hit *h, bool is_begin)
{
	__u64 name = 0;

	if (!argument(h->w, &h->site->arg[0], &name))
		return;
	if (!is_begin) {
		import_end(h, name);
		return;
	}
	hit_walk(h);
	text_send(h->taken.slot, name);
	h->w->kind = PP_KIND_IMPORT;
	import_begin(h, name);
}

static __always_inline bool is_end(const struct pp_site *site)
{
	return site->does == PP_SITE_CALL_END || site->does == PP_SITE_GC_END ||
	       site->does == PP_SITE_IMPORT_END;
}

/* Counts a hit of a user who has used up his share.  Not inlined, as hit_count_bare(). */
__noinline int hit_refuse(__u32 does, __u32 probe, __u64 scale)
{
	count_loss(PP_LOSS_PROBE_SHARE);
	if (does == PP_SITE_COUNT || does == PP_SITE_CALL_BEGIN)
		hit_count_bare(probe, scaled(1, scale));
	return 0;
}

/* What a hit in user space does. */
static __always_inline void hit_do(struct hit *h)
{
	/* A walk changes the registers where it meets a signal's frame. */
	const __u64 sp = h->w->registers[PP_REG_SP];

	/* What has begun is ended. */
	if (!h->scale && h->site->does != PP_SITE_CALL_END)
		return;
	if (!is_end(h->site) && news_are_refused(h->w->user, h->cfg->token_round)) {
		hit_refuse(h->site->does, h->site->probe, h->scale);
		return;
	}
	switch (h->site->does) {
	case PP_SITE_COUNT:
		hit_take(h, PP_KIND_PROBE, 0);
		return;
	case PP_SITE_CALL_BEGIN:
		h->w->kind = PP_KIND_PROBE;
		h->w->detail = h->site->probe;
		hit_walk(h);
		call_remember(h, function_place(h, sp), 0, true);
		return;
	case PP_SITE_CALL_END:
		/* The return address is popped already. */
		call_end(h, function_place(h, sp - RETURN_ADDRESS_BELOW_CFA));
		return;
	case PP_SITE_GC_BEGIN:
		gc_begin(h);
		return;
	case PP_SITE_GC_END:
		call_end(h, PLACE_GC);
		return;
	case PP_SITE_IMPORT_BEGIN:
	case PP_SITE_IMPORT_END:
		import_of_site(h, h->site->does == PP_SITE_IMPORT_BEGIN);
		return;
	}
}

SEC("uprobe")
int on_probe(struct pt_regs *ctx)
{
	struct hit h;

	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (!hit_begin(&h, site_number(ctx))) {
		/* The end of a call takes no stack, and so no slot. */
		if (h.now_ns && h.site->does == PP_SITE_CALL_END)
			call_end(&h,
				 function_place(&h, PT_REGS_SP(ctx) - RETURN_ADDRESS_BELOW_CFA));
		return 0;
	}
	if (hit_registers(&h, ctx))
		hit_do(&h);
	else if (h.scale)
		hit_count(&h, 1, 0); /* of a 32-bit process: its stack is not known */
	hit_end(&h);
	return 0;
}

static __always_inline __u32 tracepoint_site(void *ctx)
{
	return tracepoints_have_cookies ? bpf_get_attach_cookie(ctx) : only_site;
}

SEC("raw_tp")
int on_tracepoint(void *ctx)
{
	struct task_struct *task = task_current();
	struct hit h;

	REFUSE_PRIVATE_STACK(ctx, tracepoint_programs);
	if (!hit_begin(&h, tracepoint_site(ctx)))
		return 0;
	if (!h.scale) {
		hit_end(&h);
		return 0;
	}
	h.w->kind = PP_KIND_PROBE;
	h.w->detail = h.site->probe;
	if (!(h.cfg->flags & PP_CONFIG_NO_KERNEL))
		take_kernel_stack(h.w, h.taken.slot, ctx);
	if (CURRENT_READ(task, flags) & PF_KTHREAD) {
		h.w->stop = PP_STOP_NO_USER;
		walk_emit_stacks(h.taken.slot);
	} else if (take_user_registers(h.w, h.task, ctx, false)) {
		walk_emit_stacks(h.taken.slot);
	} else {
		hit_walk(&h);
	}
	hit_count(&h, 1, 0);
	hit_end(&h);
	return 0;
}
