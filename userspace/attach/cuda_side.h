/* SPDX-License-Identifier: BSD-2-Clause */
/* The loaded BPF object of CUDA's functions: its program and tables (include/pyprofd/cuda.h).  It
 * shares the maps of the first object (kernel_side.h).  Opening it takes the kernel a second: a
 * thread beside the loop does so.  One thread at a time, but for what only is read. */
#ifndef ATTACH_CUDA_SIDE_H
#define ATTACH_CUDA_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "base/cleanup.h"
#include "base/user_shares.h"

struct kernel_side;
struct pyprofd_cuda;

struct cuda_side {
	struct pyprofd_cuda *skeleton;	  /* owned */
	const struct kernel_side *kernel; /* borrowed */
	/* Descriptors that the object owns: the program, and maps for kernels without cookies
	 * (struct probe_links_options). */
	int program, site_now, programs;
	int totals, removed, names; /* cuda_totals[] and so on */
	int blocks, ended;
	int processes; /* gpu_processes[] */
	int wholes;
	int streams, threads; /* values of `threads` begin with struct pp_cuda_hits */
	uint32_t stream_bytes, thread_bytes; /* of a value of these */
	struct user_shares shares;
	/* CLOCK_MONOTONIC: since when all calls are seen; UINT64_MAX: they are not.  Any thread. */
	_Atomic uint64_t seen_since_ns;
};

/* Loads the program.  Returns 0 or -errno with one line in `why`. */
int cuda_side_open(const struct kernel_side *kernel, char *why, size_t why_size,
		   struct cuda_side **ret_side);
void cuda_side_free(struct cuda_side *side); /* NULL is allowed */
DEFINE_OWNED(struct cuda_side, cuda_side)

/* Launches are not seen from here on: before their probes go.  Until cuda_side_see() what processes
 * have queued is not known. */
void cuda_side_go_blind(struct cuda_side *side);
/* They are seen again, where all functions have probes.  Nothing is known of what was queued
 * before. */
void cuda_side_see(struct cuda_side *side);
/* Says that all calls of a process have been and will be seen: until that is said, what it may have
 * queued before is not known.  Returns 0 or -errno. */
int cuda_side_add_whole(const struct cuda_side *side, struct pp_process_id id);

/* Says what a hit of a site does; a hit before that does nothing.  number: 1 .. PP_SITES_MAX - 1.
 * Returns 0 or -errno. */
int cuda_side_set_site(struct cuda_side *side, uint32_t number, const struct pp_site *site);
/* Says which launches of a kind (enum pp_cuda_hit) are counted, and how often.  Returns 0 or
 * -errno. */
int cuda_side_set_gate(struct cuda_side *side, uint32_t kind, const struct pp_gate *gate);
/* Says how many rows of totals there are, once rows were removed.  Returns 0 or -errno. */
int cuda_side_set_count(const struct cuda_side *side, uint64_t rows);

/* Takes a block of memory out of cuda_blocks[] and its user's share, unless it has become another
 * one since it was read.  The loop's thread. */
void cuda_side_remove_block(const struct cuda_side *side, const struct pp_cuda_block_key *key,
			    const struct pp_cuda_block *block);

#endif
