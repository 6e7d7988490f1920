/* SPDX-License-Identifier: BSD-2-Clause */
#include "gauges/intake.h"

#include <string.h>

static const struct {
	const char *name, *text;
} failures[] = {
#define FAILURE(id, name, text) {name, text},
	GAUGES_FAILURES(FAILURE)};

const char *gauges_failure_name(enum gauges_failure failure)
{
	return failures[failure].name;
}

const char *gauges_failure_text(enum gauges_failure failure)
{
	return failures[failure].text;
}

/* Returns whether these are a string's bytes, printable, with blanks where they are allowed. */
static bool is_printable(const char *text, size_t size, char lowest)
{
	const char *end = memchr(text, '\0', size);

	for (; end && text < end; text++)
		if (*text < lowest || *text > '~')
			return false;
	return end;
}

static bool is_sound_device(const struct gauges_device *gpu)
{
	if (!is_printable(gpu->uuid, sizeof(gpu->uuid), '!') ||
	    !is_printable(gpu->name, sizeof(gpu->name), ' '))
		return false;
	if (gpu->has >> GPU_GAUGE_COUNT || gpu->has_reasons > 1)
		return false;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++) {
		const bool is_share = i <= GPU_DRAM_ACTIVE;

		if (gpu->has >> i & 1 &&
		    gpu->value[i] > (is_share ? GPU_SHARE_MAX : GAUGES_VALUE_MAX))
			return false;
	}
	return true;
}

static bool is_sound_process(const struct gauges_process *process)
{
	return process->pid && process->pid <= GAUGES_PID_MAX &&
	       (process->sm == GAUGES_UNKNOWN_SM || process->sm <= GPU_SHARE_MAX) &&
	       (process->memory_bytes == GAUGES_UNKNOWN_BYTES ||
		process->memory_bytes <= GAUGES_VALUE_MAX);
}

static enum gauges_intake_result add_device(struct gauges_intake *intake,
					    const struct gauges_record *record)
{
	struct gauges_round *round = &intake->round;
	const uint32_t count = round->device_count;

	if (record->count || count == GAUGES_DEVICES_MAX ||
	    (count && record->device <= round->device[count - 1].index) ||
	    !is_sound_device(&record->gpu))
		return GAUGES_INTAKE_NONSENSE;
	round->device[count].index = record->device;
	round->device[count].gpu = record->gpu;
	round->device_count++;
	return GAUGES_INTAKE_MORE;
}

static enum gauges_intake_result add_processes(struct gauges_intake *intake,
					       const struct gauges_record *record)
{
	struct gauges_round *round = &intake->round;

	if (!record->count || record->count > GAUGES_ROWS_MAX ||
	    round->process_count + record->count > GAUGES_PROCESSES_MAX || !round->device_count ||
	    record->device != round->device[round->device_count - 1].index)
		return GAUGES_INTAKE_NONSENSE;
	for (uint32_t i = 0; i < record->count; i++) {
		if (!is_sound_process(&record->process[i]))
			return GAUGES_INTAKE_NONSENSE;
		round->process[round->process_count++] =
			(struct gauges_round_process){record->device, record->process[i]};
	}
	return GAUGES_INTAKE_MORE;
}

static enum gauges_intake_result end_round(struct gauges_intake *intake,
					   const struct gauges_record *record)
{
	if (!intake->round.device_count || record->device)
		return GAUGES_INTAKE_NONSENSE;
	intake->round.left_out = record->count;
	intake->last = intake->number;
	intake->number = 0;
	return GAUGES_INTAKE_ROUND;
}

static enum gauges_intake_result fail(struct gauges_intake *intake,
				      const struct gauges_record *record)
{
	if (record->count >= GAUGES_SAID_COUNT || record->round || record->device)
		return GAUGES_INTAKE_NONSENSE;
	intake->failure = (enum gauges_failure)record->count;
	intake->code = record->code;
	return GAUGES_INTAKE_FAILED;
}

enum gauges_intake_result gauges_intake_add(struct gauges_intake *intake,
					    const struct gauges_record *record)
{
	if (record->kind == GAUGES_FAILED)
		return fail(intake, record);
	if (!intake->number) {
		if (!record->round || record->round <= intake->last ||
		    record->kind != GAUGES_DEVICE)
			return GAUGES_INTAKE_NONSENSE;
		intake->number = record->round;
		intake->round.device_count = intake->round.process_count = 0;
	}
	if (record->round != intake->number)
		return GAUGES_INTAKE_NONSENSE;
	switch ((enum gauges_record_kind)record->kind) {
	case GAUGES_DEVICE:
		return add_device(intake, record);
	case GAUGES_PROCESSES:
		return add_processes(intake, record);
	case GAUGES_END:
		return end_round(intake, record);
	case GAUGES_FAILED:
		break;
	}
	return GAUGES_INTAKE_NONSENSE;
}
