/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one user may take of the ring and of the tokens. */
#include "sample.h"

#include <lib/news.bpf.h>
#include <lib/user_probe.bpf.h>

#define RING_BYTES (1U << 20)
#define RECORD_BYTES 16384U

static struct user_namespace machine, outer, inner;

static int setup_user(void **state)
{
	int err = host_setup(state);

	machine = (struct user_namespace){};
	outer = (struct user_namespace){.level = 1, .parent = &machine};
	inner = (struct user_namespace){.level = 2, .parent = &outer};
	host->cred = (struct cred){.euid.val = 1000, .user_ns = &machine};
	begin();
	host->task.cred = &host->cred;
	return err;
}

static void user__is_the_effective_one(void **state)
{
	(void)state;
	assert_int_equal(user_of_current(), 1000);
	host->cred.euid.val = 4294967294U;
	assert_int_equal((uint32_t)user_of_current(), 4294967294U);
	/* Of a set-user-ID program, who started it. */
	host->cred.uid.val = 1002;
	host->cred.euid.val = 0;
	assert_int_equal(user_of_current(), 1002);
	host->cred.uid.val = 0;
	assert_int_equal(user_of_current(), 0);
}

/* Whoever made the namespace may act there as tens of thousands of users. */
static void user__of_a_namespace_is_its_owner(void **state)
{
	(void)state;
	host->cred.user_ns = &outer;
	host->cred.euid.val = 100123;
	outer.owner.val = 1001;
	assert_int_equal(user_of_current(), 1001);
	/* A namespace in it is owned by one of those. */
	host->cred.user_ns = &inner;
	inner.owner.val = 100007;
	assert_int_equal(user_of_current(), 1001);
	/* A container of root's has the machine's users. */
	outer.owner.val = inner.owner.val = 0;
	assert_int_equal(user_of_current(), 100123);
}

/* A set-user-ID file of a namespace runs as one of its owner's other users (/etc/subuid). */
static void user__of_anothers_range_is_its_owner(void **state)
{
	static const struct pp_user_range range[] = {{100000, 165535, 1001},
						     {165536, 165536, 1002},
						     {200000, 200009, 1003},
						     {300000, 4294967294U, 1004}};

	(void)state;
	/* None was written yet. */
	host->cred.euid.val = 100000;
	assert_int_equal(user_of_current(), 100000);
	for (uint32_t half = 0; half < 2; half++) {
		memset(host->user_range, 0xff, sizeof(host->user_range));
		memcpy(host->user_range + half * PP_USER_RANGES, range, sizeof(range));
		host->config.user_ranges = half * PP_USER_RANGES;
		for (uint32_t i = 0; i < 4; i++) {
			host->cred.euid.val = range[i].first;
			assert_int_equal(user_of_current(), range[i].owner);
			host->cred.euid.val = range[i].last;
			assert_int_equal(user_of_current(), range[i].owner);
			host->cred.euid.val = range[i].first - 1;
			assert_int_equal(user_of_current(), i == 1 ? 1001 : range[i].first - 1);
		}
	}
	/* So is who owns a namespace as one of them. */
	host->cred.user_ns = &outer;
	outer.owner.val = 200005;
	assert_int_equal(user_of_current(), 1003);
}

static void user__is_found_in_a_full_table(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PP_USER_RANGES; i++)
		host->user_range[i] = (struct pp_user_range){10 * i + 10, 10 * i + 12, i + 1};
	host->config.user_ranges = 0;
	for (uint32_t i = 0; i < PP_USER_RANGES; i++) {
		host->cred.euid.val = 10 * i + 11;
		assert_int_equal(user_of_current(), i + 1);
		host->cred.euid.val = 10 * i + 13;
		assert_int_equal(user_of_current(), 10 * i + 13);
	}
}

/* ---- rows ---- */

static size_t row_of(uint32_t user)
{
	return (size_t)(share_row(user) - host->user_share);
}

static void rows__of_users_are_their_own_whatever_their_ids(void **state)
{
	bool is_taken[PP_USER_SHARES] = {};

	(void)state;
	for (uint32_t i = 1; i <= 300; i++) {
		const uint32_t user = i * PP_USER_SHARES + 7; /* equal modulo the rows */

		assert_ptr_equal(share_of(user), &host->user_share[PP_USER_SHARE_COMMON]);
		assert_int_equal(share_claim(user), 0);
		assert_int_equal(share_claim(user), 0);
		assert_in_range(row_of(user), 0, PP_USER_SHARES - 1);
		assert_int_equal(share_of(user)->who, user);
		assert_false(is_taken[row_of(user)]);
		is_taken[row_of(user)] = true;
	}
	assert_int_equal(host->losses[PP_LOSS_SHARES_FULL], 0);
	assert_null(share_of(0));
	assert_int_equal(row_of(0), PP_USER_SHARE_COMMON);
	assert_int_equal(share_claim(0), 0);
}

