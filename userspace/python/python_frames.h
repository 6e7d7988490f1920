/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python frames of a thread that sleeps, read from the live process: what bpf/lib/walk_python.bpf.h
 * and thread_state.bpf.h do for a thread that runs, with the same results.  Nothing of what is read is
 * trusted: every chain is bounded.  No global state. */
#ifndef PYTHON_PYTHON_FRAMES_H
#define PYTHON_PYTHON_FRAMES_H

#include <stdbool.h>
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
	uint64_t gil;	      /* address of last_holder in the GIL's struct; 0: not known */
	uint32_t count_flags; /* enum pp_count_flag: PYTHON, GIL_HELD, GC */
	enum pp_py_stop stop;
	/* As in struct pp_stack_record; kind PYTHON_RAW: `where` is the code object's address. */
	uint32_t stored, count;
	uint32_t segment_count;
	struct pp_frame frame[PP_MAX_PYTHON_FRAMES];
	struct pp_segment segment[PP_MAX_SEGMENTS];
};

/* The thread state that a thread's own slots give; 0: none. */
uint64_t python_thread_state_find(const struct python_where *where, uint64_t thread_pointer);
/* Walks from a thread state to the root; ret_frames->stop says how it ended. */
void python_frames_read(const struct python_where *where, uint64_t thread_state,
			struct python_frames *ret_frames);
/* Where a walk goes on that the kernel side has begun. */
struct python_resume {
	uint64_t frame, cframe;
	uint32_t segment_frames;
	const uint8_t *head; /* of the frame, as the kernel side saw it: PP_FRAME_READ_BYTES */
};
/* Goes on to the root behind what `frames` holds.  A frame that is still in the same call has the same
 * callers, so it is looked at with each of them.  0; -ESTALE: it has changed, and what was added
 * may be of another stack. */
int python_frames_resume(const struct python_where *where, const struct python_resume *from,
			 struct python_frames *frames);
/* Whether a futex word belongs to the GIL of the thread whose frames these are (as gil.bpf.h). */
bool python_gil_owns(const struct python_where *where, const struct python_frames *frames,
		     uint64_t word);

#endif
