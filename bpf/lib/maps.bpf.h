/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declares every map; maps.bpf.c defines them (and alone sets PP_MAP). */
#ifndef BPF_LIB_MAPS_H
#define BPF_LIB_MAPS_H

#include "lib/kernel.bpf.h"
#include "lib/walk_state.bpf.h"

#include <pyprofd/config.h>
#include <pyprofd/gpu.h>
#include <pyprofd/process.h>
#include <pyprofd/python.h>
#include <pyprofd/sample.h>
#include <pyprofd/scan.h>
#include <pyprofd/table.h>
#include <pyprofd/timeline.h>
#include <pyprofd/times.h>
#include <pyprofd/unwind.h>
#include <pyprofd/user_share.h>
#include <pyprofd/wait.h>
#include <pyprofd/wake.h>

#ifndef PP_MAP
#define PP_MAP extern
#define PP_CONST extern const volatile
#endif

/* Sizes marked (agent) are set before the load, from the CPUs and the memory budget. */

struct config_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_config);
};
PP_MAP struct config_map config SEC(".maps");

/* A struct pp_walk for each level, scratch_levels of them a CPU, of the CPUs that are online, and
 * of some that may come (agent; cpu_slots).  An ordinary array: a per-CPU value stops at 32 KiB.
 * Mappable arrays begin on a page, which keeps aligned parts in one cache line. */
struct scratch_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_walk);
};
PP_MAP struct scratch_map scratch SEC(".maps");

/* CPU number -> 1 + which of the places in `scratch` is its; 0: it has none (agent). */
struct cpu_slots_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
};
PP_MAP struct cpu_slots_map cpu_slots SEC(".maps");

/* Which of them are in use. */
struct scratch_claims {
	__u32 is_taken[PP_WALK_LEVELS];
};
struct scratch_claims_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch_claims);
};
PP_MAP struct scratch_claims_map scratch_claims SEC(".maps");

struct losses_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PP_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
};
PP_MAP struct losses_map losses SEC(".maps");

/* tgid -> generation (agent). */
struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
};
PP_MAP struct processes_map processes SEC(".maps");

/* What a walk needs of a process (agent). */
struct contexts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct pp_process_id);
	__type(value, struct pp_process_context);
};
PP_MAP struct contexts_map contexts SEC(".maps");

/* Ranges of chunks (agent). */
struct map_sets_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_map_chunk);
};
PP_MAP struct map_sets_map map_sets SEC(".maps");

struct pages_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_MAX_PAGES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
};
PP_MAP struct pages_map pages SEC(".maps");

/* Shards of packed rows (agent): a search inside one costs direct loads, no helper calls. */
struct row_shard {
	__u32 row[PP_ROW_SHARD_ROWS];
};
struct rows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct row_shard);
};
PP_MAP struct rows_map rows SEC(".maps");

struct rules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_MAX_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_rule);
};
PP_MAP struct rules_map rules SEC(".maps");

struct pythons_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_MAX_PYTHONS);
	__type(key, __u32);
	__type(value, struct pp_python);
};
PP_MAP struct pythons_map pythons SEC(".maps");

struct resyncs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_MAX_PYTHONS);
	__type(key, __u32);
	__type(value, struct pp_resync);
};
PP_MAP struct resyncs_map resyncs SEC(".maps");

/* Threads whose state no TLS slot gives; 0: asked for, not known (agent). */
struct thread_states_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct pp_thread_key);
	__type(value, __u64);
};
PP_MAP struct thread_states_map thread_states SEC(".maps");

/* A code object at an address of a code space; `head` guards against reuse of the address. */
struct code_key {
	__u64 address;
	__u32 code_space;
	__u32 head;
};
struct codes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct code_key);
	__type(value, __u64); /* code id */
};
PP_MAP struct codes_map codes SEC(".maps");

/* hash of a stack or a code object -> epoch in which it was last sent (agent). */
struct sent_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, __u32);
};
PP_MAP struct sent_map sent SEC(".maps");

