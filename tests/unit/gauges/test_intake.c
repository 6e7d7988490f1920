/* SPDX-License-Identifier: BSD-2-Clause */
#include "gauges/intake.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

static struct gauges_intake intake;

static int setup(void **state)
{
	(void)state;
	memset(&intake, 0, sizeof(intake));
	return 0;
}

static struct gauges_record device(uint32_t round, uint32_t index)
{
	struct gauges_record record = {.kind = GAUGES_DEVICE, .round = round, .device = index};

	snprintf(record.gpu.uuid, sizeof(record.gpu.uuid), "GPU-%u", index);
	snprintf(record.gpu.name, sizeof(record.gpu.name), "A GPU");
	record.gpu.has = 1ULL << GPU_POWER | 1ULL << GPU_UTILIZATION;
	record.gpu.value[GPU_POWER] = 3500;
	record.gpu.value[GPU_UTILIZATION] = GPU_SHARE_MAX;
	return record;
}

static struct gauges_record processes(uint32_t round, uint32_t index, uint32_t count)
{
	struct gauges_record record = {
		.kind = GAUGES_PROCESSES, .round = round, .device = index, .count = count};

	for (uint32_t i = 0; i < count && i < GAUGES_ROWS_MAX; i++)
		record.process[i] =
			(struct gauges_process){.pid = 100 + i, .sm = 10, .memory_bytes = 5};
	return record;
}

static struct gauges_record end(uint32_t round)
{
	return (struct gauges_record){.kind = GAUGES_END, .round = round, .count = 2};
}

static void add(struct gauges_record record, enum gauges_intake_result wanted)
{
	assert_int_equal(gauges_intake_add(&intake, &record), wanted);
}

static void intake__rounds_are_what_was_written(void **state)
{
	(void)state;
	add(device(1, 0), GAUGES_INTAKE_MORE);
	add(processes(1, 0, GAUGES_ROWS_MAX), GAUGES_INTAKE_MORE);
	add(processes(1, 0, 1), GAUGES_INTAKE_MORE);
	add(device(1, 4), GAUGES_INTAKE_MORE);
	add(end(1), GAUGES_INTAKE_ROUND);
	assert_int_equal(intake.round.device_count, 2);
	assert_int_equal(intake.round.device[1].index, 4);
	assert_string_equal(intake.round.device[1].gpu.uuid, "GPU-4");
	assert_int_equal(intake.round.process_count, GAUGES_ROWS_MAX + 1);
	assert_int_equal(intake.round.process[GAUGES_ROWS_MAX].process.pid, 100);
	assert_int_equal(intake.round.left_out, 2);
	/* The next one begins empty; numbers may be left out, as where one had no GPU. */
	add(device(3, 1), GAUGES_INTAKE_MORE);
	add(end(3), GAUGES_INTAKE_ROUND);
	assert_int_equal(intake.round.device_count, 1);
	assert_int_equal(intake.round.process_count, 0);
}

static void intake__a_failure_is_told_with_its_code(void **state)
{
	(void)state;
	add((struct gauges_record){.kind = GAUGES_FAILED, .count = GAUGES_NO_DRIVER, .code = 9},
	    GAUGES_INTAKE_FAILED);
	assert_int_equal(intake.failure, GAUGES_NO_DRIVER);
	assert_int_equal(intake.code, 9);
	assert_string_equal(gauges_failure_name(GAUGES_NO_DRIVER), "no_driver");
	assert_true(strlen(gauges_failure_text(GAUGES_NO_DRIVER)) > 0);
	/* What the agent sees itself is nothing that a child says. */
	add((struct gauges_record){.kind = GAUGES_FAILED, .count = GAUGES_ENDED},
	    GAUGES_INTAKE_NONSENSE);
	add((struct gauges_record){.kind = GAUGES_FAILED, .count = UINT32_MAX},
	    GAUGES_INTAKE_NONSENSE);
}