static void rows__are_common_to_who_finds_none(void **state)
{
	(void)state;
	host->share_free_count = 0;
	assert_int_equal(share_claim(2000), 1);
	assert_ptr_equal(share_of(2000), &host->user_share[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(share_of(2001), share_of(2000));
	assert_int_equal(host->losses[PP_LOSS_SHARES_FULL], 1);
}

static void another_claims(void)
{
	share_claim(2001);
}

static void this_one_claims(void)
{
	share_claim(2000);
}

static void rows__of_two_cpus_that_claim_one_are_two(void **state)
{
	const uint32_t free = host->share_free_count;

	(void)state;
	host->before_claim = another_claims;
	assert_int_equal(share_claim(2000), 0);
	assert_int_equal(share_of(2000)->who, 2000);
	assert_int_equal(share_of(2001)->who, 2001);
	assert_int_equal(host->share_free_count, free - 2);
	/* Of one user it is one. */
	memset(host->share_rows.entry, 0, sizeof(host->share_rows.entry));
	host->before_claim = this_one_claims;
	assert_int_equal(share_claim(2000), 0);
	assert_int_equal(share_of(2000)->who, 2000);
	assert_int_equal(host->share_free_count, free - 3);
}

/* Root moves everybody's processes; a user's own moves are bounded in each round. */
static void moves__of_a_user_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(share_claim(1000) | share_claim(1001), 0);
	for (unsigned int round = 1; round <= 2; round++) {
		host->config.token_round = round;
		for (unsigned int i = 0; i < PP_MOVES_MAX; i++)
			assert_int_equal(move_share_take(1000), 0);
		assert_int_equal(move_share_take(1000), 1);
		assert_int_equal(move_share_take(1001), 0);
		assert_int_equal(move_share_take(0), 0);
	}
}

static void share__of_the_ring_is_what_is_free(void **state)
{
	uint32_t taken = 0;

	(void)state;
	for (; !ring_share_take(1000, RECORD_BYTES); taken++)
		host->ring_used += RECORD_BYTES;
	assert_int_equal(taken, RING_BYTES / RECORD_BYTES / 2);
	/* Half of the rest, and root all of it. */
	for (taken = 0; !ring_share_take(1001, RECORD_BYTES); taken++)
		host->ring_used += RECORD_BYTES;
	assert_int_equal(taken, RING_BYTES / RECORD_BYTES / 4);
	host->ring_used = RING_BYTES;
	assert_int_equal(ring_share_take(0, RECORD_BYTES), 0);
}

static void share__of_the_ring_begins_anew_when_it_is_emptied(void **state)
{
	(void)state;
	while (!ring_share_take(1000, RECORD_BYTES))
		host->ring_used += RECORD_BYTES;
	host->ring_used = 0;
	/* It was read, but the agent has not begun another turn. */
	while (!ring_share_take(1000, RECORD_BYTES))
		;
	for (int turn = 0; turn < 2; turn++) {
		uint32_t taken = 0;

		host->config.ring_turn++;
		for (; !ring_share_take(1000, RECORD_BYTES) && taken < 1000; taken++)
			host->ring_used += RECORD_BYTES;
		assert_int_equal(taken, RING_BYTES / RECORD_BYTES / 2);
		host->ring_used = 0;
	}
}

static void share__of_the_processes_is_what_is_left(void **state)
{
	uint32_t taken;

	(void)state;
	host->config.processes_left = 1000;
	for (taken = 0; !process_share_take(1000); taken++)
		;
	assert_int_equal(taken, 500);
	/* Half of the rest for the next one, and root all of it. */
	for (taken = 0; !process_share_take(1001); taken++)
		;
	assert_int_equal(taken, 250);
	host->config.processes_left = -1;
	assert_int_equal(process_share_take(0), 0);
	assert_int_equal(process_share_take(1002), 1);
}

static void tokens__are_half_for_one_user(void **state)
{
	uint32_t taken = 0;

	(void)state;
	host->config.incomplete_tokens = 100;
	for (; !token_take(1000); taken++)
		;
	assert_int_equal(taken, 50);
	assert_int_equal(host->config.incomplete_tokens, 50);
	for (taken = 0; !token_take(1001); taken++)
		;
	assert_int_equal(taken, 25);
	for (taken = 0; !token_take(0); taken++)
		;
	assert_int_equal(taken, 25);
	assert_int_equal(host->config.incomplete_tokens, 0);
	for (int round = 0; round < 2; round++) {
		host->config.incomplete_tokens = 100;
		host->config.token_round++;
		for (taken = 0; !token_take(1000); taken++)
			;
		assert_int_equal(taken, 50);
	}
}

static void complete__stack_beyond_the_share_is_counted_and_sent_later(void **state)
{
	struct pp_count count;

	(void)state;
	host->ring_used = RING_BYTES - 64;
	sample_now();
	assert_int_equal(host->record_count, 0);
	assert_int_equal(host->losses[PP_LOSS_RING_SHARE], 1);
	assert_int_equal(host->losses[PP_LOSS_RING_FULL], 0);
	(void)the_key(0, &count);
	assert_int_equal(count.samples, 1);
	host->ring_used = 0;
	sample_now();
	assert_int_equal(host->record_count, 1);
}

static void incomplete__says_whose_it_is(void **state)
{
	(void)state;
	host->page[LIBRARY_PAGE0] = 0;
	sample_now();
	assert_int_equal(host->record_count, 1);
	assert_int_equal(((const struct pp_incomplete_record *)host->record[0].data)->user, 1000);
}

static void incomplete__beyond_the_share_is_counted_here(void **state)
{
	struct pp_count count;

	(void)state;
	host->page[LIBRARY_PAGE0] = 0;
	host->ring_used = RING_BYTES - 4096; /* the cut stack finds room */
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_MISS_DROPPED], 1);
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_NO_ROWS);
	assert_int_equal(host->record_count, 1);
}

