/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of CUDA's libraries: what they ask the GPU for, and the rows that add it up.  A call whose
 * stack is not taken costs two look-ups in hashes. */
#ifndef BPF_LIB_CUDA_H
#define BPF_LIB_CUDA_H

#include "lib/count.bpf.h"
#include "lib/cuda_graphs.bpf.h"
#include "lib/cuda_maps.bpf.h"
#include "lib/cuda_streams.bpf.h"
#include "lib/frames.bpf.h"
#include "lib/maps.bpf.h"

/* Structures of a program that say what a copy copies, and what a node of a graph does: enum
 * pp_cuda_layout.  Offsets are those of cuda.h and driver_types.h of CUDA 11 to 13. */

#define LAYOUT_DIRECTION_SHIFT 56

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

/* Returns a product below 2^56; 0: it is larger, which nothing is that a device has. */
static __always_inline __u64 cuda_product(__u64 a, __u64 b)
{
	const __u64 most = (1ULL << LAYOUT_DIRECTION_SHIFT) - 1;

	return a && b > most / a ? 0 : a * b;
}

/* Sizes of the copies of a batch.  Returns their sum; behind the first PP_CUDA_BATCH_MAX the others
 * are taken to be like those. */
static __always_inline __u64 cuda_read_batch(__u64 address, __u64 count)
{
	__u64 sum = 0, size, read = count < PP_CUDA_BATCH_MAX ? count : PP_CUDA_BATCH_MAX;

	for (__u32 i = 0; i < PP_CUDA_BATCH_MAX; i++) {
		size = 0;
		if (i >= read)
			break;
		bpf_probe_read_user(&size, sizeof(size), (const void *)(address + 8ULL * i));
		sum += size;
	}
	if (count <= read)
		return sum;
	count_loss(PP_LOSS_CUDA_BYTES_GUESSED);
	return sum / PP_CUDA_BATCH_MAX * count;
}

/* nccl.h: ncclDataType_t, from ncclInt8 to ncclFloat8e5m2: how often the size of a byte doubles. */
#define ELEMENT_TYPES 12U
#define ELEMENT_SHIFTS 0x001321332200ULL

/* Returns the bytes of so many elements; of a type that is not known, as if each were a byte. */
static __always_inline __u64 cuda_elements(__u64 count, __u32 type)
{
	if (type < ELEMENT_TYPES)
		return count << (ELEMENT_SHIFTS >> 4 * type & 3);
	count_loss(PP_LOSS_CUDA_BYTES_GUESSED);
	return count;
}

/* Reads what a structure says.  count: of an array; the type of elements.  Returns the bytes, and
 * the direction above them.  Not inlined, as all that follows here: a walk leaves none of the stack
 * to spare. */
__noinline __u64 cuda_read_layout(__u64 address, __u32 layout, __u64 count)
{
	__u64 size[3] = {0, 0, 1}, at = address, direction = 0;
	__u32 word[2] = {0, 0};

	switch (layout) {
	case PP_CUDA_LAYOUT_2D:
		bpf_probe_read_user(size, 16, (const void *)(at + 112));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 16));
		bpf_probe_read_user(&word[1], sizeof(word[1]), (const void *)(at + 72));
		direction = cuda_direction_between(word[0], word[1]);
		break;
	case PP_CUDA_LAYOUT_3D:
		bpf_probe_read_user(size, 24, (const void *)(at + 176));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 32));
		bpf_probe_read_user(&word[1], sizeof(word[1]), (const void *)(at + 120));
		direction = cuda_direction_between(word[0], word[1]);
		break;
	case PP_CUDA_LAYOUT_RUNTIME_3D:
		bpf_probe_read_user(size, 24, (const void *)(at + 128));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 152));
		direction = word[0] < 5 ? PP_CUDA_HTOH + word[0] : PP_CUDA_UNIFIED;
		break;
	case PP_CUDA_LAYOUT_FILL:
		bpf_probe_read_user(size, 16, (const void *)(at + 24));
		bpf_probe_read_user(&word[0], sizeof(word[0]), (const void *)(at + 20));
		size[2] = word[0];
		break;
	case PP_CUDA_LAYOUT_ELEMENTS:
		return cuda_elements(address, count) << 8 >> 8;
	default: /* PP_CUDA_LAYOUT_BATCH */
		return cuda_read_batch(address, count) << 8 >> 8 |
		       (__u64)PP_CUDA_UNIFIED << LAYOUT_DIRECTION_SHIFT;
	}
	size[0] = cuda_product(cuda_product(size[0], size[1]), size[2]);
	return size[0] | direction << LAYOUT_DIRECTION_SHIFT;
}

