/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of one job of probe_worker.h, in groups that are taken off and put on again alone.  One
 * thread at a time. */
#ifndef AGENT_PROBE_GROUPS_H
#define AGENT_PROBE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/probe_links.h"

struct probe_job;
struct probe_side;

/* A group's number is 1 + its probe's; this one has the sites that stay on. */
#define PROBE_GROUP_STAYS 0U

struct probe_group {
	uint32_t number;
	struct probe_links entries, returns;
	bool is_on;
};

/* Where the sites of a job are attached; all is borrowed. */
struct probe_groups_place {
	struct probe_side *side;
	const struct probe_job *job;
	bool is_shared; /* struct probe_links_options */
};

struct probe_groups {
	struct probe_groups_place place;
	struct probe_group *group; /* owned */
	size_t count;
};

/* Notes which groups a job has; none is on.  Returns 0 or -ENOMEM. */
int probe_groups_make(const struct probe_groups_place *place, struct probe_groups *ret_groups);
/* Takes all links off; a zeroed one is fine. */
void probe_groups_release(struct probe_groups *groups);
/* Puts on the groups whose bit is not set in `off`, by the probe's number, and takes off the
 * others. Returns 0 or -errno; groups behind the one that failed are as they were. */
int probe_groups_set(struct probe_groups *groups, uint64_t off);

#endif
