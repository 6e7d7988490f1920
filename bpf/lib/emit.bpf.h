/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends a walk: sends frames that were not seen before through the ring and always moves one
 * counter; or sends an incomplete unwind with all that the agent needs to finish it. */
#ifndef BPF_LIB_EMIT_H
#define BPF_LIB_EMIT_H

#include "lib/count.bpf.h"
#include "lib/return_probe.bpf.h"
#include "lib/user_share.bpf.h"
#include "lib/walk.bpf.h"

#define FRAME_BYTES ((__u32)sizeof(struct pp_frame))

static __always_inline __u32 stored_frames_bytes(const struct pp_walk *w)
{
	__u32 frames = w->python_stored + w->native_stored;

	if (frames > PP_MAX_FRAMES)
		frames = PP_MAX_FRAMES;
	return frames * FRAME_BYTES;
}

/* Sends the user stack through the ring.  Functions with external linkage are verified once,
 * however many callers they have. */
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
	record->python = w->context.python;
	record->pad = 0;
	if (ring_send(w->user, record, size, ring_wakeup()))
		return 1;
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
	if (ring_send(w->user, record, size, ring_wakeup()))
		return 1;
	remember_sent(w->kernel_hash, cfg->epoch);
	return 0;
}

/* Returns false when the ring had no room, which is counted. */
static __always_inline bool emit_stack_once(const struct pp_walk *w, __u32 slot, __u32 epoch)
{
	return already_sent(w->hash, epoch) || !emit_user_record(slot);
}

static __always_inline bool emit_kernel_once(const struct pp_walk *w, __u32 slot, __u32 epoch)
{
	return !w->kernel_hash || already_sent(w->kernel_hash, epoch) || !emit_kernel_record(slot);
}

#define SEGMENT_CHUNKS (PP_MAX_SEGMENTS / PP_SEGMENT_COPY)

/* Appends the anchors that the native walk has not reached. */
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
	w->out.incomplete.segment_count = copied;
	w->body_bytes = at + copied * sizeof(struct pp_segment);
	return 0;
}

/* Appends the return address that the kernel has replaced for one of its records, if it lies above
 * the frame to go on with.  Returns nonzero when there is no room.  A function of its own: the
 * verifier goes through it once, and not with each turn of the loop. */
__noinline int append_return(__u32 slot, __u64 instance)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_return found;
	__u64 to;

	if (!w)
		return 1;
	return_read((const struct return_instance *)instance, &found);
	if (found.stack + RETURN_ADDRESS_BELOW_CFA < w->sp)
		return 0;
	to = w->body_bytes;
	BARRIER(to);
	if (to > WALK_BODY_BYTES - sizeof(found))
		return 1;
	/* Frames and anchors before it are of 16 bytes each, too. */
	*(struct pp_return *)(w->out.body + (to & ~15ULL)) = found;
	w->body_bytes += sizeof(found);
	w->out.incomplete.return_count++;
	return 0;
}

/* Appends those of all records. */
__noinline int append_returns(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);

	if (!w)
		return 1;
	w->out.incomplete.return_count = 0;
	for (__u32 i = 0; i < PP_MAX_RETURNS && instance; i++) {
		if (append_return(slot, (__u64)instance))
			break;
		instance = BPF_CORE_READ(instance, next);
	}
	return 0;
}

#define STACK_CHUNKS (PP_STACK_COPY_BYTES / PP_STACK_COPY_CHUNK_BYTES)

/* Decides how many bytes of the stack the agent needs. */
static __always_inline __u32 stack_chunks(const struct pp_walk *w)
{
	if (w->stop == PP_STOP_ROOT)
		return 0;
	/* A walk that only ran out of time continues near the root, in memory that seldom
	 * changes. */
	return w->stop == PP_STOP_MAX_TIME && w->native_count ? 1 : STACK_CHUNKS;
}

/* A leaf may use what lies below its stack pointer, and rules speak of what it has just popped
 * (psABI x86-64 3.2.2). */
#define RED_ZONE_BYTES 128U

/* The agent reads from the process what was not copied. */
static __always_inline bool copy_is_late(const struct pp_walk *w)
{
	return bpf_ktime_get_ns() >= w->deadline_ns + PP_COPY_LATE_NS;
}

