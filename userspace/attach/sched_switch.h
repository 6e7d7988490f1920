/* SPDX-License-Identifier: BSD-2-Clause */
/* Which arguments the kernel's tracepoint sched_switch has. */
#ifndef ATTACH_SCHED_SWITCH_H
#define ATTACH_SCHED_SWITCH_H

#include <stdbool.h>

struct btf;

/* Its last argument is the state in which the thread left: from 5.18 on (preempt, prev, next, prev_state).  Before, and
 * in any other order: false. */
bool sched_switch_tells_state(const struct btf *kernel);

#endif
