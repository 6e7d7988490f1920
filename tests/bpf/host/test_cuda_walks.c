/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_walks.bpf.h: which calls have their stacks taken, and for how many each stands. */
#include "host.h"

#include <math.h>

#include <lib/cuda_walks.bpf.h>

#define TGID 70U
#define GENERATION 5U
#define SECOND 1000000000ULL
#define INCOME (uint32_t)(SECOND / PP_CUDA_PROCESS_NS) /* walks a second */
#define SAVED (uint32_t)(PP_CUDA_SAVED_NS / PP_CUDA_PROCESS_NS)
#define LINES 10U

static struct user_namespace machine;

static int setup(void **state)
{
	assert_int_equal(host_setup(state), 0);
	host_add_hash(&cuda_totals, sizeof(uint64_t), sizeof(struct pp_cuda_totals));
	host_add_hash(&cuda_processes, sizeof(uint32_t), sizeof(struct cuda_process));
	host_add_array(&cuda_machine, 1, sizeof(struct cuda_machine));
	host->cred = (struct cred){.user_ns = &machine};
	host->task.cred = &host->cred;
	host->task.tgid = TGID;
	host->task.pid = TGID;
	host->config.window = 1;
	host->now_ns = 100 * SECOND;
	return 0;
}

static struct pp_cuda_totals *row(uint64_t id)
{
	const struct pp_cuda_totals none = {.what.id = {.tgid = TGID, .generation = GENERATION},
					    .gap = 1};

	bpf_map_update_elem(&cuda_totals, &id, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&cuda_totals, &id);
}

/* A call that counts as so many.  Returns for how many its stack stands. */
static uint32_t call(uint64_t id, uint32_t count)
{
	struct pp_cuda_totals *totals = row(id);

	totals->calls += count;
	return cuda_walk_due(totals, &host->config, id, count);
}

/* What the walks of a row say of its lines, of which each has every tenth call. */
struct seen {
	uint64_t calls, walks, stands_for, squares;
	uint64_t of_line[LINES];
};

static void see(uint64_t id, struct seen *seen)
{
	const uint32_t stands_for = call(id, 1);

	seen->walks += stands_for > 0;
	seen->stands_for += stands_for;
	seen->squares += (uint64_t)stands_for * stands_for;
	seen->of_line[seen->calls++ % LINES] += stands_for;
}

/* Calls as a loop makes them, so many a second. */
static void run(uint64_t id, uint32_t per_second, uint32_t seconds, struct seen *seen)
{
	for (uint64_t i = 0; i < (uint64_t)per_second * seconds; i++) {
		see(id, seen);
		host->now_ns += SECOND / per_second;
	}
}

static void walks__are_of_each_call_within_the_budget(void **state)
{
	struct seen burst = {}, steady = {};

	(void)state;
	run(1, 1000000, 1, &(struct seen){});
	host->now_ns += PP_CUDA_SAVED_NS;
	for (uint32_t i = 0; i < SAVED / 2; i++)
		see(2, &burst);
	assert_int_equal(burst.squares, SAVED / 2);
	run(3, INCOME * 9 / 10, 20, &steady);
	assert_int_equal(steady.squares, steady.calls);
}

/* Each line of a loop has a tenth, to twice what chance does to so many walks. */
static void walks__beyond_it_stand_for_all_calls(void **state)
{
	const uint32_t rates[] = {2700, 20000, 200000};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct seen seen = {};
		double error;

		run(i + 1, rates[i], 10, &seen);
		error = sqrt(0.1 * 0.9 * (double)seen.squares) / (double)seen.calls;
		print_message("%u a second: %llu walks, +-%.4f\n", rates[i],
			      (unsigned long long)seen.walks, error);
		assert_in_range(seen.walks, 9 * INCOME, 10 * INCOME + SAVED);
		assert_in_range(seen.stands_for, seen.calls * 99 / 100, seen.calls * 101 / 100);
		assert_true(error < 0.006);
		for (uint32_t line = 0; line < LINES; line++)
			assert_true(fabs((double)seen.of_line[line] / (double)seen.stands_for -
					 0.1) < 4 * error);
		host->now_ns += PP_CUDA_SAVED_NS;
	}
}

