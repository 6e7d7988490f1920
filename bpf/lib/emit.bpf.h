/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a walk: frames that were not seen before through the ring, one counter always; or, for
 * a missed stack, all that the agent needs to finish it. */
#ifndef BPF_LIB_EMIT_H
#define BPF_LIB_EMIT_H

#include "lib/count.bpf.h"
#include "lib/walk.bpf.h"

#define FRAME_BYTES ((__u32)sizeof(struct pp_frame))

static __always_inline bool already_sent(__u64 hash, __u32 epoch)
{
	__u32 *sent_epoch = bpf_map_lookup_elem(&sent, &hash);

	return sent_epoch && *sent_epoch == epoch;
}

static __always_inline void remember_sent(__u64 hash, __u32 epoch)
{
	/* May fail when the table is locked: then it is sent once more. */
	bpf_map_update_elem(&sent, &hash, &epoch, BPF_ANY);
}

static __always_inline void fill_count_key(const struct pp_walk *w, struct pp_count_key *key)
{
	key->user_stack = w->has_user ? w->hash : 0;
	key->kernel_stack = w->kernel_hash;
	key->id = w->id;
	key->tid = w->tid;
	key->kind = w->kind;
	key->detail = w->detail;
	key->pad = 0;
	key->flags = w->count_flags | w->stop << PP_COUNT_STOP_SHIFT |
		     w->py_stop << PP_COUNT_PY_STOP_SHIFT;
}

static __always_inline __u32 stored_frames_bytes(const struct pp_walk *w)
{
	__u32 frames = w->python_stored + w->native_stored;

	if (frames > PP_MAX_FRAMES)
		frames = PP_MAX_FRAMES;
	return frames * FRAME_BYTES;
}

/* The user stack through the ring.  Functions with external linkage are verified once, however many call them. */
__noinline int emit_user_record(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_stack_record *record;
	__u64 size;

	if (!w || !cfg)
		return 1;
	record = &w->out.stack;
	size = stored_frames_bytes(w);
	BARRIER(size);
	if (size > PP_MAX_FRAMES * FRAME_BYTES)
		return 1;
	size += sizeof(*record);
	record->record.type = PP_RECORD_STACK;
	record->record.size = size;
	record->hash = w->hash;
	record->id = w->id;
	record->python_stored = w->python_stored;
	record->native_stored = w->native_stored;
	record->python_count = w->python_count;
	record->native_count = w->native_count;
	record->stop = w->stop;
	record->py_stop = w->py_stop;
	record->python = w->image.python;
	record->pad = 0;
	if (bpf_ringbuf_output(&stacks, record, size, ring_wakeup())) {
		count_loss(PP_LOSS_RING_FULL);
		return 1;
	}
	if (w->python_count > w->python_stored || w->native_count > w->native_stored)
		count_loss(PP_LOSS_FRAMES_OMITTED);
	remember_sent(w->hash, cfg->epoch);
	return 0;
}

__noinline int emit_kernel_record(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_kernel_record *record;
	__u64 size;

	if (!w || !cfg)
		return 1;
	record = &w->kernel.record;
	size = w->kernel_bytes;
	BARRIER(size);
	if (size > PP_MAX_KERNEL_FRAMES * 8)
		return 1;
	size += sizeof(*record);
	record->record.type = PP_RECORD_KERNEL;
	record->record.size = size;
	record->hash = w->kernel_hash;
	if (bpf_ringbuf_output(&stacks, record, size, ring_wakeup())) {
		count_loss(PP_LOSS_RING_FULL);
		return 1;
	}
	remember_sent(w->kernel_hash, cfg->epoch);
	return 0;
}

/* False: there was no room in the ring, which is counted. */
static __always_inline bool emit_stack_once(const struct pp_walk *w, __u32 slot, __u32 epoch)
{
	return already_sent(w->hash, epoch) || !emit_user_record(slot);
}

static __always_inline bool emit_kernel_once(const struct pp_walk *w, __u32 slot, __u32 epoch)
{
	return !w->kernel_hash || already_sent(w->kernel_hash, epoch) || !emit_kernel_record(slot);
}

#define SEGMENT_CHUNKS (PP_MAX_SEGMENTS / PP_SEGMENT_COPY)

