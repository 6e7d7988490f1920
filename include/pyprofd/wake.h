/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `wakers`: which thread ended a wait, beside which thread waited. */
#ifndef PYPROFD_WAKE_H
#define PYPROFD_WAKE_H

#include <linux/types.h>
#include <pyprofd/process.h>

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

#endif
