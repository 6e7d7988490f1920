/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds one stack in user space, from registers and a copy of the stack: what the kernel side
 * could not finish.  The same rules and the same stop reasons as bpf/lib/walk_native.bpf.h. */
#ifndef FINISH_STACK_FINISH_H
#define FINISH_STACK_FINISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>

/* The machine state at one frame. */
struct finish_state {
	uint64_t pc, sp, fp;
	uint64_t registers[PP_REG_COUNT]; /* valid while is_leaf */
	bool is_leaf;			  /* pc is exact: leaf or interrupted by a signal */
	bool by_frame_pointer;		  /* the last step was one */
	uint64_t first_word, thread_pointer; /* of the thread, for pp_is_root(); 0: not known */
};

/* What the walk asks of its surroundings; all are called with `context`. */
struct finish_callbacks {
	void *context;
	/* Rule and place of pc (already pc - 1 for callers): file id, address in the file, rule.
	 * Returns 0; -ENOENT when no mapping covers it.  file may be PP_FILE_ANONYMOUS. */
	int (*find)(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		    struct pp_rule *ret_rule);
	/* Reads user memory (copy of the stack first, then the live process).  0 or -EFAULT. */
	int (*read)(void *context, uint64_t address, void *buffer, size_t size);
	/* One native frame, leaf to root: `low` sp and `cfa` bound it.  false ends the walk. */
	bool (*frame)(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa);
};

/* Walks from *state to the root.  At most PP_MAX_STEPS frames.  Returns the reason it ended; state
 * is left at the frame that could not be left. */
enum pp_stop stack_finish(struct finish_state *state, const struct finish_callbacks *callbacks);

#endif
