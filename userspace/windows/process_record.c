/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/process_record.h"

#include "discover/process_table.h"
#include "processes/identities.h"
#include "windows/label.h"
#include "windows/record_sink.h"
#include "windows/source.h"

int process_labels_add(struct identities *identities, struct intern *strings,
		       struct process *process, struct profile_sample *sample)
{
#define KEY_OF(id, key) [IDENTITY_##id] = key,
	static const char *const key[] = {IDENTITY_LABELS(KEY_OF)};
	const struct identity *identity = identities_get(identities, process);
	int err = label_string(strings, sample, "container_id", process->container_id);

	if (!err)
		err = label_string(strings, sample, "cgroup", process->cgroup);
	for (size_t i = 0; identity && i < IDENTITY_LABEL_COUNT && !err; i++)
		err = label_string(strings, sample, key[i], value_text(identity->value[i]));
	return err;
}

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	const struct services *services = sink->services;
	struct process *process = process_table_find(services->processes, id);
	int err = record_begin(ret_record, sink->strings, kind, id, comm);

	if (!err && process && services->identities)
		err = process_labels_add(services->identities, sink->strings, process,
					 &ret_record->sample);
	ret_record->own_labels = ret_record->sample.label_count;
	return err;
}
