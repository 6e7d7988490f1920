/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, profiles and clients are stand-ins: the process PID is of the user PID / 1000. */
#include "gpu/gauge_records.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "base/cleanup.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "gpu/gauge_sums.h"
#include "profile/record.h"
#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

#define UNKNOWN_PID 9999U

static struct gauge_sums *sums;
static struct services services;
static struct profiles profiles;
static char row[2048][160]; /* "LABEL=TEXT ... SUM/READINGS,MAX" */
static uint32_t owner[ARRAY_SIZE(row)];
static size_t rows;

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	static struct process process[UNKNOWN_PID];

	(void)table;
	if (tgid >= UNKNOWN_PID)
		return NULL;
	process[tgid].id = (struct pp_process_id){.tgid = tgid, .generation = 1};
	memcpy(process[tgid].comm, "sixteen letters.", PP_COMM_BYTES);
	return &process[tgid];
}

uint32_t process_user_kept(struct process *process)
{
	return process->id.tgid / 1000;
}

uint16_t context_table_flags(const struct process *process)
{
	return process->id.tgid % 2 ? PP_CONTEXT_MATCHES : 0;
}

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	return record_begin(ret_record, sink->strings, kind, id, comm);
}

static void note(const struct record *record)
{
	const struct profile_sample *sample = &record->sample;
	size_t used = 0;

	assert_int_equal(record->kind, PP_PROFILE_GPU);
	assert_true(rows < ARRAY_SIZE(row));
	owner[rows] = record->id.tgid;
	for (size_t i = 0; i < sample->label_count; i++)
		if (!sample->label[i].is_number)
			used += (size_t)snprintf(row[rows] + used, sizeof(row[0]) - used, "%s=%s ",
						 sample->label[i].key,
						 intern_get(profiles.strings,
							    sample->label[i].string, NULL));
	snprintf(row[rows] + used, sizeof(row[0]) - used, "%lld/%lld,%lld",
		 (long long)sample->value[PP_GPU_GAUGE_SUM],
		 (long long)sample->value[PP_GPU_GAUGE_READINGS],
		 (long long)sample->value[PP_GPU_GAUGE_MAX]);
	rows++;
}

int profiles_add_record(struct profiles *of, const struct record *record)
{
	(void)of;
	note(record);
	return 0;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return profiles.strings;
}

void top_add_record(struct top *top, const struct record *record)
{
	(void)top;
	note(record);
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	sums = calloc(1, sizeof(*sums));
	services = (struct services){.is_filtered = false};
	rows = 0;
	return !sums || intern_new(&profiles.strings);
}

static int teardown(void **state)
{
	(void)state;
	free(sums);
	intern_free(profiles.strings);
	return 0;
}

static void add_process(uint32_t pid, uint64_t bytes)
{
	sums->process[sums->process_count++] = (struct gauge_sums_process){
		.pid = pid, .device = 1, .rounds = 1, .memory_bytes = {1, bytes, bytes}};
}

static void put(bool to_clients)
{
	const struct record_sink sink = to_clients ? record_sink_clients(&services)
						   : record_sink_profiles(&services, &profiles);

	assert_int_equal(gauge_records_put(sums, &sink), 0);
}

/* Returns whose the n-th row of a process's memory is; 0: of the others. */
static uint32_t memory_of(size_t n)
{
	for (size_t i = 0; i < rows; i++)
		if (strstr(row[i], "gauge=process_memory") && !n--)
			return owner[i];
	fail();
	return 0;
}

static size_t count_rows(const char *text)
{
	size_t found = 0;

	for (size_t i = 0; i < rows; i++)
		found += strstr(row[i], text) != NULL;
	return found;
}

