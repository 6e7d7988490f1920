/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program of the functions that allocate and free memory.  Where the kernel has sessions (6.13)
 * it runs at the end of a call only where it has asked for that at the beginning; elsewhere the
 * ends of all calls are sites of their own. */
#include "lib/alloc.bpf.h"

/* The program is a session's. */
const volatile bool is_session;

/* As probe_programs of lib/private_stack.bpf.h, which has a map for programs of another type: on
 * kernels without cookies stubs jump to on_alloc by it.  The program itself never does: that it
 * could keeps the kernel from giving it a private stack. */
struct alloc_programs_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};
struct alloc_programs_map alloc_programs SEC(".maps");
const volatile bool is_alloc_tail_called;

static __always_inline struct alloc_cpu *alloc_cpu_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&alloc_cpus, &zero);
}

static __always_inline __u32 alloc_site_number(struct pt_regs *ctx)
{
	__u32 zero = 0, *stubs;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	stubs = bpf_map_lookup_elem(&site_now, &zero);
	return stubs ? *stubs : 0;
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
	const __u32 number = alloc_site_number(ctx);
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

	if (is_alloc_tail_called)
		bpf_tail_call(ctx, &alloc_programs, 0);
	wants_end = alloc_hit(ctx);
	/* A session's 1: its end is not wanted.  Others return 0, or the event is recorded. */
	return is_session && !wants_end;
}
