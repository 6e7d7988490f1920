/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads off the CPU: why they wait, and the slot in which the kernel side keeps one thread's times
 * between two windows.  See docs/offcpu.md. */
#ifndef PYPROFD_WAIT_H
#define PYPROFD_WAIT_H

#include <linux/types.h>
#include <pyprofd/process.h>
#include <pyprofd/sample.h>

/* X(id, value of the label `wait`, ledger group): why a thread is off the CPU. */
#define PP_WAITS(X)                                                                                \
	X(NONE, "running", CPU)                                                                    \
	X(OTHER, "other", UNKNOWN)                                                                 \
	X(SLEEP, "sleep", SLEEP)     /* nanosleep, timers, signals */                              \
	X(LOCK, "lock", LOCK)	     /* futex */                                                   \
	X(GIL, "gil", GIL)	     /* futex inside the GIL's condition or mutex */               \
	X(DISK, "disk", DISK)	     /* uninterruptible, outside of faults */                      \
	X(FILE, "file", DISK)	     /* read, write, ... of a regular file or directory */         \
	X(PIPE, "pipe", NET)                                                                       \
	X(UNIX, "unix socket", NET)                                                                \
	X(TCP, "tcp socket", NET)                                                                  \
	X(UDP, "udp socket", NET)                                                                  \
	X(SOCKET, "socket", NET)     /* of another family */                                       \
	X(EVENTFD, "eventfd", NET)   /* and timerfd, signalfd, inotify: anonymous inodes */        \
	X(TERMINAL, "terminal", NET) /* a character device */                                      \
	X(POLL, "poll", NET)	     /* epoll, poll, select */                                     \
	X(IO_URING, "io_uring", NET)                                                               \
	X(CHILD, "child", CHILD)     /* wait4, waitid, vfork */                                    \
	X(FAULT, "page fault", FAULT)                                                              \
	X(RUN_QUEUE, "run queue", RUN_QUEUE) /* preempted, or woken and not running yet */        \
	X(STOPPED, "stopped", STOPPED) /* by a signal or a tracer */                               \
	X(KERNEL, "kernel", UNKNOWN) /* a lock or an event inside another syscall */

#define PP_ENUM_WAIT(id, label, group) PP_WAIT_##id,
enum pp_wait { PP_WAITS(PP_ENUM_WAIT) PP_WAIT_COUNT };

/* X(id, text): what a thread-second is in the ledger; CPU is divided by samples later. */
#define PP_LEDGERS(X)                                                                              \
	X(CPU, "on CPU")                                                                           \
	X(GIL, "GIL wait")                                                                         \
	X(LOCK, "lock")                                                                            \
	X(DISK, "disk")                                                                            \
	X(NET, "net")                                                                              \
	X(SLEEP, "sleep")                                                                          \
	X(CHILD, "child")                                                                          \
	X(FAULT, "page fault")                                                                     \
	X(STOPPED, "stopped")                                                                      \
	X(RUN_QUEUE, "run queue")                                                                  \
	X(UNKNOWN, "unknown")

/* Table of each wait's group. */
#define PP_WAIT_LEDGER(id, label, group) [PP_WAIT_##id] = PP_LEDGER_##group,
#define PP_WAIT_LEDGERS {PP_WAITS(PP_WAIT_LEDGER)}

#define PP_ENUM_LEDGER(id, text) PP_LEDGER_##id,
enum pp_ledger { PP_LEDGERS(PP_ENUM_LEDGER) PP_LEDGER_COUNT };

/* What one place has got in one window.  ns and events are weighted. */
struct pp_place_sum {
	__u32 window; /* pp_config.window; another one: nothing is in here */
	__u32 events; /* waits that began */
	__u64 ns;	/* blocked */
	__u64 queue_ns; /* of the same intervals: woken and not running yet, or preempted */
};

/* The waits of one window that were walked at a place, all with the place's stack.  Each has a weight: it was
 * chosen by chance, one among so many. */
struct pp_place_walked {
	__u32 window; /* pp_config.window; another one: nothing is in here */
	__u32 waits;
	__u64 ns, queue_ns;
	__u64 squares; /* pp_wait_square() */
};

/* One place where a thread blocks.  Threads block at few places in turns: their intervals add up in
 * the slot and cost no table.  A place that gives way to a new one moves its sums to counts[].
 *
 * Callers further out may differ at one place, so now and then a use is walked, chosen by chance.  When two walks of a
 * window differ, the place's exact sums of that window are divided by what was walked (docs/design/0012). */
struct pp_place {
	__u64 key; /* hash of what tells places apart without a walk; 0: the entry is free */
	__u64 user_stack, kernel_stack; /* hashes; 0: none */
	__u64 blame_stack; /* of the GIL's holder when the wait began; 0: not known */
	__u32 blame_tid;   /* as the holder itself sees it; 0: not known */
	__u32 flags;	   /* enum pp_count_flag, with the wait */
	__u32 left;	   /* uses until a walk is due, drawn by chance */
	__u32 uses;	   /* since the last walk, when it is due */
	__u32 limit;	   /* one use in so many is walked: fewer, the oftener they agree */
	__u8 differs;	   /* walks that must agree until the place is taken to have one stack */
	__u8 is_mixed[2];  /* by bit 0 of the window: walks differed */
	__u8 pad;
	__u32 pad2;
	__u64 walked_ns;   /* when that was; CLOCK_MONOTONIC */
	struct pp_place_sum sum[2]; /* by bit 0 of the window */
	struct pp_place_walked walked; /* while they agree */
};

