/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/process_watch.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/sweeps.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/cpus.h"
#include "discover/proc_scan.h"
#include "python/python_process.h"

#define SELF_TESTS 6U /* a tick (250 ms) apart */

void process_watch_release(struct agent *agent)
{
	struct process *process = NULL;

	free(agent->events.event);
	free(agent->changed.id);
	free(agent->unverified.id);
	while (agent->processes && (process = process_table_next(agent->processes, process)))
		image_table_release(agent->images, process);
}

/* ---- publishing ---- */

static uint16_t image_flags(struct agent *agent, struct process *process)
{
	uint16_t flags = agent->options->raw ? PP_IMAGE_NO_FOLD : 0;

	if (!agent->is_filtered)
		return flags;
	if (target_needs_details(&agent->filter))
		process_watch_read_details(agent, process);
	if (target_matches(&agent->filter, agent->processes, process))
		flags |= PP_IMAGE_WANTED;
	return flags;
}

static void say_python_reason(const struct process *process, const struct process_python *python)
{
	if (python->reason)
		log_warn("process %u (%.16s): Python frames are not available: %s",
			 process->id.tgid, process->comm, python->reason);
}

static void verify_python(struct agent *agent, struct process *process)
{
	struct process_python *python = image_table_python(process);
	const char *reason = NULL;
	int err;

	if (!python || python->is_checked)
		return;
	if (!python->file) {
		python->is_checked = true;
		say_python_reason(process, python);
		return;
	}
	err = python_process_self_test(python->file->python, (pid_t)process->id.tgid, python->bias,
				       &reason);
	/* A busy program changes while it is looked at: only one that fails again and again is refused. */
	if (err == -EAGAIN || (err == -EBADMSG && ++python->failed_tests < SELF_TESTS)) {
		(void)process_list_add(&agent->unverified, process->id);
		return;
	}
	python->is_checked = true;
	if (err == -EBADMSG) {
		/* Never print garbage: this process's Python frames are not walked any more.  Its file's
		 * others are: a process may have damaged its own memory. */
		python->reason = reason ? reason : "the self-test failed";
		python->is_refused = true;
		say_python_reason(process, python);
		(void)image_table_publish(agent->images, process, image_flags(agent, process));
	}
}

int process_watch_publish(struct agent *agent, struct process *process)
{
	bool was_wanted;
	int err;

	if (process->exit_ns)
		return 0;
	was_wanted = image_table_flags(process) & PP_IMAGE_WANTED;
	err = image_table_publish(agent->images, process, image_flags(agent, process));
	/* By ancestry, the kernel side has known it since its birth. */
	if (!was_wanted && image_table_flags(process) & PP_IMAGE_WANTED &&
	    (agent->options->comm || target_needs_details(&agent->filter)))
		sweeps_want(agent->sweeps);
	if (err)
		log_debug("process %u: cannot publish its mappings: %s", process->id.tgid,
			  strerror(-err));
	verify_python(agent, process);
	return err;
}

static void publish_changed(struct agent *agent)
{
	for (size_t i = 0; i < agent->changed.count; i++) {
		struct process *process =
			process_table_find(agent->processes, agent->changed.id[i]);

		if (process && (process->mappings_changed || !process->tables))
			(void)process_watch_publish(agent, process);
	}
	agent->changed.count = 0;
}

/* ---- processes found by reading /proc ---- */

static int know_process(struct agent *agent, struct pp_process_id id, uint32_t ppid,
			uint64_t start_ns, const char *comm, struct process **ret_process)
{
	struct process *process;
	int err = process_table_add(agent->processes, id, ppid, start_ns, &process);

	if (err == -EEXIST)
		process = process_table_find(agent->processes, id);
	else if (err)
		return err;
	if (!process)
		return -ESRCH;
	if (!process->comm[0])
		memcpy(process->comm, comm, sizeof(process->comm));
	err = process_table_read_maps(agent->processes, process, NULL);
	if (err == -ESRCH)
		(void)process_table_exit(agent->processes, id, mono_ns());
	if (err)
		return err;
	*ret_process = process;
	return process_watch_publish(agent, process);
}

