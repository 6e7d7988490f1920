/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: gpu/gpu_times.c profile/queue_line.c */
/* The kernel side, what reads it, processes and profiles are stand-ins. */
#include "gpu/gpu_times.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "discover/process_table.h"
#include "drain/gpu_states.h"
#include "options/options.h"
#include "probes/probes.h"
#include "windows/profiles.h"

static struct options options;
static struct process process = {.id = {.tgid = 70, .generation = 3}, .comm = "python3"};
static bool is_loaded, is_reading;
static char lines[512];
static uint32_t line_kinds;
static struct gpu_tables tables;
static struct gpu_state_times row[2];
static int error;

const struct cuda_side *probes_cuda(struct probes *probes)
{
	(void)probes;
	return is_loaded ? (const struct cuda_side *)lines : NULL;
}

struct cuda_side_states cuda_side_states(const struct cuda_side *side)
{
	(void)side;
	return (struct cuda_side_states){
		.processes = 5, .streams = 6, .wholes = 7, .stream_bytes = 1000};
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == 70 ? &process : NULL;
}

int profiles_add_comment_to(struct profiles *profiles, uint32_t kinds, const char *comment)
{
	(void)profiles;
	line_kinds |= kinds;
	strcat(strcat(lines, comment), "\n");
	return 0;
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

static struct gpu_times *opened(uint32_t events)
{
	const struct gpu_times_sources sources = {.options = &options};
	struct gpu_times *times;

	options.events = events;
	lines[0] = '\0';
	line_kinds = 0;
	error = 0;
	is_loaded = is_reading = false;
	assert_int_equal(gpu_times_new(&sources, &times), 0);
	return times;
}

static void run_without_cuda__has_none(void **state)
{
	struct gpu_times *times = opened(PP_CAPTURE_CPU);

	(void)state;
	assert_null(times);
	assert_int_equal(gpu_times_collect(times), 0);
	assert_int_equal(gpu_times_describe(times, NULL), 0);
	gpu_times_free(times);
}

static void collect__reads_what_is_loaded_and_knows_who_lives(void **state)
{
	OWNED(gpu_times) struct gpu_times *times = opened(PP_CAPTURE_CUDA);
	const struct pp_process_id other = {.tgid = 71, .generation = 3};

	(void)state;
	assert_int_equal(gpu_times_collect(times), 0);
	assert_false(is_reading);
	is_loaded = true;
	assert_int_equal(gpu_times_collect(times), 0);
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
	assert_int_equal(gpu_times_collect(times), -EIO);
}

static void describe__writes_a_line_a_process_into_kind_cuda(void **state)
{
	OWNED(gpu_times) struct gpu_times *times = opened(PP_CAPTURE_CUDA);

	(void)state;
	row[0] = (struct gpu_state_times){.id = process.id, .ns = {1000, 2000, 3000}};
	row[1] = (struct gpu_state_times){.others = 4, .ns = {0, 0, 5000}};
	assert_int_equal(gpu_times_describe(times, NULL), 0);
	assert_string_equal(
		lines,
		"gpu_queue pid=70 comm=python3 queued=0.000002 drained=0.000003 unknown=0.000001\n"
		"gpu_queue others=4 queued=0.000000 drained=0.000005 unknown=0.000000\n");
	assert_int_equal(line_kinds, 1U << PP_PROFILE_CUDA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_without_cuda__has_none),
		cmocka_unit_test(collect__reads_what_is_loaded_and_knows_who_lives),
		cmocka_unit_test(describe__writes_a_line_a_process_into_kind_cuda),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
