/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells the agent which process the kernel has chosen to end for want of memory, on the machine or
 * in one memory cgroup.  Loaded into runs with a store only. */
#include "lib/maps.bpf.h"

SEC("tp_btf/mark_victim")
int on_mark_victim(__u64 *ctx)
{
	struct pp_event event = {.type = PP_EVENT_OOM, .time_ns = bpf_ktime_get_ns()};
	const __u64 current = bpf_get_current_pid_tgid();
	__u32 *generation;

	if (victim_is_task) {
		const struct task_struct *task = (const void *)ctx[0];

		event.tid = task->pid;
		event.id.tgid = task->tgid;
	} else {
		/* Either the main thread of the process that was chosen, or the calling thread,
		 * whose process ends already (mm/oom_kill.c: out_of_memory). */
		event.tid = (__u32)ctx[0];
		event.id.tgid = (__u32)current == event.tid ? current >> 32 : event.tid;
	}
	generation = bpf_map_lookup_elem(&processes, &event.id.tgid);
	if (!generation)
		return 0; /* no sample of it was ever taken */
	event.id.generation = *generation;
	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		count_loss(PP_LOSS_KEEP_FAILED);
	return 0;
}
