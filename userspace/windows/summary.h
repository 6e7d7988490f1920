/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run has come to so far: what was counted, what was lost, what it costs. */
#ifndef WINDOWS_SUMMARY_H
#define WINDOWS_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/stops.h>
#include <pyprofd/table.h>

#include "files/questions.h"

#define SUMMARY_LARGEST 16U /* processes */

/* Totals since the start. */
struct summary {
	uint64_t elapsed_ns;
	uint64_t processes; /* distinct, with at least one sample */
	uint64_t samples;   /* counted, whole or not */
	/* Samples by how the native walk ended (PP_STOP_FINISHED: the agent reached the root). */
	uint64_t stop[PP_STOP_COUNT];
	/* Samples of Python threads by how their Python walk ended. */
	uint64_t py_stop[PP_PY_STOP_COUNT];
	uint64_t loss[PP_LOSS_COUNT];
	struct pp_times times[PP_PROGRAM_COUNT]; /* as of the last window_facts_add() */
	uint64_t cpu_ns, wait_ns;		 /* in the profiles */
	bool is_cycles;				 /* --clock cycles: cpu_ns counts those */
	uint64_t scheduler_ns;	 /* CPU time of what is profiled, by the scheduler; 0: not known */
	uint64_t ledger_wait_ns; /* its time off the CPU, by the ledger; 0: not known */
	/* Of cpu_ns and wait_ns: without their stacks, for want of room. */
	uint64_t coarse_cpu_ns, coarse_wait_ns;
	uint64_t early_swaps; /* of tables that were half full before the window's end */
	uint64_t own_cpu_ns;  /* of all threads of this process, and children that parse */
	uint64_t asked[FOREIGN_COUNTERS]; /* of the child that parses files */
	uint64_t unlabelled; /* programs that had ended before labels could be read for them */
	uint64_t bpf_cpu_ns; /* of walks in the kernel, as far as times[] tells */
	uint64_t rate_steps; /* how often --max-cpu has halved the rate, in the open window */
	uint64_t kept;	     /* times that the last minutes were kept (store/keeper.h) */
	/* What probes cost, of their programs' CPU time without them, and for which share of the
	 * time the least of them is on; 0: there are none. */
	uint32_t probes_cost_ppm, probes_on_ppm;
	uint64_t own_rss_bytes;	    /* resident */
	uint64_t own_map_bytes;	    /* kernel maps */
	uint64_t loop_stall_max_ns; /* longest turn of the loop since facts were written */
	/* Resident memory of the profiled processes, as it was read last (agent/resident.c). */
	uint64_t memory_processes; /* those that were read */
	uint64_t memory_anonymous_bytes, memory_file_bytes, memory_shared_bytes;
	uint64_t memory_largest_bytes[SUMMARY_LARGEST]; /* of one process in all, largest first */
	/* Of all CPUs, since boot; as of the last window_facts_add(). */
	uint64_t host_busy_ns;
	uint64_t host_steal_ns;	      /* what a hypervisor took; part of the former */
	uint64_t host_steal_start_ns; /* as it was at the start */
};

#endif