static void put__gpu_has_a_row_for_what_is_known(void **state)
{
	struct gauge_sums_device *gpu = &sums->device[sums->device_count++];

	(void)state;
	*gpu = (struct gauge_sums_device){
		.index = 3, .last = {.uuid = "GPU-3", .name = "NVIDIA H100"}, .rounds = 10};
	gpu->gauge[GPU_POWER] = (struct gauge_sum){.count = 10, .sum = 35050, .max = 4000};
	gpu->gauge[GPU_UTILIZATION] = (struct gauge_sum){.count = 4};
	gpu->reason_rounds = 10;
	gpu->reason[GPU_REASON_SW_POWER] = 4;
	put(false);
	assert_int_equal(rows, 4);
	assert_string_equal(row[0], "uuid=GPU-3 name=NVIDIA H100 device=nvml:3 gauge=utilization "
				    "unit=0.1 % 0/4,0");
	assert_string_equal(row[1], "uuid=GPU-3 name=NVIDIA H100 device=nvml:3 gauge=power "
				    "unit=0.1 W 35050/10,4000");
	assert_string_equal(row[2], "uuid=GPU-3 name=NVIDIA H100 device=nvml:3 gauge=clock_event "
				    "unit=0.1 % 0/10,0");
	assert_string_equal(row[3], "uuid=GPU-3 name=NVIDIA H100 device=nvml:3 gauge=clock_event "
				    "reason=sw_power_cap unit=0.1 % 4000/0,1000");
}

static void put__users_take_turns(void **state)
{
	(void)state;
	sums->device_count = 1;
	add_process(1001, 50);
	add_process(1003, 70);
	add_process(2001, 5);
	put(false);
	assert_int_equal(memory_of(0), 1003);
	assert_int_equal(memory_of(1), 2001);
	assert_int_equal(memory_of(2), 1001);
	assert_int_equal(count_rows("comm=sixteen letters. device=nvml:1 gauge=processes 1/1,1"),
			 3);
	assert_int_equal(count_rows("device=nvml:1 gauge=process_memory unit=bytes 70/1,70"), 1);
	assert_int_equal(rows, 6);
}

static void put__further_processes_share_rows(void **state)
{
	(void)state;
	sums->device_count = 1;
	sums->left_out = 1000;
	for (uint32_t i = 0; i < RECORD_PROCESSES_MAX + 2; i++)
		add_process(1000 + i, 5000 - i);
	add_process(UNKNOWN_PID, 7);
	put(false);
	assert_int_equal(memory_of(RECORD_PROCESSES_MAX - 1), 1000 + RECORD_PROCESSES_MAX - 1);
	assert_int_equal(memory_of(RECORD_PROCESSES_MAX), 0);
	assert_int_equal(count_rows("comm=[others] device=nvml:1 gauge=processes 1/1,1"), 3);
	assert_int_equal(count_rows("comm=[others] device=nvml:0 gauge=processes 1000/1,1000"), 1);
}

static void put__of_a_filter_only_what_matches(void **state)
{
	(void)state;
	services.is_filtered = true;
	sums->device_count = 1;
	add_process(1001, 1);
	add_process(1002, 2);
	put(false);
	assert_int_equal(memory_of(0), 1001);
	assert_int_equal(memory_of(1), 0);
	assert_int_equal(count_rows("comm=[others] device=nvml:1 gauge=process_memory"), 1);
}

static void put__clients_get_known_processes_alone(void **state)
{
	(void)state;
	sums->device_count = 1;
	sums->left_out = 5;
	add_process(1001, 1);
	add_process(UNKNOWN_PID, 1);
	put(true);
	assert_int_equal(rows, 2);
	assert_int_equal(memory_of(0), 1001);
}

static void put__without_gauges_is_nothing(void **state)
{
	(void)state;
	put(false);
	assert_int_equal(rows, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put__gpu_has_a_row_for_what_is_known),
		TEST(put__users_take_turns),
		TEST(put__further_processes_share_rows),
		TEST(put__of_a_filter_only_what_matches),
		TEST(put__clients_get_known_processes_alone),
		TEST(put__without_gauges_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
