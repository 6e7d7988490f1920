/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives interpreter files their numbers in pythons[].  Records and stacks hold the number in a
 * byte, so one that was given back rests for epochs, as ids of files do.  Users have a share each.
 * Private to context_table.c. */
#ifndef ATTACH_PYTHON_SLOTS_H
#define ATTACH_PYTHON_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/limits.h>

#include "base/user_quota.h"

#define PYTHON_SLOTS (PP_MAX_PYTHONS - 1) /* a record's byte is 1 + the index */

struct file;
struct python_slot {
	struct file *file;    /* borrowed; NULL: free, or resting */
	uint32_t uid;	      /* whose share it is part of */
	uint32_t rest_epochs; /* until it is free again */
};
struct python_slots {
	struct python_slot slot[PYTHON_SLOTS];
	struct user_quota quota;
};
void python_slots_init(struct python_slots *slots);
void python_slots_release(struct python_slots *slots);

/* Takes a slot for a file that a user's process maps.  Returns 0; -EDQUOT: the user's share is used
 * up; -ENOSPC; -ENOMEM. */
int python_slots_take(struct python_slots *slots, uint32_t uid, struct file *file,
		      uint32_t *ret_index);
/* Takes a slot back that nobody has seen yet. */
void python_slots_give(struct python_slots *slots, uint32_t index);
/* Makes the slots of files that no process has mapped since before_ns rest. */
void python_slots_tidy(struct python_slots *slots, uint64_t before_ns);
void python_slots_end_epoch(struct python_slots *slots);

#endif
