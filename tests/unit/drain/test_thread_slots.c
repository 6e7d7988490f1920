/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/thread_slots.h"

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define SLOTS 64U
#define SEED 12U
#define TID 71U	       /* its slots: 7, and seven where its hashes point */
#define NEIGHBOUR 135U /* 7 as well */

static uint32_t other_way(uint32_t tid)
{
	return pp_thread_index(tid, 1, SLOTS - 1, SEED);
}

static void index__all_ways_are_inside(void **state)
{
	(void)state;
	assert_int_equal(pp_thread_index(TID, 0, SLOTS - 1, SEED), 7);
	assert_int_equal(pp_thread_index(NEIGHBOUR, 0, SLOTS - 1, SEED), 7);
	for (uint32_t tid = 1; tid < 5000; tid++)
		for (uint32_t way = 1; way < PP_THREAD_WAYS; way++)
			assert_true(pp_thread_index(tid, way, SLOTS - 1, SEED) < SLOTS);
	for (uint32_t way = 1; way < PP_THREAD_WAYS; way++)
		assert_int_not_equal(pp_thread_index(TID, way, SLOTS - 1, SEED), 7);
}

/* Ids of a machine that has run for long lie anywhere. */
static void index__a_quarter_full_table_has_room_for_nearly_all(void **state)
{
	enum { COUNT = 1U << 14 };
	static bool is_taken[COUNT];
	uint32_t tid = 1, full = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT / 4; i++) {
		uint32_t way = 0;

		tid = tid * 1664525U + 1013904223U;
		while (way < PP_THREAD_WAYS &&
		       is_taken[pp_thread_index(tid >> 10, way, COUNT - 1, SEED)])
			way++;
		if (way < PP_THREAD_WAYS)
			is_taken[pp_thread_index(tid >> 10, way, COUNT - 1, SEED)] = true;
		else
			full++;
	}
	print_message("%u of %u threads find no slot\n", full, COUNT / 4);
	assert_true(full <= COUNT / 4 / 200);
}

