/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of user probes share: which site was hit, its arguments, a walk of its
 * stack. */
#ifndef BPF_LIB_PROBE_H
#define BPF_LIB_PROBE_H

#include "lib/budget.bpf.h"
#include "lib/count.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/news.bpf.h"
#include "lib/user_probe.bpf.h"
#include "lib/user_registers.bpf.h"

#include <pyprofd/probe.h>

/* The maps of the probes' object alone.  Weak: its files have them together. */

/* By the cookie of the link that was hit (agent). */
__weak MAP(sites, ARRAY, PP_SITES_MAX, __u32, struct pp_site);

__weak MAP(hits, PERCPU_ARRAY, PP_PROBES_MAX, __u32, struct pp_hits);

/* Which hits are counted (agent). */
__weak MAP(gates, ARRAY, PP_PROBES_MAX, __u32, struct pp_gate);

/* The oldest goes: what it took is told once a second, and its gate is set again. */
__weak MAP(payers, LRU_HASH, PP_PAYERS_MAX, struct pp_payer_key, struct pp_payer);

/* Which site is hit, on kernels without cookies: site_hit(). */
__weak MAP(site_now, PERCPU_ARRAY, 1, __u32, __u32);

/* One hit, while it is handled. */
struct hit {
	struct pp_walk *w;
	struct task_struct *task;
	const struct pp_site *site;
	struct pp_config *cfg;
	struct scratch taken;
	__u64 thread; /* pid and tgid */
	__u64 now_ns;
	__u64 scale; /* struct pp_gate, and of the process */
	struct pp_payer *payer;
	bool is_thinned; /* not all hits of the process are taken */
};

/* ---- arguments ---- */

/* Returns the value of a register that was copied to w->registers. */
static __always_inline __u64 register_of(const struct pp_walk *w, __u8 number)
{
	__u64 at = number;

	BARRIER(at);
	return at < PP_REG_COUNT ? w->registers[at & (PP_REG_COUNT - 1)] : 0;
}

static __always_inline __u64 widen(const struct pp_probe_arg *arg, __u64 value)
{
	__u32 unused_bits = (64 - arg->bytes * 8) & 63;

	value <<= unused_bits;
	return arg->is_signed ? (__u64)((__s64)value >> unused_bits) : value >> unused_bits;
}

/* Reads an argument of the site.  w->registers are those of the hit. */
static __always_inline bool argument(const struct pp_walk *w, const struct pp_probe_arg *arg,
				     __u64 *ret_value)
{
	__u64 address, value = 0;

	switch (arg->kind) {
	case PP_ARG_CONSTANT:
		*ret_value = arg->value;
		return true;
	case PP_ARG_REGISTER:
		*ret_value = widen(arg, register_of(w, arg->base));
		return true;
	case PP_ARG_MEMORY:
		address = register_of(w, arg->base) + arg->value;
		if (arg->index != PP_ARG_NO_INDEX)
			address += register_of(w, arg->index) << (arg->scale & 3);
		/* The bytes behind a narrow argument may be on a page that is not there. */
		if (bpf_probe_read_user(&value, (arg->bytes - 1 & 7) + 1, (const void *)address))
			break;
		*ret_value = widen(arg, value);
		return true;
	}
	count_loss(PP_LOSS_PROBE_ARGUMENT);
	return false;
}

/* ---- from the hit to its stack ---- */

static __always_inline const struct pp_site *site_get(__u32 number)
{
	return bpf_map_lookup_elem(&sites, &number);
}

/* Counts a hit without its stack, because all slots of the CPU are lent to hits that were
 * preempted: counts are exact all the same.  How long a call takes is not known then.  Not inlined:
 * the walk below its caller has none of the stack to spare before 6.13. */
__weak __noinline int hit_count_bare(__u32 probe, __u64 samples)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct pp_config *cfg = config_get();
	struct pp_count_key key = {.user_stack = PP_STACK_OTHERS,
				   .id.tgid = thread >> 32,
				   .tid = thread,
				   .kind = PP_KIND_PROBE,
				   .detail = probe};
	__u32 tgid = thread >> 32, *generation;
	struct pp_process_context *context;

	if (!cfg)
		return 1;
	generation = bpf_map_lookup_elem(&processes, &tgid);
	key.id.generation = generation ? *generation : 0;
	context = bpf_map_lookup_elem(&contexts, &key.id);
	if (cfg->flags & PP_CONFIG_FILTER && !(context && context->flags & PP_CONTEXT_MATCHES))
		return 1;
	count_add(&key, samples, 0, table_number(cfg));
	return 0;
}

