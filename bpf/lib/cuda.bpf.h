/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of CUDA's libraries: what they ask the GPU for, and the rows that add it up.  A call whose
 * stack is not taken costs two look-ups in hashes. */
#ifndef BPF_LIB_CUDA_H
#define BPF_LIB_CUDA_H

#include "lib/count.bpf.h"
#include "lib/cuda_walks.bpf.h"
#include "lib/gate.bpf.h"
#include "lib/frames.bpf.h"

#if defined(__TARGET_ARCH_arm64)
#define CUDA_REGISTERS 8U /* parameters in them: AAPCS64 */
#define CUDA_STACK_AT 0U  /* of the first one behind, from the stack pointer */
#else
#define CUDA_REGISTERS 6U
#define CUDA_STACK_AT 8U
#endif
#define CUDA_DEVICE_MAX 254U

/* One hit, while it is handled. */
struct cuda_hit {
	const struct pp_cuda_site *site;
	const struct pp_config *cfg;
	__u64 thread; /* pid and tgid */
	__u64 id;     /* of the totals */
	__u64 scale;  /* of what it counts as (lib/gate.bpf.h) */
	struct pp_cuda_what what;
};

/* ---- parameters ---- */

/* All are read first: the verifier wants constant offsets from the context. */
static __always_inline __u64 cuda_parameter(struct pt_regs *ctx, __u8 number)
{
#if defined(__TARGET_ARCH_arm64)
	const struct user_pt_regs *regs = (const void *)ctx;
	__u64 value[] = {regs->regs[0], regs->regs[1], regs->regs[2],
			 regs->regs[3], regs->regs[4], regs->regs[5]};
#else
	__u64 value[] = {ctx->rdi, ctx->rsi, ctx->rdx, ctx->rcx, ctx->r8, ctx->r9};
#endif
	__u64 behind = 0;

#pragma unroll
	for (__u32 i = 0; i < 6; i++)
		BARRIER(value[i]);
	switch (number) {
	case 1:
		return value[0];
	case 2:
		return value[1];
	case 3:
		return value[2];
	case 4:
		return value[3];
	case 5:
		return value[4];
	case 6:
		return value[5];
	}
#if defined(__TARGET_ARCH_arm64)
	if (number == 7)
		return regs->regs[6];
	if (number == 8)
		return regs->regs[7];
#endif
	if (number > CUDA_REGISTERS)
		bpf_probe_read_user(&behind, sizeof(behind),
				    (const void *)(PT_REGS_SP(ctx) + CUDA_STACK_AT +
						   8U * (number - CUDA_REGISTERS - 1U)));
	return behind;
}

/* CUmemorytype of cuda.h: 1 host, 2 device, 3 array, 4 unified. */
static __always_inline __u8 cuda_direction_between(__u32 from, __u32 to)
{
	bool is_from_host = from == 1, is_to_host = to == 1;

	if (!from || !to || from > 3 || to > 3)
		return PP_CUDA_UNIFIED;
	if (is_from_host)
		return is_to_host ? PP_CUDA_HTOH : PP_CUDA_HTOD;
	return is_to_host ? PP_CUDA_DTOH : PP_CUDA_DTOD;
}

#define LAYOUT_DIRECTION_SHIFT 56

/* Reads what CUDA_MEMCPY2D or CUDA_MEMCPY3D says (cuda.h): width and height, depth, types of both
 * sides.  Returns the bytes, and the direction above them.  Not inlined, as all that follows here:
 * a walk leaves none of the stack to spare. */
__noinline __u64 cuda_read_layout(__u64 address, __u32 layout)
{
	const bool is_2d = layout == PP_CUDA_LAYOUT_2D;
	__u64 size[3] = {0, 0, 1}, bytes;
	__u32 from = 0, to = 0;

	if (is_2d)
		bpf_probe_read_user(size, 16, (const void *)(address + 112));
	else
		bpf_probe_read_user(size, 24, (const void *)(address + 176));
	bpf_probe_read_user(&from, sizeof(from), (const void *)(address + (is_2d ? 16 : 32)));
	bpf_probe_read_user(&to, sizeof(to), (const void *)(address + (is_2d ? 72 : 120)));
	/* A product that is too large is none. */
	bytes = (size[0] | size[1] | size[2]) >> 24 ? 0 : size[0] * size[1] * (size[2] & 0xff);
	if (!is_2d && size[2] >> 8)
		bytes = 0;
	return bytes << 8 >> 8 | (__u64)cuda_direction_between(from, to) << LAYOUT_DIRECTION_SHIFT;
}