/* Appends the user stack from sp on, as far as it can be read. */
__noinline int append_stack(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_incomplete_record *incomplete;
	__u64 from, word;
	__u32 chunks;

	if (!w)
		return 1;
	incomplete = &w->out.incomplete;
	chunks = stack_chunks(w);
	from = w->sp;
	if (w->is_leaf && chunks &&
	    !bpf_probe_read_user(&word, sizeof(word), (const void *)(from - RED_ZONE_BYTES)))
		from -= RED_ZONE_BYTES;
	incomplete->stack_start = from;
	incomplete->stack_bytes = 0;
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
		incomplete->stack_bytes += PP_STACK_COPY_CHUNK_BYTES;
	}
	return 0;
}

static __always_inline void fill_incomplete(struct pp_walk *w, __u64 hash)
{
	struct pp_incomplete_record *incomplete = &w->out.incomplete;

	incomplete->record.type = PP_RECORD_INCOMPLETE;
	fill_count_key(w, &incomplete->key);
	incomplete->key.user_stack = hash;
	incomplete->weight = w->weight;
	incomplete->pc = w->pc;
	incomplete->sp = w->sp;
	incomplete->fp = w->fp;
	incomplete->first_word = task_first_word((struct task_struct *)bpf_get_current_task());
	incomplete->thread_pointer = w->thread_pointer;
	__builtin_memcpy(incomplete->registers, w->registers, sizeof(incomplete->registers));
	incomplete->python_frame = w->python_frame;
	incomplete->cframe = w->cframe;
	__builtin_memcpy(incomplete->frame_head, w->bytes, sizeof(incomplete->frame_head));
	incomplete->segment_frames = w->segment_frames;
	incomplete->since_segment = w->since_segment;
	incomplete->foldable = w->foldable;
	incomplete->is_unsure = w->is_unsure;
	incomplete->python_stored = w->python_stored;
	incomplete->native_stored = w->native_stored;
	incomplete->python_count = w->python_count;
	incomplete->native_count = w->native_count;
	incomplete->stop = w->stop;
	incomplete->py_stop = w->py_stop;
	incomplete->python = w->context.python;
	incomplete->is_leaf = w->is_leaf;
}

/* Count only what was sent: the agent sees nothing else. */
static __always_inline void count_asked(const struct pp_walk *w)
{
	__u32 index = w->context.python - 1;
	struct pp_resync *resync = bpf_map_lookup_elem(&resyncs, &index);

	if (resync)
		resync->asked++;
}

/* Sends an incomplete unwind.  With hash 0 the agent also counts the sample, when this function
 * returns 0; otherwise it only stores the finished stack under this hash. */
__noinline int emit_incomplete(__u32 slot, __u64 hash)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_incomplete_record *incomplete;
	__u64 size;

	if (!w)
		return 1;
	incomplete = &w->out.incomplete;
	/* A program that begins touches much before it is known. */
	if (w->is_modest && (w->stop == PP_STOP_NO_IMAGE || token_take_modestly(w->user))) {
		count_loss(PP_LOSS_STACKS_CUT);
		return 1;
	}
	if (!w->is_modest && token_take(w->user)) {
		count_loss(PP_LOSS_MISS_DROPPED);
		return 1;
	}
	fill_incomplete(w, hash);
	incomplete->user = w->user;
	w->body_bytes = stored_frames_bytes(w);
	append_segments(slot);
	append_returns(slot);
	append_stack(slot);
	size = w->body_bytes;
	BARRIER(size);
	if (size > WALK_BODY_BYTES)
		return 1;
	size += sizeof(*incomplete);
	incomplete->record.size = size;
	if (ring_share_take(w->user, (__u32)size) ||
	    bpf_ringbuf_output(&stacks, incomplete, size, BPF_RB_FORCE_WAKEUP)) {
		count_loss(PP_LOSS_MISS_DROPPED);
		return 1;
	}
	if (w->is_resumable)
		count_asked(w);
	return 0;
}

#define CALLER_WORDS 64U
#define CALLER_WORDS_LEAST 16U
#define STACK_REACH_BYTES (8ULL << 20)

