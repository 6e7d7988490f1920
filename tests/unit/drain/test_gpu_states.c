/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/gpu_states.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drain/table.h"

#define S 1000000000ULL
#define PROCESSES 5
#define STREAMS 6
#define WHOLES 7

static struct gpu_states *states;

/* Instead of drain/table.c: the kernel's tables are arrays here. */
static struct {
	uint32_t tgid[2000];
	struct pp_gpu_process process[2000];
	size_t count;
	struct pp_process_id stream[2], whole[2];
	uint32_t removed[8]; /* by descriptor */
	uint32_t dead;	     /* tgid; UINT32_MAX: all */
	struct pp_user_share share[PP_USER_SHARE_ROWS];
	uint16_t known[PP_USER_SHARES]; /* each user had the first row last */
	int err;
} kernel;

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	int err = kernel.err;

	for (size_t i = 0; map_fd == PROCESSES && i < kernel.count && !err; i++)
		err = on_entry(context, &kernel.tgid[i], &kernel.process[i]);
	for (size_t i = 0; map_fd == STREAMS && i < 2; i++)
		on_entry(context, &kernel.stream[i], NULL);
	for (size_t i = 0; map_fd == WHOLES && i < 2; i++)
		on_entry(context, &kernel.whole[i].tgid, &kernel.whole[i].generation);
	assert_int_equal(key_bytes, map_fd == STREAMS ? 8 : 4);
	assert_int_equal(value_bytes, map_fd == PROCESSES ? sizeof(struct pp_gpu_process)
				      : map_fd == STREAMS ? 1000
							  : 4);
	return err;
}

int table_remove(int map_fd, const void *key)
{
	(void)key;
	kernel.removed[map_fd]++;
	return 0;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	(void)context;
	return kernel.dead != UINT32_MAX && id.tgid != kernel.dead;
}

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return gpu_states_new(&states);
}

static int teardown(void **state)
{
	(void)state;
	gpu_states_free(states);
	return 0;
}

/* A process in a state since a moment. */
static struct pp_gpu_process *put(uint32_t tgid, enum pp_gpu gpu, uint64_t since_ns)
{
	struct pp_gpu_process *process = &kernel.process[kernel.count];

	kernel.tgid[kernel.count++] = tgid;
	process->generation = 3;
	process->since = since_ns << PP_GPU_SINCE_SHIFT | gpu;
	return process;
}

static int collect(uint64_t now_ns)
{
	const struct gpu_tables tables = {.processes = PROCESSES,
					  .streams = STREAMS,
					  .wholes = WHOLES,
					  .stream_bytes = 1000,
					  .shares = {.row = kernel.share, .known = kernel.known},
					  .is_alive = is_alive};

	return gpu_states_collect(states, &tables, now_ns);
}

static struct {
	struct gpu_state_times row[2000];
	size_t count;
	int err;
} taken;

static int on_times(void *context, const struct gpu_state_times *times)
{
	(void)context;
	taken.row[taken.count++] = *times;
	return taken.err;
}

static size_t take(void)
{
	taken.count = 0;
	assert_int_equal(gpu_states_take(states, on_times, NULL), taken.err);
	return taken.count;
}

static void state__that_goes_on_counts_up_to_each_reading(void **state)
{
	struct pp_gpu_process *process = put(70, PP_GPU_QUEUED, 10 * S);

	(void)state;
	process->total_ns[PP_GPU_UNKNOWN] = 1 * S;
	assert_int_equal(collect(12 * S), 0);
	assert_int_equal(take(), 1);
	assert_int_equal(taken.row[0].id.tgid, 70);
	assert_int_equal(taken.row[0].id.generation, 3);
	assert_int_equal(taken.row[0].ns[PP_GPU_UNKNOWN], 1 * S);
	assert_int_equal(taken.row[0].ns[PP_GPU_QUEUED], 2 * S);
	assert_int_equal(taken.row[0].ns[PP_GPU_DRAINED], 0);
	/* It has turned since. */
	process->total_ns[PP_GPU_QUEUED] = 5 * S;
	process->since = 15 * S << PP_GPU_SINCE_SHIFT | PP_GPU_DRAINED;
	assert_int_equal(collect(16 * S), 0);
	assert_int_equal(collect(17 * S), 0); /* another window of the same profile */
	assert_int_equal(take(), 1);
	assert_int_equal(taken.row[0].ns[PP_GPU_QUEUED], 3 * S);
	assert_int_equal(taken.row[0].ns[PP_GPU_DRAINED], 2 * S);
	assert_int_equal(take(), 0);
}