/* Whatever others are called. */
static void walks__of_a_row_with_few_calls_are_all(void **state)
{
	struct seen often = {}, seldom = {};

	(void)state;
	for (uint32_t i = 0; i < 20000 * 20; i++) {
		see(1, &often);
		if (i % 1000 == 0)
			see(2, &seldom);
		host->now_ns += SECOND / 20000;
	}
	assert_int_equal(seldom.squares, 400);
	assert_true(often.squares > 2 * often.calls);
}

/* A row that is called less gets all of its walks back. */
static void walks__follow_the_calls(void **state)
{
	struct seen seen = {};

	(void)state;
	run(1, 200000, 5, &seen);
	assert_true(row(1)->gap > 100);
	host->config.window++;
	run(1, 100, 10, &seen);
	memset(&seen, 0, sizeof(seen));
	run(1, 100, 10, &seen);
	assert_int_equal(seen.squares, seen.calls);
}

static void window__begins_with_a_walk_for_itself(void **state)
{
	struct seen seen = {};

	(void)state;
	run(1, 200000, 5, &seen);
	row(1)->owed = 7;
	host->config.window++;
	assert_int_equal(call(1, 1), 1);
	assert_int_equal(row(1)->owed, 0);
	assert_true(row(1)->next > row(1)->calls);
}

static void walk__that_is_not_taken_is_owed(void **state)
{
	(void)state;
	assert_int_equal(call(1, 1), 1);
	cuda_machine_get()->walks_until_ns = host->now_ns + 2 * PP_CUDA_SAVED_NS;
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(call(1, 1), 0);
	cuda_machine_get()->walks_until_ns = 0;
	assert_int_equal(call(1, 1), 10);
	assert_int_equal(call(1, 1), 1);
	walk_owe(row(1), 3);
	assert_int_equal(call(1, 1), 4);
	walk_owe(row(1), 1U << 31);
	walk_owe(row(1), 1U << 31);
	assert_int_equal(row(1)->owed, 1U << 31);
}

/* While launches are probed for a part of the time a hit counts as many. */
static void walk__of_a_hit_that_counts_as_many_stands_for_them(void **state)
{
	(void)state;
	assert_int_equal(call(1, 20), 20);
	assert_int_equal(call(1, 21), 21);
}

/* By --max-slowdown 0.25 %. */
static void walks__cost_more_of_a_smaller_budget(void **state)
{
	struct seen seen = {};

	(void)state;
	host->config.cuda_walk_shift = 2;
	run(1, 20000, 10, &seen);
	assert_in_range(seen.walks, 9 * INCOME / 4, (10 * INCOME + SAVED) / 4);
}

static void walks__of_a_user_and_of_the_machine_are_bounded(void **state)
{
	struct seen seen = {};

	(void)state;
	host->cred.euid.val = host->cred.uid.val = 1000;
	for (uint32_t i = 0; i < 8 * SAVED; i++) {
		host->task.tgid = TGID + i % 8;
		row(i % 8)->what.id.tgid = host->task.tgid;
		see(i % 8, &seen);
	}
	/* The clock stands, so he has what is saved: at least the half that is not held back. */
	assert_in_range(seen.walks, SAVED, PP_CUDA_SAVED_NS / PP_CUDA_USER_NS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(walks__are_of_each_call_within_the_budget),
		TEST(walks__beyond_it_stand_for_all_calls),
		TEST(walks__of_a_row_with_few_calls_are_all),
		TEST(walks__follow_the_calls),
		TEST(window__begins_with_a_walk_for_itself),
		TEST(walk__that_is_not_taken_is_owed),
		TEST(walk__of_a_hit_that_counts_as_many_stands_for_them),
		TEST(walks__cost_more_of_a_smaller_budget),
		TEST(walks__of_a_user_and_of_the_machine_are_bounded),
	};

	return cmocka_run_group_tests_name("bpf/cuda_walks", tests, NULL, NULL);
}
