/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --timeline: one record a switch cycle and one a sample.  `timeline_is_on` is set before the load, so that
 * the verifier removes all of this where it is off. */
#ifndef BPF_LIB_TIMELINE_H
#define BPF_LIB_TIMELINE_H

#include "lib/maps.bpf.h"

#include <pyprofd/timeline.h>

/* The agent looks a few times a second; a quarter full, the ring wakes it. */
static __always_inline __u64 timeline_wakeup(void)
{
	__u64 used = bpf_ringbuf_query(&timeline, BPF_RB_AVAIL_DATA);

	return used > bpf_ringbuf_query(&timeline, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP
									 : BPF_RB_NO_WAKEUP;
}

/* NULL: the ring is full, which is counted. */
static __always_inline struct pp_timeline_record *timeline_reserve(enum pp_timeline_type type)
{
	struct pp_timeline_record *record = bpf_ringbuf_reserve(&timeline, sizeof(*record), 0);

	if (!record) {
		count_loss(PP_LOSS_TIMELINE_FULL);
		return NULL;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->record.type = type;
	record->record.size = sizeof(*record);
	return record;
}

static __always_inline void timeline_sample(const struct pp_walk *w, bool is_described)
{
	struct pp_timeline_record *record = timeline_reserve(PP_TIMELINE_SAMPLE);

	if (!record)
		return;
	record->id = w->id;
	record->tid = w->tid;
	record->cpu = bpf_get_smp_processor_id();
	record->leave_ns = w->started_ns;
	if (w->count_flags & PP_COUNT_PYTHON)
		record->flags = PP_TIMELINE_GIL |
				(w->count_flags & PP_COUNT_GIL_HELD ? PP_TIMELINE_GIL_HELD : 0);
	record->kernel_stack = w->kernel_hash;
	if (is_described && w->has_user)
		record->user_stack = w->hash;
	bpf_ringbuf_submit(record, timeline_wakeup());
}

#endif
