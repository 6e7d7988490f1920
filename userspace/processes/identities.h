/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out who the processes are that stacks come from (identity/identity.h), once a program:
 * when its first stack has come, so that most are seen before they overwrite their command line
 * and environment by a title.  A child that was forked and has executed nothing is who its parent
 * is. */
#ifndef PROCESSES_IDENTITIES_H
#define PROCESSES_IDENTITIES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

#include "identity/identity.h"

struct process;
struct process_table;
struct slice;
struct identities;

struct identities_stats {
	uint64_t refused; /* values that were left out: their user has too many */
	uint64_t unread;  /* programs that did not answer, may not be read, say too much, or
			   * whose user's have taken too much time */
	uint64_t ended;	  /* programs that had ended before they were read */
};

/* The table is borrowed.  Returns 0 or -ENOMEM. */
int identities_new(struct process_table *processes, struct identities **ret_identities);
void identities_free(struct identities *identities);

/* A stack of this process was seen: it is looked at in the next step, unless it has been. */
void identities_want(struct identities *identities, struct pp_process_id id);
/* Looks at those that are wanted until the slice is over, and at one at least.  Returns whether
 * there are more. */
bool identities_step(struct identities *identities, const struct slice *slice);
/* Returns who a process is, and looks if that has not been done; NULL: there was no memory.  Valid
 * until the next call of another function. */
const struct identity *identities_get(struct identities *identities, struct process *process);
/* Forgets processes that have ended, and that nobody asked about since before_ns. */
void identities_expire(struct identities *identities, uint64_t before_ns);

void identities_get_stats(const struct identities *identities, struct identities_stats *ret_stats);
/* The users' shares of the values. */
struct user_quota *identities_quota(const struct identities *identities);

#endif
