/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/miss_frames.h"

#include <string.h>

#include <pyprofd/python.h>

#include "symbolize/stitch.h"

size_t miss_frames_record_bytes(void)
{
	return sizeof(struct pp_stack_record) + STITCH_STACK_FRAMES * sizeof(struct pp_frame);
}

static bool push(struct miss_frames *frames, uint64_t where, uint32_t what, enum pp_frame_kind kind)
{
	struct pp_stack_record *record = frames->record;
	size_t at = (size_t)record->python_stored + record->native_stored;

	if (at >= STITCH_STACK_FRAMES)
		return false;
	record->frame[at] = (struct pp_frame){.where = where, .what = what, .kind = kind};
	record->native_stored++;
	record->native_count++;
	return true;
}

static bool in_eval(const struct pp_python *python, uint64_t vaddr)
{
	for (uint32_t i = 0; i < python->eval_range_count && i < PP_MAX_EVAL_RANGES; i++)
		if (vaddr >= python->eval[i].low && vaddr < python->eval[i].high)
			return true;
	return false;
}

uint32_t miss_frames_foldable(const struct miss_frames *frames)
{
	return frames->foldable && frames->since_run <= PP_MAX_FOLDED_FRAMES ? frames->since_run
									     : 0;
}

/* As place_run() in bpf/lib/walk_native.bpf.h: the interpreter's own few frames between two
 * activations are dropped. */
static bool place_run(struct miss_frames *frames, uint64_t python_frames)
{
	struct pp_stack_record *record = frames->record;

	if (!frames->raw) {
		record->native_stored -= (uint16_t)miss_frames_foldable(frames);
		record->native_count -= miss_frames_foldable(frames);
	}
	frames->since_run = 0;
	frames->foldable = true;
	return push(frames, python_frames, 0, PP_FRAME_PYTHON_RUN);
}

const struct pp_segment *miss_frames_next_run(const struct miss_frames *frames)
{
	return frames->segment_next < frames->segment_count ? &frames->segment[frames->segment_next]
							    : NULL;
}

/* As push_eval() in bpf/lib/walk_native.bpf.h: whether this frame of the interpreter's is an eval
 * activation, and how many Python frames it runs. */
static bool is_activation(struct miss_frames *frames, uint64_t vaddr, uint64_t low, uint64_t cfa,
			  uint64_t *ret_python_frames)
{
	const struct pp_segment *segment = miss_frames_next_run(frames);

	if (frames->python->chain == PP_CHAIN_FRAME_OBJECT && in_eval(frames->python, vaddr)) {
		*ret_python_frames = 1;
		return true;
	}
	if (!segment || segment->mark < low || segment->mark >= cfa)
		return false;
	frames->segment_next++;
	*ret_python_frames = segment->frames;
	return true;
}

/* As push_frame() there. */
bool miss_frames_add(struct miss_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		     uint64_t cfa)
{
	bool own = frames->python && file == frames->python->file;
	const struct pp_segment *segment;
	uint64_t python_frames;

	if (own && is_activation(frames, vaddr, low, cfa, &python_frames))
		return place_run(frames, python_frames);
	segment = miss_frames_next_run(frames);
	if (segment && segment->mark && segment->mark < low) {
		frames->segment_next++;
		frames->foldable = false;
		if (!place_run(frames, segment->frames))
			return false;
	}
	frames->since_run++;
	frames->foldable &= own;
	return push(frames, vaddr, file,
		    file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS : PP_FRAME_NATIVE);
}

bool miss_frames_skip(struct miss_frames *frames)
{
	const struct pp_segment *segment = miss_frames_next_run(frames);

	if (!segment || !push(frames, 0, 0, PP_FRAME_GAP))
		return false;
	frames->foldable = false;
	frames->segment_next++;
	return place_run(frames, segment->frames);
}

/* A full native area ends in a ring: its frames in order, and a gap where some were left out. */
static void unroll_native(struct pp_stack_record *record, const struct pp_frame *native)
{
	struct pp_frame *to = record->frame + record->python_stored;
	uint32_t ring = record->native_stored / PP_ROOT_SHARE, leaf = record->native_stored - ring;
	uint32_t omitted = record->native_count - record->native_stored;

	to[leaf] = (struct pp_frame){.where = omitted, .kind = PP_FRAME_GAP};
	for (uint32_t i = 0; i < ring; i++)
		to[leaf + 1 + i] = native[leaf + (record->native_count - leaf + i) % ring];
	record->native_stored++;
	record->native_count = record->native_stored;
}

void miss_frames_begin(struct miss_frames *frames, const struct decoded_miss *decoded,
		       struct pp_stack_record *record)
{
	const struct pp_miss_record *miss = decoded->record;

	*record = (struct pp_stack_record){
		.id = miss->key.id,
		.python_stored = miss->python_stored,
		.python_count = miss->python_count,
		.native_stored = miss->native_stored,
		.native_count = miss->native_count,
		.stop = miss->stop,
		.py_stop = miss->py_stop,
		.python = miss->python,
	};
	memcpy(record->frame, decoded->python,
	       ((size_t)miss->python_stored + miss->native_stored) * sizeof(struct pp_frame));
	if (miss->native_count > miss->native_stored)
		unroll_native(record, decoded->native);
	*frames = (struct miss_frames){
		.record = record,
		.segment = decoded->segment,
		.segment_count = miss->segment_count,
		.since_run = miss->since_run,
		.foldable = miss->foldable,
	};
}
