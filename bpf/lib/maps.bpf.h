/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every map that several objects have, and the values of those: maps.bpf.c defines them (and alone
 * sets PP_MAP). */
#ifndef BPF_LIB_MAPS_H
#define BPF_LIB_MAPS_H

#include "lib/kernel.bpf.h"

#include <pyprofd/config.h>
#include <pyprofd/cuda.h>
#include <pyprofd/limits.h>
#include <pyprofd/process.h>
#include <pyprofd/python.h>
#include <pyprofd/sample.h>
#include <pyprofd/table.h>
#include <pyprofd/unwind.h>
#include <pyprofd/wait.h>

/* ---- the state of one walk ----
 * It lies in a slot of the scratch map: global BPF functions pass only the slot.
 *
 * What emit() sends lies in one piece: a header (of either kind, ending where the frames begin),
 * the frames, and for an incomplete unwind the anchors, replaced return addresses and the copy of
 * the stack behind them. */
#define SEGMENT_COPY_BYTES (PP_SEGMENT_COPY * sizeof(struct pp_segment))
#define RETURNS_COPY_BYTES (PP_MAX_RETURNS * sizeof(struct pp_return))
/* Deep stacks have many anchors and a small copy of the stack, others few anchors. */
#define WALK_TAIL_BYTES (2 * SEGMENT_COPY_BYTES + RETURNS_COPY_BYTES + PP_STACK_COPY_BYTES)
#define WALK_BODY_BYTES (PP_MAX_FRAMES * sizeof(struct pp_frame) + WALK_TAIL_BYTES)

struct walk_output {
	union {
		struct pp_incomplete_record incomplete;
		struct {
			__u8 unused[sizeof(struct pp_incomplete_record) -
				    sizeof(struct pp_stack_record)];
			struct pp_stack_record stack;
		};
	};
	union {
		struct pp_frame frame[PP_MAX_FRAMES];
		__u8 body[WALK_BODY_BYTES];
	};
};
_Static_assert(sizeof(struct pp_incomplete_record) % 8 == 0, "frames follow at once");

#define CODE_BODY_BYTES 8192U /* a power of two above two names and a line table */
_Static_assert(2 * PP_MAX_NAME_BYTES + PP_MAX_LINE_TABLE_BYTES <= CODE_BODY_BYTES / 2, "room");

struct code_output {
	struct pp_code_record record;
	__u8 body[CODE_BODY_BYTES];
};

/* The result of looking up an address in a map set.  It outlives the walk, as the answer never
 * changes, and return addresses repeat from sample to sample and, in recursion, from level to
 * level. */
#define WALK_SITES 256U
struct walk_site {
	__u64 pc;
	__u64 address; /* in the file */
	__u32 map_version;
	__u32 file;
	struct pp_rule rule;
	__u32 is_plain;		/* the rule asks for sp or fp and the stack alone */
} __attribute__((aligned(64))); /* one cache line: samples find the caches cold */

#define WALK_WINDOW_BYTES 512U
#define WALK_FRAMES_BYTES 1024U

/* Code objects seen lately, also by earlier walks.  Two of the object's own pointers, to its line
 * table and the field before it, guard against another object at the same address. */
#define WALK_CODES 64U
struct walk_code_memo {
	__u64 address;
	__u64 id;
	__u64 guard[2];
	__u64 walk; /* started_ns of the walk that checked the guard last */
	__u32 code_space;
	__u32 pad;
} __attribute__((aligned(64)));

/* The search for the thread's state among those of several interpreters. */
#define WALK_STATES 8U
struct walk_states {
	__u64 interp, next;  /* the state to look at */
	__u64 found, anchor; /* what the C stack shows, and where */
	__u64 mine;	     /* that this thread made, and that runs something */
	__u64 lowest, highest;
	__u64 state[WALK_STATES]; /* <= 3.9: those that run something */
	__u32 count;
};

struct pp_walk {
	/* who */
	struct pp_process_id id;
	__u32 process_changes; /* of struct pp_config, when `id` and `context` were looked up */
	__u32 is_identified;   /* there they were: they hold while nothing changes */
	__u32 is_gpu;	       /* the process was in gpu_processes[] then */
	__u32 tid;
	__u32 count_flags;
	__u64 started_ns;
	__u64 deadline_ns; /* of all walks of the event */
	__u64 weight;
	__u64 detail; /* of the counter, as its kind */
	__u32 kind;   /* enum pp_count_kind */
	struct pp_process_context context;
	__u64 thread_pointer;
	__u64 zero; /* always 0, which the verifier cannot know */

	struct pp_range range; /* that was found last */

