/* SPDX-License-Identifier: BSD-2-Clause */
/* How long processes have had work queued on the GPU, and how long provably none: reads the kernel
 * side's states (include/pyprofd/cuda.h), and removes those of ended processes.  One thread. */
#ifndef DRAIN_GPU_STATES_H
#define DRAIN_GPU_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/config.h>
#include <pyprofd/cuda.h>
#include <pyprofd/process.h>

#include "base/cleanup.h"
#include "base/user_shares.h"

#define GPU_STATES_MAX 256U /* processes in one profile; younger ones share a sum */

struct gpu_states;
int gpu_states_new(struct gpu_states **ret_states); /* returns 0 or -ENOMEM */
void gpu_states_free(struct gpu_states *states);
DEFINE_OWNED(struct gpu_states, gpu_states)

/* Descriptors of maps, and who lives. */
struct gpu_tables {
	int processes, streams, wholes;
	uint32_t stream_bytes; /* of a value of `streams` */
	struct user_shares shares;
	bool (*is_alive)(void *context, struct pp_process_id id);
	void *context;
};
/* Adds what each process has had since the last call, up to now_ns (CLOCK_MONOTONIC).  Returns 0;
 * -ENOMEM; -errno. */
int gpu_states_collect(struct gpu_states *states, const struct gpu_tables *tables, uint64_t now_ns);

struct gpu_state_times {
	struct pp_process_id id;  /* tgid 0: a sum of others */
	uint32_t others;	  /* how many they are */
	uint64_t ns[PP_GPU_WAIT]; /* by enum pp_gpu */
};
/* Calls back with what each process had between the last two calls of gpu_states_collect(), as far
 * as it is known still.  Returns what the callback does when that is not 0. */
int gpu_states_part(const struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context);
/* Calls back with what each process had since the last call of this, and begins anew.  Returns what
 * the callback does when that is not 0. */
int gpu_states_take(struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context);

#endif
