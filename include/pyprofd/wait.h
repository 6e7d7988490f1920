/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads off the CPU: why they wait, the slot in which the kernel side keeps one thread's times
 * between two windows (docs/offcpu.md), who wakes them up, those asleep since before the start, and
 * their timeline. */
#ifndef PYPROFD_WAIT_H
#define PYPROFD_WAIT_H

#include <linux/types.h>
#include <pyprofd/limits.h>
#include <pyprofd/process.h>
#include <pyprofd/sample.h>
#include <pyprofd/unwind.h>

/* X(id, value of the label `wait`, ledger group): why a thread is off the CPU. */
#define PP_WAITS(X)                                                                                \
	X(NONE, "running", CPU)                                                                    \
	X(OTHER, "other", UNKNOWN)                                                                 \
	X(SLEEP, "sleep", SLEEP) /* nanosleep, timers, signals */                                  \
	X(LOCK, "lock", LOCK)	 /* futex */                                                       \
	X(GIL, "gil", GIL)	 /* futex inside the GIL's condition or mutex */                   \
	X(DISK, "disk", DISK)	 /* uninterruptible, outside of faults */                          \
	X(FILE, "file", DISK)	 /* read, write, ... of a regular file or directory */             \
	X(PIPE, "pipe", NET)                                                                       \
	X(UNIX, "unix socket", NET)                                                                \
	X(TCP, "tcp socket", NET)                                                                  \
	X(UDP, "udp socket", NET)                                                                  \
	X(SOCKET, "socket", NET)     /* of another family */                                       \
	X(EVENTFD, "eventfd", NET)   /* and timerfd, signalfd, inotify: anonymous inodes */        \
	X(TERMINAL, "terminal", NET) /* a character device */                                      \
	X(POLL, "poll", NET)	     /* epoll, poll, select */                                     \
	X(IO_URING, "io_uring", NET)                                                               \
	X(CHILD, "child", CHILD) /* wait4, waitid, vfork */                                        \
	X(FAULT, "page fault", FAULT)                                                              \
	X(RUN_QUEUE, "run queue", RUN_QUEUE) /* preempted, or woken and not running yet */         \
	X(STOPPED, "stopped", STOPPED)	     /* by a signal or a tracer */                         \
	X(KERNEL, "kernel", UNKNOWN)	     /* a lock or an event inside another syscall */       \
	X(GPU, "gpu", GPU)		     /* inside of a synchronisation with it */

#define PP_ENUM_WAIT(id, label, group) PP_WAIT_##id,
enum pp_wait { PP_WAITS(PP_ENUM_WAIT) PP_WAIT_COUNT };

/* X(id, value of the label `state`, text): the parts of the ledger, which count each second of each
 * thread.  Samples divide CPU later: "unsampled" is a process's without any. */
#define PP_LEDGERS(X)                                                                              \
	X(CPU, "unsampled", "on CPU")                                                              \
	X(GIL, "gil", "GIL wait")                                                                  \
	X(LOCK, "lock", "lock")                                                                    \
	X(DISK, "disk", "disk")                                                                    \
	X(NET, "net", "net")                                                                       \
	X(GPU, "gpu", "GPU wait")                                                                  \
	X(SLEEP, "sleep", "sleep")                                                                 \
	X(CHILD, "child", "child")                                                                 \
	X(FAULT, "fault", "page fault")                                                            \
	X(STOPPED, "stopped", "stopped")                                                           \
	X(RUN_QUEUE, "run_queue", "run queue")                                                     \
	X(UNKNOWN, "unknown", "unknown")

/* The part of the ledger that each wait belongs to. */
#define PP_WAIT_LEDGER(id, label, group) [PP_WAIT_##id] = PP_LEDGER_##group,
#define PP_WAIT_LEDGERS {PP_WAITS(PP_WAIT_LEDGER)}

#define PP_ENUM_LEDGER(id, name, text) PP_LEDGER_##id,
enum pp_ledger { PP_LEDGERS(PP_ENUM_LEDGER) PP_LEDGER_COUNT };

