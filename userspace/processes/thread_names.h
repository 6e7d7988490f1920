/* SPDX-License-Identifier: BSD-2-Clause */
/* Names threads, also those that have ended. */
#ifndef PROCESSES_THREAD_NAMES_H
#define PROCESSES_THREAD_NAMES_H

#include <stdint.h>

#include <pyprofd/process.h>

struct process;
struct process_table;
struct thread_names;

/* The table is borrowed.  Returns 0 or -ENOMEM. */
int thread_names_new(struct process_table *processes, struct thread_names **ret_names);
void thread_names_free(struct thread_names *names);
/* A Python stack of this process was seen: the names of its threads are read in the next tick, if
 * they may have changed. */
void thread_names_want(struct thread_names *names, struct pp_process_id id);
void thread_names_tick(struct thread_names *names);
/* Returns what a thread was called when the kernel called it `comm` ("": now): the name that the
 * program has told the kernel, else that given in Python, else the process's, else ""; never
 * NULL. */
const char *thread_names_get(struct thread_names *names, const struct process *process,
			     uint32_t tid, const char *comm);
/* Returns the host's id of a Python thread whose id inside its own pid namespace is `inner`; 0:
 * unknown. */
uint32_t thread_names_host_tid(const struct thread_names *names, const struct process *process,
			       uint32_t inner);
/* Forgets threads that nobody asked about since before_ns. */
void thread_names_expire(struct thread_names *names, uint64_t before_ns);

#endif