static void news__are_bounded_a_user_and_round(void **state)
{
	uint32_t taken = 0;

	(void)state;
	host->config.token_round = 5;
	for (; !news_are_refused(1000, host->config.token_round); taken++)
		news_add(1000);
	assert_int_equal(taken, PP_PROBE_NEWS_MAX);
	assert_false(news_are_refused(1001, host->config.token_round));
	/* A call that ends makes room for one. */
	news_drop(1000);
	assert_false(news_are_refused(1000, host->config.token_round));
	news_add(1000);
	assert_true(news_are_refused(1000, host->config.token_round));
	host->config.token_round++;
	assert_false(news_are_refused(1000, host->config.token_round));
	/* Calls of an earlier round end in this one: no room is saved up. */
	news_drop(1000);
	for (taken = 0; !news_are_refused(1000, host->config.token_round); taken++)
		news_add(1000);
	assert_int_equal(taken, PP_PROBE_NEWS_MAX);
}

static void news__of_root_are_not_bounded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * PP_PROBE_NEWS_MAX; i++)
		news_add(0);
	assert_false(news_are_refused(0, host->config.token_round));
}

/* Its threads are preempted in their hits, and keep what they have. */
static void slots_of_probes__one_is_left_to_others(void **state)
{
	struct scratch taken[PP_WALK_LEVELS] = {}, other = {};

	(void)state;
	scratch_levels = PP_WALK_LEVELS;
	for (unsigned int i = 0; i < PP_WALK_LEVELS; i++)
		scratch_enter_pool(&taken[i]);
	assert_non_null(taken[PP_WALK_LEVELS - 2].walk);
	assert_null(taken[PP_WALK_LEVELS - 1].walk);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	host->cred.euid.val = 1001;
	scratch_enter_pool(&other);
	assert_non_null(other.walk);
	scratch_leave(&other);
	/* Root may have all of them. */
	host->cred.euid.val = 0;
	for (unsigned int i = 0; i + 1 < PP_WALK_LEVELS; i++)
		scratch_leave(&taken[i]);
	for (unsigned int i = 0; i < PP_WALK_LEVELS; i++) {
		scratch_enter_pool(&taken[i]);
		assert_non_null(taken[i].walk);
	}
	for (unsigned int i = 0; i < PP_WALK_LEVELS; i++)
		scratch_leave(&taken[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(user__is_the_effective_one, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(user__of_a_namespace_is_its_owner, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(user__of_anothers_range_is_its_owner, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(user__is_found_in_a_full_table, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(rows__of_users_are_their_own_whatever_their_ids,
						setup_user, host_teardown),
		cmocka_unit_test_setup_teardown(rows__are_common_to_who_finds_none, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(rows__of_two_cpus_that_claim_one_are_two,
						setup_user, host_teardown),
		cmocka_unit_test_setup_teardown(share__of_the_ring_is_what_is_free, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(share__of_the_ring_begins_anew_when_it_is_emptied,
						setup_user, host_teardown),
		cmocka_unit_test_setup_teardown(share__of_the_processes_is_what_is_left, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(moves__of_a_user_are_bounded, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(tokens__are_half_for_one_user, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(
			complete__stack_beyond_the_share_is_counted_and_sent_later, setup_user,
			host_teardown),
		cmocka_unit_test_setup_teardown(incomplete__says_whose_it_is, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(incomplete__beyond_the_share_is_counted_here,
						setup_user, host_teardown),
		cmocka_unit_test_setup_teardown(news__are_bounded_a_user_and_round, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(news__of_root_are_not_bounded, setup_user,
						host_teardown),
		cmocka_unit_test_setup_teardown(slots_of_probes__one_is_left_to_others, setup_user,
						host_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
