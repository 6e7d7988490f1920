/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Code objects get an id by content, and each is sent through the ring at first sight, so that the
 * stacks of a process that exits at once still have names. */
#ifndef BPF_LIB_CODE_H
#define BPF_LIB_CODE_H

#include "lib/frames.bpf.h"
#include "lib/user_share.bpf.h"
#include "lib/walk.bpf.h"

static __always_inline __u64 code_field(const struct pp_walk *w, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	if (at > PP_CODE_READ_BYTES - 8)
		return 0;
	return *(const __u64 *)(w->code + at);
}

/* Copies one str (or 2.7 bytes) to the body of the record; returns the bytes copied. */
static __always_inline __u32 code_append_string(struct pp_walk *w, const struct pp_python *py,
						__u64 object, __u32 at, __u8 *kind)
{
	struct code_output *out = &w->code_out;
	__u64 length, state = 0, offset, bytes;

	*kind = 1;
	if (!object || bpf_probe_read_user(w->string, sizeof(w->string), (const void *)object))
		return 0;
	offset = py->str_length;
	BARRIER(offset);
	length = *(__u64 *)(w->string + (offset & 56));
	if (py->flags & PP_PYTHON_BYTES_NAMES) {
		offset = py->str_ascii_data;
		bytes = length;
	} else {
		offset = py->str_state;
		BARRIER(offset);
		state = *(__u32 *)(w->string + (offset & 60));
		*kind = state >> (py->str_kind_shift & 31) & 7;
		offset = state >> (py->str_ascii_shift & 31) & 1 ? py->str_ascii_data
								 : py->str_compact_data;
		bytes = length * *kind;
	}
	if (bytes > PP_MAX_NAME_BYTES) {
		bytes = PP_MAX_NAME_BYTES;
		out->record.flags |= PP_CODE_TRUNCATED;
	}
	at &= CODE_BODY_BYTES / 2 - 1;
	BARRIER(bytes);
	bytes &= 2 * PP_MAX_NAME_BYTES - 1;
	if (bpf_probe_read_user(out->body + at, bytes, (const void *)(object + offset)))
		return 0;
	return bytes;
}

static __always_inline __u32 code_append_lines(struct pp_walk *w, const struct pp_python *py,
					       __u32 at)
{
	struct code_output *out = &w->code_out;
	__u64 object = code_field(w, py->code_line_table);
	__u64 bytes = 0;

	if (!object ||
	    bpf_probe_read_user(&bytes, sizeof(bytes), (const void *)(object + py->bytes_size)))
		return 0;
	if (bytes > PP_MAX_LINE_TABLE_BYTES) {
		bytes = PP_MAX_LINE_TABLE_BYTES;
		out->record.flags |= PP_CODE_TRUNCATED;
	}
	at &= CODE_BODY_BYTES / 2 - 1;
	BARRIER(bytes);
	bytes &= 2 * PP_MAX_LINE_TABLE_BYTES - 1;
	if (bpf_probe_read_user(out->body + at, bytes, (const void *)(object + py->bytes_data)))
		return 0;
	return bytes;
}

#define CODE_HASH_WORDS ((2 * PP_MAX_NAME_BYTES + PP_MAX_LINE_TABLE_BYTES) / 8 + 1)

/* Hashes the body into w->code_id.  The word behind the last byte is cleared first, so that old
 * bytes do not count.  A function of its own: the verifier goes through the loop once, not once for
 * each way that leads to it. */
__noinline int walk_code_hash(__u32 slot, __u32 size)
{
	struct pp_walk *w = walk_get(slot);
	struct code_output *out;
	__u64 hash, bytes = size;
	__u32 i;

	if (!w)
		return 1;
	out = &w->code_out;
	hash = hash_mix(out->record.first_line, out->record.code_flags);
	bytes &= CODE_BODY_BYTES / 2 - 1;
	__builtin_memset(out->body + bytes, 0, 8);
	for (i = 0; i < CODE_HASH_WORDS; i++) {
		__u64 at = i * 8;

		if (at >= bytes)
			break;
		BARRIER(at);
		at &= CODE_BODY_BYTES / 2 - 1;
		hash = hash_mix(hash, *(__u64 *)(out->body + at));
	}
	/* 0 means "not sent". */
	w->code_id = hash_mix(hash_mix(hash, bytes), w->user_key) | 1;
	return 0;
}

static __always_inline int code_emit(struct pp_walk *w, __u64 id, __u32 bytes)
{
	struct pp_config *cfg = config_get();
	struct code_output *out = &w->code_out;
	__u32 *sent_epoch = bpf_map_lookup_elem(&sent, &id);
	__u32 epoch;
	__u64 size;

	if (!cfg)
		return -1;
	epoch = cfg->epoch;
	if (sent_epoch && *sent_epoch == epoch)
		return 0;
	bytes &= CODE_BODY_BYTES / 2 - 1;
	size = sizeof(out->record) + bytes;
	out->record.record.type = PP_RECORD_CODE;
	out->record.record.size = size;
	out->record.id = id;
	/* The agent completes a truncated record from the live process, so wake it at once. */
	if (ring_send(w->user, out, size,
		      out->record.flags & PP_CODE_TRUNCATED ? BPF_RB_FORCE_WAKEUP : ring_wakeup()))
		return -1;
	bpf_map_update_elem(&sent, &id, &epoch, BPF_ANY);
	return 0;
}

