/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which arguments the kernel's tracepoint sched_switch has. */
#ifndef ATTACH_SCHED_SWITCH_H
#define ATTACH_SCHED_SWITCH_H

#include <stdbool.h>

struct btf;

/* Returns whether its last argument is the state in which the thread was switched out: from 5.18 on
 * (preempt, prev, next, prev_state).  False before that, and for any other order. */
bool sched_switch_tells_state(const struct btf *kernel);

#endif
