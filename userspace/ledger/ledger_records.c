/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/ledger_records.h"

#include <errno.h>
#include <stdlib.h>

#include "windows/process_record.h"

int ledger_turns(const void *lines, size_t count, size_t size, struct record_turn **ret_turn)
{
	struct record_turn *turn = calloc(count + 1, sizeof(*turn));

	if (!turn)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct ledger_line *line = (const void *)((const char *)lines + i * size);

		turn[i] = (struct record_turn){.of = line,
					       .size = line->total_ns[PP_LEDGER_CPU],
					       .user = line->user,
					       .pid = line->id.tgid};
	}
	record_take_turns(turn, count);
	*ret_turn = turn;
	return 0;
}

int ledger_record_put(const struct record_sink *sink, const struct ledger_line *line,
		      const char *comm)
{
	struct record record;
	int64_t *value = record.sample.value;
	int err = process_record_begin(sink, PP_PROFILE_LEDGER, line->id,
				       line->id.tgid ? comm : RECORD_OTHERS, &record);

	if (err)
		return err;
	value[PP_LEDGER_LIFETIME] = (int64_t)line->life_ns;
	value[PP_LEDGER_THREADS] = (int64_t)line->threads;
	value[PP_LEDGER_OFF_SCHEDULER] = line->over_ns;
	value[PP_LEDGER_COMPARED] = (int64_t)line->checked_ns;
	value[PP_LEDGER_PROCESSES] = line->processes ? (int64_t)line->processes : 1;
	err = record_put(sink, &record);
	for (unsigned int i = 0; i < LEDGER_STATE_COUNT && !err; i++) {
		const uint64_t ns = ledger_state_ns(line, i);

		if (!ns)
			continue;
		record_next(&record);
		value[PP_LEDGER_TIME] = (int64_t)ns;
		err = record_about(&record, sink->strings, "state", ledger_state_name(i));
		if (!err)
			err = record_put(sink, &record);
	}
	return err;
}

int ledger_records_put(struct record_sink *sink, const struct ledger_sums *sums)
{
	OWNED_MEM struct ledger_sum *list = NULL;
	OWNED_MEM struct record_turn *turn = NULL;
	size_t count, processes = 0;
	int err = ledger_sums_list(sums, &list, &count);

	if (!err)
		err = ledger_turns(list, count, sizeof(*list), &turn);
	for (size_t i = 0; i < count && !err; i++) {
		const struct ledger_sum *sum = turn[i].of;

		processes += sum->line.id.tgid != 0;
		sink->is_other = processes > RECORD_PROCESSES_MAX;
		err = ledger_record_put(sink, &sum->line, sum->comm);
	}
	return err;
}
