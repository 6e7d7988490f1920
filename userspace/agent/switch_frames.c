/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/samples.h"

#include <string.h>

#include "base/cleanup.h"
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

/* A program on a tracepoint finds itself on top of the stack, then what called it: bpf_trace_runN,
 * __bpf_trace_NAME, __traceiter_NAME (include/trace/bpf_probe.h, kernel/trace/bpf_trace.c). */
static bool is_of_tracepoint(const char *name)
{
	static const char *const starts[] = {"bpf_prog_", "bpf_trace_run", "__bpf_trace_",
					     "__traceiter_", "bpf_get_stack"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(name, starts[i], strlen(starts[i])))
			return true;
	return false;
}

void switch_frames_drop_interpreter(struct profile_sample *sample)
{
	const uint32_t module = sample->frame[0].module;
	size_t at = 0;

	while (at + 1 < sample->frame_count && sample->frame[at].kind == FRAME_NATIVE &&
	       sample->frame[at].module == module)
		at++;
	/* A thread without Python frames keeps its stack. */
	if (sample->frame[at].kind != FRAME_PYTHON)
		return;
	sample->frame += at;
	sample->frame_count -= at;
}

void switch_frames_drop_tracepoint(const struct intern *strings, struct profile_sample *sample)
{
	size_t at = 0;

	while (at + 1 < sample->frame_count && at < SWITCH_FRAMES_MAX &&
	       sample->frame[at].kind == FRAME_KERNEL &&
	       is_of_tracepoint(intern_get(strings, sample->frame[at].name, NULL)))
		at++;
	sample->frame += at;
	sample->frame_count -= at;
}

void switch_frames_drop(const struct intern *strings, struct profile_sample *sample)
{
	size_t at;

	if (!switch_frames_find(strings, sample->frame, sample->frame_count, &at))
		return;
	sample->frame += at;
	sample->frame_count -= at;
}
