/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels that say where a process runs and what it is, of its samples and of its rows in kinds
 * of records. */
#ifndef WINDOWS_PROCESS_RECORD_H
#define WINDOWS_PROCESS_RECORD_H

#include "profile/record.h"

struct identities;
struct process;
struct record_sink;

/* Adds container, cgroup and identity.  Returns 0 or -ENOMEM. */
int process_labels_add(struct identities *identities, struct intern *strings,
		       struct process *process, struct profile_sample *sample);
/* Begins the rows of a process, with its labels as far as it is known still.  comm: what it is
 * called.  Returns 0 or -ENOMEM. */
int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record);

#endif