/* CUgraphNodeType, and where the parameters of each lie in CUgraphNodeParams. */
#define NODE_KERNEL 0U
#define NODE_COPY 1U
#define NODE_FILL 2U
#define NODE_GRAPH 4U
#define NODE_CONDITIONAL 13U
#define NODE_PARAMS_AT 16U
#define NODE_COPY_AT 32U

/* Returns which enum pp_cuda_node a CUgraphNodeParams is of. */
__noinline __u32 cuda_read_node(__u64 address)
{
	__u32 type = 0;

	if (bpf_probe_read_user(&type, sizeof(type), (const void *)address) ||
	    type >= NODE_CONDITIONAL)
		return PP_CUDA_NODE_UNKNOWN;
	if (type == NODE_KERNEL)
		return PP_CUDA_NODE_KERNEL;
	if (type == NODE_GRAPH)
		return PP_CUDA_NODE_GRAPH;
	return type == NODE_COPY || type == NODE_FILL ? PP_CUDA_NODE_COPY : PP_CUDA_NODE_OTHER;
}

/* Returns how many bytes it copies, or which graph it is. */
__noinline __u64 cuda_read_node_what(__u64 address, __u32 node)
{
	__u64 graph = 0;
	__u32 type = 0;

	if (node == PP_CUDA_NODE_GRAPH)
		bpf_probe_read_user(&graph, sizeof(graph),
				    (const void *)(address + NODE_PARAMS_AT));
	if (node != PP_CUDA_NODE_COPY)
		return graph;
	bpf_probe_read_user(&type, sizeof(type), (const void *)address);
	return (type == NODE_COPY
			? cuda_read_layout(address + NODE_COPY_AT, PP_CUDA_LAYOUT_3D, 0)
			: cuda_read_layout(address + NODE_PARAMS_AT, PP_CUDA_LAYOUT_FILL, 0))
		       << 8 >>
	       8;
}

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
	__u32 user;   /* who answers for it */
	__u64 id;     /* of the totals */
	__u64 scale;  /* of what it counts as (lib/user_probe.bpf.h) */
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

/* Returns the bytes that a call is about, and sets its direction. */
static __always_inline __u64 cuda_bytes(struct pt_regs *ctx, const struct pp_cuda_site *site,
					__u8 *direction)
{
	__u64 bytes = 0, kind;

	*direction = site->direction;
	if (site->bytes[0])
		bytes = cuda_parameter(ctx, site->bytes[0]);
	if (site->layout) {
		kind = site->bytes[1] ? cuda_parameter(ctx, site->bytes[1]) : 0;
		bytes = cuda_read_layout(bytes, site->layout, kind);
		if (!*direction)
			*direction = bytes >> LAYOUT_DIRECTION_SHIFT;
		return bytes << 8 >> 8;
	}
	if (site->kind) {
		kind = (__u32)cuda_parameter(ctx, site->kind);
		*direction = kind < 5 ? PP_CUDA_HTOH + kind : PP_CUDA_UNIFIED;
	}
	if (site->bytes[1])
		bytes *= cuda_parameter(ctx, site->bytes[1]);
	return bytes << (site->bytes_shift & 7);
}

/* Returns the stream that a call goes to, as struct pp_cuda_what has it. */
static __always_inline __u64 cuda_stream(struct pt_regs *ctx, const struct pp_cuda_site *site)
{
	__u64 stream;

	if (!site->stream)
		return PP_CUDA_STREAM_NONE;
	stream = cuda_parameter(ctx, site->stream);
	if (site->stream_at)
		bpf_probe_read_user(&stream, sizeof(stream),
				    (const void *)(stream + site->stream_at));
	if (stream)
		return stream;
	return site->is_twin ? PP_CUDA_STREAM_PER_THREAD : PP_CUDA_STREAM_DEFAULT;
}

