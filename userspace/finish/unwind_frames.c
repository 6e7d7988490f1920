/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/unwind_frames.h"

#include <string.h>

#include <pyprofd/python.h>

#include "symbolize/stitch.h"

size_t unwind_frames_record_bytes(void)
{
	return sizeof(struct pp_stack_record) + STITCH_STACK_FRAMES * sizeof(struct pp_frame);
}

static bool push(struct unwind_frames *frames, uint64_t where, uint32_t what,
		 enum pp_frame_kind kind)
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

uint32_t unwind_frames_foldable(const struct unwind_frames *frames)
{
	/* Where the record's area was full, most of the frames since then are not in it. */
	return frames->foldable && frames->since_segment <= PP_MAX_FOLDED_FRAMES &&
			       frames->since_segment <= frames->record->native_stored
		       ? frames->since_segment
		       : 0;
}

/* Adds a segment as place_segment() in bpf/lib/walk_native.bpf.h does: a few interpreter frames
 * between two activations are folded away. */
static bool place_segment(struct unwind_frames *frames, uint64_t python_frames)
{
	struct pp_stack_record *record = frames->record;
	const uint32_t folded = frames->raw ? 0 : unwind_frames_foldable(frames);

	record->native_stored -= (uint16_t)folded;
	record->native_count -= folded;
	frames->since_segment = 0;
	frames->foldable = true;
	return push(frames, python_frames, 0, PP_FRAME_SEGMENT);
}

const struct pp_segment *unwind_frames_next_segment(const struct unwind_frames *frames)
{
	return frames->segment_next < frames->segment_count ? &frames->segment[frames->segment_next]
							    : NULL;
}

/* Returns whether an interpreter frame is an eval activation, and how many Python frames it runs,
 * as push_eval() in bpf/lib/walk_native.bpf.h decides. */
static bool is_activation(struct unwind_frames *frames, uint64_t vaddr, uint64_t low, uint64_t cfa,
			  uint64_t *ret_python_frames)
{
	const struct pp_segment *segment = unwind_frames_next_segment(frames);

	if (frames->python->chain == PP_CHAIN_FRAME_OBJECT && in_eval(frames->python, vaddr)) {
		*ret_python_frames = 1;
		return true;
	}
	if (!segment || segment->anchor < low || segment->anchor >= cfa)
		return false;
	frames->segment_next++;
	*ret_python_frames = segment->frames;
	return true;
}

/* Follows push_frame() in bpf/lib/walk_native.bpf.h. */
bool unwind_frames_add(struct unwind_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		       uint64_t cfa)
{
	bool own = frames->python && file == frames->python->file;
	const struct pp_segment *segment;
	uint64_t python_frames;

	if (own && is_activation(frames, vaddr, low, cfa, &python_frames))
		return place_segment(frames, python_frames);
	segment = unwind_frames_next_segment(frames);
	if (segment && segment->anchor && segment->anchor < low) {
		frames->segment_next++;
		frames->foldable = false;
		(void)place_segment(frames, segment->frames); /* full: so it is for the frame */
	}
	frames->since_segment++;
	frames->foldable &= own;
	return push(frames, vaddr, file,
		    file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS : PP_FRAME_NATIVE);
}

bool unwind_frames_skip(struct unwind_frames *frames)
{
	const struct pp_segment *segment = unwind_frames_next_segment(frames);

	if (!segment || !push(frames, 0, 0, PP_FRAME_GAP))
		return false;
	frames->foldable = false;
	frames->segment_next++;
	return place_segment(frames, segment->frames);
}

/* When the kernel side's native area was full, its last quarter is a ring of the frames nearest the
 * root.  Copies them in order, behind a gap that holds the number of frames left out. */
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

void unwind_frames_begin(struct unwind_frames *frames, const struct decoded_incomplete *decoded,
			 struct pp_stack_record *record)
{
	const struct pp_incomplete_record *incomplete = decoded->record;

	*record = (struct pp_stack_record){
		.id = incomplete->key.id,
		.python_stored = incomplete->python_stored,
		.python_count = incomplete->python_count,
		.native_stored = incomplete->native_stored,
		.native_count = incomplete->native_count,
		.stop = incomplete->stop,
		.py_stop = incomplete->py_stop,
		.python = incomplete->python,
	};
	memcpy(record->frame, decoded->python,
	       ((size_t)incomplete->python_stored + incomplete->native_stored) *
		       sizeof(struct pp_frame));
	if (incomplete->native_count > incomplete->native_stored)
		unroll_native(record, decoded->native);
	*frames = (struct unwind_frames){
		.record = record,
		.segment = decoded->segment,
		.segment_count = incomplete->segment_count,
		.since_segment = incomplete->since_segment,
		.foldable = incomplete->foldable,
	};
}