	/* native: the frame to go on with */
	__u64 pc, sp, fp;
	__u64 cfa; /* of the frame that was left last */
	__u64 registers[PP_REG_COUNT];
	/* pp_user_key() of who answers for the process, and the credentials that say who that is */
	__u64 user_key, cred;
	__u32 user, euid; /* euid: as in struct pp_count_key */
	__u64 hash;
	__u64 kernel_hash;
	__u64 callers; /* a hash of what lies above where an incomplete unwind stopped */
	__u32 is_leaf;
	__u32 has_user;
	/* of a map, below this walk: it updates no map that others update too */
	__u32 may_hold_lock;
	/* of an event besides samples and waits, which leave it half of the tokens */
	__u32 is_modest;
	__u32 is_exec;	    /* inside of execve(): its stack may be gone */
	__u32 is_in_kernel; /* the registers are those with which the thread entered the kernel */
	__u32 by_frame_pointer; /* the last step was one */
	__u32 stack_changes;	/* steps to another stack */
	__u32 is_unsure;	/* a caller may be missing: PP_LEAF_UNSURE */
	__u32 leaf;		/* enum pp_leaf, of the frame that is left */
	__u32 is_resumable;	/* stuck, and the agent may find where to go on */
	__u32 stop;
	__u32 native_stored, native_count, native_room;
	__u32 since_segment; /* native frames pushed since the last Python segment */
	__u32 foldable;	     /* all of them the interpreter's own, and there was a segment before */

	/* Python: the frame to go on with */
	__u64 thread_state;
	struct walk_states states;
	__u64 python_frame, cframe;
	__u32 py_stop;
	__u32 python_stored, python_count;
	__u32 segment_frames; /* of the open segment */
	__u32 segment_count, segment_next;
	__u32 steps;
	__u32 kernel_bytes;
	/* of the record that is being made: frames, anchors, the copy of the stack */
	__u32 body_bytes;
	__u32 is_urgent; /* at a switch or wake-up: slow steps look at the clock */
	__u64 code_address, code_id;
	__u64 guard[2]; /* as struct walk_code_memo's, read for a comparison */

	union {
		__u8 state[PP_TSTATE_READ_BYTES];
		__u64 saved[34]; /* user registers, before Python's walk: aarch64 has most */
	};
	/* Python frames: a window of the data stack, then room for one frame that lies
	 * elsewhere. */
	__u64 frames_start, frames_bytes; /* of the window; 0 bytes: nothing is there */
	__u64 frame_elsewhere;		  /* address of the last one of these */
	__u8 bytes[WALK_FRAMES_BYTES + PP_FRAME_READ_BYTES];
	__u8 code[PP_CODE_READ_BYTES];
	__u8 string[64];

	struct {
		struct pp_kernel_record record;
		__u64 address[PP_MAX_KERNEL_FRAMES + 1];
	} kernel;
	__u64 window_start, window_bytes; /* address of window[], and what is there of it */
	__u8 window[WALK_WINDOW_BYTES];	  /* of the user stack: one read for several frames */
	struct walk_site site[WALK_SITES];
	struct walk_code_memo memo[WALK_CODES];
	struct pp_segment segment[PP_MAX_SEGMENTS + PP_SEGMENT_COPY]; /* and room for a copy */
	struct code_output code_out;
	struct walk_output out;
};

/* ---- maps ---- */

/* A map: type BPF_MAP_TYPE_kind, so many rows, types of key and value. */
#define MAP(name, kind, rows, key_type, value_type)                                                \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_##kind);                                                 \
		__uint(max_entries, rows);                                                         \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	} name SEC(".maps")
/* An array that the agent can map. */
#define MAP_MMAPABLE(name, rows, value_type)                                                       \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, rows);                                                         \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__type(key, __u32);                                                                \
		__type(value, value_type);                                                         \
	} name SEC(".maps")
#define QUEUE(name, rows, value_type)                                                              \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_QUEUE);                                                  \
		__uint(max_entries, rows);                                                         \
		__type(value, value_type);                                                         \
	} name SEC(".maps")
#define RING(name, bytes)                                                                          \
	struct name##_map {                                                                        \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, bytes);                                                        \
	} name SEC(".maps")

#ifndef PP_MAP
#define PP_MAP extern
#define PP_CONST extern const volatile
#endif

/* Sizes marked (agent) are set before the load, from the CPUs and the memory budget. */

PP_MAP MAP_MMAPABLE(config, 1, struct pp_config);

/* A struct pp_walk for each level, scratch_levels of them a CPU, of the CPUs that are online, and
 * of some that may come (agent; cpu_slots).  An ordinary array: a per-CPU value stops at 32 KiB.
 * Mappable arrays begin on a page, which keeps aligned parts in one cache line. */
PP_MAP MAP_MMAPABLE(scratch, 2, struct pp_walk);

