/* SPDX-License-Identifier: BSD-2-Clause */
/* Which frames an incomplete stack gets: native ones as the walk meets them, and Python's runs where their
 * marks lie among them.  The same decisions as bpf/lib/walk_native.bpf.h. */
#ifndef FINISH_MISS_FRAMES_H
#define FINISH_MISS_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "drain/decode.h"

struct miss_frames {
	struct pp_stack_record *record;	  /* borrowed; python frames, then native ones */
	const struct pp_python *python;	  /* of the process; NULL: none */
	const struct pp_segment *segment; /* segment_count of them; borrowed */
	uint32_t segment_count, segment_next;
	uint32_t since_run; /* as in struct pp_walk */
	bool foldable;
	bool raw; /* the interpreter's own frames stay */
};

/* Bytes of a record that has room for all frames of one stack. */
size_t miss_frames_record_bytes(void);
/* Begins with what the kernel side has walked.  `record` has miss_frames_record_bytes(). */
void miss_frames_begin(struct miss_frames *frames, const struct decoded_miss *decoded,
		       struct pp_stack_record *record);
/* The walk has met a native frame, bounded by `low` and `cfa`.  False: there is no room for more. */
bool miss_frames_add(struct miss_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		     uint64_t cfa);
/* The next of Python's runs that has no place yet; NULL: all have. */
const struct pp_segment *miss_frames_next_run(const struct miss_frames *frames);
/* The walk goes on at the next run's mark: leaves a gap and places the run.  False: there is no room. */
bool miss_frames_skip(struct miss_frames *frames);
/* How many of the last frames a run that comes next would take away. */
uint32_t miss_frames_foldable(const struct miss_frames *frames);

#endif