/* Returns the bytes that a call is about, and sets its direction. */
static __always_inline __u64 cuda_bytes(struct pt_regs *ctx, const struct pp_cuda_site *site,
					__u8 *direction)
{
	__u64 bytes = 0, kind;

	*direction = site->direction;
	if (site->layout) {
		bytes = cuda_read_layout(cuda_parameter(ctx, 1), site->layout);
		*direction = bytes >> LAYOUT_DIRECTION_SHIFT;
		return bytes << 8 >> 8;
	}
	if (site->kind) {
		kind = (__u32)cuda_parameter(ctx, site->kind);
		*direction = kind < 5 ? PP_CUDA_HTOH + kind : PP_CUDA_UNIFIED;
	}
	if (site->bytes[0])
		bytes = cuda_parameter(ctx, site->bytes[0]);
	if (site->bytes[1])
		bytes *= cuda_parameter(ctx, site->bytes[1]);
	return bytes << (site->bytes_shift & 7);
}

/* ---- whose call it is ---- */

/* Looks up the process of the current thread, and notes it for its next calls. */
__noinline int cuda_thread_note(__u64 id)
{
	const struct cuda_thread *known = bpf_map_lookup_elem(&cuda_threads, &id);
	struct pp_config *cfg = config_get();
	struct pp_process_id process = {.tgid = id >> 32};
	const struct pp_process_context *context;
	struct cuda_thread fresh = {};
	const __u32 *generation;

	if (!cfg)
		return 1;
	/* Read this first: what changes from here on is looked up again next time. */
	fresh.changes = *(volatile __u32 *)&cfg->process_changes;
	generation = bpf_map_lookup_elem(&processes, &process.tgid);
	process.generation = fresh.generation = generation ? *generation : 0;
	fresh.is_wanted = 1;
	if (cfg->flags & PP_CONFIG_FILTER) {
		context = bpf_map_lookup_elem(&contexts, &process);
		fresh.is_wanted = context && context->flags & PP_CONTEXT_MATCHES;
	}
	if (known)
		fresh.hits = known->hits;
	/* Another program has no device yet. */
	if (known && known->generation == fresh.generation)
		fresh.device = known->device;
	return bpf_map_update_elem(&cuda_threads, &id, &fresh, BPF_ANY) ? 1 : 0;
}

/* Returns what is known of the current thread; NULL: its calls do not count. */
static __always_inline struct cuda_thread *cuda_thread_get(__u64 id, const struct pp_config *cfg)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);

	if (!thread || thread->changes != *(volatile const __u32 *)&cfg->process_changes) {
		cuda_thread_note(id);
		thread = bpf_map_lookup_elem(&cuda_threads, &id);
	}
	return thread && thread->is_wanted ? thread : NULL;
}

/* Notes a hit, and sets what it counts as.  Returns false when it does not count. */
static __always_inline bool cuda_hit_count(struct cuda_hit *h, struct cuda_thread *thread)
{
	__u32 kind = h->site->hit;
	const struct pp_gate *gate;

	if (kind >= PP_CUDA_HITS)
		return false;
	thread->hits.of[kind]++;
	h->scale = 1 << PP_GATE_SCALE_SHIFT;
	if (kind >= PP_CUDA_LAUNCHES)
		return true;
	gate = bpf_map_lookup_elem(&cuda_gates, &kind);
	if (likely(gate && !gate->until_ns))
		return true;
	h->scale = gate_scale(gate, bpf_ktime_get_ns());
	return h->scale;
}

/* ---- totals ---- */

static __always_inline __u64 cuda_word(const struct pp_cuda_what *what)
{
	return (__u64)what->api << 16 | (__u64)what->direction << 8 | what->device;
}