/* CPU number -> 1 + which of the places in `scratch` is its; 0: it has none (agent). */
PP_MAP MAP_MMAPABLE(cpu_slots, 1, __u64);

/* Which of them are in use. */
struct scratch_claims {
	__u32 is_taken[PP_WALK_LEVELS];
};
PP_MAP MAP(scratch_claims, PERCPU_ARRAY, 1, __u32, struct scratch_claims);

PP_MAP MAP(losses, PERCPU_ARRAY, PP_LOSS_COUNT, __u32, __u64);

/* tgid -> generation (agent). */
PP_MAP MAP(processes, HASH, 8192, __u32, __u32);

/* What a walk needs of a process (agent). */
PP_MAP MAP(contexts, HASH, 8192, struct pp_process_id, struct pp_process_context);

/* Ranges of chunks (agent). */
PP_MAP MAP_MMAPABLE(map_sets, 64, struct pp_map_chunk);

PP_MAP MAP_MMAPABLE(pages, PP_MAX_PAGES, __u64);

/* Shards of packed rows (agent): a search inside one costs direct loads, no helper calls. */
struct row_shard {
	__u32 row[PP_ROW_SHARD_ROWS];
};
PP_MAP MAP_MMAPABLE(rows, 1, struct row_shard);

PP_MAP MAP_MMAPABLE(rules, PP_MAX_RULES, struct pp_rule);

PP_MAP MAP(pythons, ARRAY, PP_MAX_PYTHONS, __u32, struct pp_python);

PP_MAP MAP(resyncs, ARRAY, PP_MAX_PYTHONS, __u32, struct pp_resync);

/* Threads whose state no TLS slot gives; 0: asked for, not known (agent). */
PP_MAP MAP(thread_states, LRU_HASH, 1024, struct pp_thread_key, __u64);

/* A code object at an address of a code space; `head` guards against reuse of the address. */
struct code_key {
	__u64 address;
	__u32 code_space;
	__u32 head;
};
PP_MAP MAP(codes, LRU_HASH, 16384, struct code_key, __u64); /* code id */

/* hash of a stack or a code object -> epoch in which it was last sent (agent). */
PP_MAP MAP(sent, LRU_HASH, 32768, __u64, __u32);

/* What each who answers for processes has taken of what all share: share_row(). */
PP_MAP MAP_MMAPABLE(user_shares, PP_USER_SHARE_ROWS, struct pp_user_share);

/* Who answers for processes -> the index of his row.  Of two CPUs only one can insert the entry. */
PP_MAP MAP(share_rows, HASH, PP_USER_SHARES, __u32, __u32);

/* Indexes of rows that nobody has (agent: all of them). */
PP_MAP QUEUE(share_free, PP_USER_SHARES, __u32);

/* Ids that users own, sorted, and rows that begin at no id (agent): pp_config.user_ranges. */
PP_MAP MAP_MMAPABLE(user_ranges, 2 * PP_USER_RANGES, struct pp_user_range);

/* Counters: of samples, of waits, and of what found no room in those (agent: sizes). */
PP_MAP MAP(counts_0, HASH, 4096, struct pp_count_key, struct pp_count);
PP_MAP MAP(counts_1, HASH, 4096, struct pp_count_key, struct pp_count);
PP_MAP MAP(waits_0, HASH, 4096, struct pp_count_key, struct pp_count);
PP_MAP MAP(waits_1, HASH, 4096, struct pp_count_key, struct pp_count);
PP_MAP MAP(coarse_0, HASH, 4096, struct pp_count_key, struct pp_count);
PP_MAP MAP(coarse_1, HASH, 4096, struct pp_count_key, struct pp_count);

/* ... and of what found none in `coarse` either. */
PP_MAP MAP_MMAPABLE(rest, 2 * PP_REST_ROWS, struct pp_count);

PP_MAP MAP_MMAPABLE(fills, PP_FILL_COUNT, struct pp_fill);

/* One struct pp_thread each (agent). */
PP_MAP MAP_MMAPABLE(threads, 1, struct pp_thread);

/* Index of a slot -> the tid that is claiming it now.  Of two CPUs only one can insert the
 * entry. */
PP_MAP MAP(slot_claims, HASH, 1024, __u32, __u32);

/* Processes that end in a window. */
PP_MAP MAP(ledgers, HASH, PP_LEDGER_ROWS, struct pp_process_id, struct pp_ledger_sum);

/* tgid -> what its calls tell of its work on the GPU; tid -> the synchronisation it is in (agent:
 * one entry each where event `cuda` is not captured). */
PP_MAP MAP(gpu_processes, HASH, 1, __u32, struct pp_gpu_process);
PP_MAP MAP(gpu_waits, HASH, 1, __u32, struct pp_gpu_wait);