/* The kernel side writes meanwhile: nothing is counted twice. */
static void sum__that_goes_back_waits_until_it_has_grown(void **state)
{
	struct pp_gpu_process *process = put(70, PP_GPU_QUEUED, 10 * S);

	(void)state;
	assert_int_equal(collect(12 * S), 0);
	process->since = 11 * S << PP_GPU_SINCE_SHIFT | PP_GPU_DRAINED; /* its sum comes later */
	assert_int_equal(collect(12 * S), 0);
	process->total_ns[PP_GPU_QUEUED] = 1 * S;
	assert_int_equal(collect(13 * S), 0);
	assert_int_equal(take(), 1);
	assert_int_equal(taken.row[0].ns[PP_GPU_QUEUED], 2 * S);
	assert_int_equal(taken.row[0].ns[PP_GPU_DRAINED], 2 * S);
}

static void process__that_ended_has_its_last_times_and_leaves(void **state)
{
	(void)state;
	put(70, PP_GPU_DRAINED, 10 * S);
	put(71, PP_GPU_DRAINED, 10 * S);
	kernel.stream[0] = kernel.whole[0] = (struct pp_process_id){70, 3};
	kernel.stream[1] = kernel.whole[1] = (struct pp_process_id){71, 3};
	kernel.dead = 71;
	assert_int_equal(collect(12 * S), 0);
	assert_int_equal(kernel.removed[PROCESSES], 1);
	assert_int_equal(kernel.removed[STREAMS], 1);
	assert_int_equal(kernel.removed[WHOLES], 1);
	kernel.count = 1;
	assert_int_equal(collect(13 * S), 0);
	assert_int_equal(take(), 2);
	assert_int_equal(taken.row[0].ns[PP_GPU_DRAINED] + taken.row[1].ns[PP_GPU_DRAINED], 5 * S);
	assert_int_equal(collect(14 * S), 0);
	assert_int_equal(take(), 1);
}

static void processes__beyond_the_bound_share_a_sum(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < GPU_STATES_MAX + 10; i++)
		put(1000 + i, PP_GPU_QUEUED, 10 * S);
	kernel.dead = UINT32_MAX;
	assert_int_equal(collect(11 * S), 0);
	assert_int_equal(take(), GPU_STATES_MAX + 1);
	assert_int_equal(taken.row[GPU_STATES_MAX].id.tgid, 0);
	assert_int_equal(taken.row[GPU_STATES_MAX].others, 10);
	assert_int_equal(taken.row[GPU_STATES_MAX].ns[PP_GPU_QUEUED], 10 * S);
	kernel.count = 0;
	assert_int_equal(take(), 0);
}

static void processes__that_live_are_bounded_as_well(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < GPU_STATES_MAX + 10; i++)
		put(1000 + i, PP_GPU_DRAINED, 10 * S);
	assert_int_equal(collect(11 * S), 0);
	assert_int_equal(take(), GPU_STATES_MAX + 1);
	assert_int_equal(taken.row[0].id.tgid, 1000);
	assert_int_equal(taken.row[GPU_STATES_MAX].others, 10);
	assert_int_equal(taken.row[GPU_STATES_MAX].ns[PP_GPU_DRAINED], 10 * S);
}

static void user__gets_the_room_of_an_ended_process_back(void **state)
{
	(void)state;
	put(70, PP_GPU_QUEUED, 10 * S)->user = 2001;
	put(71, PP_GPU_QUEUED, 10 * S)->user = 2001;
	put(72, PP_GPU_QUEUED, 10 * S); /* root has no share */
	kernel.share[0] = (struct pp_user_share){.who = 2001, .gpu_processes = 2};
	kernel.share[PP_USER_SHARE_COMMON].gpu_processes = 1;
	kernel.dead = 70;
	assert_int_equal(collect(11 * S), 0);
	assert_int_equal(kernel.share[0].gpu_processes, 1);
	kernel.dead = UINT32_MAX;
	assert_int_equal(collect(12 * S), 0);
	/* The kernel side may have counted down itself. */
	assert_int_equal(kernel.share[0].gpu_processes, 0);
	assert_int_equal(kernel.share[PP_USER_SHARE_COMMON].gpu_processes, 1);
}

static void errors__come_back(void **state)
{
	(void)state;
	put(70, PP_GPU_QUEUED, 10 * S);
	kernel.err = -EIO;
	assert_int_equal(collect(11 * S), -EIO);
	kernel.err = 0;
	assert_int_equal(collect(11 * S), 0);
	taken.err = -ENOMEM;
	assert_int_equal(take(), 1);
	taken.err = 0;
}

int main(void)
{
#define STATES_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		STATES_TEST(state__that_goes_on_counts_up_to_each_reading),
		STATES_TEST(sum__that_goes_back_waits_until_it_has_grown),
		STATES_TEST(process__that_ended_has_its_last_times_and_leaves),
		STATES_TEST(processes__beyond_the_bound_share_a_sum),
		STATES_TEST(processes__that_live_are_bounded_as_well),
		STATES_TEST(user__gets_the_room_of_an_ended_process_back),
		STATES_TEST(errors__come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
