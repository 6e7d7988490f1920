/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts and tells what users were refused because they had taken their share of a table. */
#ifndef AGENT_QUOTAS_H
#define AGENT_QUOTAS_H

#include <stdint.h>

#include <pyprofd/stops.h>

struct context_table;
struct file_table;
struct incomplete_counts;
struct probes;
struct row_store;
struct user_quota;

/* All is borrowed. */
struct quotas {
	struct row_store *rows;
	struct file_table *files;
	struct context_table *contexts;
	const struct incomplete_counts *incompletes;
	struct user_quota *profiles; /* windows/profile_shares.h */
	struct user_quota *labels;   /* processes/identities.h */
	const struct probes *probes; /* NULL: none */
};
/* Sets the losses of these tables. */
void quotas_count(const struct quotas *quotas, uint64_t loss[PP_LOSS_COUNT]);
/* Logs each user and table once. */
void quotas_tell(const struct quotas *quotas);

#endif