#define PP_THREAD_PLACES 4U
#define PP_PLACE_PREEMPTED 3U /* the last one: the thread could run, wherever it was */

enum pp_thread_flag {
	PP_THREAD_WANTED = 1,  /* passes the filters */
	PP_THREAD_WAITING = 2, /* else it runs */
	PP_THREAD_SKIPPED = 4, /* this wait was left out by chance: others stand for it */
	PP_THREAD_EVENT = 8,   /* this wait is an event if it gets long enough (wait_min_ns) */
	PP_THREAD_COUNTS = 16, /* this wait has a weight, and is an event */
};

/* threads[]: one thread.  Written by the kernel side, on the CPU that switches the thread, but for
 * read_window; `sequence` is odd while that goes on.  The agent reads it through mmap: a copy holds
 * when it saw the same even sequence before and after.  Times are CLOCK_MONOTONIC; totals only grow. */
struct pp_thread {
	__u32 sequence;
	__u32 tid; /* as the host sees it; 0: free */
	struct pp_process_id id;
	__u32 flags;	    /* enum pp_thread_flag */
	__u32 read_window;  /* the window that the agent took last, with waits that go on */
	__u8 at;	    /* index of the place of this wait, or of the last one */
	__u8 wait;	    /* enum pp_wait: why it waits */
	__u8 weight_shift;  /* this wait stands for 1 << as many */
	__u8 python;	    /* 1 + index in pythons[], as the last walk found it; 0: none */
	__u32 was_tid;	    /* of a free slot: whose it was until it exited */
	__u16 timeline_cpu;  /* where it runs, or ran; only with --timeline, as the next ones */
	__u8 timeline_flags; /* enum pp_timeline_flag, when it left */
	__u8 turn;	     /* index of the place that gave way last */
	__u32 walk_weight;   /* this wait was chosen, one among so many; 0: it was not */
	__u32 seen_flags;    /* of the last sample's stack: enum pp_count_flag */
	__u32 seen_epoch;    /* of that sample: pp_config.epoch */
	__u64 seen_stack;    /* its hash; 0: none */
	__u64 created_ns;   /* first seen by a switch, or another program began */
	__u64 first_ns;	    /* when this tid first had the slot: no exec changes it */
	__u64 identified_ns; /* when the filters were asked last */
	__u64 since_ns;	    /* when it began to run or to wait */
	__u64 ran_since_ns; /* when the run before this wait began */
	__u64 run_delay_ns; /* the scheduler's sum when it began to wait */
	__u64 thread_state, python_bias;
	__u64 gil; /* address of last_holder in the GIL's struct; 0: not known */
	__u64 last_key; /* pp_place.key of the last wait, also of one that was left out */
	__u64 total_ns[PP_LEDGER_COUNT]; /* up to since_ns */
	struct pp_place place[PP_THREAD_PLACES];
};
_Static_assert(sizeof(struct pp_thread) % 8 == 0, "pp_thread crosses the kernel boundary");
_Static_assert(PP_MAX_PYTHONS <= 256, "pp_thread.python");

/* A thread may take one of four slots: the one that its id points to, and three that a hash of it does. */
static __inline__ __u32 pp_thread_index(__u32 tid, __u32 way, __u32 mask)
{
	return (way ? (tid * 0x9e3779b1U >> 8) ^ (way - 1) : tid) & mask;
}
#define PP_THREAD_WAYS 4U

/* Of a weighted wait: what it adds to the spread of their sum.  In squares of 131 us: a hundred thousand waits
 * that stand for minutes each have room. */
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

/* What a place's sum becomes in counts[], whoever moves it there: the wait under its stack; ... */
static __inline__ struct pp_count_key pp_wait_key(const struct pp_thread *thread,
						  const struct pp_place *place)
{
	struct pp_count_key key = {
		.user_stack = place->user_stack,
		.kernel_stack = place->kernel_stack,
		.id = thread->id,
		.tid = thread->tid,
		.flags = place->flags,
		.kind = PP_KIND_WAIT,
	};

	return key;
}

/* ... or what is still to be divided, when walks differed; ... */
static __inline__ void pp_wait_key_to_place(struct pp_count_key *key, const struct pp_place *place)
{
	key->kind = PP_KIND_PLACE;
	key->detail = place->key;
}

/* ... its part on the run queue under the same; ... */
static __inline__ void pp_wait_key_to_queue(struct pp_count_key *key)
{
	key->flags = (key->flags & ~PP_COUNT_WAIT_BITS) | PP_WAIT_RUN_QUEUE << PP_COUNT_WAIT_SHIFT;
}

/* ... and, when it was for the GIL, the same wait once more under its holder's stack. */
static __inline__ void pp_wait_key_to_blame(struct pp_count_key *key, const struct pp_place *place)
{
	key->user_stack = place->blame_stack;
	key->kernel_stack = 0;
	key->tid = place->blame_tid;
	key->kind = PP_KIND_BLAME;
	key->detail = 0;
	key->flags = (place->flags & PP_COUNT_WAIT_BITS) | PP_COUNT_PYTHON |
		     PP_STOP_ROOT << PP_COUNT_STOP_SHIFT;
}

/* ledgers[pp_process_id]: totals of the threads that have exited since the agent took them last. */
struct pp_ledger_sum {
	__u64 total_ns[PP_LEDGER_COUNT];
	__u64 life_ns; /* from created_ns on */
	__u64 threads;
};

#endif
