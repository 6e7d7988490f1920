/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side, what reads it, processes, profiles and clients are stand-ins. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/cleanup.h"
#include "discover/process_table.h"
#include "drain/gpu_states.h"
#include "probes/probes.h"
#include "profile/record.h"
#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

extern const struct source gpu_times_source;

static struct process process = {.id = {.tgid = 70, .generation = 3}, .comm = "python3"};
static bool is_loaded, is_reading, is_watched;
static char lines[512];
static struct profiles profiles;
static struct gpu_tables tables;
static struct gpu_state_times row[2];
static int error;

static const struct cuda_side side = {
	.processes = 5, .streams = 6, .wholes = 7, .stream_bytes = 1000};

const struct cuda_side *probes_cuda(struct probes *probes)
{
	(void)probes;
	return is_loaded ? &side : NULL;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == 70 ? &process : NULL;
}

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	return record_begin(ret_record, sink->strings, kind, id, comm);
}

int profiles_add_record(struct profiles *of, const struct record *record)
{
	const struct profile_sample *sample = &record->sample;
	const size_t used = strlen(lines), labels = sample->label_count;

	assert_int_equal(record->kind, PP_PROFILE_GPU);
	assert_string_equal(sample->label[labels - 1].key, "gpu");
	snprintf(lines + used, sizeof(lines) - used, "%u %s %s %lld\n", record->id.tgid,
		 intern_get(of->strings, sample->label[labels - 2].string, NULL),
		 intern_get(of->strings, sample->label[labels - 1].string, NULL),
		 (long long)sample->value[PP_GPU_TIME]);
	return 0;
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	(void)top;
	assert_int_equal(kinds, 1U << PP_PROFILE_GPU);
	return is_watched;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return profiles.strings;
}

void top_add_record(struct top *top, const struct record *record)
{
	(void)top;
	profiles_add_record(&profiles, record);
}

int gpu_states_new(struct gpu_states **ret_states)
{
	*ret_states = malloc(1);
	return *ret_states ? 0 : -ENOMEM;
}

void gpu_states_free(struct gpu_states *states)
{
	free(states);
}

int gpu_states_collect(struct gpu_states *states, const struct gpu_tables *of, uint64_t now_ns)
{
	assert_non_null(states);
	assert_true(now_ns > 0);
	tables = *of;
	is_reading = true;
	return error;
}

int gpu_states_part(const struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context)
{
	(void)states;
	return callback(context, &row[0]);
}

int gpu_states_take(struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context)
{
	int err = 0;

	(void)states;
	for (size_t i = 0; i < 2 && !err; i++)
		err = callback(context, &row[i]);
	return err;
}

/* ---- */

static const struct sources sources;
static const struct services services = {.sources = &sources};
static void *times;

static int setup(void **state)
{
	(void)state;
	lines[0] = '\0';
	error = 0;
	is_loaded = is_reading = is_watched = false;
	row[0] = (struct gpu_state_times){.id = process.id, .ns = {1000, 2000, 3000}};
	row[1] = (struct gpu_state_times){.others = 4, .ns = {0, 0, 5000}};
	return intern_new(&profiles.strings) || source_new(&gpu_times_source, &services, &times);
}

static int teardown(void **state)
{
	(void)state;
	assert_true(source_free(&gpu_times_source, times));
	intern_free(profiles.strings);
	return 0;
}

static void collect__reads_what_is_loaded_and_knows_who_lives(void **state)
{
	const struct source_window window = {0};
	const struct pp_process_id other = {.tgid = 71, .generation = 3};

	(void)state;
	assert_int_equal(gpu_times_source.collect(times, &window), 0);
	assert_false(is_reading);
	is_loaded = true;
	assert_int_equal(gpu_times_source.collect(times, &window), 0);
	assert_int_equal(tables.processes, 5);
	assert_int_equal(tables.streams, 6);
	assert_int_equal(tables.wholes, 7);
	assert_int_equal(tables.stream_bytes, 1000);
	assert_true(tables.is_alive(tables.context, process.id));
	assert_false(tables.is_alive(tables.context, other));
	process.exit_ns = 1;
	assert_false(tables.is_alive(tables.context, process.id));
	process.exit_ns = 0;
	error = -EIO;
	assert_int_equal(gpu_times_source.collect(times, &window), -EIO);
}

static void describe__adds_a_row_a_state_that_was(void **state)
{
	(void)state;
	assert_int_equal(gpu_times_source.describe(times, &profiles), 0);
	assert_string_equal(lines, "70 python3 unknown 1000\n70 python3 queued 2000\n"
				   "70 python3 drained 3000\n0 [others] drained 5000\n");
}

static void finish__sends_to_who_watches_what_the_part_had(void **state)
{
	const struct source_window window = {0};

	(void)state;
	assert_int_equal(gpu_times_source.finish(times, &window, NULL), 0);
	assert_string_equal(lines, "");
	is_watched = true;
	assert_int_equal(gpu_times_source.finish(times, &window, NULL), 0);
	assert_string_equal(lines, "70 python3 unknown 1000\n70 python3 queued 2000\n"
				   "70 python3 drained 3000\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(collect__reads_what_is_loaded_and_knows_who_lives),
		TEST(describe__adds_a_row_a_state_that_was),
		TEST(finish__sends_to_who_watches_what_the_part_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