/* Returns whether a call that runs may leave work in its stream; its direction is known. */
static __always_inline bool cuda_queues(const struct cuda_hit *h)
{
	const __u8 way = h->what.direction;

	return h->site->queues && (h->site->queues != PP_CUDA_QUEUES_TO_DEVICE ||
				   (way != PP_CUDA_DTOH && way != PP_CUDA_HTOH));
}

/* A call may leave work in its stream.  Most find that their thread has marked it in this round.
 * A kernel runs in its thread's context; a copy may go to a stream of another one. */
static __always_inline void cuda_queue(struct cuda_thread *thread, __u64 stream, bool is_kernel,
				       __u64 sp)
{
	const __u64 *rounds = cuda_rounds_of(bpf_get_current_pid_tgid() >> 32);

	cuda_launch_enter(thread, sp);
	if (likely(rounds && thread->stream == stream && thread->round == cuda_round(rounds)))
		return;
	cuda_mark(stream, is_kernel);
}

/* ---- whose call it is ---- */

/* Looks up the process of the current thread, and notes it for its next calls. */
__noinline int cuda_thread_note(__u64 id)
{
	struct cuda_thread *known = bpf_map_lookup_elem(&cuda_threads, &id);
	struct pp_config *cfg = config_get();
	struct pp_process_id process = {.tgid = id >> 32};
	const struct pp_process_context *context;
	struct task_struct *task = task_current();
	struct cuda_thread fresh = {};
	const __u32 *generation;

	fresh.user = user_of_current();
	if (!cfg || (!known && cuda_news_take(fresh.user)))
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
	fresh.began_ns = CURRENT_READ(task, start_time);
	if (known)
		fresh.hits = known->hits;
	/* Another program has no device yet, and no capture; nor has a thread that got the id. */
	if (!known || known->generation != fresh.generation || known->began_ns != fresh.began_ns)
		return bpf_map_update_elem(&cuda_threads, &id, &fresh, BPF_ANY) ? 1 : 0;
	known->changes = fresh.changes;
	known->is_wanted = fresh.is_wanted;
	known->user = fresh.user;
	known->round = 0; /* what it has marked may be forgotten: cuda_side_see() */
	return 0;
}

/* Returns what is known of the current thread; NULL: its calls do not count. */
static __always_inline struct cuda_thread *cuda_thread_get(__u64 id, const struct pp_config *cfg)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	const struct cuda_machine *machine = cuda_machine_get();

	if (!thread || thread->changes != *(volatile const __u32 *)&cfg->process_changes) {
		cuda_thread_note(id);
		thread = bpf_map_lookup_elem(&cuda_threads, &id);
	}
	if (!thread || !thread->is_wanted)
		return NULL;
	if (machine && thread->seen != *(volatile const __u32 *)&machine->changes)
		cuda_thread_look(id);
	return thread;
}

/* One hit in so many is timed.  What lies far beyond what a hit takes is others' time: programs of
 * this kind are preempted. */
#define CUDA_TIMED_ONE_IN 64U
#define CUDA_TIMED_MAX_NS 5000U

static __always_inline void cuda_hit_timed(struct cuda_thread *thread)
{
	__u64 ns;

	if (likely(!thread->timed_ns))
		return;
	ns = bpf_ktime_get_ns() - thread->timed_ns;
	thread->timed_ns = 0;
	thread->hits.timed++;
	thread->hits.ns += ns < CUDA_TIMED_MAX_NS ? ns : CUDA_TIMED_MAX_NS;
}

/* Notes a hit, and sets what it counts as; 0: it does not count. */
static __always_inline void cuda_hit_count(struct cuda_hit *h, struct cuda_thread *thread)
{
	__u32 kind = h->site->hit;
	const struct pp_gate *gate;

	if (kind >= PP_CUDA_HITS)
		return;
	if (unlikely(++thread->hits.of[kind] % CUDA_TIMED_ONE_IN == 0))
		thread->timed_ns = bpf_ktime_get_ns();
	h->scale = 1 << PP_GATE_SCALE_SHIFT;
	if (kind >= PP_CUDA_LAUNCHES)
		return;
	gate = bpf_map_lookup_elem(&cuda_gates, &kind);
	if (unlikely(!gate || gate->until_ns))
		h->scale = gate_scale(gate, bpf_ktime_get_ns());
}

/* ---- totals ---- */

