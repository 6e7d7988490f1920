/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/stitch.h"

/* One of the two areas of a stack (struct pp_stack_record), indexed by the frame's number. */
struct area {
	const packed_frame *frame;
	uint32_t stored, count;
	uint32_t leaf, ring; /* slots of the leaf part, and of the ring */
};

static struct area area_of(const packed_frame *frame, uint32_t stored, uint32_t count)
{
	uint32_t ring = count > stored ? stored / PP_ROOT_SHARE : 0;

	return (struct area){.frame = frame,
			     .stored = stored,
			     .count = count,
			     .leaf = stored - ring,
			     .ring = ring};
}

static bool area_omits(const struct area *area, uint32_t at)
{
	return at >= area->leaf && at < area->count - area->ring;
}

static packed_frame area_get(const struct area *area, uint32_t at)
{
	if (at < area->leaf || !area->ring)
		return area->frame[at];
	return area->frame[area->leaf + (at - area->leaf) % area->ring];
}

struct output {
	packed_frame *frame;
	size_t count;
	bool is_omitting; /* the last frame is the marker of an omission that may go on */
};

static void put(struct output *out, packed_frame frame)
{
	if (out->count < STITCH_MAX_FRAMES)
		out->frame[out->count++] = frame;
	out->is_omitting = false;
}

static void put_omitted(struct output *out)
{
	if (!out->is_omitting) {
		if (out->count == STITCH_MAX_FRAMES)
			return;
		put(out, packed_gap(0));
	}
	out->is_omitting = true;
	out->frame[out->count - 1]++;
}

static void put_from(struct output *out, const struct area *area, uint32_t at)
{
	if (area_omits(area, at))
		put_omitted(out);
	else
		put(out, area_get(area, at));
}

static uint32_t count_segments(const struct area *native)
{
	uint32_t segments = 0;

	for (uint32_t i = 0; i < native->count; i++)
		if (!area_omits(native, i) && packed_kind(area_get(native, i)) == PP_FRAME_SEGMENT)
			segments++;
	return segments;
}

/* Returns the last position of a segment among the native frames; count when there is none. */
static uint32_t last_segment(const struct area *native)
{
	for (uint32_t i = native->count; i-- > 0;)
		if (!area_omits(native, i) && packed_kind(area_get(native, i)) == PP_FRAME_SEGMENT)
			return i;
	return native->count;
}

/* How far the Python frames of one stack have been placed. */
struct progress {
	uint32_t next;	  /* next Python frame to place */
	uint32_t empty;	  /* segments at the leaf that have no frame */
	uint32_t last;	  /* native position of the last segment */
	bool is_whole;	  /* the native walk reached the root */
	bool is_complete; /* and so did the walk of the Python frames */
	bool is_cut;	  /* Python frames at the root are missing, which is not marked yet */
};

static void put_python(struct output *out, const struct area *python, struct progress *at,
		       uint64_t frames)
{
	for (; frames && at->next < python->count; frames--)
		put_from(out, python, at->next++);
}

static void put_segment(struct output *out, const struct area *python, struct progress *at,
			packed_frame segment, uint32_t position)
{
	uint64_t frames = packed_what(segment);
	bool is_short;

	if (at->empty) {
		at->empty--;
		return;
	}
	/* When the walk reached the root, all remaining Python frames belong to the last
	 * segment. */
	if (at->is_whole && position == at->last)
		frames = UINT64_MAX;
	is_short = frames > python->count - at->next;
	put_python(out, python, at, frames);
	if (is_short && at->is_cut) {
		at->is_cut = false;
		put(out, packed_gap(0));
	}
}

/* Returns whether native frames were omitted right before a position, by the kernel side or by the
 * agent when it finished the stack. */
static bool follows_omitted(const struct area *native, uint32_t position)
{
	packed_frame before;

	if (!position)
		return false;
	if (area_omits(native, position - 1))
		return true;
	before = area_get(native, position - 1);
	return packed_kind(before) == PP_FRAME_GAP && packed_what(before);
}

/* Places Python frames of omitted segments.  The segments were omitted with the native frames
 * around them; when both walks reached the root, the Python frames that exceed those of the
 * segments from `position` on belong before it. */
static void put_surplus(struct output *out, const struct area *native, uint32_t position,
			const struct area *python, struct progress *at)
{
	uint64_t after = 0;

	for (uint32_t i = position; i < native->count; i++)
		if (!area_omits(native, i) && packed_kind(area_get(native, i)) == PP_FRAME_SEGMENT)
			after += packed_what(area_get(native, i));
	if (python->count - at->next > after)
		put_python(out, python, at, python->count - at->next - after);
}

static void put_native(struct output *out, const struct area *native, uint32_t position,
		       const struct area *python, struct progress *at)
{
	if (area_omits(native, position)) {
		put_omitted(out);
		return;
	}
	if (at->is_complete && follows_omitted(native, position))
		put_surplus(out, native, position, python, at);
	if (packed_kind(area_get(native, position)) == PP_FRAME_SEGMENT)
		put_segment(out, python, at, area_get(native, position), position);
	else
		put(out, area_get(native, position));
}

size_t stitch(const struct dict_stack *stack, bool one_frame_segments,
	      packed_frame frame[STITCH_MAX_FRAMES])
{
	struct area python = area_of(stack->frame, stack->python_stored, stack->python_count);
	struct area native = area_of(stack->frame + stack->python_stored, stack->native_stored,
				     stack->native_count);
	struct progress at = {.last = last_segment(&native),
			      .is_whole = stack->stop == PP_STOP_ROOT ||
					  stack->stop == PP_STOP_FINISHED};
	struct output out = {.frame = frame};
	uint32_t segments = count_segments(&native);

	at.is_cut = python.count && stack->py_stop != PP_PY_STOP_ROOT;
	at.is_complete = at.is_whole && stack->py_stop == PP_PY_STOP_ROOT;
	/* When not all frames were found, those at the root are missing. */
	if (one_frame_segments && stack->py_stop == PP_PY_STOP_ROOT && segments > python.count)
		at.empty = segments - python.count;
	for (uint32_t i = 0; i < native.count; i++)
		put_native(&out, &native, i, &python, &at);
	if (at.next < python.count && native.count)
		put(&out, packed_gap(0));
	put_python(&out, &python, &at, UINT64_MAX);
	return out.count;
}