/* What was added up at a wait site in one window.  ns and events are weighted. */
struct pp_wait_site_sum {
	__u32 window;	/* pp_config.window; when it differs, the entry is empty */
	__u32 events;	/* waits that began */
	__u64 ns;	/* blocked */
	__u64 queue_ns; /* part of the same intervals: woken and not running yet, or preempted */
};

/* The waits of one window that were unwound at a wait site, all with the site's cached stack.  Each
 * was chosen at random, one in N, and has the weight N. */
struct pp_wait_site_walked {
	__u32 window; /* pp_config.window; when it differs, the entry is empty */
	__u32 waits;
	__u64 ns, queue_ns;
	__u64 squares; /* pp_wait_square() */
};

/* One wait site: where a thread blocks repeatedly, with its cached stack.  Threads block at few
 * sites in turns: their intervals add up in the slot and need no table.  A site that is replaced
 * moves its sums to counts[].
 *
 * Outer callers can change unnoticed, so we unwind again at random uses.  When two walks in a
 * window differ, the site's exact sums of that window are divided in proportion to the waits that
 * were unwound (docs/design/waits.md). */
struct pp_wait_site {
	__u64 key; /* hash of what identifies the site without a walk; 0: the entry is free */
	__u64 user_stack, kernel_stack; /* hashes; 0: none */
	__u64 blame_stack;		/* of the GIL's holder when the wait began; 0: unknown */
	__u32 blame_tid;		/* in the holder's pid namespace; 0: unknown */
	__u32 flags;			/* enum pp_count_flag, with the wait */
	char comm[PP_COMM_BYTES];	/* what the thread was called; part of the key */
	__u32 left;			/* uses until the next walk, drawn at random */
	__u32 uses;			/* uses between the last walk and the next */
	__u32 limit;  /* one use in this many is unwound; it grows while walks agree */
	__u8 differs; /* walks that must still agree until the site counts as having one stack */
	__u8 is_mixed[2]; /* by bit 0 of the window: walks differed */
	__u8 pad;
	__u32 owed; /* weight of the walks that were due since the last one, for the next one */
	__u64 walked_ns;		   /* time of the last walk; CLOCK_MONOTONIC */
	struct pp_wait_site_sum sum[2];	   /* by bit 0 of the window */
	struct pp_wait_site_walked walked; /* while the walks agree */
};

#define PP_THREAD_WAIT_SITES 4U
#define PP_WAIT_SITE_PREEMPTED 3U /* the last one: the thread was preempted, at any address */

enum pp_thread_flag {
	PP_THREAD_MATCHES = 1, /* matches the filter */
	PP_THREAD_WAITING = 2, /* else it runs */
	PP_THREAD_SKIPPED = 4, /* this wait was left out at random: others have a weight instead */
	/* this wait is counted as an event if it gets long enough (wait_min_ns) */
	PP_THREAD_EVENT = 8,
	PP_THREAD_COUNTS = 16, /* this wait has a weight, and is an event */
};

/* threads[]: one thread.  The kernel side writes it, on the CPU that switches the thread, except
 * read_window; `sequence` is odd meanwhile.  The agent reads it through mmap: a copy is consistent
 * when `sequence` was the same even number before and after.  Times are CLOCK_MONOTONIC; totals
 * only grow. */
