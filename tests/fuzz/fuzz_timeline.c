/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/decode.c timeline/lanes.c drain/thread_slots.c drain/counts.c drain/table.c base/index_table.c base/intern.c base/utf8.c */
/* Records of the ring `timeline`, one after the other, in the order of time or not: those that
 * decode go into the lanes.  Slices have a length, and while the records of a thread are in order
 * they do not overlap. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drain/decode.h"
#include "timeline/lanes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define THREADS 4U

struct fuzz {
	struct lanes *lanes;
	uint32_t name[3];
	uint64_t ended_ns[2 * THREADS][TRACE_LANES]; /* by id and tid */
	uint64_t back_ns[2 * THREADS];
	bool is_ordered;
};

static void find_names(void *context, struct pp_process_id id, uint32_t tid,
		       const char **ret_process_name, const char **ret_thread_name)
{
	(void)context;
	*ret_process_name = id.tgid & 1 ? "p" : "";
	*ret_thread_name = tid & 1 ? "t" : "";
}

static uint32_t slot_of(struct pp_process_id id, uint32_t tid)
{
	return (id.tgid & 1) * THREADS + tid % THREADS;
}

static int on_thread(void *context, const struct trace_thread *thread, const char *process_name,
		     const char *thread_name)
{
	(void)context;
	(void)thread;
	assert(process_name && thread_name);
	return 0;
}

static int on_slice(void *context, const struct trace_slice *slice)
{
	struct fuzz *fuzz = context;
	uint64_t *ended_ns =
		&fuzz->ended_ns[slot_of(slice->thread->id, slice->thread->tid)][slice->lane];

	assert(slice->start_ns < slice->end_ns);
	if (fuzz->is_ordered)
		assert(slice->start_ns >= *ended_ns);
	*ended_ns = slice->end_ns;
	return 0;
}

static int on_instant(void *context, const struct trace_slice *slice)
{
	(void)context;
	assert(slice->start_ns == slice->end_ns && slice->name);
	return 0;
}

static void on_record(void *context, const struct pp_timeline_record *decoded)
{
	struct fuzz *fuzz = context;
	struct pp_timeline_record record = *decoded;
	uint64_t *back_ns;
	struct lanes_event event = {.record = &record,
				    .function = fuzz->name[record.user_stack % 3],
				    .stack = fuzz->name[record.kernel_stack % 3],
				    .is_python = record.cpu & 1};

	record.id = (struct pp_process_id){.tgid = record.id.tgid & 1};
	record.tid %= THREADS;
	back_ns = &fuzz->back_ns[slot_of(record.id, record.tid)];
	if (record.record.type != PP_TIMELINE_SAMPLE) {
		fuzz->is_ordered &= record.run_ns >= *back_ns;
		*back_ns = record.back_ns;
	}
	assert(!lanes_add(fuzz->lanes, &event));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(intern) struct intern *strings = NULL;
	OWNED(lanes) struct lanes *lanes = NULL;
	struct fuzz fuzz = {.is_ordered = true};
	const struct trace_sink sink = {
		.context = &fuzz, .thread = on_thread, .slice = on_slice, .instant = on_instant};
	const struct lanes_names names = {.find = find_names};
	const struct drain_handlers handlers = {.context = &fuzz, .timeline = on_record};
	struct pp_timeline_record record;

	assert(!intern_new(&strings) && !intern_string(strings, "f", &fuzz.name[1]) &&
	       !intern_string(strings, "g", &fuzz.name[2]));
	assert(!lanes_new(strings, &sink, &names, &lanes));
	fuzz.lanes = lanes;
	for (; size >= sizeof(record); data += sizeof(record), size -= sizeof(record)) {
		memcpy(&record, data, sizeof(record));
		record.record.size = sizeof(record);
		record.record.type = 1 + record.record.type % 4;
		record.wait %= PP_WAIT_COUNT + 1;
		(void)decode_timeline(&record, sizeof(record), &handlers);
	}
	(void)decode_timeline(data, size, &handlers);
	assert(!lanes_end(lanes));
	return 0;
}
