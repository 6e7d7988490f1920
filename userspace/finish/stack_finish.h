/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds one stack in user space, from registers and a copy of the stack, where the kernel side
 * stopped early.  The rules and the stop reasons are those of bpf/lib/walk_native.bpf.h. */
#ifndef FINISH_STACK_FINISH_H
#define FINISH_STACK_FINISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/python.h>

#include <pyprofd/sample.h>

/* The machine state at one frame. */
struct finish_state {
	uint64_t pc, sp, fp;
	uint64_t registers[PP_REG_COUNT];    /* valid while is_leaf */
	bool is_leaf;			     /* pc is exact: leaf or interrupted by a signal */
	bool by_frame_pointer;		     /* the last step followed one */
	bool is_unsure;			     /* a caller may be missing: PP_LEAF_UNSURE */
	uint32_t stack_changes;		     /* steps to another stack */
	uint64_t first_word, thread_pointer; /* the thread's, for pp_is_root(); 0: unknown */
};

/* How the walk reads the process; each callback receives `context`. */
struct finish_callbacks {
	void *context;
	/* Finds the file, the address in the file and the unwind rule of a pc; for callers pc is
	 * the return address - 1.  Returns 0; -ENOENT: no mapping covers pc.  The file may be
	 * PP_FILE_ANONYMOUS, whose rule is PP_RULE_NO_INFO. */
	int (*find)(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		    struct pp_rule *ret_rule);
	/* Reads user memory: the copy of the stack first, then the live process.  Returns 0 or
	 * -EFAULT. */
	int (*read)(void *context, uint64_t address, void *buffer, size_t size);
	/* Receives each native frame, leaf first; the frame occupies [low, cfa).  PP_FILE_NONE: the
	 * callers between the last one and the next may be missing.  Returns false to end the
	 * walk. */
	bool (*frame)(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa);
	/* The return addresses of the thread that the kernel has replaced. */
	const struct pp_return *returns;
	size_t return_count;
};

/* Walks at most PP_MAX_STEPS frames from *state towards the root.  Returns why the walk ended;
 * *state is then the frame whose caller was not found. */
enum pp_stop stack_finish(struct finish_state *state, const struct finish_callbacks *callbacks);

/* Finds a call in `file` whose frame contains `anchor` by its unwind rule and whose callers can be
 * unwound to the root.  `sp` is that of the frame where the walk is stuck; callbacks->frame is not
 * called.  Returns 0 and the distances from anchor to CFA and frame pointer (agreed and asked are
 * 0); -ENOENT. */
int stack_resume_find(const struct finish_callbacks *callbacks, uint32_t file, uint64_t sp,
		      uint64_t anchor, struct pp_resync *ret_resync);

/* Sets *state to the caller of the activation that contains the anchor.  Returns 0; -EFAULT: its
 * frame cannot be read, or lies above state->sp; *state is unchanged. */
int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t anchor, struct finish_state *state);

#endif
