/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows as the kernel side leaves them, and the rows that wait_shares_divide() makes of them. */
#include "drain/wait_shares.h"

#include <cmocka.h>
#include <string.h>

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define SITE 0x1001

static struct counts counts;
static uint64_t ledger_ns; /* 0: not known */

static bool exact_ns(void *context, struct pp_process_id id, enum pp_ledger where, uint64_t *ret_ns)
{
	(void)context;
	*ret_ns = id.tgid == 70 && where == PP_LEDGER_NET ? ledger_ns : 0;
	return *ret_ns;
}

static int setup(void **state)
{
	(void)state;
	ledger_ns = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	counts_release(&counts);
	return 0;
}

static void add(enum pp_count_kind kind, uint64_t stack, uint64_t detail, enum pp_wait wait,
		struct pp_count count)
{
	const struct pp_count_key key = {.user_stack = stack,
					 .detail = detail,
					 .id = {.tgid = 70, .generation = 3},
					 .tid = 71,
					 .flags = (uint32_t)wait << PP_COUNT_WAIT_SHIFT,
					 .kind = kind};

	assert_int_equal(counts_add(&counts, &key, &count), 0);
}

static void divide(bool leaves_short_out)
{
	const struct wait_shares shares = {.exact_ns = exact_ns,
					   .leaves_short_out = leaves_short_out};

	assert_int_equal(wait_shares_divide(&shares, &counts), 0);
	for (size_t i = 0; i < counts.count; i++)
		assert_int_equal(counts.entry[i].key.detail, 0);
}

static struct pp_count row(uint64_t stack, enum pp_count_kind kind, enum pp_wait wait)
{
	struct pp_count sum = {};

	for (size_t i = 0; i < counts.count; i++) {
		const struct counted *entry = &counts.entry[i];

		if (entry->key.user_stack != stack || entry->key.kind != kind ||
		    pp_count_wait(entry->key.flags) != wait)
			continue;
		sum.samples += entry->count.samples;
		sum.weight += entry->count.weight;
		sum.effective += entry->count.effective;
	}
	return sum;
}

#define assert_row(stack, wait, events, ns, effective_waits)                                       \
	do {                                                                                       \
		const struct pp_count row_ = row(stack, PP_KIND_WAIT, wait);                       \
                                                                                                   \
		assert_int_equal(row_.samples, events);                                            \
		assert_int_equal(row_.weight, ns);                                                 \
		assert_int_equal(row_.effective, effective_waits);                                 \
	} while (0)

/* 100 walks of 1 in 16, all of them as long. */
static struct pp_count walked(uint64_t walks, uint64_t ns)
{
	return (struct pp_count){walks * 16, walks * 16 * ns, {walks * pp_wait_square(16 * ns)}};
}

static void wait_site__is_divided_by_what_was_walked(void **state)
{
	(void)state;
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_PIPE, (struct pp_count){1000, 10 * SECOND, {0}});
	add(PP_KIND_WAIT_SITE, 2, SITE, PP_WAIT_PIPE, (struct pp_count){1001, 5 * SECOND + 1, {0}});
	add(PP_KIND_WALKED, 1, SITE, PP_WAIT_PIPE, walked(40, 3 * MS));
	add(PP_KIND_WALKED, 2, SITE, PP_WAIT_PIPE, walked(60, 8 * MS));
	divide(false);
	assert_int_equal(counts.count, 2);
	assert_row(1, PP_WAIT_PIPE, 800, 3 * SECOND, 40);
	assert_row(2, PP_WAIT_PIPE, 1201, 12 * SECOND + 1, 60);
}

