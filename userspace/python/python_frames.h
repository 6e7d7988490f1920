/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the Python frames of a sleeping thread from the live process.  bpf/lib/walk_python.bpf.h
 * and thread_state.bpf.h do the same for a running thread, with the same results.  What is read is
 * not trusted: every chain is bounded.  No global state. */
#ifndef PYTHON_PYTHON_FRAMES_H
#define PYTHON_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/process.h>
#include <pyprofd/python.h>
#include <pyprofd/sample.h>

/* One process's interpreter. */
struct python_where {
	pid_t pid;
	const struct pp_python *layout; /* borrowed */
	uint64_t bias;
	struct pp_tls tls[2]; /* python_process_tls_read() */
};

/* About 56 KiB. */
struct python_frames {
	uint64_t thread_state;
	uint64_t gil;	      /* address of last_holder in the GIL's struct; 0: unknown */
	uint32_t count_flags; /* enum pp_count_flag: PYTHON, GIL_HELD, GC */
	enum pp_py_stop stop;
	/* As in struct pp_stack_record.  For PYTHON_RAW `where` is the code object's address. */
	uint32_t stored, count;
	uint32_t segment_count;
	struct pp_frame frame[PP_MAX_PYTHON_FRAMES];
	struct pp_segment segment[PP_MAX_SEGMENTS];
};

/* Returns the thread state that the thread's own TLS slots point to; 0: none. */
uint64_t python_thread_state_find(const struct python_where *where, uint64_t thread_pointer);
/* Walks from a thread state to the root; ret_frames->stop says why the walk ended. */
void python_frames_read(const struct python_where *where, uint64_t thread_state,
			struct python_frames *ret_frames);
/* The frame at which to continue a walk that the kernel side began. */
struct python_resume {
	uint64_t frame, cframe;
	uint32_t segment_frames;
	const uint8_t *head; /* of the frame, as the kernel side read it: PP_FRAME_READ_BYTES */
};
/* Continues an incomplete walk to the root and appends to `frames`.  While a frame is still in the
 * same call, its callers are the same: so the frame is checked with each caller that is read.
 * Returns 0; -ESTALE: the frame has changed, and what was appended may belong to another stack. */
int python_frames_resume(const struct python_where *where, const struct python_resume *from,
			 struct python_frames *frames);
/* Returns whether a futex word belongs to the GIL of the thread that these frames are of (as
 * look.bpf.h). */
bool python_gil_owns(const struct python_where *where, const struct python_frames *frames,
		     uint64_t word);

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
