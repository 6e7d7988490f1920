/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes come, change and go: what the kernel side and the side-band tell of them, into the tables of
 * processes and images. */
#ifndef AGENT_PROCESS_WATCH_H
#define AGENT_PROCESS_WATCH_H

#include <stdint.h>

#include <pyprofd/process.h>

struct agent;
struct pp_event;
struct process;

/* Reads /proc; the kernel side is attached already. */
int process_watch_start(struct agent *agent);
/* Takes what the events ring and the side-band hold and publishes what changed. */
int process_watch_follow(struct agent *agent);
/* Of the events ring; context: the agent. */
void process_watch_on_event(void *context, const struct pp_event *event);
/* Self-tests that could not be made yet; a rescan when records were lost. */
void process_watch_tick(struct agent *agent);
/* CPUs that came or went. */
void process_watch_follow_cpus(struct agent *agent);
void process_watch_release(struct agent *agent);
/* Makes a process that only a sample has shown known; NULL when it is gone. */
struct process *process_watch_find(struct agent *agent, struct pp_process_id id);
/* Publishes its mappings, and looks whether its interpreter can be read.  0 or -errno. */
int process_watch_publish(struct agent *agent, struct process *process);
/* Whom a counter is of. */
struct who {
	struct process *process;       /* NULL: a kernel thread, or gone before anybody could look */
	char comm[PP_COMM_BYTES + 1];  /* the process', else the thread's; "": not known */
};
/* Its details are read from /proc here, if they were not yet: once a process. */
void process_watch_who(struct agent *agent, struct pp_process_id id, uint32_t tid,
		       struct who *ret_who);
/* What /proc tells of a process; nothing, if it was read or the process has ended. */
void process_watch_read_details(struct agent *agent, struct process *process);

#endif