/* The part of a site that its threads were on the run queue is divided for itself. */
static void wait_site__has_a_queue_part_of_its_own(void **state)
{
	(void)state;
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_PIPE, (struct pp_count){100, 1000 * MS, {0}});
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_RUN_QUEUE, (struct pp_count){0, 10 * MS, {0}});
	add(PP_KIND_WALKED, 1, SITE, PP_WAIT_PIPE, walked(1, 20 * MS));
	add(PP_KIND_WALKED, 2, SITE, PP_WAIT_PIPE, walked(1, 20 * MS));
	add(PP_KIND_WALKED, 2, SITE, PP_WAIT_RUN_QUEUE, (struct pp_count){0, 32 * MS, {0}});
	divide(false);
	assert_row(1, PP_WAIT_PIPE, 50, 500 * MS, 1);
	assert_row(2, PP_WAIT_PIPE, 50, 500 * MS, 1);
	assert_row(1, PP_WAIT_RUN_QUEUE, 0, 0, 0);
	assert_row(2, PP_WAIT_RUN_QUEUE, 0, 10 * MS, 0);
}

static void wait_site__without_a_walk_is_its_last_stacks(void **state)
{
	(void)state;
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_PIPE, (struct pp_count){100, 1000 * MS, {0}});
	add(PP_KIND_WAIT_SITE, 2, SITE + 2, PP_WAIT_PIPE, (struct pp_count){100, 1000 * MS, {0}});
	add(PP_KIND_WALKED, 3, SITE + 2, PP_WAIT_PIPE, walked(1, 20 * MS));
	divide(false);
	assert_row(1, PP_WAIT_PIPE, 100, 1000 * MS, 100);
	assert_row(2, PP_WAIT_PIPE, 0, 0, 0);
	assert_row(3, PP_WAIT_PIPE, 100, 1000 * MS, 1);
}

/* As of a thread that waits since before the window. */
static void wait_site__walks_of_a_nanosecond_and_no_event_have_its_time(void **state)
{
	(void)state;
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_PIPE, (struct pp_count){10, 500, {0}});
	add(PP_KIND_WALKED, 3, SITE, PP_WAIT_PIPE, (struct pp_count){0, 1, {1}});
	divide(false);
	assert_row(3, PP_WAIT_PIPE, 10, 500, 1);
}

/* Waits that end at once have events, which are divided though there is no time. */
static void wait_site__walks_of_one_event_and_no_time_have_its_events(void **state)
{
	(void)state;
	add(PP_KIND_WAIT_SITE, 1, SITE, PP_WAIT_PIPE, (struct pp_count){10, 500, {0}});
	add(PP_KIND_WALKED, 3, SITE, PP_WAIT_PIPE, (struct pp_count){1, 0, {1}});
	divide(false);
	assert_row(3, PP_WAIT_PIPE, 10, 500, 1);
}

/* Its own row found no room: what was walked says nothing of how much it was. */
static void wait_site__whose_sums_are_lost_is_not_made_up(void **state)
{
	(void)state;
	add(PP_KIND_WALKED, 3, SITE, PP_WAIT_PIPE, walked(1, 20 * MS));
	divide(false);
	assert_int_equal(counts.count, 0);
}

static struct pp_count weighted(uint64_t weight, uint64_t ns)
{
	return (struct pp_count){weight, weight * ns, {pp_wait_square(weight * ns)}};
}

/* One wait of 10 s, chosen among 256, that shows 2,560 s. */
static void weighted__waits_are_never_more_than_the_ledger_has(void **state)
{
	(void)state;
	ledger_ns = 14 * SECOND;
	add(PP_KIND_WAIT, 1, 0, PP_WAIT_TCP, (struct pp_count){7, 2 * SECOND, {0}});
	add(PP_KIND_WAIT_SITE, 2, SITE, PP_WAIT_UDP, (struct pp_count){7, 1 * SECOND, {0}});
	add(PP_KIND_WEIGHTED, 3, 0, PP_WAIT_PIPE, weighted(256, 10 * SECOND));
	add(PP_KIND_WAIT, 4, 0, PP_WAIT_SLEEP, (struct pp_count){1, 100 * SECOND, {0}});
	divide(false);
	assert_row(1, PP_WAIT_TCP, 7, 2 * SECOND, 7);
	assert_row(2, PP_WAIT_UDP, 7, 1 * SECOND, 7);
	assert_row(3, PP_WAIT_PIPE, 256, 11 * SECOND, 1);
	assert_row(4, PP_WAIT_SLEEP, 1, 100 * SECOND, 1);
}

