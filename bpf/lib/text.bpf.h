/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts that counters refer to by an id: names of imported modules and of kernels. */
#ifndef BPF_LIB_TEXT_H
#define BPF_LIB_TEXT_H

#include "lib/count.bpf.h"
#include "lib/news.bpf.h"
#include "lib/walk.bpf.h"

/* Sends a text of the process once, and sets w->detail to its id; 0: it cannot be read. */
__noinline int text_send(__u32 slot, __u64 address)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_config *cfg = config_get();
	struct pp_text_record *record;
	__u64 hash = 0x7e, size;
	__u8 *body;
	long got;

	if (!w || !cfg)
		return 1;
	/* The walk is over: its code objects have been sent. */
	record = (struct pp_text_record *)&w->code_out;
	body = (__u8 *)(record + 1);
	w->detail = 0;
	got = bpf_probe_read_user_str(body, PP_MAX_TEXT_BYTES, (const void *)address);
	if (got <= 1 || got > (long)PP_MAX_TEXT_BYTES) {
		count_loss(PP_LOSS_PROBE_ARGUMENT);
		return 1;
	}
	size = got - 1;
	BARRIER(size);
	size &= PP_MAX_TEXT_BYTES - 1;
	__builtin_memset(body + size, 0, 8);
	for (__u32 i = 0; i < PP_MAX_TEXT_BYTES / 8; i++) {
		if (i * 8 >= size)
			break;
		hash = hash_mix(hash, *(__u64 *)(body + i * 8));
	}
	w->detail = hash_mix(hash_mix(hash, size), w->user_key) | 1;
	if (already_sent(w->detail, cfg->epoch))
		return 0;
	news_add(w->user);
	record->record.type = PP_RECORD_TEXT;
	size += sizeof(*record);
	record->record.size = size;
	record->id = w->detail;
	record->process = w->id;
	if (!ring_send(w->user, record, size, ring_wakeup()))
		remember_sent(w->detail, cfg->epoch);
	return 0;
}

#endif
