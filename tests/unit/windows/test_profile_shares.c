/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose a process is is a stand-in: the user that its struct has. */
#include "windows/profile_shares.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/intern.h"
#include "discover/proc_scan.h"
#include "profile/profile.h"

#define WINDOW_NS (10 * NS_PER_SEC)
/* 12 s x 2 CPUs x (48 KiB + 160 x 99). */
#define TOTAL 1559808ULL
#define FRAMES_MAX 1000U
#define ALICE 1000U
#define BOB 1001U

static struct intern *strings;
static struct profile_shares shares;
static struct process of_root = {.id = {.tgid = 1}, .uid = 0};
static struct process of_alice = {.id = {.tgid = 10}, .uid = ALICE};
static struct process of_bob = {.id = {.tgid = 20}, .uid = BOB};
static unsigned int looked_up;
static uint32_t new_names;

uint32_t process_user_kept(struct process *process)
{
	looked_up += !process->is_user_known;
	if (!process->is_user_known)
		process->user = process->uid;
	process->is_user_known = true;
	return process->user;
}

static int setup(void **state)
{
	(void)state;
	looked_up = new_names = 0;
	of_root.is_user_known = of_alice.is_user_known = of_bob.is_user_known = false;
	shares = (struct profile_shares){};
	profile_shares_allow(&shares, WINDOW_NS, 2, 99);
	return intern_new(&strings);
}

static int teardown(void **state)
{
	(void)state;
	profile_shares_release(&shares);
	profile_shares_release(&shares); /* it is empty by now */
	intern_free(strings);
	return 0;
}

static uint32_t text(const char *string)
{
	uint32_t id = 0;

	assert_int_equal(intern_string(strings, string, &id), 0);
	return id;
}

static int take_stack(struct process *process, const struct frame *frame, size_t count)
{
	const struct profile_sample sample = {.frame = frame, .frame_count = count};

	return profile_shares_take(&shares, strings, process, &sample);
}

/* A function of which nobody has heard, with a long name. */
static int take_new(struct process *process)
{
	struct frame frame = {.kind = FRAME_PYTHON};
	char name[4001];

	snprintf(name, sizeof(name), "%04000u", ++new_names);
	frame.name = text(name);
	return take_stack(process, &frame, 1);
}

static uint64_t held(uint32_t uid)
{
	return user_quota_held(&shares.quota, uid);
}

static void share__of_one_user_is_half_and_leaves_others_theirs(void **state)
{
	unsigned int taken = 0;

	(void)state;
	assert_int_equal(shares.quota.total, TOTAL);
	while (!take_new(&of_alice) && taken < 1000)
		taken++;
	assert_in_range(held(ALICE), TOTAL / 2 - 5000, TOTAL / 2);
	assert_int_equal(shares.quota.refused, 1);
	for (int i = 0; i < 50; i++)
		assert_int_equal(take_new(&of_bob), 0);
	assert_int_equal(take_new(&of_alice), -EDQUOT);
}

static void share__of_root_is_not_bounded(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(take_new(&of_root), 0);
	assert_int_equal(shares.quota.used, 0);
	assert_int_equal(take_new(&of_alice), 0);
}

static void share__is_longer_for_longer_profiles_and_higher_rates(void **state)
{
	(void)state;
	profile_shares_allow(&shares, 0, 1, 99);
	assert_int_equal(shares.quota.total, 2 * (48 * 1024 + 160 * 99));
	profile_shares_allow(&shares, 3598 * NS_PER_SEC, 64, 1999);
	assert_int_equal(shares.quota.total, 3600ULL * 64 * (48 * 1024 + 160 * 1999));
}

static void cost__of_a_stack_that_repeats_is_its_row(void **state)
{
	const struct frame frame[] = {{.name = text("inner"), .file = text("work.py"), .line = 3},
				      {.name = text("outer"), .file = text("work.py"), .line = 9}};
	uint64_t first;

	(void)state;
	assert_int_equal(take_stack(&of_alice, frame, 2), 0);
	first = held(ALICE);
	/* A row; two steps; three names of 5, 5 and 7 bytes and "" for what is missing. */
	assert_int_equal(first, 16 + 2 * 3 + (5 + 8) + (5 + 8) + (7 + 8) + 8);
	assert_int_equal(take_stack(&of_alice, frame, 2), 0);
	assert_int_equal(held(ALICE), first + 16);
	/* What another user has brought is there already. */
	assert_int_equal(take_stack(&of_bob, frame, 2), 0);
	assert_int_equal(held(BOB), 16);
}

/* As in a compressed file: deep recursion is cheap, and an order that never comes again is not. */
static void cost__of_depth_is_that_of_its_new_steps(void **state)
{
	static struct frame frame[FRAMES_MAX];
	uint64_t before;

	(void)state;
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		frame[i] = (struct frame){.kind = FRAME_PYTHON, .name = text("f"), .line = 1};
	assert_int_equal(take_stack(&of_alice, frame, FRAMES_MAX), 0);
	assert_true(held(ALICE) < 100);
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		frame[i].line = 2 + i;
	before = held(ALICE);
	assert_int_equal(take_stack(&of_alice, frame, FRAMES_MAX), 0);
	assert_in_range(held(ALICE) - before, 3 * FRAMES_MAX - 100, 3 * FRAMES_MAX + 16);
	/* The same functions in another order. */
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		frame[i].line = 2 + i * 7 % FRAMES_MAX;
	before = held(ALICE);
	assert_int_equal(take_stack(&of_alice, frame, FRAMES_MAX), 0);
	assert_in_range(held(ALICE) - before, 3 * FRAMES_MAX - 100, 3 * FRAMES_MAX + 16);
}

