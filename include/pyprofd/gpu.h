/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a process has work queued on the GPU, as its own calls prove it (docs/gpu.md).  The
 * program of CUDA's functions writes it (bpf/lib/cuda_streams.bpf.h); those of samples and switches
 * read it. */
#ifndef PYPROFD_GPU_H
#define PYPROFD_GPU_H

#include <linux/types.h>

#define PP_GPU_PROCESSES_MAX 512U /* with a state of their own */
#define PP_GPU_WAITS_MAX 2048U	  /* threads inside of synchronisations at a time */
/* Of each a user other than root has such a part at most. */
#define PP_GPU_USERS 4U

/* X(id, value of the label `gpu`).  Two bits of a counter's flags (enum pp_count_flag). */
#define PP_GPUS(X)                                                                                 \
	X(UNKNOWN, "") /* there is no CUDA, or its calls do not tell */                            \
	X(QUEUED, "queued")                                                                        \
	X(DRAINED, "drained")                                                                      \
	X(WAIT, "wait") /* of a thread alone: it is inside of a synchronisation or sync copy */
#define PP_ENUM_GPU(id, label) PP_GPU_##id,
enum pp_gpu { PP_GPUS(PP_ENUM_GPU) PP_GPU_COUNT };

/* gpu_processes[tgid].  Each synchronisation that begins starts a new round of its process, from 1
 * on.  Several threads write at the same time, without locks: each value tells of itself, so that a
 * late writer leaves it too careful at worst. */
struct pp_gpu_process {
	__u32 generation; /* of the process */
	__u32 sight;	  /* struct pp_config: gpu_sight, since when its calls are seen */
	__u32 user;	  /* who answers for it */
	__u32 pad;
	__u64 marked;	  /* the last round in which work was queued */
	__u64 idle;	  /* all that was queued in rounds before this one has ended */
	/* The same of what may have been queued before its calls were seen. */
	__u64 unsure, sure;
	__u64 since; /* CLOCK_MONOTONIC << PP_GPU_SINCE_SHIFT | enum pp_gpu, of the state */
	/* In each state, up to then.  The last is not used: verifiers before Linux 5.12 do not see
	 * that a state of two bits that is not the last is below it. */
	__u64 total_ns[PP_GPU_COUNT];
};
#define PP_GPU_SINCE_SHIFT 2

/* gpu_waits[tid] */
struct pp_gpu_wait {
	__u64 sp; /* at the function's first instruction: below it, the thread is inside */
	/* What it proves when it returns; round 0: nothing.  bpf/lib/cuda_streams.bpf.h. */
	__u64 round, stream, context;
	__u32 user; /* who answers for the thread */
	__u32 pad;
};

static __inline__ enum pp_gpu pp_gpu_of(const struct pp_gpu_process *process)
{
	const __u64 marked = *(const volatile __u64 *)&process->marked;

	if (*(const volatile __u64 *)&process->idle <= marked)
		return marked ? PP_GPU_QUEUED : PP_GPU_UNKNOWN;
	return *(const volatile __u64 *)&process->sure > *(const volatile __u64 *)&process->unsure
		       ? PP_GPU_DRAINED
		       : PP_GPU_UNKNOWN;
}

/* Ends the state that a process has: nothing is known any more.  Nobody else may write. */
static __inline__ void pp_gpu_forget(struct pp_gpu_process *process, __u64 now_ns)
{
	const __u64 since_ns = process->since >> PP_GPU_SINCE_SHIFT;
	const __u64 state = process->since & (PP_GPU_COUNT - 1);

	if (state < PP_GPU_WAIT && now_ns > since_ns)
		process->total_ns[state] += now_ns - since_ns;
	process->since = now_ns << PP_GPU_SINCE_SHIFT | PP_GPU_UNKNOWN;
	process->marked = process->idle = process->unsure = process->sure = 0;
}

#endif
