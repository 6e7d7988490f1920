/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the frames of a user stack into one order: each segment of Python frames goes where the
 * native walk met its eval activation (the kernel side has matched them already).  Pure. */
#ifndef SYMBOLIZE_STITCH_H
#define SYMBOLIZE_STITCH_H

#include <stdbool.h>
#include <stddef.h>

#include "drain/dictionary.h"

/* Frames that the output may need in addition to the stored ones: markers of gaps and omissions. */
#define STITCH_EXTRA_FRAMES 8U
/* stacks finished in user space exceed the kernel's bound */
#define STITCH_STACK_FRAMES (2 * PP_MAX_FRAMES)
#define STITCH_MAX_FRAMES (STITCH_STACK_FRAMES + STITCH_EXTRA_FRAMES)

/* A PP_FRAME_GAP with a count says how many frames were omitted there; with 0, that the callers in
 * between are unknown. */
static inline packed_frame packed_gap(uint32_t omitted)
{
	return (uint64_t)PP_FRAME_GAP << 61 | omitted;
}

/* Writes at most STITCH_MAX_FRAMES frames, leaf first, and returns their number.
 * one_frame_segments: the interpreter (<= 3.9) has one Python frame per activation; then a leaf
 * activation that has not linked its frame yet, or has unlinked it already, has none. */
size_t stitch(const struct dict_stack *stack, bool one_frame_segments,
	      packed_frame out[STITCH_MAX_FRAMES]);

#endif