static void cost__has_the_labels(void **state)
{
	const struct frame frame = {.name = text("f")};
	struct profile_sample sample = {
		.frame = &frame,
		.frame_count = 1,
		.label = {{.key = "pid", .number = 5, .is_number = 1},
			  {.key = "thread_name", .string = text("worker-1")}},
		.label_count = 2};
	uint64_t before;

	(void)state;
	assert_int_equal(take_stack(&of_alice, &frame, 1), 0);
	before = held(ALICE);
	assert_int_equal(profile_shares_take(&shares, strings, &of_alice, &sample), 0);
	assert_int_equal(held(ALICE) - before, 16 + 2 * 2 + (8 + 8));
}

/* Else a stack that was left out would pay for the next one with its names. */
static void refused__stack_leaves_nothing_behind(void **state)
{
	static struct frame frame[FRAMES_MAX];
	char name[32];

	(void)state;
	for (uint32_t i = 0; i < FRAMES_MAX; i++) {
		snprintf(name, sizeof(name), "function %u", i);
		frame[i] = (struct frame){.kind = FRAME_NATIVE, .name = text(name)};
	}
	profile_shares_allow(&shares, 0, 1, 1);
	shares.quota.total = 20000;
	for (int i = 0; i < 3; i++)
		assert_int_equal(take_stack(&of_alice, frame, FRAMES_MAX), -EDQUOT);
	assert_int_equal(held(ALICE), 0);
	shares.quota.total = 100000;
	assert_int_equal(take_stack(&of_alice, frame, FRAMES_MAX), 0);
	assert_in_range(held(ALICE), FRAMES_MAX * (3 + 8 + 10), FRAMES_MAX * (3 + 8 + 12) + 100);
}

/* What an earlier stack has brought is still there after one that was refused. */
static void refused__stack_leaves_what_was_there(void **state)
{
	const struct frame known = {.kind = FRAME_NATIVE, .name = text("known")};
	uint64_t before;

	(void)state;
	assert_int_equal(take_stack(&of_alice, &known, 1), 0);
	before = held(ALICE);
	shares.quota.total = before;
	assert_int_equal(take_new(&of_alice), -EDQUOT);
	profile_shares_allow(&shares, WINDOW_NS, 2, 99);
	assert_int_equal(take_stack(&of_alice, &known, 1), 0);
	assert_int_equal(held(ALICE), before + 16);
}

static void reset__gives_all_back_but_tells_no_user_twice(void **state)
{
	uint32_t uid;

	(void)state;
	while (!take_new(&of_alice))
		;
	assert_true(user_quota_tell(&shares.quota, &uid));
	assert_int_equal(uid, ALICE);
	profile_shares_reset(&shares);
	assert_int_equal(shares.quota.used, 0);
	assert_int_equal(take_new(&of_alice), 0);
	while (!take_new(&of_alice))
		;
	assert_false(user_quota_tell(&shares.quota, &uid));
	assert_int_equal(shares.quota.refused, 2);
}

static void owner__is_looked_up_once_a_process(void **state)
{
	struct process second = {.id = {.tgid = 10, .generation = 2}, .uid = BOB};

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(take_new(&of_alice), 0);
	assert_int_equal(looked_up, 1);
	/* Another process of that number is another one. */
	assert_int_equal(take_new(&second), 0);
	assert_int_equal(looked_up, 2);
	assert_true(held(BOB));
	/* Nor is it for the next profiles. */
	profile_shares_reset(&shares);
	assert_int_equal(take_new(&of_alice), 0);
	assert_int_equal(looked_up, 2);
}

/* A uid of 0 that nobody has read must not pass for root's. */
static void owner__that_nobody_knows_has_one_share(void **state)
{
	struct process gone = {.id = {.tgid = 30}, .exit_ns = 5}, known = {.id = {.tgid = 31},
									   .exit_ns = 5,
									   .is_user_known = true,
									   .user = BOB};

	(void)state;
	assert_int_equal(take_new(&gone), 0);
	assert_int_equal(take_new(NULL), 0);
	assert_true(held(PROFILE_SHARES_UNKNOWN) > 8000);
	assert_int_equal(looked_up, 0);
	assert_int_equal(take_new(&known), 0);
	assert_true(held(BOB));
}

static void rows__of_left_out_stacks_are_those_of_the_first_processes(void **state)
{
	struct process process = {.uid = ALICE};
	unsigned int rows = 0;

	(void)state;
	assert_false(profile_shares_has_row(&shares, NULL));
	for (uint32_t i = 0; i < 3000; i++) {
		const struct frame frame = {.name = text("f")};

		process.id.tgid = 100 + i % 1500;
		assert_int_equal(take_stack(&process, &frame, 1), 0);
		rows += profile_shares_has_row(&shares, &process);
	}
	assert_int_equal(rows, 2 * 1024);
	profile_shares_reset(&shares);
	assert_int_equal(take_new(&process), 0);
	assert_true(profile_shares_has_row(&shares, &process));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(share__of_one_user_is_half_and_leaves_others_theirs),
		TEST(share__of_root_is_not_bounded),
		TEST(share__is_longer_for_longer_profiles_and_higher_rates),
		TEST(cost__of_a_stack_that_repeats_is_its_row),
		TEST(cost__of_depth_is_that_of_its_new_steps),
		TEST(cost__has_the_labels),
		TEST(refused__stack_leaves_nothing_behind),
		TEST(refused__stack_leaves_what_was_there),
		TEST(reset__gives_all_back_but_tells_no_user_twice),
		TEST(owner__is_looked_up_once_a_process),
		TEST(owner__that_nobody_knows_has_one_share),
		TEST(rows__of_left_out_stacks_are_those_of_the_first_processes),
	};

	return cmocka_run_group_tests_name("agent/profile_shares", tests, NULL, NULL);
}
