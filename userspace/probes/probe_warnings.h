/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells of probes that are missing or late, and why. */
#ifndef PROBES_PROBE_WARNINGS_H
#define PROBES_PROBE_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/user_quota.h"

struct probe_worker;

/* Zeroed: nothing was told yet. */
struct probe_warnings {
	uint64_t refused; /* files in which the kernel refused probes */
	bool is_full_told;
};

/* More than `max` processes have probes of their own.  It is told once. */
void probe_warn_full(struct probe_warnings *warnings, uint32_t max);
/* The kernel refused probes in a file, `what`; pid: that of the process for which they were wanted;
 * 0: for all.  The first such failure is told, the second, the fourth, and so on. */
void probe_warn_refused(struct probe_warnings *warnings, const char *what, pid_t pid,
			const char *why);
/* Tells each user once whose share is used up. */
void probe_warn_shares(struct user_quota *quota);
/* Tells what keeps the worker from attaching. */
void probe_warn_late(struct probe_worker *worker);

#endif
