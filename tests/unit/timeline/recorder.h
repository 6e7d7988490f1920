/* SPDX-License-Identifier: BSD-2-Clause */
/* A sink that records one line per event: "7 cpu 10-20 on CPU". */
#ifndef TESTS_UNIT_TIMELINE_RECORDER_H
#define TESTS_UNIT_TIMELINE_RECORDER_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "timeline/lanes.h"

struct recorder {
	const struct intern *strings;
	char text[8192];
	size_t used;
	unsigned int threads, slices_left; /* 0: no bound; 1: the next one is refused */
};

static inline int recorder_thread(void *context, const struct trace_thread *thread,
				  const char *process_name, const char *thread_name)
{
	struct recorder *recorder = context;

	(void)thread;
	(void)process_name;
	(void)thread_name;
	recorder->threads++;
	return 0;
}

static inline void recorder_line(struct recorder *recorder, const char *lane,
				 const struct trace_slice *slice)
{
	int size =
		snprintf(recorder->text + recorder->used, sizeof(recorder->text) - recorder->used,
			 "%" PRIu32 " %s %" PRIu64 "-%" PRIu64 " %s\n", slice->thread->tid, lane,
			 slice->start_ns, slice->end_ns,
			 intern_get(recorder->strings, slice->name, NULL));

	if (size > 0 && recorder->used + (size_t)size < sizeof(recorder->text))
		recorder->used += (size_t)size;
}

static inline int recorder_slice(void *context, const struct trace_slice *slice)
{
	static const char *const lane[TRACE_LANES] = {"function", "cpu", "gil"};
	struct recorder *recorder = context;

	if (recorder->slices_left == 1)
		return -EFBIG;
	if (recorder->slices_left)
		recorder->slices_left--;
	recorder_line(recorder, lane[slice->lane], slice);
	return 0;
}

static inline int recorder_instant(void *context, const struct trace_slice *slice)
{
	recorder_line(context, "sample", slice);
	return 0;
}

static inline struct trace_sink recorder_sink(struct recorder *recorder)
{
	return (struct trace_sink){.context = recorder,
				   .thread = recorder_thread,
				   .slice = recorder_slice,
				   .instant = recorder_instant};
}

#endif
