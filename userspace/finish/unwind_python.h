/* SPDX-License-Identifier: BSD-2-Clause */
/* Completes the Python part of an incomplete stack: reads the frames that the kernel side had no
 * time for, and gives their code objects the ids that the kernel side would have used. */
#ifndef FINISH_UNWIND_PYTHON_H
#define FINISH_UNWIND_PYTHON_H

#include "base/cleanup.h"
#include "drain/decode.h"
#include "python/python_frames.h"

struct dictionary;
struct process;
struct unwind_python;

/* Creates the reader; `dictionary` is borrowed, secret is pp_config.name_secret.  Returns 0;
 * -ENOMEM. */
int unwind_python_new(struct dictionary *dictionary, uint64_t secret,
		      struct unwind_python **ret_python);
void unwind_python_free(struct unwind_python *python);

/* Reads the Python frames beyond those the kernel side stored, into `record`, which must have no
 * native frames yet, and sets its py_stop.  Returns all frames and anchors, valid until the next
 * call; NULL: none were read and `record` keeps the kernel side's frames. */
const struct python_frames *unwind_python_resume(struct unwind_python *python,
						 struct process *process,
						 const struct decoded_incomplete *incomplete,
						 struct pp_stack_record *record);
/* Replaces the code objects' addresses in frames by their ids, so that equal stacks are equal
 * wherever the kernel side stopped.  A frame whose code object cannot be read keeps the address. */
void unwind_python_name(struct unwind_python *python, struct process *process,
			struct pp_stack_record *record);

#endif