static int on_scanned(void *context, const struct proc_stat *stat)
{
	struct agent *agent = context;
	struct pp_process_id id = {.tgid = stat->pid};
	struct process *process;

	if (stat->is_kernel_thread || stat->is_zombie)
		return 0;
	/* Forked since the tracepoints are attached: the kernel side has named it. */
	if (kernel_side_get_generation(agent->kernel, id.tgid, &id.generation)) {
		id.generation = (uint32_t)(mono_ns() >> 10);
		if (kernel_side_add_process(agent->kernel, id) &&
		    kernel_side_get_generation(agent->kernel, id.tgid, &id.generation))
			return 0;
	}
	process = process_table_find(agent->processes, id);
	if (process && !process_table_wants_read(process))
		return 0;
	(void)know_process(agent, id, stat->ppid, stat->start_ns, stat->comm, &process);
	return 0;
}

int process_watch_start(struct agent *agent)
{
	int err = proc_scan(on_scanned, agent);

	return err ? log_error_errno(err, "cannot read /proc") : 0;
}

struct process *process_watch_find(struct agent *agent, struct pp_process_id id)
{
	static const char no_comm[PP_COMM_BYTES];
	struct process *process = process_table_find(agent->processes, id);

	if (process)
		return process;
	if (!id.generation)
		return process_table_find_tgid(agent->processes, id.tgid);
	if (!know_process(agent, id, 0, mono_ns(), no_comm, &process))
		return process;
	return process_table_find_tgid(agent->processes, id.tgid);
}

void process_watch_read_details(struct agent *agent, struct process *process)
{
	if (!process->details_read && !process->exit_ns)
		(void)process_read_details(agent->processes, process);
}

void process_watch_who(struct agent *agent, struct pp_process_id id, uint32_t tid,
		       struct who *ret_who)
{
	struct process *process = process_table_find_or_tgid(agent->processes, id);

	*ret_who = (struct who){.process = process};
	if (!process) {
		(void)thread_comm_read(id.tgid, tid, ret_who->comm);
		return;
	}
	process_watch_read_details(agent, process);
	memcpy(ret_who->comm, process->comm, PP_COMM_BYTES);
}

/* ---- events ---- */

void process_watch_on_event(void *context, const struct pp_event *event)
{
	struct agent *agent = context;
	struct event_batch *batch = &agent->events;

	if (event->type == PP_EVENT_TABLE) /* the agent is awake: tables_relieve() is next */
		return;
	if (ARRAY_RESERVE(batch->event, batch->count, batch->capacity)) {
		agent->must_rescan = true;
		return;
	}
	batch->event[batch->count++] = *event;
}

static void answer_thread_state(struct agent *agent, const struct pp_event *event)
{
	struct process *process = process_table_find(agent->processes, event->id);
	struct process_python *python = process ? image_table_python(process) : NULL;
	OWNED_MEM struct python_thread *thread = NULL;
	size_t count = 0;

	if (!python || !python->file ||
	    python_process_threads(python->file->python, (pid_t)event->id.tgid, python->bias, &thread,
				   &count))
		return;
	for (size_t i = 0; i < count; i++) {
		struct pp_thread_key key = {.id = event->id, .tid = event->tid};
		uint32_t tid;

		/* Which of them is the one that asked?  The kernel side checks it again. */
		if (python_process_inner_tid((pid_t)event->id.tgid, python->is_musl,
					     thread[i].thread_id, thread[i].native_id, &tid))
			continue;
		if (tid == event->tid || count == 1)
			(void)kernel_side_set_thread_state(agent->kernel, &key,
							   thread[i].thread_state);
	}
}

static void apply_event(struct agent *agent, const struct pp_event *event)
{
	struct process *process, *parent;

	switch (event->type) {
	case PP_EVENT_UNKNOWN:
		(void)know_process(agent, event->id, 0, event->time_ns, event->comm, &process);
		return;
	case PP_EVENT_THREAD_STATE:
		answer_thread_state(agent, event);
		return;
	case PP_EVENT_EXIT:
		process = process_table_find(agent->processes, event->id);
		if (process)
			image_table_retire(agent->images, process);
		(void)process_table_apply(agent->processes, event);
		return;
	}
	/* The table may move what it holds: look up again after it took the event. */
	(void)process_table_apply(agent->processes, event);
	process = process_table_find(agent->processes, event->id);
	parent = process_table_find(agent->processes, event->parent);
	if (!process)
		return;
	if (event->type == PP_EVENT_FORK && parent) {
		(void)image_table_fork(agent->images, parent, process);
		if (agent->is_filtered && !(image_table_flags(process) & PP_IMAGE_WANTED))
			process->mappings_changed = true;
	} else if (event->type == PP_EVENT_EXEC && parent) {
		image_table_retire(agent->images, parent);
	}
	if (process_table_wants_read(process))
		(void)process_table_read_maps(agent->processes, process, NULL);
	(void)process_list_add(&agent->changed, process->id);
}

