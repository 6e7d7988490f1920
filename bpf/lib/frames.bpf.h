/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames are stored in two areas of one array, Python first.  In each the leaf part is fixed and
 * the last quarter is a ring for the frames nearest the root (struct pp_stack_record). */
#ifndef BPF_LIB_FRAMES_H
#define BPF_LIB_FRAMES_H

#include "lib/maps.bpf.h"

/* Keeps clang from moving a mask away from its use, where the verifier needs it. */
#define BARRIER(variable) asm volatile("" : "+r"(variable))
/* Read a value from its map again so that the verifier does not follow each of its values on its
 * own. */
#define FORGET() asm volatile("" ::: "memory")

/* Returns the process's interpreter, NULL if it has none. */
static __always_inline struct pp_python *python_of(const struct pp_walk *w)
{
	__u32 index = w->context.python - 1;

	return w->context.python ? bpf_map_lookup_elem(&pythons, &index) : NULL;
}

static __always_inline __u32 area_slot(__u32 count, __u32 room)
{
	__u32 ring = room / PP_ROOT_SHARE;
	__u32 leaf = room - ring;

	if (count < room || !ring)
		return count;
	return leaf + (count - leaf) % ring;
}

static __always_inline void frame_store(struct pp_walk *w, __u32 slot, __u64 where, __u32 what,
					__u16 kind)
{
	struct pp_frame *frame;

	BARRIER(slot);
	slot &= PP_MAX_FRAMES - 1;
	frame = &w->out.frame[slot];
	frame->where = where;
	frame->what = what;
	frame->kind = kind;
	frame->pad = 0;
}

/* Mixes two words, depending on their order.  Whoever chooses a word chooses the result: what
 * nobody may choose is mixed with the walk's user_key. */
static __always_inline __u64 hash_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static __always_inline void python_push(struct pp_walk *w, __u64 where, __u32 what, __u16 kind)
{
	frame_store(w, area_slot(w->python_count, PP_MAX_PYTHON_FRAMES), where, what, kind);
	w->python_count++;
	if (w->python_stored < PP_MAX_PYTHON_FRAMES)
		w->python_stored++;
	w->segment_frames++;
	w->hash = hash_mix(w->hash, where + ((__u64)what << 32));
	/* An address has a meaning only within one process. */
	if (kind == PP_FRAME_PYTHON_RAW)
		w->hash = hash_mix(w->hash, w->id.tgid + ((__u64)w->id.generation << 32));
}

static __always_inline void native_push(struct pp_walk *w, __u64 where, __u32 what, __u16 kind)
{
	__u32 slot = area_slot(w->native_count, w->native_room);

	frame_store(w, w->python_stored + slot, where, what, kind);
	w->native_count++;
	if (w->native_stored < w->native_room)
		w->native_stored++;
	w->hash = hash_mix(w->hash, where + ((__u64)what << 40) + ((__u64)kind << 36));
}

#endif