/* User id modulo PP_USER_SHARES -> what this user has taken of what all users share. */
struct user_shares_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_USER_SHARES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_user_share);
};
PP_MAP struct user_shares_map user_shares SEC(".maps");

/* Counters: of samples, of waits, and of what found no room in those (agent: sizes). */
struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pp_count_key);
	__type(value, struct pp_count);
};
PP_MAP struct counts_map counts_0 SEC(".maps");
PP_MAP struct counts_map counts_1 SEC(".maps");
PP_MAP struct counts_map waits_0 SEC(".maps");
PP_MAP struct counts_map waits_1 SEC(".maps");
PP_MAP struct counts_map coarse_0 SEC(".maps");
PP_MAP struct counts_map coarse_1 SEC(".maps");

/* ... and of what found none in `coarse` either. */
struct rest_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PP_REST_ROWS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_count);
};
PP_MAP struct rest_map rest SEC(".maps");

struct fills_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_FILL_COUNT);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_fill);
};
PP_MAP struct fills_map fills SEC(".maps");

/* One struct pp_thread each (agent). */
struct threads_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_thread);
};
PP_MAP struct threads_map threads SEC(".maps");

/* Index of a slot -> the tid that is claiming it now.  Of two CPUs only one can insert the
 * entry. */
struct slot_claims_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
};
PP_MAP struct slot_claims_map slot_claims SEC(".maps");

struct ledgers_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_LEDGER_ROWS); /* processes that end in a window */
	__type(key, struct pp_process_id);
	__type(value, struct pp_ledger_sum);
};
PP_MAP struct ledgers_map ledgers SEC(".maps");

/* tgid -> what its calls tell of its work on the GPU; tid -> the synchronisation it is in (agent:
 * one entry each where event `cuda` is not captured). */
struct gpu_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_gpu_process);
};
PP_MAP struct gpu_processes_map gpu_processes SEC(".maps");
struct gpu_waits_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_gpu_wait);
};
PP_MAP struct gpu_waits_map gpu_waits SEC(".maps");

/* What walks may cost (lib/budget.bpf.h). */
struct budget {
	__u64 started_ns; /* of the period */
	__s64 credit_ns;
	__u32 shift; /* one wait or sample in 1 << shift is walked */
	__u32 spent_ns; /* in this period */
};

/* The state of sampling on one CPU. */
struct sampling {
	struct budget budget; /* which only steers */
	__u64 due_ns;	/* when the last event was due; 0: not known */
	__u64 ended_ns; /* when its walk had ended; 0: there was none */
	__u64 thread;	/* pid and tgid */
	__u64 switches; /* of the thread, up to then */
};
struct sampling_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampling);
};
PP_MAP struct sampling_map sampling SEC(".maps");

/* enum pp_program -> how long it took, when it walked a stack. */
struct times_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PP_PROGRAM_COUNT);
	__type(key, __u32);
	__type(value, struct pp_times);
};
PP_MAP struct times_map times SEC(".maps");

/* Where a thread left user space, and with which system call. */
struct call_site {
	__u64 pc, sp, number, argument;
	__u64 is_disk; /* block I/O is under way */
	__u64 gpu;     /* enum pp_gpu of the thread */
};

/* The cached stacks of a wait site before it was unwound again. */
struct old_site {
	__u64 user_stack, kernel_stack;
	__u32 flags, pad;
};

/* A row that is being counted: one for switches and one for execs, which a switch may interrupt. */
struct counting {
	struct pp_count_key key;
	struct pp_count count;
};
enum counting_at { COUNTING_SWITCH, COUNTING_EXEC, COUNTING_COUNT };
struct countings_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTING_COUNT);
	__type(key, __u32);
	__type(value, struct counting);
};
PP_MAP struct countings_map countings SEC(".maps");

/* The state of a switch on this CPU: what does not fit on the BPF stack, or what the verifier would
 * track value by value there.  Only the first four fields outlive the switch. */
