/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For --timeline: sends one record a switch cycle and one a sample.  `timeline_is_on` is set before
 * the load, so the verifier removes all of this where it is off. */
#ifndef BPF_LIB_TIMELINE_H
#define BPF_LIB_TIMELINE_H

#include "lib/maps.bpf.h"

/* The agent looks at the ring a few times a second; a ring that is a quarter full wakes it. */
static __always_inline __u64 timeline_wakeup(void)
{
	__u64 used = bpf_ringbuf_query(&timeline, BPF_RB_AVAIL_DATA);

	return used > bpf_ringbuf_query(&timeline, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP
									 : BPF_RB_NO_WAKEUP;
}

/* Not reserved in the ring: 5.10's verifier loses a reservation that it has to spill. */
static __always_inline void timeline_put(struct pp_timeline_record *record)
{
	record->record.size = sizeof(*record);
	if (bpf_ringbuf_output(&timeline, record, sizeof(*record), timeline_wakeup()))
		count_loss(PP_LOSS_TIMELINE_FULL);
}

static __always_inline void timeline_sample(const struct pp_walk *w, bool is_sent)
{
	struct pp_timeline_record record = {
		.record.type = PP_TIMELINE_SAMPLE,
		.id = w->id,
		.tid = w->tid,
		.cpu = bpf_get_smp_processor_id(),
		.leave_ns = w->started_ns,
		.kernel_stack = w->kernel_hash,
	};

	if (w->count_flags & PP_COUNT_PYTHON)
		record.flags = PP_TIMELINE_GIL |
			       (w->count_flags & PP_COUNT_GIL_HELD ? PP_TIMELINE_GIL_HELD : 0);
	if (is_sent && w->has_user)
		record.user_stack = w->hash;
	timeline_put(&record);
}

#endif
