/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the frame list of an incomplete stack: native frames in the order of the walk, and each
 * segment of Python frames at the native frame that contains its anchor.  Decides as
 * bpf/lib/walk_native.bpf.h does. */
#ifndef FINISH_UNWIND_FRAMES_H
#define FINISH_UNWIND_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "drain/decode.h"

struct unwind_frames {
	struct pp_stack_record *record;	  /* borrowed; python frames, then native ones */
	const struct pp_python *python;	  /* of the process; NULL: none */
	const struct pp_segment *segment; /* segment_count of them; borrowed */
	uint32_t segment_count, segment_next;
	uint32_t since_segment; /* native frames since the last segment */
	bool foldable;
	bool raw; /* keep the interpreter's own frames */
};

/* Returns the size of a record with room for all frames of one stack. */
size_t unwind_frames_record_bytes(void);
/* Starts the list with the frames the kernel side walked.  `record` has
 * unwind_frames_record_bytes(). */
void unwind_frames_begin(struct unwind_frames *frames, const struct decoded_incomplete *decoded,
			 struct pp_stack_record *record);
/* Adds the native frame that occupies [low, cfa), or the Python segment that it runs.  Returns
 * false when the record is full. */
bool unwind_frames_add(struct unwind_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		       uint64_t cfa);
/* Returns the next Python segment not yet in the list; NULL: none is left. */
const struct pp_segment *unwind_frames_next_segment(const struct unwind_frames *frames);
/* Adds a gap and the next Python segment, when the walk resumes at its anchor.  Returns false when
 * no segment is left or the record is full. */
bool unwind_frames_skip(struct unwind_frames *frames);
/* Returns how many of the last frames the next segment would fold away. */
uint32_t unwind_frames_foldable(const struct unwind_frames *frames);

#endif