static void weighted__waits_share_what_the_ledger_has(void **state)
{
	(void)state;
	ledger_ns = 9 * SECOND;
	add(PP_KIND_WEIGHTED, 1, 0, PP_WAIT_PIPE, weighted(4, 1 * SECOND));
	add(PP_KIND_WEIGHTED, 2, 0, PP_WAIT_TCP, weighted(1, 2 * SECOND));
	divide(false);
	assert_row(1, PP_WAIT_PIPE, 4, 6 * SECOND, 1);
	assert_row(2, PP_WAIT_TCP, 1, 3 * SECOND, 1);
}

/* The ledger has short waits as well, the rows have not: no reason to make the long ones longer. */
static void weighted__waits_are_only_made_less_with_a_minimum(void **state)
{
	(void)state;
	ledger_ns = 9 * SECOND;
	add(PP_KIND_WEIGHTED, 1, 0, PP_WAIT_PIPE, weighted(4, 1 * SECOND));
	divide(true);
	assert_row(1, PP_WAIT_PIPE, 4, 4 * SECOND, 1);
}

static void weighted__waits_of_an_unknown_process_stay(void **state)
{
	(void)state;
	add(PP_KIND_WEIGHTED, 1, 0, PP_WAIT_PIPE, weighted(4, 1 * SECOND));
	divide(false);
	assert_row(1, PP_WAIT_PIPE, 4, 4 * SECOND, 1);
}

/* Who had the GIL meanwhile is to blame for as much as was waited. */
static void weighted__blame_goes_with_its_wait(void **state)
{
	(void)state;
	ledger_ns = 2 * SECOND;
	add(PP_KIND_WEIGHTED, 1, 0, PP_WAIT_PIPE, weighted(4, 1 * SECOND));
	add(PP_KIND_BLAME, 5, PP_BLAME_WEIGHTED, PP_WAIT_PIPE, weighted(4, 1 * SECOND));
	add(PP_KIND_BLAME, 6, 0, PP_WAIT_PIPE, (struct pp_count){1, 3 * SECOND, {0}});
	divide(false);
	assert_int_equal(row(5, PP_KIND_BLAME, PP_WAIT_PIPE).weight, 2 * SECOND);
	assert_int_equal(row(6, PP_KIND_BLAME, PP_WAIT_PIPE).weight, 3 * SECOND);
}

static void samples__are_left_alone(void **state)
{
	(void)state;
	add(PP_KIND_CPU, 1, 7, PP_WAIT_NONE, (struct pp_count){3, 30 * MS, {0}});
	assert_int_equal(wait_shares_divide(&(struct wait_shares){.exact_ns = exact_ns}, &counts),
			 0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].key.detail, 7);
	assert_int_equal(counts.entry[0].count.weight, 30 * MS);
}

#define shares_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		shares_test(wait_site__is_divided_by_what_was_walked),
		shares_test(wait_site__has_a_queue_part_of_its_own),
		shares_test(wait_site__without_a_walk_is_its_last_stacks),
		shares_test(wait_site__walks_of_a_nanosecond_and_no_event_have_its_time),
		shares_test(wait_site__walks_of_one_event_and_no_time_have_its_events),
		shares_test(wait_site__whose_sums_are_lost_is_not_made_up),
		shares_test(weighted__waits_are_never_more_than_the_ledger_has),
		shares_test(weighted__waits_share_what_the_ledger_has),
		shares_test(weighted__waits_are_only_made_less_with_a_minimum),
		shares_test(weighted__waits_of_an_unknown_process_stay),
		shares_test(weighted__blame_goes_with_its_wait),
		shares_test(samples__are_left_alone),
	};

	return cmocka_run_group_tests_name("drain/wait_shares", tests, NULL, NULL);
}