/* Returns all bits set when a < b, else 0; both are below 2^63.  BPF has no such instruction, and a
 * branch for each word of a stack would cost the verifier tens of thousands of steps. */
static __always_inline __u64 mask_below(__u64 a, __u64 b)
{
	return (__u64)((__s64)(a - b) >> 63);
}

/* Returns a word of the stack if it may be a return address, else 0: it is as high as libraries and
 * position-independent programs are mapped, or as low as others, and not near the stack itself.
 * Clocks, lengths and flags of a caller's variables are neither. */
static __always_inline __u64 code_address(__u64 word, __u64 sp)
{
	__u64 low, high, near;

	word &= ~0ULL >> 1;
	low = mask_below(word, 0x4000000) & ~mask_below(word, 0x400000);
	high = mask_below(word, 1ULL << 48) & ~mask_below(word, 1ULL << 44);
	near = mask_below(word, sp + STACK_REACH_BYTES) & ~mask_below(word + STACK_REACH_BYTES, sp);
	return word & (low | (high & ~near));
}

/* Hashes the callers that an incomplete unwind has not reached, as far as they can be guessed from
 * the stack's next 512 bytes, into w->callers.  Without them two callers of the function where time
 * ran out would have one name, that of the first that the agent completed. */
__noinline int hash_callers(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	__u64 at, hash = 1;

	if (!w)
		return 1;
	w->callers = 0;
	at = stored_frames_bytes(w); /* where the copy of the stack will be */
	BARRIER(at);
	if (at > PP_MAX_FRAMES * FRAME_BYTES)
		return 1;
	__builtin_memset(w->out.body + at, 0, CALLER_WORDS * 8);
	if (bpf_probe_read_user(w->out.body + at, CALLER_WORDS * 8, (const void *)w->sp) &&
	    bpf_probe_read_user(w->out.body + at, CALLER_WORDS_LEAST * 8, (const void *)w->sp))
		return 1;
	for (__u32 i = 0; i < CALLER_WORDS; i++) {
		__u64 word = *(__u64 *)(w->out.body + at + i * 8);

		hash = hash_mix(hash, code_address(word, w->sp));
	}
	w->callers = hash;
	return 0;
}

/* Names a stack of this user. */
static __always_inline __u64 stack_hash(const struct pp_walk *w)
{
	return hash_mix(hash_mix(w->hash, w->user_key), w->stop | w->py_stop << 8) | 1;
}

/* Names an incomplete unwind.  Its final frames are not known yet, so the hash covers where it
 * stopped, what it would have met next, and whose it is. */
static __always_inline __u64 incomplete_hash(const struct pp_walk *w)
{
	__u64 hash = hash_mix(w->hash, w->python_frame);

	if (w->stop != PP_STOP_ROOT)
		hash = hash_mix(hash_mix(hash_mix(hash, w->pc), w->sp), w->callers);
	return hash_mix(hash, w->id.tgid + ((__u64)w->id.generation << 32)) | 1;
}

/* Counts a sample in a row that exists: whoever made the row has also sent its stacks. */
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
	/* Read the epoch last: a new table's epoch is never older. */
	number = *(volatile __u32 *)&cfg->table[*(volatile __u32 *)&cfg->window & 1];
	epoch = *(volatile __u32 *)&cfg->epoch;
	if (w->has_user)
		w->hash = stack_hash(w);
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
	/* On failure the next sample with the same row tries again. */
	if (!are_sent && (__s32)(number - cfg->sent_from_table) >= 0)
		cfg->sent_from_table = number + 1;
	count_add(&key, 1, w->weight, number);
	return 0;
}

int walk_emit_incomplete(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();

	if (!w || !cfg || !is_incomplete(w))
		return 1;
	if (emit_incomplete(slot, 0))
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
	w->hash = stack_hash(w);
	if (is_incomplete(w)) {
		if (w->stop != PP_STOP_ROOT)
			hash_callers(slot);
		hash = incomplete_hash(w);
		if (already_sent(hash, cfg->epoch) || !emit_incomplete(slot, hash)) {
			remember_sent(hash, cfg->epoch);
			w->hash = hash;
			return 0;
		}
	}
	emit_stack_once(w, slot, cfg->epoch);
	return 0;
}

#endif
