/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/decode.h"

#include <errno.h>
#include <stdbool.h>

static bool counts_agree(uint32_t stored, uint32_t count)
{
	return stored <= PP_MAX_FRAMES && count >= stored && count <= 2 * PP_MAX_STEPS;
}

/* Checks the kinds, which later become bits of a packed frame; each area has its own kinds. */
static bool kinds_are_known(const struct pp_frame *frame, size_t python, size_t native)
{
	for (size_t i = 0; i < python; i++)
		if (frame[i].kind != PP_FRAME_PYTHON && frame[i].kind != PP_FRAME_PYTHON_RAW)
			return false;
	for (size_t i = python; i < python + native; i++)
		if (frame[i].kind > PP_FRAME_EVAL || frame[i].kind == PP_FRAME_PYTHON ||
		    frame[i].kind == PP_FRAME_PYTHON_RAW)
			return false;
	return true;
}

static int decode_stack(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_stack_record *record = data;
	struct decoded_stack stack = {.record = record};
	size_t frames;

	if (size < sizeof(*record))
		return -EBADMSG;
	frames = (size_t)record->python_stored + record->native_stored;
	if (size != sizeof(*record) + frames * sizeof(struct pp_frame) || frames > PP_MAX_FRAMES ||
	    !counts_agree(record->python_stored, record->python_count) ||
	    !counts_agree(record->native_stored, record->native_count))
		return -EBADMSG;
	if (record->stop >= PP_STOP_COUNT || record->py_stop >= PP_PY_STOP_COUNT)
		return -EBADMSG;
	if (!kinds_are_known(record->frame, record->python_stored, record->native_stored))
		return -EBADMSG;
	stack.python = record->frame;
	stack.native = record->frame + record->python_stored;
	handlers->stack(handlers->context, &stack);
	return 0;
}

static int decode_kernel(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_kernel_record *record = data;
	struct decoded_kernel kernel = {.record = record};

	if (size < sizeof(*record) || (size - sizeof(*record)) % sizeof(uint64_t))
		return -EBADMSG;
	kernel.count = (size - sizeof(*record)) / sizeof(uint64_t);
	if (kernel.count > PP_MAX_KERNEL_FRAMES)
		return -EBADMSG;
	handlers->kernel(handlers->context, &kernel);
	return 0;
}

static int decode_code(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_code_record *record = data;

	if (size < sizeof(*record) || size != sizeof(*record) + record->name_bytes +
						      record->filename_bytes +
						      (size_t)record->line_table_bytes)
		return -EBADMSG;
	handlers->code(handlers->context, record);
	return 0;
}

void decoded_incomplete_set(const struct pp_incomplete_record *record,
			    struct decoded_incomplete *ret_incomplete)
{
	const size_t frames = (size_t)record->python_stored + record->native_stored;

	ret_incomplete->record = record;
	ret_incomplete->python = (const struct pp_frame *)record->bytes;
	ret_incomplete->native = ret_incomplete->python + record->python_stored;
	ret_incomplete->segment = (const struct pp_segment *)(ret_incomplete->python + frames);
	ret_incomplete->returns =
		(const struct pp_return *)(ret_incomplete->segment + record->segment_count);
	ret_incomplete->stack = (const uint8_t *)(ret_incomplete->returns + record->return_count);
}

static int decode_incomplete(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_incomplete_record *record = data;
	struct decoded_incomplete incomplete;
	size_t frames;

	if (size < sizeof(*record))
		return -EBADMSG;
	frames = (size_t)record->python_stored + record->native_stored;
	if (frames > PP_MAX_FRAMES || record->segment_count > PP_MAX_SEGMENTS ||
	    record->return_count > PP_MAX_RETURNS || record->stack_bytes > PP_STACK_COPY_BYTES ||
	    !counts_agree(record->python_stored, record->python_count) ||
	    !counts_agree(record->native_stored, record->native_count))
		return -EBADMSG;
	if (size != sizeof(*record) + frames * sizeof(struct pp_frame) +
			    record->segment_count * sizeof(struct pp_segment) +
			    record->return_count * sizeof(struct pp_return) + record->stack_bytes)
		return -EBADMSG;
	if (record->stop >= PP_STOP_COUNT || record->py_stop >= PP_PY_STOP_COUNT)
		return -EBADMSG;
	if (record->foldable > 1 || record->since_segment > record->native_count)
		return -EBADMSG;
	decoded_incomplete_set(record, &incomplete);
	if (!kinds_are_known(incomplete.python, record->python_stored, record->native_stored))
		return -EBADMSG;
	handlers->incomplete(handlers->context, &incomplete);
	return 0;
}

static int decode_text(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_text_record *record = data;

	if (!handlers->text || size <= sizeof(*record) ||
	    size - sizeof(*record) > PP_MAX_TEXT_BYTES || !record->id)
		return -EBADMSG;
	handlers->text(handlers->context, record, size - sizeof(*record));
	return 0;
}

int decode_record(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_record *record = data;

	if (size < sizeof(*record) || record->size != size)
		return -EBADMSG;
	switch (record->type) {
	case PP_RECORD_STACK:
		return decode_stack(data, size, handlers);
	case PP_RECORD_KERNEL:
		return decode_kernel(data, size, handlers);
	case PP_RECORD_CODE:
		return decode_code(data, size, handlers);
	case PP_RECORD_INCOMPLETE:
		return decode_incomplete(data, size, handlers);
	case PP_RECORD_TEXT:
		return decode_text(data, size, handlers);
	default:
		return -EBADMSG;
	}
}

int decode_event(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_event *event = data;

	if (size != sizeof(*event) || event->type < PP_EVENT_FORK || event->type >= PP_EVENT_END ||
	    event->comm[PP_COMM_BYTES - 1])
		return -EBADMSG;
	handlers->event(handlers->context, event);
	return 0;
}

static bool times_are_ordered(const struct pp_timeline_record *record)
{
	return record->run_ns <= record->leave_ns && record->leave_ns <= record->woken_ns &&
	       record->woken_ns <= record->back_ns;
}

int decode_timeline(const void *data, size_t size, const struct drain_handlers *handlers)
{
	const struct pp_timeline_record *record = data;

	if (size != sizeof(*record) || record->record.size != size ||
	    record->record.type < PP_TIMELINE_SWITCH || record->record.type > PP_TIMELINE_SAMPLE ||
	    record->wait >= PP_WAIT_COUNT)
		return -EBADMSG;
	if (record->record.type != PP_TIMELINE_SAMPLE && !times_are_ordered(record))
		return -EBADMSG;
	handlers->timeline(handlers->context, record);
	return 0;
}
