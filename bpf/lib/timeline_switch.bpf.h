/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For --timeline: records at context switches when a thread ran, when it waited, and whether it
 * held the GIL. */
#ifndef BPF_LIB_TIMELINE_SWITCH_H
#define BPF_LIB_TIMELINE_SWITCH_H

#include "lib/gil.bpf.h"
#include "lib/threads.bpf.h"
#include "lib/timeline.bpf.h"

/* Returns whether this thread has the GIL: it cannot get or lose it before it runs again. */
static __always_inline __u8 timeline_gil(const struct pp_thread *t)
{
	__u32 index = t->python - 1;
	struct pp_python *py;
	__u64 word[2] = {};

	if (!t->python || !t->gil || !t->thread_state)
		return 0;
	py = bpf_map_lookup_elem(&pythons, &index);
	if (!py || bpf_probe_read_user(word, sizeof(word), (const void *)t->gil))
		return 0;
	if (word[0] != t->thread_state)
		return PP_TIMELINE_GIL;
	if (py->gil_mode == PP_GIL_CURRENT || (__u32)word[1] == 1)
		return PP_TIMELINE_GIL | PP_TIMELINE_GIL_HELD;
	return PP_TIMELINE_GIL | PP_TIMELINE_GIL_LAST;
}

/* Notes a thread's switch-out, at t->since_ns. */
static __always_inline void timeline_switch_out(struct pp_thread *t, __u64 ran_ns)
{
	t->ran_since_ns = t->since_ns - ran_ns;
	t->timeline_flags = timeline_gil(t);
}

static __always_inline struct pp_timeline_record *timeline_begin(const struct pp_thread *t)
{
	__u32 zero = 0;
	struct pp_timeline_record *record = bpf_map_lookup_elem(&timeline_records, &zero);

	if (!record)
		return NULL;
	__builtin_memset(record, 0, sizeof(*record));
	record->id = t->id;
	record->tid = t->tid;
	record->cpu = t->timeline_cpu;
	return record;
}

/* Sends the record of a thread's last run and wait at its switch-in. */
static __always_inline void timeline_switch_in(struct pp_thread *t, __u64 woken_ns, __u64 now_ns)
{
	struct pp_timeline_record *record = timeline_begin(t);
	const struct pp_wait_site *site = wait_site_at(t, t->at);

	t->timeline_cpu = bpf_get_smp_processor_id();
	if (!record)
		return;
	record->record.type = PP_TIMELINE_SWITCH;
	record->wait = t->wait;
	record->flags = t->timeline_flags;
	record->run_ns = t->ran_since_ns;
	record->leave_ns = t->since_ns;
	record->woken_ns = woken_ns;
	record->back_ns = now_ns;
	/* The wait site may be known even when this wait was left out by chance. */
	if (site->key == t->last_key) {
		record->user_stack = site->user_stack;
		record->kernel_stack = site->kernel_stack;
	}
	if (t->wait == PP_WAIT_GIL && !(t->flags & PP_THREAD_SKIPPED))
		record->holder_tid = site->blame_tid;
	timeline_put(record);
}

/* Sends the record of an exiting thread's last run. */
static __always_inline void timeline_exit(const struct pp_thread *t, __u64 run_ns, __u64 now_ns)
{
	struct pp_timeline_record *record = timeline_begin(t);

	if (!record)
		return;
	record->record.type = PP_TIMELINE_LAST;
	record->run_ns = run_ns;
	record->leave_ns = record->woken_ns = record->back_ns = now_ns;
	timeline_put(record);
}

#endif
