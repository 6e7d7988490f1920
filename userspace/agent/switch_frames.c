/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/switch_frames.h"

#include <string.h>

#include "profile/profile.h"

/* Frames of the tracepoint and the scheduler that a stack at a switch can begin with. */
#define SWITCH_FRAMES_MAX 12U

bool switch_frames_find(const struct intern *strings, const struct frame *frame, size_t count,
			size_t *ret_at)
{
	for (size_t i = 0; i < count && i < SWITCH_FRAMES_MAX; i++) {
		if (frame[i].kind != FRAME_KERNEL)
			return false;
		if (strcmp(intern_get(strings, frame[i].name, NULL), "__schedule"))
			continue;
		*ret_at = i;
		return true;
	}
	return false;
}

void switch_frames_drop(const struct intern *strings, struct profile_sample *sample)
{
	size_t at;

	if (!switch_frames_find(strings, sample->frame, sample->frame_count, &at))
		return;
	sample->frame += at;
	sample->frame_count -= at;
}
