/* SPDX-License-Identifier: BSD-2-Clause */
/* A stack taken at a context switch begins with the frames of the tracepoint and the scheduler, which say no
 * more than that the thread left the CPU. */
#ifndef AGENT_SWITCH_FRAMES_H
#define AGENT_SWITCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

struct frame;
struct intern;
struct profile_sample;

/* Where __schedule() is among the first frames, leaf first.  False: it is not. */
bool switch_frames_find(const struct intern *strings, const struct frame *frame, size_t count,
			size_t *ret_at);
/* Leaves the frames above __schedule() out. */
void switch_frames_drop(const struct intern *strings, struct profile_sample *sample);

#endif
