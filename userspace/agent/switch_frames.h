/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the frames of the tracepoint and the scheduler at the leaf of a stack that was taken at a
 * context switch.  They say no more than that the thread switched out. */
#ifndef AGENT_SWITCH_FRAMES_H
#define AGENT_SWITCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

struct frame;
struct intern;
struct profile_sample;

/* Finds __schedule() among the first frames, leaf first.  Returns false when it is not there. */
bool switch_frames_find(const struct intern *strings, const struct frame *frame, size_t count,
			size_t *ret_at);
/* Leaves out the frames above __schedule(). */
void switch_frames_drop(const struct intern *strings, struct profile_sample *sample);

/* Takes the frames of a program on a tracepoint, and of what called it, off the leaf end. */
void switch_frames_drop_tracepoint(const struct intern *strings, struct profile_sample *sample);

/* Takes the interpreter's own frames off the leaf end of a stack that one of its probes has taken:
 * the line that caused the event is the leaf then. */
void switch_frames_drop_interpreter(struct profile_sample *sample);

#endif
