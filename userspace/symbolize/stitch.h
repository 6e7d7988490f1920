/* SPDX-License-Identifier: BSD-2-Clause */
/* One order for the frames of a user stack: the runs of Python frames put where the native walk met
 * their eval activations (the merge itself happened in the kernel).  Pure. */
#ifndef SYMBOLIZE_STITCH_H
#define SYMBOLIZE_STITCH_H

#include <stdbool.h>
#include <stddef.h>

#include "drain/dictionary.h"

/* Frames that the output can need beyond those that are stored: markers of gaps and omissions. */
#define STITCH_EXTRA_FRAMES 8U
#define STITCH_STACK_FRAMES (2 * PP_MAX_FRAMES) /* the agent finishes stacks beyond the kernel's bound */
#define STITCH_MAX_FRAMES (STITCH_STACK_FRAMES + STITCH_EXTRA_FRAMES)

/* A PP_FRAME_GAP with a count says how many frames were omitted there; with 0 that the callers
 * between are not known. */
static inline packed_frame packed_gap(uint32_t omitted)
{
	return (uint64_t)PP_FRAME_GAP << 61 | omitted;
}

/* Writes at most STITCH_MAX_FRAMES frames, leaf first; returns how many.  one_frame_runs: the
 * interpreter (<= 3.9) has one Python frame an activation; a leaf activation that has not linked its
 * frame yet, or has unlinked it already, then has none. */
size_t stitch(const struct dict_stack *stack, bool one_frame_runs,
	      packed_frame out[STITCH_MAX_FRAMES]);

#endif