/* Appends the marks that were not met. */
__noinline int append_segments(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	__u32 at, left, copied = 0;

	if (!w)
		return 1;
	at = w->body_bytes;
	left = w->segment_count - w->segment_next;

	for (__u32 i = 0; i < SEGMENT_CHUNKS; i++) {
		__u64 to = at + i * SEGMENT_COPY_BYTES;
		__u64 from = w->segment_next + i * PP_SEGMENT_COPY;

		if (copied >= left)
			break;
		BARRIER(to);
		BARRIER(from);
		if (to > WALK_BODY_BYTES - SEGMENT_COPY_BYTES || from > PP_MAX_SEGMENTS ||
		    bpf_probe_read_kernel(w->out.body + to, SEGMENT_COPY_BYTES, &w->segment[from]))
			break;
		copied += PP_SEGMENT_COPY;
	}
	if (copied > left)
		copied = left;
	else if (copied < left)
		count_loss(PP_LOSS_SEGMENTS_FULL);
	w->out.miss.segment_count = copied;
	w->body_bytes = at + copied * sizeof(struct pp_segment);
	return 0;
}

#define STACK_CHUNKS (PP_STACK_COPY_BYTES / PP_STACK_COPY_CHUNK_BYTES)

/* How much of the stack the agent needs. */
static __always_inline __u32 stack_chunks(const struct pp_walk *w)
{
	if (w->stop == PP_STOP_ROOT)
		return 0;
	/* A walk that was only too long goes on in memory that seldom changes: near the root. */
	return w->stop == PP_STOP_MAX_TIME && w->native_count ? 1 : STACK_CHUNKS;
}

/* A leaf may use what lies below its stack pointer, and rules speak of what it has just popped
 * (psABI x86-64 3.2.2). */
#define RED_ZONE_BYTES 128U

/* The agent reads from the process what is not copied. */
static __always_inline bool copy_is_late(const struct pp_walk *w)
{
	return bpf_ktime_get_ns() >= w->deadline_ns + PP_COPY_LATE_NS;
}

/* Appends the user stack from sp on, as far as it is there. */
__noinline int append_stack(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_miss_record *miss;
	__u64 from, word;
	__u32 chunks;

	if (!w)
		return 1;
	miss = &w->out.miss;
	chunks = stack_chunks(w);
	from = w->sp;
	if (w->is_leaf && chunks &&
	    !bpf_probe_read_user(&word, sizeof(word), (const void *)(from - RED_ZONE_BYTES)))
		from -= RED_ZONE_BYTES;
	miss->stack_start = from;
	miss->stack_bytes = 0;
	for (__u32 i = 0; i < STACK_CHUNKS; i++) {
		__u64 to = w->body_bytes;

		if (i >= chunks || (i && !(i % PP_COPY_CLOCK_CHUNKS) && copy_is_late(w)))
			break;
		BARRIER(to);
		if (to > WALK_BODY_BYTES - PP_STACK_COPY_CHUNK_BYTES)
			break;
		if (bpf_probe_read_user(w->out.body + to, PP_STACK_COPY_CHUNK_BYTES,
					(const void *)from))
			break;
		from += PP_STACK_COPY_CHUNK_BYTES;
		w->body_bytes += PP_STACK_COPY_CHUNK_BYTES;
		miss->stack_bytes += PP_STACK_COPY_CHUNK_BYTES;
	}
	return 0;
}

static __always_inline void fill_miss(struct pp_walk *w, __u64 hash)
{
	struct pp_miss_record *miss = &w->out.miss;

	miss->record.type = PP_RECORD_MISS;
	fill_count_key(w, &miss->key);
	miss->key.user_stack = hash;
	miss->weight = w->weight;
	miss->pc = w->pc;
	miss->sp = w->sp;
	miss->fp = w->fp;
	miss->first_word = task_first_word((struct task_struct *)bpf_get_current_task());
	miss->thread_pointer = w->thread_pointer;
	__builtin_memcpy(miss->registers, w->registers, sizeof(miss->registers));
	miss->python_frame = w->python_frame;
	miss->cframe = w->cframe;
	__builtin_memcpy(miss->frame_head, w->bytes, sizeof(miss->frame_head));
	miss->segment_frames = w->segment_frames;
	miss->since_run = w->since_run;
	miss->foldable = w->foldable;
	miss->pad = 0;
	miss->python_stored = w->python_stored;
	miss->native_stored = w->native_stored;
	miss->python_count = w->python_count;
	miss->native_count = w->native_count;
	miss->stop = w->stop;
	miss->py_stop = w->py_stop;
	miss->python = w->image.python;
	miss->is_leaf = w->is_leaf;
}