static void on_mapping(void *context, uint32_t tgid, const struct mapping *mapping)
{
	struct agent *agent = context;
	struct process *process;

	if (process_table_map(agent->processes, tgid, mapping))
		return;
	process = process_table_find_tgid(agent->processes, tgid);
	if (process)
		(void)process_list_add(&agent->changed, process->id);
}

static void on_new_image(void *context, uint32_t tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	(void)process_table_new_image(agent->processes, tgid, time_ns);
}

static void on_lost(void *context, uint32_t cpu, uint64_t count)
{
	struct agent *agent = context;

	(void)cpu;
	(void)count;
	agent->must_rescan = true;
}

static int compare_events(const void *a, const void *b)
{
	const struct pp_event *left = a, *right = b;

	return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

int process_watch_follow(struct agent *agent)
{
	const struct sideband_handlers handlers = {
		.context = agent, .mapping = on_mapping, .new_image = on_new_image, .lost = on_lost};
	int err;

	agent->events.count = 0;
	err = ring_consume(agent->events_ring);
	if (err)
		return err;
	err = sideband_collect(agent->sideband);
	if (err)
		return err;
	if (agent->events.count > 1)
		qsort(agent->events.event, agent->events.count, sizeof(*agent->events.event),
		      compare_events);
	for (size_t i = 0; i < agent->events.count; i++) {
		sideband_deliver(agent->sideband, agent->events.event[i].time_ns, &handlers);
		apply_event(agent, &agent->events.event[i]);
	}
	sideband_deliver(agent->sideband, UINT64_MAX, &handlers);
	publish_changed(agent);
	return 0;
}

void process_watch_follow_cpus(struct agent *agent)
{
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	struct sideband_stats stats;

	sideband_get_stats(agent->sideband, &stats);
	if (cpus_online(&online))
		return;
	if (kernel_side_follow_cpus(agent->kernel, online.cpu, online.count) == -ENOSPC &&
	    !agent->lacks_cpus) {
		agent->lacks_cpus = true;
		log_warn("%zu CPUs are online now, %u at the start: there is no memory for the walks "
			 "of all of them, whose samples are not counted (no_scratch); start pyprofd "
			 "again", online.count, agent->online_cpus);
	}
	if (online.count == stats.cpus)
		return;
	for (size_t i = 0; i < online.count; i++)
		if (!sideband_add_cpu(agent->sideband, online.cpu[i]))
			agent->must_rescan = true; /* what it mapped until now was not seen */
	for (uint32_t cpu = 0; cpu < CPUS_MAX && online.count < stats.cpus; cpu++) {
		bool is_online = false;

		for (size_t i = 0; i < online.count; i++)
			is_online |= online.cpu[i] == cpu;
		if (!is_online)
			(void)sideband_remove_cpu(agent->sideband, cpu);
	}
}

static void rescan(struct agent *agent)
{
	struct process *process = NULL;

	agent->must_rescan = false;
	while ((process = process_table_next(agent->processes, process))) {
		if (process->exit_ns)
			continue;
		if (process_table_read_maps(agent->processes, process, NULL) == -ESRCH) {
			image_table_retire(agent->images, process);
			(void)process_table_exit(agent->processes, process->id, mono_ns());
		} else if (process->mappings_changed)
			(void)process_watch_publish(agent, process);
	}
	(void)proc_scan(on_scanned, agent);
}

void process_watch_tick(struct agent *agent)
{
	struct process_list again = agent->unverified;

	agent->unverified = (struct process_list){};
	for (size_t i = 0; i < again.count; i++) {
		struct process *process = process_table_find(agent->processes, again.id[i]);

		/* Published again: where its thread states are may be known only now. */
		if (process && !process->exit_ns)
			(void)process_watch_publish(agent, process);
	}
	free(again.id);
	if (agent->must_rescan)
		rescan(agent);
}