static __always_inline __u64 cuda_id(const struct pp_cuda_what *what, const struct pp_config *cfg)
{
	__u64 hash = hash_mix(cfg->name_secret, (__u64)what->id.tgid << 32 | what->id.generation);

	return hash_mix(hash_mix(hash, what->ident), cuda_word(what)) | 1;
}

/* Returns whether a process may have one row more: as many as are left for all others. */
static __always_inline bool cuda_may_add(__u32 tgid)
{
	__u32 zero = 0;
	__u64 *made = bpf_map_lookup_elem(&cuda_rows, &zero), count;
	struct cuda_process *process = cuda_process_get(tgid);

	if (!made || !process)
		return false;
	count = *(volatile __u64 *)made;
	if (count >= PP_CUDA_TOTALS_MAX ||
	    *(volatile __u64 *)&process->totals >= PP_CUDA_TOTALS_MAX - count)
		return false;
	__sync_fetch_and_add(&process->totals, 1);
	__sync_fetch_and_add(made, 1);
	return true;
}

/* Makes a row of totals.  word: cuda_word().  Returns nonzero where there is no room for it. */
__noinline int cuda_totals_add(__u64 id, __u64 ident, __u32 generation, __u64 word)
{
	struct pp_cuda_totals totals = {};

	totals.what.id.tgid = bpf_get_current_pid_tgid() >> 32;
	totals.what.id.generation = generation;
	totals.what.ident = ident;
	totals.what.api = word >> 16;
	totals.what.direction = word >> 8;
	totals.what.device = word;
	totals.gap = 1;
	/* Of what finds no room there is one row a function. */
	if (ident != PP_CUDA_IDENT_OTHERS && !cuda_may_add(totals.what.id.tgid))
		return 1;
	return bpf_map_update_elem(&cuda_totals, &id, &totals, BPF_NOEXIST) == -7 /* E2BIG */;
}

static __always_inline struct pp_cuda_totals *cuda_totals_of(struct cuda_hit *h)
{
	h->id = cuda_id(&h->what, h->cfg);
	return bpf_map_lookup_elem(&cuda_totals, &h->id);
}

static __always_inline struct pp_cuda_totals *cuda_totals_make(struct cuda_hit *h)
{
	struct pp_cuda_totals *totals = cuda_totals_of(h);

	if (likely(totals))
		return totals;
	if (cuda_totals_add(h->id, h->what.ident, h->what.id.generation, cuda_word(&h->what))) {
		count_loss(PP_LOSS_CUDA_FULL);
		h->what.ident = PP_CUDA_IDENT_OTHERS;
		totals = cuda_totals_of(h);
		if (totals)
			return totals;
		cuda_totals_add(h->id, PP_CUDA_IDENT_OTHERS, h->what.id.generation,
				cuda_word(&h->what));
	}
	return bpf_map_lookup_elem(&cuda_totals, &h->id);
}

static __always_inline __u32 cuda_bucket(__u64 ns)
{
	__u64 left = ns >> (PP_CUDA_HISTOGRAM_SHIFT + 1);
	__u32 bucket = 0;

	if (left >> (PP_CUDA_HISTOGRAM - 1))
		return PP_CUDA_HISTOGRAM - 1;
	if (left >> 16) {
		bucket += 16;
		left >>= 16;
	}
	if (left >> 8) {
		bucket += 8;
		left >>= 8;
	}
	if (left >> 4) {
		bucket += 4;
		left >>= 4;
	}
	if (left >> 2) {
		bucket += 2;
		left >>= 2;
	}
	return bucket + (left >> 1) + (left ? 1 : 0);
}

/* Adds how long a call took. */
static __always_inline void cuda_add_time(__u64 id, __u64 ns, bool waits)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);
	__u64 bucket = cuda_bucket(ns);

	if (!totals)
		return;
	__sync_fetch_and_add(&totals->host_ns, ns);
	if (waits)
		__sync_fetch_and_add(&totals->wait_ns, ns);
	BARRIER(bucket); /* 5.10 does not follow the 32 bits that it was made of */
	if (bucket < PP_CUDA_HISTOGRAM)
		__sync_fetch_and_add(&totals->histogram[bucket], 1);
}

#endif
