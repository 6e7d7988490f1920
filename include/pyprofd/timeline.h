/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --timeline: what a thread did between two switch-ins, and when it was sampled, through the ring
 * `timeline`.  Records refer to stacks by their hashes in the ring `stacks`. */
#ifndef PYPROFD_TIMELINE_H
#define PYPROFD_TIMELINE_H

#include <linux/types.h>
#include <pyprofd/process.h>
#include <pyprofd/sample.h>
#include <pyprofd/wait.h>

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