struct pp_thread {
	__u32 sequence;
	__u32 tid; /* as the host sees it; 0: free; with PP_TID_ENDED: the agent frees it */
	struct pp_process_id id;
	__u32 flags; /* enum pp_thread_flag */
	/* the last window that the agent read, with the waits that had not ended */
	__u32 read_window;
	__u8 at;	     /* index of the wait site of this wait, or of the last one */
	__u8 wait;	     /* enum pp_wait: the reason */
	__u8 weight_shift;   /* this wait has the weight 1 << weight_shift */
	__u8 python;	     /* 1 + index in pythons[], as the last walk found it; 0: none */
	__u32 was_tid;	     /* of a free slot: the thread that had it until it exited */
	__u16 timeline_cpu;  /* where it runs, or ran; only with --timeline, like the next field */
	__u8 timeline_flags; /* enum pp_timeline_flag, at the switch-out */
	__u8 turn;	     /* index of the wait site that was replaced last */
	/* this wait was chosen at random to be unwound, one in so many; 0: it was not */
	__u32 walk_weight;
	__u32 seen_flags; /* of the last sample's stack: enum pp_count_flag */
	__u32 seen_epoch; /* of that sample: pp_config.epoch */
	__u32 user;	  /* whose share of threads[] the slot is part of; 0: root */
	__u32 euid;	  /* as in struct pp_count_key, at identified_ns */
	__u8 gpu;	  /* 1: its process may be in gpu_processes[] */
	__u8 pad[7];
	__u64 seen_stack; /* hash of that stack; 0: none */
	__u64 created_ns; /* when a switch first saw the thread, or it executed another program */
	__u64 first_ns;	  /* when this tid first had the slot; an exec does not change it */
	__u64 identified_ns; /* when the filter was last evaluated */
	__u64 since_ns;	     /* when its run or wait began */
	__u64 ran_since_ns;  /* when the run before this wait began */
	__u64 run_delay_ns;  /* the scheduler's run_delay when the wait began */
	__u64 thread_state, python_bias;
	__u64 gil;	/* address of last_holder in the GIL's struct; 0: unknown */
	__u64 last_key; /* pp_wait_site.key of the last wait, including waits left out */
	__u64 total_ns[PP_LEDGER_COUNT]; /* up to since_ns */
	struct pp_wait_site site[PP_THREAD_WAIT_SITES];
};
_Static_assert(sizeof(struct pp_thread) % 8 == 0, "pp_thread crosses the kernel boundary");
_Static_assert(PP_MAX_PYTHONS <= 256, "pp_thread.python");

/* A thread may take one of eight slots: the one at its tid, or one of seven at hashes of its tid
 * that nobody knows beforehand.  seed: pp_config.thread_seed. */
static __inline__ __u32 pp_thread_index(__u32 tid, __u32 way, __u32 mask, __u32 seed)
{
	__u32 hash = ((tid + way * 0x85ebca6bU) ^ seed) * 0x9e3779b1U;

	hash = (hash ^ hash >> 15) * 0xc2b2ae35U;
	return (way ? hash >> 8 : tid) & mask;
}
#define PP_THREAD_WAYS 8U

/* Returns what a weighted wait adds to the variance of the sum: a square, in units of 131 us.
 * There is room for a hundred thousand waits with weighted lengths of minutes. */
#define PP_WAIT_SQUARE_SHIFT 17
static __inline__ __u64 pp_wait_square(__u64 weighted_ns)
{
	__u64 x = (weighted_ns + (1U << (PP_WAIT_SQUARE_SHIFT - 1))) >> PP_WAIT_SQUARE_SHIFT;

	if (x > 0x7fffffff)
		x = 0x7fffffff;
	return x * x;
}

/* pp_count_key.detail of PP_KIND_BLAME: the wait is of PP_KIND_WEIGHTED. */
#define PP_BLAME_WEIGHTED 1ULL

/* Keys under which a wait site's sum is moved to counts[].  First: the wait under its stack. */
static __inline__ struct pp_count_key pp_wait_key(const struct pp_thread *thread,
						  const struct pp_wait_site *site)
{
	struct pp_count_key key = {
		.user_stack = site->user_stack,
		.kernel_stack = site->kernel_stack,
		.id = thread->id,
		.tid = thread->tid,
		.flags = site->flags,
		.kind = PP_KIND_WAIT,
		.euid = thread->euid,
	};

	__builtin_memcpy(key.comm, site->comm, sizeof(key.comm));
	return key;
}

