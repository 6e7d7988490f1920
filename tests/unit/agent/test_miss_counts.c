/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: all */
/* Incomplete stacks of processes that are gone: nothing can be added to what was walked. */
#include <cmocka.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/finishing.h"
#include "agent/miss_counts.h"

#define GENERATION 3U
#define WAIT_HASH 0x77ULL

static struct agent agent;

/* Two native frames of a thread whose process nobody knows any more. */
static void miss_now(uint64_t user_stack)
{
	static const struct pp_frame native[2] = {{.where = 0x1000, .what = 1}, {.where = 0x2000, .what = 1}};
	struct pp_miss_record record = {
		.key = {.user_stack = user_stack,
			.id = {.tgid = 0x7ffffffe, .generation = GENERATION},
			.tid = 0x7ffffffe,
			.flags = PP_STOP_NO_ROWS << PP_COUNT_STOP_SHIFT},
		.weight = 500,
		.native_stored = 2,
		.native_count = 2,
		.stop = PP_STOP_NO_ROWS,
	};
	const struct decoded_miss miss = {.record = &record, .python = native, .native = native};

	miss_counts_on_record(&agent, &miss);
}

static int open_agent(void **state)
{
	static const struct options options;

	(void)state;
	memset(&agent, 0, sizeof(agent));
	agent.options = &options;
	if (process_table_new(&agent.processes) || dictionary_new(1 << 20, &agent.dictionary))
		return -1;
	finishing_prepare(&agent);
	return 0;
}

static int close_agent(void **state)
{
	(void)state;
	counts_release(&agent.finished);
	dictionary_free(agent.dictionary);
	process_table_free(agent.processes);
	return 0;
}

static void miss__of_a_sample_is_counted_under_what_it_holds(void **state)
{
	(void)state;
	miss_now(0);
	assert_int_equal(agent.finished.count, 1);
	assert_int_equal(agent.finished.entry[0].count.samples, 1);
	assert_int_equal(agent.finished.entry[0].count.weight, 500);
	assert_non_null(dictionary_find_stack(agent.dictionary,
					      agent.finished.entry[0].key.user_stack));
}

static void miss__of_a_wait_is_only_described_under_its_hash(void **state)
{
	(void)state;
	miss_now(WAIT_HASH);
	assert_int_equal(agent.finished.count, 0);
	assert_non_null(dictionary_find_stack(agent.dictionary, WAIT_HASH));
	/* Another walk that ended elsewhere found the same stack: it is kept once. */
	miss_now(WAIT_HASH + 1);
	assert_ptr_equal(dictionary_find_stack(agent.dictionary, WAIT_HASH + 1),
			 dictionary_find_stack(agent.dictionary, WAIT_HASH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(miss__of_a_sample_is_counted_under_what_it_holds,
						open_agent, close_agent),
		cmocka_unit_test_setup_teardown(miss__of_a_wait_is_only_described_under_its_hash,
						open_agent, close_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
