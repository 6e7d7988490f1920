/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: gauges/intake.c gpu/gauge_sums.c profile/gpu_gauges.c */
/* What a child that has run a vendor's code writes into its pipe, as records.  Each begins with a
 * byte that chooses how much of it is sound: random bytes alone would not get past the first
 * check. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gauges/intake.h"
#include "gpu/gauge_sums.h"

#define SOUND_HEAD 1U /* the round and the device are those that are due */
#define SOUND_BODY 2U /* values lie within their bounds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_head(struct gauges_record *record, const struct gauges_intake *intake)
{
	const uint32_t count = intake->number ? intake->round.device_count : 0;

	record->kind = GAUGES_DEVICE + record->kind % GAUGES_FAILED;
	record->round = intake->number ? intake->number : intake->last + 1;
	record->count %= GAUGES_ROWS_MAX + 2;
	record->device = count ? intake->round.device[count - 1].index : 0;
	if (record->kind == GAUGES_DEVICE) {
		record->device += 1;
		record->count = 0;
	} else if (record->kind != GAUGES_PROCESSES) {
		record->device = 0;
	}
	if (record->kind == GAUGES_FAILED)
		record->round = 0;
}

static void mend_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			*text = '?';
}

static void mend_body(struct gauges_record *record)
{
	struct gauges_device *gpu = &record->gpu;

	if (record->kind == GAUGES_PROCESSES) {
		for (uint32_t i = 0; i < record->count && i < GAUGES_ROWS_MAX; i++) {
			record->process[i].pid = 1 + record->process[i].pid % GAUGES_PID_MAX;
			record->process[i].sm %= GPU_SHARE_MAX + 1;
			record->process[i].memory_bytes %= GAUGES_VALUE_MAX;
		}
		return;
	}
	mend_text(gpu->uuid, sizeof(gpu->uuid));
	mend_text(gpu->name, sizeof(gpu->name));
	gpu->has &= (1ULL << GPU_GAUGE_COUNT) - 1;
	gpu->has_reasons &= 1;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		gpu->value[i] %= GPU_SHARE_MAX + 1;
}

/* A round has what its bounds allow. */
static void check_round(const struct gauges_round *round, struct gauge_sums *sums)
{
	assert(round->device_count && round->device_count <= GAUGES_DEVICES_MAX);
	assert(round->process_count <= GAUGES_PROCESSES_MAX);
	gauge_sums_add(sums, round);
	assert(sums->device_count <= GAUGES_DEVICES_MAX);
	assert(sums->process_count <= GAUGES_PROCESSES_MAX);
}

static void check_sum(const struct gauge_sum *sum, uint64_t most)
{
	assert(sum->max <= sum->sum && sum->max <= most);
	assert(sum->count || !sum->sum);
}

static void check_sums(const struct gauge_sums *sums)
{
	for (uint32_t i = 0; i < sums->device_count; i++) {
		for (unsigned int j = 0; j < GPU_GAUGE_COUNT; j++)
			check_sum(&sums->device[i].gauge[j], GAUGES_VALUE_MAX);
		for (unsigned int j = 0; j < GPU_REASON_COUNT; j++)
			assert(sums->device[i].reason[j] <= sums->device[i].reason_rounds);
	}
	for (uint32_t i = 0; i < sums->process_count; i++) {
		check_sum(&sums->process[i].memory_bytes, GAUGES_VALUE_MAX);
		check_sum(&sums->process[i].sm, GPU_SHARE_MAX);
		assert(gauge_sums_device_of(sums, sums->process[i].pid) != -ENOENT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED_MEM struct gauges_intake *intake = calloc(1, sizeof(*intake));
	OWNED_MEM struct gauge_sums *sums = calloc(1, sizeof(*sums));
	enum gauges_intake_result result = GAUGES_INTAKE_MORE;

	assert(intake && sums);
	while (size > 1 && result != GAUGES_INTAKE_NONSENSE && result != GAUGES_INTAKE_FAILED) {
		const uint8_t sound = *data++;
		struct gauges_record record = {.kind = 0};
		/* Short inputs have many records, too. */
		const size_t wanted = sound & 4 ? 16 : sizeof(record);
		const size_t taken = --size < wanted ? size : wanted;

		memcpy(&record, data, taken);
		data += taken;
		size -= taken;
		if (sound & SOUND_HEAD)
			mend_head(&record, intake);
		if (sound & SOUND_BODY)
			mend_body(&record);
		result = gauges_intake_add(intake, &record);
		if (result == GAUGES_INTAKE_ROUND)
			check_round(&intake->round, sums);
		if (result == GAUGES_INTAKE_FAILED)
			assert(gauges_failure_name(intake->failure) &&
			       intake->failure < GAUGES_SAID_COUNT);
	}
	check_sums(sums);
	return 0;
}
