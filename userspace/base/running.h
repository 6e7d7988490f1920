/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells a task that lacks a CPU from one that is stuck.  Any thread. */
#ifndef BASE_RUNNING_H
#define BASE_RUNNING_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether a task, a process' main thread or another one, runs or waits for a CPU, which it
 * may have to share or be throttled for; one that waits for a page, a disk or a lock sleeps.
 * false, too, when it has ended.  From /proc/TID/stat. */
bool task_is_running(pid_t tid);

#endif
