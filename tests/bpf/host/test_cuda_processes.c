/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_walks.bpf.h: what one user's processes take of the tables, and what is left. */
#include "host.h"

#include <lib/cuda_walks.bpf.h>

#define GENERATION 5U
#define GREEDY 1000U
#define OTHER 1001U

static struct user_namespace machine;

static void run_as(uint32_t user, uint32_t tgid)
{
	host->cred = (struct cred){.euid.val = user, .uid.val = user, .user_ns = &machine};
	host->task.tgid = tgid;
	host->task.pid = tgid;
}

static int setup(void **state)
{
	assert_int_equal(host_setup(state), 0);
	host_add_hash(&cuda_processes, sizeof(uint32_t), sizeof(struct cuda_process));
	host_add_hash(&cuda_removed, sizeof(struct pp_process_id), sizeof(uint64_t));
	host_add_array(&cuda_rows, 1, sizeof(uint64_t));
	host->task.cred = &host->cred;
	run_as(GREEDY, 70);
	return 0;
}

/* Makes rows for a process until it is refused one.  Returns how many. */
static uint32_t rows_of(uint32_t user, uint32_t tgid, bool is_of_others)
{
	uint32_t rows = 0;

	run_as(user, tgid);
	while (cuda_may_add(tgid, GENERATION, is_of_others) && rows <= PP_CUDA_TOTALS_MAX) {
		cuda_row_made(tgid, is_of_others);
		rows++;
	}
	return rows;
}

static void rows__of_one_users_processes_leave_as_many_as_they_have(void **state)
{
	const uint32_t room = PP_CUDA_TOTALS_MAX - PP_CUDA_TOTALS_KEPT;
	uint32_t greedy = 0;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		greedy += rows_of(GREEDY, 100 + i, false);
	assert_int_equal(greedy, room / 2);
	assert_int_equal(share_of(GREEDY)->cuda_rows, greedy);
	assert_int_equal(rows_of(OTHER, 200, false), room / 4);
	/* Processes of root's share what is left. */
	assert_int_equal(rows_of(0, 300, false), room / 8);
	assert_int_equal(rows_of(0, 301, false), room / 16);
}

/* Each new process has rows of its own for what found no room. */
static void rows__of_other_kernels_have_room_of_their_own(void **state)
{
	uint32_t others = 0;

	(void)state;
	rows_of(GREEDY, 100, false);
	for (uint32_t i = 0; i < 10; i++)
		others += rows_of(GREEDY, 101 + i, true);
	assert_in_range(others, PP_CUDA_TOTALS_KEPT / 4, PP_CUDA_TOTALS_KEPT);
	assert_true(rows_of(OTHER, 200, true) > 1000);
}

static void rows__that_were_removed_can_be_made_again(void **state)
{
	const struct pp_process_id id = {.tgid = 300, .generation = GENERATION};
	const uint64_t removed = 10;
	const uint32_t zero = 0;
	uint64_t *made = bpf_map_lookup_elem(&cuda_rows, &zero);

	(void)state;
	assert_true(rows_of(0, 300, false) > removed);
	assert_int_equal(bpf_map_update_elem(&cuda_removed, &id, &removed, BPF_ANY), 0);
	*made -= removed;
	assert_int_equal(rows_of(0, 300, false), removed);
}

static void processes__of_a_user_are_new_so_often_in_a_round(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PP_CUDA_PROCESSES_NEW; i++) {
		run_as(GREEDY, 1000 + i);
		assert_non_null(cuda_process_of(1000 + i, GENERATION));
	}
	run_as(GREEDY, 5000);
	assert_null(cuda_process_of(5000, GENERATION));
	assert_int_equal(host->losses[PP_LOSS_PROBE_SHARE], 1);
	/* Those that are known are found, and others' are made. */
	assert_non_null(cuda_process_of(1000, GENERATION));
	run_as(OTHER, 6000);
	assert_int_equal(cuda_process_of(6000, GENERATION)->user, OTHER);
	host->config.token_round++;
	run_as(GREEDY, 5000);
	assert_int_equal(cuda_process_of(5000, GENERATION)->user, GREEDY);
}

static void process__that_runs_another_program_begins_anew(void **state)
{
	struct cuda_process *process = cuda_process_of(70, GENERATION);

	(void)state;
	process->captures = process->life = 3;
	process = cuda_process_of(70, GENERATION + 1);
	assert_int_equal(process->captures, 0);
	assert_int_equal(process->life, 0);
	assert_int_equal(process->generation, GENERATION + 1);
}

static void news__of_a_user_are_bounded_in_a_round(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PP_PROBE_NEWS_MAX; i++)
		assert_int_equal(cuda_news_take(GREEDY), 0);
	assert_int_equal(cuda_news_take(GREEDY), 1);
	assert_int_equal(host->losses[PP_LOSS_PROBE_SHARE], 1);
	assert_int_equal(cuda_news_take(OTHER), 0);
}

static void calls__that_a_user_has_open_are_bounded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PP_PROBE_CALLS_USER; i++)
		assert_true(cuda_open_take(GREEDY));
	assert_false(cuda_open_take(GREEDY));
	assert_true(cuda_open_take(OTHER));
	assert_true(cuda_open_take(0));
	cuda_open_give(GREEDY);
	assert_true(cuda_open_take(GREEDY));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows__of_one_users_processes_leave_as_many_as_they_have),
		TEST(rows__of_other_kernels_have_room_of_their_own),
		TEST(rows__that_were_removed_can_be_made_again),
		TEST(processes__of_a_user_are_new_so_often_in_a_round),
		TEST(process__that_runs_another_program_begins_anew),
		TEST(news__of_a_user_are_bounded_in_a_round),
		TEST(calls__that_a_user_has_open_are_bounded),
	};

	return cmocka_run_group_tests_name("bpf/cuda_processes", tests, NULL, NULL);
}
