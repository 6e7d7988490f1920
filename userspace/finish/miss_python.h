/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python frames of a missed stack: those that the kernel side had no time for, and the ids of code
 * objects by which it would have named them. */
#ifndef FINISH_MISS_PYTHON_H
#define FINISH_MISS_PYTHON_H

#include "base/cleanup.h"
#include "drain/decode.h"
#include "python/python_frames.h"

struct dictionary;
struct process;
struct miss_python;

/* dictionary: borrowed. */
int miss_python_new(struct dictionary *dictionary, struct miss_python **ret_python);
void miss_python_free(struct miss_python *python);

/* Goes on where the kernel side ended.  `record`, which has no native frames yet, gets the frames and
 * py_stop.  Returns all frames and marks, until the next call; NULL: only what the miss has. */
const struct python_frames *miss_python_resume(struct miss_python *python, struct process *process,
					       const struct decoded_miss *miss,
					       struct pp_stack_record *record);
/* Frames with a code object's address get its id, so that equal stacks are equal wherever the kernel side
 * ended.  What cannot be read stays as it is. */
void miss_python_name(struct miss_python *python, struct process *process,
		      struct pp_stack_record *record);

#endif
