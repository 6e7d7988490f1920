/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads, kept past their ends. */
#ifndef AGENT_THREAD_NAMES_H
#define AGENT_THREAD_NAMES_H

#include <stdint.h>

#include <pyprofd/process.h>

struct agent;
struct process;
struct thread_names;

int thread_names_new(struct agent *agent, struct thread_names **ret_names);
void thread_names_free(struct thread_names *names);
/* A Python stack of this process was seen: its names will be read soon. */
void thread_names_want(struct thread_names *names, struct pp_process_id id);
void thread_names_tick(struct thread_names *names);
/* Never NULL: the name given in Python, else the kernel's, else "". */
const char *thread_names_get(struct thread_names *names, const struct process *process,
			     uint32_t tid);
/* Of a Python thread by the number that it has in its own pid namespace; 0: not known. */
uint32_t thread_names_host_tid(const struct thread_names *names, const struct process *process,
			       uint32_t inner);
void thread_names_expire(struct thread_names *names, uint64_t before_ns);

#endif