/* Second: a sum that is still to be divided, because walks differed. */
static __inline__ void pp_wait_key_to_site(struct pp_count_key *key,
					   const struct pp_wait_site *site)
{
	key->kind = PP_KIND_WAIT_SITE;
	key->detail = site->key;
}

/* Third: the part on the run queue, under the same stack. */
static __inline__ void pp_wait_key_to_queue(struct pp_count_key *key)
{
	key->flags = (key->flags & ~PP_COUNT_WAIT_BITS) | PP_WAIT_RUN_QUEUE << PP_COUNT_WAIT_SHIFT;
}

/* Fourth: a wait for the GIL, counted once more under the holder's stack. */
static __inline__ void pp_wait_key_to_blame(struct pp_count_key *key,
					    const struct pp_wait_site *site)
{
	key->user_stack = site->blame_stack;
	key->kernel_stack = 0;
	key->tid = site->blame_tid;
	__builtin_memset(key->comm, 0, sizeof(key->comm)); /* the holder's is not known */
	key->kind = PP_KIND_BLAME;
	key->detail = 0;
	key->flags = (site->flags & (PP_COUNT_WAIT_BITS | PP_COUNT_GPU_BITS)) | PP_COUNT_PYTHON |
		     PP_STOP_ROOT << PP_COUNT_STOP_SHIFT;
}

/* ledgers[pp_process_id]: totals of the threads that exited since the agent last read them. */
struct pp_ledger_sum {
	__u64 total_ns[PP_LEDGER_COUNT];
	__u64 life_ns; /* since created_ns */
	__u64 threads;
	__u32 leaders; /* of them: first threads of a process */
	__u32 user;    /* pp_thread.user of the first of them */
};
#define PP_LEDGER_ROWS 8192U

/* The bit of pp_thread.tid in the slot of a thread that has ended, but whose times found no row in
 * ledgers[]: the agent takes them from the slot, and frees it. */
#define PP_TID_ENDED (1U << 31)

/* ---- `wakers`: which thread ended a wait, beside which thread waited ---- */

enum pp_wake_flag {
	PP_WAKE_INTERRUPT =
		/* an interrupt (a timer, a device) woke it, not the thread that it interrupted */
	1,
};

/* The thread that wakes another one up.  An interrupt has no stack in user space. */
struct pp_waker {
	__u64 user_stack, kernel_stack; /* hashes; 0: none */
	struct pp_process_id id;
	__u32 tid;
	__u16 flags;	    /* enum pp_wake_flag */
	__u16 weight_shift; /* chosen at random, with the weight 1 << weight_shift */
};

/* Key of wakes[].  The values are struct pp_count: waits, and ns from the beginning of the wait to
 * the wake-up, in the window of the switch-in. */
struct pp_wake_key {
	__u64 user_stack, kernel_stack; /* of the thread that waited */
	struct pp_process_id id;
	__u32 tid;
	__u32 flags;	       /* enum pp_count_flag, with the wait */
	struct pp_waker waker; /* weight_shift 0 */
};

/* ---- the scan of blocked threads ----
 * No context switch shows threads that have been asleep since before the profiler started.  The
 * kernel side's task iterator (bpf/scan_threads.bpf.c) writes one record for each; the agent reads
 * the records as a stream and unwinds the stacks (userspace/finish/scan.h). */

enum pp_scan_flag {
	PP_SCAN_IOWAIT = 1, /* the scheduler counts it as waiting for a disk */
	PP_SCAN_USER = 2,   /* pc, sp, fp and registers[] are set */
	PP_SCAN_COMPAT = 4, /* 32-bit code: they are not set */
};

/* One user thread that was off the CPU and not runnable when the iterator visited it.  When two
 * records of a tid have equal `started_ns` and `switches`, it slept all the time in between. */
