/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows the process lifecycle: a child gets its parent's process context before its first
 * instruction, and an exec drops it.  Mappings come from the perf side-band
 * (userspace/discover/sideband.c). */
#include "lib/identify.bpf.h"
#include "lib/threads.bpf.h"

static __always_inline void tell(struct pp_event *event, const char *comm)
{
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), comm);
	if (bpf_ringbuf_output(&events, event, sizeof(*event), 0))
		count_loss(PP_LOSS_EVENTS_FULL);
}

static __always_inline void remember(const struct pp_process_id *id,
				     const struct pp_process_context *context)
{
	if (bpf_map_update_elem(&processes, &id->tgid, &id->generation, BPF_ANY))
		count_loss(PP_LOSS_PROCESSES_FULL);
	if (bpf_map_update_elem(&contexts, id, context, BPF_ANY))
		count_loss(PP_LOSS_IMAGES_FULL);
	processes_changed();
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct pp_event event = {.type = PP_EVENT_FORK, .time_ns = bpf_ktime_get_ns()};
	struct pp_process_context context = {}, *inherited;
	__u32 *generation;

	if (child->pid != child->tgid || child->flags & PF_KTHREAD)
		return 0;
	event.tid = child->pid;
	event.user = user_of_current(); /* its parent's */
	if (process_share_take(event.user)) {
		count_loss(PP_LOSS_PROCESSES_SHARE);
		return 0;
	}
	event.id.tgid = child->tgid;
	event.id.generation = event.time_ns >> 10;
	event.parent.tgid = parent->tgid;
	generation = bpf_map_lookup_elem(&processes, &event.parent.tgid);
	if (generation) {
		event.parent.generation = *generation;
		inherited = bpf_map_lookup_elem(&contexts, &event.parent);
		if (inherited)
			context = *inherited;
	}
	remember(&event.id, &context);
	tell(&event, child->comm);
	return 0;
}

/* The kernel tells the program's name when execve has a new address space and nothing is mapped
 * there yet (fs/exec.c: begin_new_exec); sched_process_exec comes when all is.  A program may
 * rename its threads a million times a second: only in an address space without a stack is it an
 * execve. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task)
{
	struct pp_event event = {.type = PP_EVENT_NEW_SPACE, .time_ns = bpf_ktime_get_ns()};

	if (!task->mm || task->mm->start_stack)
		return 0;
	event.tid = task->pid;
	event.id.tgid = task->tgid;
	tell(&event, task->comm);
	return 0;
}

/* Tells that a process is in another cgroup: services are started first and moved then.  Who has a
 * cgroup of his own may move his processes as often as he wants, and would fill the ring. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_move, const void *to, const char *path, struct task_struct *task)
{
	struct pp_event event = {.type = PP_EVENT_MOVED, .time_ns = bpf_ktime_get_ns()};

	event.tid = task->pid;
	event.id.tgid = task->tgid;
	if (task->flags & PF_KTHREAD || !bpf_map_lookup_elem(&processes, &event.id.tgid))
		return 0;
	if (move_share_take(user_of_current())) {
		count_loss(PP_LOSS_PROCESSES_SHARE);
		return 0;
	}
	tell(&event, task->comm);
	return 0;
}

/* Starts the times of another program.  A thread that was not the first one has the first one's id
 * from now on. */
static __always_inline void restart_thread(struct task_struct *task, int old_tid, __u64 now_ns,
					   struct pp_config *cfg)
{
	bool is_measured = thread_retire(old_tid, now_ns, cfg);

	if (old_tid != task->pid)
		thread_retire(task->pid, now_ns, cfg);
	/* A sample may have come in between and have reported the process. */
	if (is_measured && !thread_find(task->pid, cfg))
		thread_new(task->pid, task->tgid, user_of(task), now_ns);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid)
{
	struct pp_event event = {.type = PP_EVENT_EXEC, .time_ns = bpf_ktime_get_ns()};
	struct pp_process_context context = {}, *old;
	struct pp_config *cfg = config_get();
	__u16 kept = PP_CONTEXT_NO_FOLD;
	__u32 *generation;

	if (cfg && !(cfg->flags & PP_CONFIG_BY_NAME))
		kept |= PP_CONTEXT_MATCHES;
	if (cfg)
		restart_thread(task, old_tid, event.time_ns, cfg);
	event.tid = task->pid;
	event.user = user_of_current();
	event.id.tgid = event.parent.tgid = task->tgid;
	event.id.generation = event.time_ns >> 10;
	generation = bpf_map_lookup_elem(&processes, &event.id.tgid);
	if (generation) {
		event.parent.generation = *generation;
		old = bpf_map_lookup_elem(&contexts, &event.parent);
		if (old)
			context.flags = old->flags & kept;
		bpf_map_delete_elem(&contexts, &event.parent);
	} else if (process_share_take(event.user)) {
		count_loss(PP_LOSS_PROCESSES_SHARE);
		return 0;
	}
	remember(&event.id, &context);
	tell(&event, task->comm);
	return 0;
}

/* Settles the last thread's slot if no switch has asked yet whose it is: nobody can later. */
static __always_inline void identify_last(struct task_struct *task, const struct pp_event *event,
					  const struct pp_config *cfg)
{
	struct pp_thread *t = cfg ? thread_find(task->pid, cfg) : NULL;
	struct pp_process_context *context;

	if (!t || t->identified_ns)
		return;
	context = bpf_map_lookup_elem(&contexts, &event->id);
	thread_begin(t);
	t->id = event->id;
	if (!(cfg->flags & PP_CONFIG_FILTER) || (context && context->flags & PP_CONTEXT_MATCHES))
		t->flags |= PP_THREAD_MATCHES;
	t->identified_ns = event->time_ns;
	thread_end(t);
}

/* A thread has ended: another one may get its id. */
static __always_inline void gpu_thread_ended(__u32 tgid, __u32 tid, const struct pp_config *cfg)
{
	if (!cfg || !cfg->gpu_sight)
		return;
	gpu_wait_drop(&tid); /* killed inside of a call */
	if (gpu_is_used(&tgid, cfg))
		processes_changed(); /* it is looked at again: cuda_thread_note() */
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct pp_event event = {.type = PP_EVENT_EXIT, .time_ns = bpf_ktime_get_ns()};
	struct pp_config *cfg = config_get();
	__u32 *generation;

	event.tid = task->pid;
	gpu_thread_ended(task->tgid, event.tid, cfg);
	/* do_exit() has already taken this thread off `live`. */
	if (task->signal->live.counter > 0 || task->flags & PF_KTHREAD)
		return 0;
	event.id.tgid = task->tgid;
	generation = bpf_map_lookup_elem(&processes, &event.id.tgid);
	if (!generation)
		return 0;
	event.id.generation = *generation;
	identify_last(task, &event, cfg);
	bpf_map_delete_elem(&processes, &event.id.tgid);
	bpf_map_delete_elem(&contexts, &event.id);
	processes_changed();
	tell(&event, task->comm);
	return 0;
}

/* Tells the agent which process the kernel has chosen to end for want of memory, on the machine or
 * in one memory cgroup.  Loaded into runs with a store only. */
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
