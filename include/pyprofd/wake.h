/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --wakers: who ended a wait, beside who waited. */
#ifndef PYPROFD_WAKE_H
#define PYPROFD_WAKE_H

#include <linux/types.h>
#include <pyprofd/process.h>

enum pp_wake_flag {
	PP_WAKE_INTERRUPT =
		1, /* an interrupt woke it: a timer, a device; the thread below it did not */
};

/* Who wakes a thread up.  An interrupt has no stack in user space. */
struct pp_waker {
	__u64 user_stack, kernel_stack; /* hashes; 0: none */
	struct pp_process_id id;
	__u32 tid;
	__u16 flags;	    /* enum pp_wake_flag */
	__u16 weight_shift; /* it was chosen by chance and stands for 1 << as many */
};

/* Key of wakes[]; the values are struct pp_count: waits, and ns from the beginning of the wait to the
 * wake-up, in the window in which the thread came back. */
struct pp_wake_key {
	__u64 user_stack, kernel_stack; /* of who waited */
	struct pp_process_id id;
	__u32 tid;
	__u32 flags;	       /* enum pp_count_flag, with the wait */
	struct pp_waker waker; /* weight_shift 0 */
};

#endif