/* Returns for how many hits this one stands.  A process that takes too much is thinned alone, by
 * chance. */
static __always_inline __u64 hit_scale(struct hit *h)
{
	const struct pp_payer_key key = {.tgid = h->thread >> 32, .probe = h->site->probe};
	const struct pp_payer nothing = {};
	__u64 scale = gate_scale(bpf_map_lookup_elem(&gates, &key.probe), h->now_ns);
	__u32 gate;

	h->payer = bpf_map_lookup_elem(&payers, &key);
	if (!h->payer) {
		bpf_map_update_elem(&payers, &key, &nothing, BPF_NOEXIST);
		return scale;
	}
	gate = h->payer->gate;
	if (!gate)
		return scale;
	h->is_thinned = true;
	if ((bpf_get_prandom_u32() & 0xffff) >= gate)
		return 0;
	return (scale << PP_GATE_SCALE_SHIFT) / gate;
}

/* Says whose the hit is and lends it a walk.  Returns false when it does not count; then nothing is
 * to be given back.  With h->now_ns set it was a hit that no slot was free for. */
static __always_inline bool hit_begin(struct hit *h, __u32 number)
{
	struct task_struct *task;

	h->now_ns = 0;
	h->is_thinned = false;
	h->cfg = config_get();
	h->site = site_get(number);
	if (!h->cfg || !h->site || !h->site->does || h->cfg->flags & PP_CONFIG_PAUSED)
		return false;
	h->thread = bpf_get_current_pid_tgid();
	h->task = task = task_current();
	scratch_enter_pool(&h->taken);
	h->w = h->taken.walk;
	if (!h->w) {
		h->now_ns = bpf_ktime_get_ns();
		h->scale = hit_scale(h);
		if (h->scale &&
		    (h->site->does == PP_SITE_COUNT || h->site->does == PP_SITE_CALL_BEGIN))
			hit_count_bare(h->site->probe, scaled(1, h->scale));
		return false;
	}
	h->now_ns = bpf_ktime_get_ns();
	h->scale = hit_scale(h);
	if (identify(h->w, task, h->thread, CURRENT_READ(task, flags), false, h->cfg)) {
		walk_reset(h->w, 0, h->now_ns, PP_SAMPLE_WALK_NS);
		h->w->is_modest = 1;
		h->w->kind = PP_KIND_PROBE;
		h->w->detail = h->site->probe;
		return true;
	}
	scratch_leave(&h->taken);
	return false;
}

static __always_inline void hit_end(struct hit *h)
{
	__u64 took_ns = bpf_ktime_get_ns() - h->now_ns;
	__u32 probe = h->site->probe;
	struct pp_hits *of = bpf_map_lookup_elem(&hits, &probe);

	if (of) {
		/* Another task's hit may come in between, on this CPU. */
		__sync_fetch_and_add(&of->hits, 1);
		__sync_fetch_and_add(&of->ns, took_ns);
	}
	if (h->payer) {
		__sync_fetch_and_add(&h->payer->hits, 1);
		__sync_fetch_and_add(&h->payer->ns, took_ns);
	}
	times_add(PP_PROGRAM_PROBE, took_ns);
	scratch_leave(&h->taken);
}

/* Takes the registers of a hit in user space. */
static __always_inline bool hit_registers(struct hit *h, struct pt_regs *ctx)
{
	return !take_user_registers(h->w, h->task, (struct bpf_perf_event_data *)ctx, true);
}

/* Walks the user stack from the registers that were taken.  After it w->hash names a stack that was
 * sent, also when the agent is to finish it. */
static __always_inline void hit_walk(struct hit *h)
{
	struct task_struct *task = h->task; /* h is no struct of the kernel's */

	h->w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
	walk_user(h->taken.slot);
	walk_emit_stacks(h->taken.slot);
}

/* Counts under the stack that hit_walk() has sent. */
static __always_inline void hit_count(struct hit *h, __u64 samples, __u64 weight)
{
	struct pp_count_key key = {};

	fill_count_key(h->w, &key);
	if (count_add(&key, scaled(samples, h->scale), scaled(weight, h->scale),
		      table_number(h->cfg)) > 0)
		news_add(h->w->user);
}

#endif