static void glance__finds_a_live_thread_in_both_ways(void **state)
{
	struct pp_thread slot[SLOTS] = {};
	struct thread_glance glance;

	(void)state;
	assert_false(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
	slot[other_way(TID)] = (struct pp_thread){.sequence = 4,
						  .tid = TID,
						  .flags = PP_THREAD_MATCHES,
						  .first_ns = 700,
						  .created_ns = 800};
	assert_true(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
	assert_int_equal(glance.first_ns, 700);
	assert_int_equal(glance.created_ns, 800);
	assert_int_equal(glance.flags, PP_THREAD_MATCHES);
	assert_false(glance.has_exited);
	slot[7] = (struct pp_thread){.sequence = 2, .tid = TID, .first_ns = 900};
	assert_true(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
	assert_int_equal(glance.first_ns, 900);
	assert_false(thread_slots_glance(slot, SLOTS, SEED, NEIGHBOUR, &glance));
}

static void glance__tells_of_an_exited_thread_until_its_slot_is_taken(void **state)
{
	struct pp_thread slot[SLOTS] = {};
	struct thread_glance glance;

	(void)state;
	slot[7] = (struct pp_thread){.sequence = 8, .was_tid = TID, .first_ns = 900};
	assert_true(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
	assert_true(glance.has_exited);
	assert_int_equal(glance.first_ns, 900);
	slot[7].tid = NEIGHBOUR;
	assert_false(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
}

/* Its owner is walked for while we look. */
static void glance__reads_a_slot_that_is_being_written(void **state)
{
	struct pp_thread slot[SLOTS] = {};
	struct thread_glance glance;

	(void)state;
	slot[7] = (struct pp_thread){.sequence = 3, .tid = TID, .first_ns = 900};
	assert_true(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
	assert_int_equal(glance.first_ns, 900);
	slot[7].first_ns = 0; /* just being taken */
	assert_false(thread_slots_glance(slot, SLOTS, SEED, TID, &glance));
}

static void moves__change_with_each_of_the_slots(void **state)
{
	struct pp_thread slot[SLOTS] = {};
	uint64_t moves[2 + PP_THREAD_WAYS];

	(void)state;
	moves[0] = thread_slots_moves(slot, SLOTS, SEED, TID);
	assert_int_equal(thread_slots_moves(slot, SLOTS, SEED, TID), moves[0]);
	for (uint32_t way = 0; way < PP_THREAD_WAYS; way++) {
		slot[pp_thread_index(TID, way, SLOTS - 1, SEED)].sequence = 2;
		moves[1 + way] = thread_slots_moves(slot, SLOTS, SEED, TID);
	}
	slot[7].sequence = 4;
	moves[1 + PP_THREAD_WAYS] = thread_slots_moves(slot, SLOTS, SEED, TID);
	for (size_t i = 0; i < 2 + PP_THREAD_WAYS; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(moves[i] != moves[k]);
}

static void no_slots__nothing_is_found(void **state)
{
	struct thread_glance glance;

	(void)state;
	assert_false(thread_slots_glance(NULL, 0, SEED, TID, &glance));
	assert_int_equal(thread_slots_moves(NULL, 0, SEED, TID), 0);
}

/* A wait that goes on is counted up to the window's end, from its begin or the window's. */
static void count__a_wait_that_goes_on_is_cut_at_both_edges(void **state)
{
	CLEANUP(counts_release) struct counts counts = {};
	const struct slots_window window = {.number = 5, .start_ns = 1000, .end_ns = 3000};
	struct pp_thread thread = {
		.tid = TID,
		.id = {.tgid = TID, .generation = 9},
		.flags = PP_THREAD_MATCHES | PP_THREAD_WAITING,
		.wait = PP_WAIT_LOCK,
		.since_ns = 400,
		.site[0] = {.key = 1,
			    .user_stack = 77,
			    .kernel_stack = 88,
			    .flags = PP_COUNT_SWEPT | PP_WAIT_LOCK << PP_COUNT_WAIT_SHIFT},
	};

	(void)state;
	assert_int_equal(thread_slot_count(&thread, &window, &counts), 0);
	thread.since_ns = 2500;
	assert_int_equal(thread_slot_count(&thread, &window, &counts), 0);
	thread.since_ns = 3000; /* nothing of it lies inside */
	assert_int_equal(thread_slot_count(&thread, &window, &counts), 0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].count.weight, 2000 + 500);
	assert_int_equal(counts.entry[0].count.samples, 0);
	assert_int_equal(counts.entry[0].key.user_stack, 77);
	assert_int_equal(counts.entry[0].key.kernel_stack, 88);
	assert_int_equal(counts.entry[0].key.tid, TID);
	assert_int_equal(counts.entry[0].key.kind, PP_KIND_WAIT);
	assert_int_equal(counts.entry[0].key.flags,
			 PP_COUNT_SWEPT | PP_WAIT_LOCK << PP_COUNT_WAIT_SHIFT);
}

/* One user's threads were started one after the other, and took their share: a third of all slots,
 * side by side.  Whoever comes later has a slot whatever its id is. */
static void index__ways_are_not_side_by_side(void **state)
{
	enum { COUNT = 1U << 14 };
	uint32_t full = 0;

	(void)state;
	for (uint32_t tid = 1; tid <= 1U << 17; tid++) {
		uint32_t way = 0;

		while (way < PP_THREAD_WAYS &&
		       pp_thread_index(tid, way, COUNT - 1, SEED) < COUNT / 3)
			way++;
		full += way == PP_THREAD_WAYS;
	}
	/* 3^-8 of them: 20. */
	print_message("%u of %u threads find no slot\n", full, 1U << 17);
	assert_in_range(full, 5, 60);
}

/* Else whoever knows the next ids could take just their slots. */
static void index__ways_but_the_first_depend_on_the_seed(void **state)
{
	uint32_t same = 0;

	(void)state;
	for (uint32_t tid = 1; tid <= 10000; tid++)
		for (uint32_t way = 1; way < PP_THREAD_WAYS; way++)
			same += pp_thread_index(tid, way, 16383, 1) ==
				pp_thread_index(tid, way, 16383, 2);
	assert_true(same < 30); /* of 70,000, by chance: 4 */
	assert_int_equal(pp_thread_index(TID, 0, 16383, 1), pp_thread_index(TID, 0, 16383, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index__all_ways_are_inside),
		cmocka_unit_test(index__ways_are_not_side_by_side),
		cmocka_unit_test(index__ways_but_the_first_depend_on_the_seed),
		cmocka_unit_test(index__a_quarter_full_table_has_room_for_nearly_all),
		cmocka_unit_test(glance__finds_a_live_thread_in_both_ways),
		cmocka_unit_test(glance__tells_of_an_exited_thread_until_its_slot_is_taken),
		cmocka_unit_test(glance__reads_a_slot_that_is_being_written),
		cmocka_unit_test(moves__change_with_each_of_the_slots),
		cmocka_unit_test(no_slots__nothing_is_found),
		cmocka_unit_test(count__a_wait_that_goes_on_is_cut_at_both_edges),
	};

	return cmocka_run_group_tests_name("drain/thread_slots", tests, NULL, NULL);
}
