/* SPDX-License-Identifier: BSD-2-Clause */
/* Which thread state a sleeping thread runs in a process with several interpreters: what
 * bpf/lib/walk_python.bpf.h does for a thread that runs, with the same results.  Reads live memory;
 * nothing of it is trusted. */
#ifndef PYTHON_PYTHON_STATES_H
#define PYTHON_PYTHON_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_frames.h"

/* A thread's C stack, as it left user space. */
struct python_stack {
	uint64_t thread_pointer;
	const __u64 *registers; /* PP_REG_COUNT, by DWARF number */
	const uint8_t *bytes;	/* from the stack pointer on */
	size_t size;
};

/* False: one interpreter, or one whose slots follow a thread from one to another (3.12 and later);
 * python_thread_state_find() tells then. */
bool python_states_are_several(const struct python_where *where);
/* The state of the innermost activation that the stack shows; where it shows none, the one that the
 * thread was bound to first, or another that it made.  0: none. */
uint64_t python_state_on_stack(const struct python_where *where, const struct python_stack *stack);

#endif