static void intake__records_out_of_order_are_nonsense(void **state)
{
	static const struct {
		unsigned int kind[3];
		uint32_t round[3], index[3];
	} row[] = {
		{{GAUGES_END}, {1}, {0}},
		{{GAUGES_PROCESSES}, {1}, {0}},
		{{GAUGES_DEVICE}, {0}, {0}},
		{{77}, {1}, {0}},
		{{GAUGES_DEVICE, 77}, {1, 1}, {0, 0}},
		{{GAUGES_DEVICE, GAUGES_DEVICE}, {1, 2}, {0, 1}},
		{{GAUGES_DEVICE, GAUGES_DEVICE}, {1, 1}, {1, 1}},
		{{GAUGES_DEVICE, GAUGES_DEVICE}, {1, 1}, {1, 0}},
		{{GAUGES_DEVICE, GAUGES_PROCESSES}, {1, 1}, {1, 0}},
		{{GAUGES_DEVICE, GAUGES_END}, {1, 2}, {1, 0}},
		{{GAUGES_DEVICE, GAUGES_END, GAUGES_DEVICE}, {2, 2, 2}, {1, 0, 0}},
		{{GAUGES_DEVICE, GAUGES_END, GAUGES_DEVICE}, {2, 2, 1}, {1, 0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		enum gauges_intake_result result = GAUGES_INTAKE_MORE;

		memset(&intake, 0, sizeof(intake));
		for (size_t j = 0; j < 3 && row[i].kind[j]; j++) {
			struct gauges_record record = device(row[i].round[j], row[i].index[j]);

			assert_int_not_equal(result, GAUGES_INTAKE_NONSENSE);
			if (row[i].kind[j] == GAUGES_PROCESSES)
				record = processes(row[i].round[j], row[i].index[j], 1);
			record.kind = row[i].kind[j];
			result = gauges_intake_add(&intake, &record);
		}
		assert_int_equal(result, GAUGES_INTAKE_NONSENSE);
	}
}

static void intake__values_that_cannot_be_are_nonsense(void **state)
{
	struct gauges_record record[10];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(record); i++)
		record[i] = device(1, 0);
	record[count++].gpu.value[GPU_UTILIZATION] = GPU_SHARE_MAX + 1;
	record[count++].gpu.value[GPU_POWER] = GAUGES_VALUE_MAX + 1;
	record[count++].gpu.has |= 1ULL << GPU_GAUGE_COUNT;
	record[count++].gpu.has_reasons = 2;
	memset(record[count++].gpu.uuid, 'a', GPU_UUID_BYTES);
	memset(record[count++].gpu.name, 'a', GPU_NAME_BYTES);
	record[count++].gpu.uuid[2] = ' ';
	record[count++].gpu.name[2] = '\n';
	record[count++].gpu.name[2] = (char)0xc3;
	record[count++].count = 1;
	assert_int_equal(count, ARRAY_SIZE(record));
	for (size_t i = 0; i < count; i++) {
		memset(&intake, 0, sizeof(intake));
		add(record[i], GAUGES_INTAKE_NONSENSE);
	}
	/* A value that is not there is not looked at. */
	memset(&intake, 0, sizeof(intake));
	record[0].gpu.has = 0;
	add(record[0], GAUGES_INTAKE_MORE);
}

static void intake__processes_that_cannot_be_are_nonsense(void **state)
{
	struct gauges_record record[8];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(record); i++)
		record[i] = processes(1, 0, 2);
	record[count++].process[1].pid = 0;
	record[count++].process[1].pid = GAUGES_PID_MAX + 1;
	record[count++].process[1].sm = GPU_SHARE_MAX + 1;
	record[count++].process[1].memory_bytes = GAUGES_VALUE_MAX + 1;
	record[count++].count = 0;
	record[count++].count = GAUGES_ROWS_MAX + 1;
	record[count++].count = UINT32_MAX;
	assert_int_equal(count + 1, ARRAY_SIZE(record));
	for (size_t i = 0; i < count; i++) {
		memset(&intake, 0, sizeof(intake));
		add(device(1, 0), GAUGES_INTAKE_MORE);
		add(record[i], GAUGES_INTAKE_NONSENSE);
	}
	memset(&intake, 0, sizeof(intake));
	record[count].process[0].sm = GAUGES_UNKNOWN_SM;
	record[count].process[1].memory_bytes = GAUGES_UNKNOWN_BYTES;
	add(device(1, 0), GAUGES_INTAKE_MORE);
	add(record[count], GAUGES_INTAKE_MORE);
}

static void intake__more_than_there_is_room_for_is_nonsense(void **state)
{
	const uint32_t whole = GAUGES_PROCESSES_MAX / GAUGES_ROWS_MAX;

	(void)state;
	for (uint32_t i = 0; i < GAUGES_DEVICES_MAX; i++)
		add(device(1, i), GAUGES_INTAKE_MORE);
	add(device(1, GAUGES_DEVICES_MAX), GAUGES_INTAKE_NONSENSE);
	memset(&intake, 0, sizeof(intake));
	add(device(1, 0), GAUGES_INTAKE_MORE);
	for (uint32_t i = 0; i < whole; i++)
		add(processes(1, 0, GAUGES_ROWS_MAX), GAUGES_INTAKE_MORE);
	add(processes(1, 0, GAUGES_PROCESSES_MAX - whole * GAUGES_ROWS_MAX), GAUGES_INTAKE_MORE);
	add(processes(1, 0, 1), GAUGES_INTAKE_NONSENSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(intake__rounds_are_what_was_written, setup),
		cmocka_unit_test_setup(intake__a_failure_is_told_with_its_code, setup),
		cmocka_unit_test_setup(intake__records_out_of_order_are_nonsense, setup),
		cmocka_unit_test_setup(intake__values_that_cannot_be_are_nonsense, setup),
		cmocka_unit_test_setup(intake__processes_that_cannot_be_are_nonsense, setup),
		cmocka_unit_test_setup(intake__more_than_there_is_room_for_is_nonsense, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