/* Only what was sent counts: the agent sees no other. */
static __always_inline void count_asked(const struct pp_walk *w)
{
	__u32 index = w->image.python - 1;
	struct pp_resync *resync = bpf_map_lookup_elem(&resyncs, &index);

	if (resync)
		resync->asked++;
}

/* Sends a missed stack.  hash 0: the agent counts it when this is 0; else it only files the
 * finished stack under this hash. */
__noinline int emit_miss(__u32 slot, __u64 hash)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_miss_record *miss;
	__u64 size;

	if (!w || !cfg)
		return 1;
	miss = &w->out.miss;
	if (cfg->miss_tokens <= 0) {
		count_loss(PP_LOSS_MISS_DROPPED);
		return 1;
	}
	__sync_fetch_and_add(&cfg->miss_tokens, -1);
	fill_miss(w, hash);
	w->body_bytes = stored_frames_bytes(w);
	append_segments(slot);
	append_stack(slot);
	size = w->body_bytes;
	BARRIER(size);
	if (size > WALK_BODY_BYTES)
		return 1;
	size += sizeof(*miss);
	miss->record.size = size;
	if (bpf_ringbuf_output(&stacks, miss, size, BPF_RB_FORCE_WAKEUP)) {
		count_loss(PP_LOSS_MISS_DROPPED);
		return 1;
	}
	if (w->is_resumable)
		count_asked(w);
	return 0;
}

/* What the agent will finish is not known by its frames: where it stopped, and whose it is, names it. */
static __always_inline __u64 miss_hash(const struct pp_walk *w)
{
	__u64 hash = hash_mix(w->hash, w->python_frame);

	if (w->stop != PP_STOP_ROOT)
		hash = hash_mix(hash_mix(hash, w->pc), w->sp);
	return hash_mix(hash, w->id.tgid + ((__u64)w->id.generation << 32)) | 1;
}

/* The row of samples whose stacks the agent has: who made it has sent them. */
static __always_inline struct pp_count *row_of_sent(const struct pp_count_key *key, __u32 number,
						    const struct pp_config *cfg)
{
	if (pp_table_of(key->kind) != PP_TABLE_SAMPLES ||
	    (__s32)(number - cfg->sent_from_table) < 0)
		return NULL;
	return number & 1 ? bpf_map_lookup_elem(&counts_1, key)
			  : bpf_map_lookup_elem(&counts_0, key);
}

int walk_emit(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_count_key key = {};
	struct pp_count *row;
	__u32 number, epoch;
	bool are_sent;

	if (!w || !cfg)
		return 1;
	/* The epoch last: that of a new table is not older. */
	number = *(volatile __u32 *)&cfg->table[*(volatile __u32 *)&cfg->window & 1];
	epoch = *(volatile __u32 *)&cfg->epoch;
	if (w->has_user)
		w->hash = hash_mix(w->hash, w->stop | w->py_stop << 8) | 1;
	fill_count_key(w, &key);
	row = row_of_sent(&key, number, cfg);
	if (likely(row)) {
		__sync_fetch_and_add(&row->samples, 1);
		__sync_fetch_and_add(&row->weight, w->weight);
		return 0;
	}
	are_sent = emit_kernel_once(w, slot, epoch);
	if (w->has_user && !emit_stack_once(w, slot, epoch))
		are_sent = false;
	/* The next sample with the same row tries again. */
	if (!are_sent && (__s32)(number - cfg->sent_from_table) >= 0)
		cfg->sent_from_table = number + 1;
	count_add(&key, 1, w->weight, number);
	return 0;
}

int walk_emit_miss(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();

	if (!w || !cfg || !is_miss(w))
		return 1;
	if (emit_miss(slot, 0))
		return 1;
	emit_kernel_once(w, slot, cfg->epoch);
	return 0;
}

int walk_emit_stacks(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	__u64 hash;

	if (!w || !cfg)
		return 1;
	emit_kernel_once(w, slot, cfg->epoch);
	if (!w->has_user) {
		w->hash = 0;
		return 0;
	}
	w->hash = hash_mix(w->hash, w->stop | w->py_stop << 8) | 1;
	if (is_miss(w)) {
		hash = miss_hash(w);
		if (already_sent(hash, cfg->epoch) || !emit_miss(slot, hash)) {
			remember_sent(hash, cfg->epoch);
			w->hash = hash;
			return 0;
		}
	}
	emit_stack_once(w, slot, cfg->epoch);
	return 0;
}

#endif
