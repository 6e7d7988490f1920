/* SPDX-License-Identifier: BSD-2-Clause */
/* Event `cuda`: turns what the kernel side has added up (include/pyprofd/cuda.h) into counters at a
 * window's end, and says what a counter's calls do.  probes.h attaches to the functions.  The
 * loop's thread. */
#ifndef GPU_CUDA_H
#define GPU_CUDA_H

#include <stdint.h>

struct cuda; /* the state of cuda_source */
struct cuda_fresh;
struct intern;
struct modules;
struct profile_sample;

/* The kinds of its counters. */
#define CUDA_KINDS                                                                                 \
	(1U << PP_KIND_CUDA | 1U << PP_KIND_CUDA_WAIT | 1U << PP_KIND_CUDA_BYTES |                 \
	 1U << PP_KIND_CUDA_HELD | 1U << PP_KIND_CUDA_SEEN)

/* What the calls of a counter do; strings are valid until the next call, "" where there is none. */
#define CUDA_TEXT_BYTES 64U
struct cuda_call {
	char api[CUDA_TEXT_BYTES];
	char device[CUDA_TEXT_BYTES]; /* "0", as the program counts; "nvml:0"; "unknown" */
	const char *direction;
	const char *kernel;
	char stream[CUDA_TEXT_BYTES];
	char graph[CUDA_TEXT_BYTES];	    /* graph@0xHANDLE, of the instance that is launched */
	char communicator[CUDA_TEXT_BYTES]; /* 0xHANDLE, NCCL's */
};
/* detail: the counter's.  Returns 0; -ENOENT: it is not known. */
int cuda_find(const struct cuda *cuda, uint64_t detail, struct cuda_call *ret_call);

/* Keeps what is known of a counter's calls: memory that they have allocated is live. */
void cuda_hold(struct cuda *cuda, uint64_t detail);

/* Calls back for what each row had in the window that was collected last
 * (drain/cuda_totals.h).  Returns 0, or an error of on_fresh, which ends it. */
int cuda_fresh(const struct cuda *cuda,
	       int (*on_fresh)(void *context, const struct cuda_fresh *fresh), void *context);

/* Puts a frame with the kernel's name below the call's, where it has a kernel.  *sample has its
 * frames until the next call.  Returns 0 or -ENOMEM. */
int cuda_add_kernel(struct cuda *cuda, uint64_t detail, struct intern *strings,
		    struct modules *modules, struct profile_sample *sample);

#endif