/* Sends the record of the code object whose head is in w->code.  The id is 0 when its memory cannot
 * be read. */
static __always_inline __u64 code_describe(struct pp_walk *w, const struct pp_python *py,
					   __u32 slot)
{
	struct pp_code_record *record = &w->code_out.record;
	__u64 name = py->code_qualname == PP_NO_OFFSET ? code_field(w, py->code_name)
						       : code_field(w, py->code_qualname);
	__u32 bytes;

	record->address = w->code_address;
	record->process = w->id;
	record->first_line = code_field(w, py->code_first_line);
	record->code_flags = code_field(w, py->code_flags);
	record->python = w->context.python;
	record->flags = 0;
	record->pad = 0;
	record->name_bytes = bytes = code_append_string(w, py, name, 0, &record->name_kind);
	if (!bytes)
		return 0;
	record->filename_bytes = code_append_string(w, py, code_field(w, py->code_filename), bytes,
						    &record->filename_kind);
	bytes += record->filename_bytes;
	record->line_table_bytes = code_append_lines(w, py, bytes);
	bytes += record->line_table_bytes;
	if (walk_code_hash(slot, bytes))
		return 0;
	return code_emit(w, w->code_id, bytes) ? 0 : w->code_id;
}

static __always_inline struct walk_code_memo *memo_of(struct pp_walk *w, __u64 address)
{
	__u64 at = address * 0x9e3779b97f4a7c15ULL >> 58;

	BARRIER(at);
	return &w->memo[at & (WALK_CODES - 1)];
}

/* Returns whether the memo entry belongs to the object that is at w->code_address now. */
static __always_inline bool memo_holds(struct pp_walk *w, const struct pp_python *py,
				       struct walk_code_memo *memo)
{
	__u64 *guard = w->guard;

	if (memo->address != w->code_address || memo->code_space != w->context.code_space)
		return false;
	if (memo->walk == w->started_ns)
		return true;
	if (bpf_probe_read_user(guard, sizeof(w->guard),
				(const void *)(w->code_address + py->code_line_table - 8)) ||
	    guard[0] != memo->guard[0] || guard[1] != memo->guard[1])
		return false;
	memo->walk = w->started_ns;
	return true;
}

static __always_inline void memo_set(struct pp_walk *w, const struct pp_python *py,
				     struct walk_code_memo *memo, __u64 id)
{
	memo->address = w->code_address;
	memo->id = id;
	memo->guard[0] = code_field(w, py->code_line_table - 8);
	memo->guard[1] = code_field(w, py->code_line_table);
	memo->walk = w->started_ns;
	memo->code_space = w->context.code_space;
}

/* Returns the id of the object whose head is in w->code. */
static __always_inline __u64 code_lookup(struct pp_walk *w, const struct pp_python *py, __u32 slot)
{
	__u64 head = hash_mix(code_field(w, py->code_name), code_field(w, py->code_line_table));
	struct code_key key = {};
	__u64 *known, id;

	head = hash_mix(head, (__u32)code_field(w, py->code_first_line));
	head = hash_mix(head, code_field(w, py->code_filename));
	key.address = w->code_address;
	key.code_space = w->context.code_space;
	key.head = head >> 32;
	known = bpf_map_lookup_elem(&codes, &key);
	if (known)
		return *known;
	walk_clock_hurry(w);
	id = code_describe(w, py, slot);
	if (!id)
		count_loss(PP_LOSS_CODE_FAULT);
	else if (bpf_map_update_elem(&codes, &key, &id, BPF_ANY))
		count_loss(PP_LOSS_CODES_BUSY);
	return id;
}

/* Sets w->code_id for w->code_address, which no memo entry covers: a content id, or 0 when it could
 * not be read or sent.  Returns nonzero when there is no code object at that address. */
__noinline int walk_code(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_python *py = w ? python_of(w) : NULL;
	__u64 size;

	if (!py)
		return 1;
	/* Reads up to the line table's pointer, the last field that we use, and not a byte further:
	 * the object may end where its page does. */
	size = py->code_line_table + 8;
	if (size > PP_CODE_READ_BYTES)
		return 1;
	w->code_id = 0;
	if (bpf_probe_read_user(w->code, size, (const void *)w->code_address))
		return 0; /* not resident: the agent reads it, which also brings it in */
	if (code_field(w, py->ob_type) != py->code_type + w->context.python_bias)
		return 1;
	w->code_id = code_lookup(w, py, slot);
	if (w->code_id)
		memo_set(w, py, memo_of(w, w->code_address), w->code_id);
	return 0;
}

#endif