static __always_inline __u64 cuda_word(const struct pp_cuda_what *what)
{
	return (__u64)what->life << 32 | (__u64)what->api << 16 | (__u64)what->direction << 8 |
	       what->device;
}

static __always_inline __u64 cuda_id(const struct pp_cuda_what *what, const struct pp_config *cfg)
{
	__u64 hash = hash_mix(cfg->name_secret, (__u64)what->id.tgid << 32 | what->id.generation);

	hash = hash_mix(hash_mix(hash, what->ident), what->stream);
	return hash_mix(hash, cuda_word(what)) | 1;
}

/* Makes a row of totals.  word: cuda_word().  Returns nonzero where there is no room for it.  It
 * has all of the stack that a hit leaves. */
__noinline int cuda_totals_add(__u64 id, __u64 ident, __u64 stream, __u32 generation, __u64 word)
{
	struct pp_cuda_totals totals = {};
	const struct cuda_process *process;
	int err;

	totals.what.id.tgid = bpf_get_current_pid_tgid() >> 32;
	totals.what.id.generation = generation;
	totals.what.ident = ident;
	totals.what.stream = stream;
	totals.what.life = word >> 32;
	totals.what.api = word >> 16;
	totals.what.direction = word >> 8;
	totals.what.device = word;
	totals.gap = 1;
	process = bpf_map_lookup_elem(&cuda_processes, &totals.what.id.tgid);
	totals.user = process ? process->user : 0;
	err = bpf_map_update_elem(&cuda_totals, &id, &totals, BPF_NOEXIST);
	if (!err)
		cuda_row_made(totals.what.id.tgid, ident == PP_CUDA_IDENT_OTHERS);
	return err == -7 /* E2BIG */;
}

/* Returns whether a module was unloaded in a later life than that. */
static __always_inline bool was_unloaded(__u32 generation, __u64 module, __u32 life)
{
	const struct cuda_object *unloaded = object_get(generation, module, PP_CUDA_OBJECT_MODULE);

	return unloaded && unloaded->life > life;
}

/* Says in a row what its kernel is called now.  It is not known where the module was unloaded, or
 * the context ended, since it was told: the handle may be another one's. */
__noinline int cuda_totals_name(__u64 id, __u32 generation, __u64 handle)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);
	struct pp_cuda_handle key = {.handle = handle};
	const struct pp_cuda_name *name, *of;

	key.id.tgid = bpf_get_current_pid_tgid() >> 32;
	key.id.generation = generation;
	name = bpf_map_lookup_elem(&cuda_names, &key);
	if (!totals || !name || was_unloaded(generation, 0, name->life) ||
	    was_unloaded(generation, name->module, name->life) ||
	    was_unloaded(generation, name->context, name->life))
		return 1;
	totals->name = name->text;
	if (name->text)
		return 0;
	key.handle = name->of;
	of = bpf_map_lookup_elem(&cuda_names, &key);
	if (of)
		totals->name = of->text;
	return 0;
}

static __always_inline struct pp_cuda_totals *cuda_totals_of(struct cuda_hit *h)
{
	h->id = cuda_id(&h->what, h->cfg);
	return bpf_map_lookup_elem(&cuda_totals, &h->id);
}

static __always_inline int cuda_totals_try(const struct cuda_hit *h)
{
	const __u32 generation = h->what.id.generation;

	if (!cuda_may_add(h->what.id.tgid, generation, h->what.ident == PP_CUDA_IDENT_OTHERS))
		return 1;
	if (cuda_totals_add(h->id, h->what.ident, h->what.stream, generation, cuda_word(&h->what)))
		return 1;
	if (h->site->node == PP_CUDA_NODE_KERNEL)
		cuda_totals_name(h->id, generation, h->what.ident);
	return 0;
}

static __always_inline struct pp_cuda_totals *cuda_totals_make(struct cuda_hit *h)
{
	struct pp_cuda_totals *totals = cuda_totals_of(h);

	if (likely(totals))
		return totals;
	if (cuda_totals_try(h)) {
		count_loss(PP_LOSS_CUDA_FULL);
		h->what.ident = PP_CUDA_IDENT_OTHERS;
		h->what.stream = PP_CUDA_STREAM_NONE;
		h->what.device = 0;
		h->what.life = 0;
		totals = cuda_totals_of(h);
		if (totals)
			return totals;
		cuda_totals_try(h);
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