struct switch_state {
	struct budget budget; /* which only steers */
	__u64 clock_read, clock_offset; /* switch_thread.bpf.c: switch_clock() */
	__u64 registers_at;		/* in a kernel stack; 0: not known yet */
	__u64 look_ns;			/* when the look at this wait began */
	struct call_site call_site;
	struct old_site old;
	__u32 found, pad;    /* which of the thread's wait sites this is */
	__u64 registers[34]; /* struct user_registers: aarch64 has most */
	struct pp_ledger_sum ledger; /* all 0 */
	__u64 context; /* an address: the verifier must not know it as a context */
};
struct switches_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_state);
};
PP_MAP struct switches_map switches SEC(".maps");

/* One thread of a scan: one agent reads one iterator at a time, so one is enough. */
struct scan_state {
	__u64 registers[34]; /* struct user_registers: aarch64 has most */
	struct pp_scan_record record;
};
struct scans_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scan_state);
};
PP_MAP struct scans_map scans SEC(".maps");

/* Stacks and code objects (agent: size). */
struct stacks_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
PP_MAP struct stacks_map stacks SEC(".maps");

/* Process lifecycle events and requests.  They have a ring of their own so that a flood of stacks
 * cannot drown them. */
struct events_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
};
PP_MAP struct events_map events SEC(".maps");

/* For `wakers` (agent: without it none of these maps is made).  tid of a thread that waits -> who
 * woke it. */
struct wakers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct pp_waker);
};
PP_MAP struct wakers_map wakers SEC(".maps");

struct wakes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct pp_wake_key);
	__type(value, struct pp_count);
};
PP_MAP struct wakes_map wakes_0 SEC(".maps");
PP_MAP struct wakes_map wakes_1 SEC(".maps");

/* A key that does not fit on BPF's stack. */
struct wake_keys_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_wake_key);
};
PP_MAP struct wake_keys_map wake_keys SEC(".maps");

/* --timeline's records (agent: size, or not made at all). */
struct timeline_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
};
PP_MAP struct timeline_map timeline SEC(".maps");

/* A timeline record of a switch, for which the BPF stack has no room.  Samples have theirs there,
 * as they interrupt switches (agent: not made at all without --timeline). */
struct timeline_records_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_timeline_record);
};
PP_MAP struct timeline_records_map timeline_records SEC(".maps");

/* Set before the load (agent): the verifier removes the code that they switch off. */
PP_CONST bool timeline_is_on;
/* The last level is for programs that can be preempted: none of today's is. */
PP_CONST __u32 scratch_levels;
PP_CONST bool wakers_are_on;
/* What the kernel has; instructions that it lacks are replaced before the load, wherever they are
 * (attach/object_builds.h): verifiers refuse some of them even in code that never runs. */
PP_CONST bool has_cmpxchg;     /* and xchg: 5.12 and later */
PP_CONST bool has_rdonly_cast; /* bpf_rdonly_cast(): 6.2 and later */
PP_CONST bool switch_tells_state; /* sched_switch has the argument prev_state: 5.18 and later */
PP_CONST bool victim_is_task;	  /* mark_victim has a task, not a thread id: 6.9 and later */

static inline void count_losses(enum pp_loss loss, __u64 number)
{
	__u32 key = loss;
	__u64 *count = bpf_map_lookup_elem(&losses, &key);

	if (count)
		__sync_fetch_and_add(count, number);
}

static inline void count_loss(enum pp_loss loss)
{
	count_losses(loss, 1);
}

/* The agent looks at the ring a few times a second; a flood of new stacks wakes it. */
static inline __u64 ring_wakeup(void)
{
	__u64 used = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);

	return used > bpf_ringbuf_query(&stacks, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP :
									 BPF_RB_NO_WAKEUP;
}

static inline struct pp_config *config_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}

/* Call this after each change of `processes` and `contexts`. */
static inline void processes_changed(void)
{
	struct pp_config *cfg = config_get();

	if (cfg)
		__sync_fetch_and_add(&cfg->process_changes, 1);
}

static inline struct pp_walk *walk_get(__u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

#endif
