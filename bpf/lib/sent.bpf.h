/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was sent through the ring, and the key under which a walk is counted. */
#ifndef BPF_LIB_SENT_H
#define BPF_LIB_SENT_H

#include "lib/maps.bpf.h"

static __always_inline bool already_sent(__u64 hash, __u32 epoch)
{
	__u32 *sent_epoch = bpf_map_lookup_elem(&sent, &hash);

	return sent_epoch && *sent_epoch == epoch;
}

static __always_inline void remember_sent(__u64 hash, __u32 epoch)
{
	/* This may fail when the table is locked: then the stack is sent once more. */
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

#endif
