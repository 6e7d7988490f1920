/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The scan of blocked threads: no context switch shows threads that have been asleep since before
 * the profiler started.  The kernel side's task iterator (bpf/scan_threads.bpf.c) writes one
 * record for each; the agent reads the records as a stream and unwinds the stacks
 * (userspace/finish/scan.h). */
#ifndef PYPROFD_SCAN_H
#define PYPROFD_SCAN_H

#include <linux/types.h>
#include <pyprofd/limits.h>
#include <pyprofd/sample.h>
#include <pyprofd/unwind.h>
#include <pyprofd/wait.h>

enum pp_scan_flag {
	PP_SCAN_IOWAIT = 1, /* the scheduler counts it as waiting for a disk */
	PP_SCAN_USER = 2,   /* pc, sp, fp and registers[] are set */
	PP_SCAN_COMPAT = 4, /* 32-bit code: they are not set */
};

/* One user thread that was off the CPU and not runnable when the iterator visited it.  When two
 * records of a tid have equal `started_ns` and `switches`, it slept all the time in between. */
struct pp_scan_record {
	__u32 size;	    /* bytes: of this struct, or PP_SCAN_RECORD_SHORT */
	__u32 tgid, tid;    /* as the host sees them */
	__u32 inner_tid;    /* as the thread itself sees it */
	__u32 state;	    /* the scheduler's: TASK_INTERRUPTIBLE, ...; never 0 */
	__u32 flags;	    /* enum pp_scan_flag */
	__u32 wait; /* enum pp_wait; never GIL, because the kernel side has not looked at Python */
	__u32 kernel_count; /* addresses in kernel[] */
	__u64 started_ns;   /* the thread; CLOCK_MONOTONIC */
	__u64 switches;	    /* how often it was switched out since then */
	__u64 syscall;	    /* its number; ~0: none, a page fault */
	__u64 argument;	    /* the first one */
	__u64 thread_pointer;
	__u64 first_word; /* the first word that the kernel put onto the process's stack */
	__u64 pc, sp, fp;		    /* where it left user mode */
	__u64 registers[PP_REG_COUNT];	    /* by DWARF number */
	__u64 kernel[PP_MAX_KERNEL_FRAMES]; /* leaf first, which is schedule()'s caller */
	__u64 return_count;		    /* 0: the record is a short one */
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

#endif