/* What walks may cost (lib/budget.bpf.h). */
struct budget {
	__u64 started_ns; /* of the period */
	__s64 credit_ns;
	__u32 shift;	/* one wait or sample in 1 << shift is walked */
	__u32 spent_ns; /* in this period */
};

PP_MAP MAP_MMAPABLE(sample_timers, 1, struct pp_sample_timer); /* by CPU (agent) */

/* The state of sampling on one CPU. */
struct sampling {
	struct budget budget; /* which only steers */
	__u64 started_ns;     /* of the timer, as of the last event */
	__u64 period_ns;      /* which it had */
	__u64 due_ns;	      /* when the last event was due; 0: not known */
	__u64 ended_ns;	      /* when its walk had ended; 0: there was none */
	__u64 thread;	      /* pid and tgid */
	__u64 switches;	      /* of the thread, up to then */
};
PP_MAP MAP(sampling, PERCPU_ARRAY, 1, __u32, struct sampling);

/* enum pp_program -> how long it took, when it walked a stack. */
PP_MAP MAP(times, PERCPU_ARRAY, PP_PROGRAM_COUNT, __u32, struct pp_times);

/* Where a thread left user space, and with which system call. */
struct call_site {
	__u64 pc, sp, number, argument;
	__u64 is_disk; /* block I/O is under way */
	__u64 gpu;     /* enum pp_gpu of the thread */
	__u64 name;    /* a hash of what the thread is called */
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
PP_MAP MAP(countings, PERCPU_ARRAY, COUNTING_COUNT, __u32, struct counting);

/* The state of a switch on this CPU: what does not fit on the BPF stack, or what the verifier would
 * track value by value there.  Only the first four fields outlive the switch. */
struct switch_state {
	struct budget budget;		/* which only steers */
	__u64 clock_read, clock_offset; /* switch_thread.bpf.c: switch_clock() */
	__u64 registers_at;		/* in a kernel stack; 0: not known yet */
	__u64 look_ns;			/* when the look at this wait began */
	struct call_site call_site;
	struct old_site old;
	__u32 found, pad;	     /* which of the thread's wait sites this is */
	__u64 registers[34];	     /* struct user_registers: aarch64 has most */
	struct pp_ledger_sum ledger; /* all 0 */
	__u64 context;		     /* an address: the verifier must not know it as a context */
};
PP_MAP MAP(switches, PERCPU_ARRAY, 1, __u32, struct switch_state);

/* One thread of a scan: one agent reads one iterator at a time, so one is enough. */
struct scan_state {
	__u64 registers[34]; /* struct user_registers: aarch64 has most */
	struct pp_scan_record record;
};
PP_MAP MAP(scans, ARRAY, 1, __u32, struct scan_state);

/* Stacks and code objects (agent: size). */
PP_MAP RING(stacks, 1 << 20);

/* Process lifecycle events and requests.  They have a ring of their own so that a flood of stacks
 * cannot drown them. */
PP_MAP RING(events, 1 << 18);

/* For `wakers` (agent: without it none of these maps is made).  tid of a thread that waits -> who
 * woke it. */
PP_MAP MAP(wakers, LRU_HASH, 8192, __u32, struct pp_waker);

PP_MAP MAP(wakes_0, HASH, 8192, struct pp_wake_key, struct pp_count);
PP_MAP MAP(wakes_1, HASH, 8192, struct pp_wake_key, struct pp_count);

/* A key that does not fit on BPF's stack. */
PP_MAP MAP(wake_keys, PERCPU_ARRAY, 1, __u32, struct pp_wake_key);

/* --timeline's records (agent: size, or not made at all). */
PP_MAP RING(timeline, 1 << 22);

/* A timeline record of a switch, for which the BPF stack has no room.  Samples have theirs there,
 * as they interrupt switches (agent: not made at all without --timeline). */
PP_MAP MAP(timeline_records, PERCPU_ARRAY, 1, __u32, struct pp_timeline_record);

/* Set before the load (agent): the verifier removes the code that they switch off. */
PP_CONST bool timeline_is_on;
/* The last level is for programs that can be preempted: none of today's is. */
PP_CONST __u32 scratch_levels;
PP_CONST bool wakers_are_on;
/* What the kernel has; instructions that it lacks are replaced before the load, wherever they are
 * (attach/object_builds.h): verifiers refuse some of them even in code that never runs. */
PP_CONST bool has_cmpxchg;	  /* and xchg: 5.12 and later */
PP_CONST bool has_rdonly_cast;	  /* bpf_rdonly_cast(): 6.2 and later */
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

	return used > bpf_ringbuf_query(&stacks, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP
								       : BPF_RB_NO_WAKEUP;
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