struct pp_scan_record {
	__u32 size;	 /* bytes: of this struct, or PP_SCAN_RECORD_SHORT */
	__u32 tgid, tid; /* as the host sees them */
	__u32 inner_tid; /* as the thread itself sees it */
	__u32 state;	 /* the scheduler's: TASK_INTERRUPTIBLE, ...; never 0 */
	__u32 flags;	 /* enum pp_scan_flag */
	__u32 wait; /* enum pp_wait; never GIL, because the kernel side has not looked at Python */
	__u32 kernel_count; /* addresses in kernel[] */
	__u64 started_ns;   /* the thread; CLOCK_MONOTONIC */
	__u64 switches;	    /* how often it was switched out since then */
	__u64 syscall;	    /* its number; ~0: none, a page fault */
	__u64 argument;	    /* the first one */
	__u64 thread_pointer;
	__u64 first_word; /* the first word that the kernel put onto the process's stack */
	__u64 pc, sp, fp; /* where it left user mode */
	__u64 registers[PP_REG_COUNT];		  /* by DWARF number */
	__u64 kernel[PP_MAX_KERNEL_FRAMES];	  /* leaf first, which is schedule()'s caller */
	__u64 return_count;			  /* 0: the record is a short one */
	struct pp_return returns[PP_MAX_RETURNS]; /* innermost first */
};
_Static_assert(sizeof(struct pp_scan_record) % 8 == 0, "records follow each other at once");
/* Most threads have none: their records end before returns[]. */
#define PP_SCAN_RECORD_SHORT                                                                       \
	(sizeof(struct pp_scan_record) - PP_MAX_RETURNS * sizeof(struct pp_return))

/* A process whose mappings are locked (bpf/scan_threads.bpf.c).  Where two looks differ, somebody
 * has let go of the lock in between: a writer has it alone. */
struct pp_lock_record {
	__u32 tgid;
	__u32 mappings; /* how many it has: only a writer changes that */
	__u64 writer;	/* the task that has the lock as a writer; 0: readers have it */
	__u64 writes;	/* changes with each writer (Linux 6.4); 0: the kernel does not say */
};

/* The mappings of a process.  Where two looks differ, some have changed in between. */
struct pp_space_record {
	__u32 tgid, pad;
	__u64 code_pages; /* that can be executed */
	__u64 writes;	  /* as above; before Linux 6.4: how many mappings it has */
};

/* ---- --timeline ----
 * What a thread did between two switch-ins, and when it was sampled, through the ring `timeline`. 
 * Records refer to stacks by their hashes in the ring `stacks`. */

enum pp_timeline_type {
	PP_TIMELINE_SWITCH = 1, /* a run on the CPU and the wait after it; all times are set */
	PP_TIMELINE_LAST,	/* the thread's last run: it has exited */
	PP_TIMELINE_SAMPLE,	/* an instant, leave_ns; the other times are 0 */
};

/* The GIL at leave_ns. */
enum pp_timeline_flag {
	PP_TIMELINE_GIL = 1,	  /* it could be read: the thread has run Python */
	PP_TIMELINE_GIL_HELD = 2, /* the thread held it */
	PP_TIMELINE_GIL_LAST = 4, /* nobody held it, and this thread was the last holder */
};

/* Times are CLOCK_MONOTONIC: run_ns <= leave_ns <= woken_ns <= back_ns.  The thread was on the CPU
 * from run_ns to leave_ns, blocked until woken_ns (not at all when preempted), waiting for a CPU
 * until back_ns. */
struct pp_timeline_record {
	struct pp_record record; /* type: enum pp_timeline_type */
	struct pp_process_id id;
	__u32 tid;  /* as the host sees it */
	__u16 cpu;  /* of the run, or of the sample */
	__u8 wait;  /* enum pp_wait */
	__u8 flags; /* enum pp_timeline_flag */
	__u64 run_ns, leave_ns, woken_ns, back_ns;
	__u64 user_stack, kernel_stack; /* at leave_ns; 0: not known */
	/* of the GIL, when a wait for it began; in the holder's pid namespace; 0: not known */
	__u32 holder_tid;
	__u32 pad;
};
_Static_assert(sizeof(struct pp_timeline_record) == 80, "pp_timeline_record crosses the boundary");

#endif
