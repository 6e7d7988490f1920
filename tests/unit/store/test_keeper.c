/* SPDX-License-Identifier: BSD-2-Clause */
/* What is due when which window is written; the store is a fake. */
#include "store/keeper.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/kept.h"
#include "store/store.h"
#include "store/writer.h"

#define WALL_NS (1795273200 * NS_PER_SEC) /* of the written window's end */
#define WALL_MS (WALL_NS / NS_PER_MS)
#define ENDED_NS (1000 * NS_PER_SEC)
#define ASKED_MAX 80U

static struct kept_request asked[ASKED_MAX];
static size_t asked_count;
static int answer;
static struct keeper *keeper;
static uint64_t end_ns; /* of each process */

int store_keep(struct store *store, const struct kept_request *request,
	       struct kept_result *ret_result)
{
	(void)store;
	assert_true(asked_count < ASKED_MAX);
	asked[asked_count++] = *request;
	*ret_result = (struct kept_result){.files = 1, .span_ms = 1000};
	return answer;
}

static char told[512];
static unsigned int told_lines;

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	vsnprintf(told, sizeof(told), format, arguments);
	va_end(arguments);
	told_lines++;
}

static int begin(void **state)
{
	(void)state;
	asked_count = told_lines = 0;
	answer = 0;
	end_ns = 0;
	return keeper_new("/var/lib/pyprofd/", &keeper);
}

static int end(void **state)
{
	(void)state;
	keeper_free(keeper);
	return 0;
}

static uint64_t find_end(const void *context, uint32_t pid, uint32_t generation)
{
	(void)pid;
	(void)generation;
	assert_ptr_equal(context, &end_ns);
	return end_ns;
}

static void look(uint64_t now_ns)
{
	keeper_find_ends(keeper, now_ns, find_end, &end_ns);
}

static void write_window(uint64_t ended_ns, bool is_last)
{
	const struct writer_window window = {.start_wall_ns = WALL_NS + (ended_ns - ENDED_NS) -
							      10 * NS_PER_SEC,
					     .duration_ns = 10 * NS_PER_SEC,
					     .ended_ns = ended_ns,
					     .is_last = is_last};

	keeper_keep(keeper, NULL, &window);
}

static void add(uint32_t pid, uint32_t uid, uint64_t time_ns)
{
	keeper_add_victim(keeper, &(struct keeper_victim){.pid = pid,
							  .generation = 1,
							  .uid = uid,
							  .comm = "python3",
							  .time_ns = time_ns});
}

static void assert_stats(uint64_t kept, uint64_t failed, uint64_t left_out)
{
	struct keeper_stats stats;

	keeper_get_stats(keeper, &stats);
	assert_int_equal(stats.kept, kept);
	assert_int_equal(stats.failed, failed);
	assert_int_equal(stats.left_out, left_out);
}

static void victim__waits_for_its_end_and_for_its_window(void **state)
{
	(void)state;
	add(7, 1000, 998 * NS_PER_SEC);
	look(999 * NS_PER_SEC);
	write_window(ENDED_NS, false); /* it runs */
	end_ns = ENDED_NS + 1;
	look(1001 * NS_PER_SEC);
	write_window(ENDED_NS, false); /* the window with the end is open */
	assert_int_equal(asked_count, 0);
	write_window(1010 * NS_PER_SEC, false);
	assert_int_equal(asked_count, 1);
	assert_int_equal(asked[0].name.reason, KEPT_OOM);
	assert_int_equal(asked[0].name.pid, 7);
	assert_int_equal(asked[0].name.uid, 1000);
	assert_string_equal(asked[0].name.comm, "python3");
	assert_int_equal(asked[0].name.time_ms, WALL_MS);
	assert_int_equal(asked[0].until_ms, WALL_MS + 1);
	assert_int_equal(asked[0].from_ms, WALL_MS - 600000);
	write_window(1020 * NS_PER_SEC, false);
	assert_int_equal(asked_count, 1);
	assert_stats(1, 0, 0);
}

static void victim__is_not_kept_from_before_its_program(void **state)
{
	(void)state;
	keeper_add_victim(keeper, &(struct keeper_victim){.pid = 7,
							  .comm = "a",
							  .begun_ns = 970 * NS_PER_SEC,
							  .time_ns = 989 * NS_PER_SEC});
	end_ns = 990 * NS_PER_SEC;
	look(991 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 1);
	assert_int_equal(asked[0].from_ms, WALL_MS - 30000);
	assert_int_equal(asked[0].until_ms, WALL_MS - 10000 + 1);
}

static void victim__that_is_told_twice_is_one(void **state)
{
	(void)state;
	add(7, 1000, 989 * NS_PER_SEC);
	add(7, 1000, 989 * NS_PER_SEC + 5);
	end_ns = 990 * NS_PER_SEC;
	look(991 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 1);
}

/* It waits for a disk, or its end was lost. */
static void victim__that_does_not_end_counts_as_ended(void **state)
{
	(void)state;
	add(7, 1000, 900 * NS_PER_SEC);
	look(959 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 0);
	look(960 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 1);
	add(8, 1000, 970 * NS_PER_SEC);
	end_ns = KEEPER_GONE;
	look(971 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 2);
	assert_int_equal(asked[1].until_ms, WALL_MS - 29000 + 1);
}

static void victims__of_one_user_leave_room_for_others(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= 20; pid++)
		add(pid, 1000, NS_PER_SEC);
	assert_stats(0, 0, 4);
	add(21, 1001, NS_PER_SEC);
	assert_stats(0, 0, 4);
}

static void victims__are_bounded_in_all(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= 70; pid++)
		add(pid, pid, NS_PER_SEC);
	keeper_add_signal(keeper, NS_PER_SEC);
	assert_stats(0, 0, 7);
}

/* Who has programs ended again and again does not keep the writer from its windows. */
static void victims__beyond_four_wait_for_the_next_window(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= 6; pid++)
		add(pid, 1000, 900 * NS_PER_SEC);
	end_ns = 901 * NS_PER_SEC;
	look(901 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 4);
	write_window(1010 * NS_PER_SEC, false);
	assert_int_equal(asked_count, 6);
	assert_int_equal(asked[5].name.pid, 6);
}

static void signal__asks_for_a_cut_until_it_is_written(void **state)
{
	(void)state;
	assert_false(keeper_wants_cut(keeper, 995 * NS_PER_SEC));
	keeper_add_signal(keeper, 1005 * NS_PER_SEC);
	keeper_add_signal(keeper, 1006 * NS_PER_SEC);
	assert_true(keeper_wants_cut(keeper, ENDED_NS));
	assert_false(keeper_wants_cut(keeper, 1006 * NS_PER_SEC));
	write_window(ENDED_NS, false);
	assert_int_equal(asked_count, 0);
	write_window(1006 * NS_PER_SEC, false);
	assert_int_equal(asked_count, 1);
	assert_false(keeper_wants_cut(keeper, ENDED_NS));
	assert_int_equal(asked[0].name.reason, KEPT_SIGNAL);
	assert_int_equal(asked[0].until_ms, WALL_MS + 6000 + 1);
	assert_false(keeper_wants_cut(NULL, 0));
}

static void failure__is_counted_and_the_next_one_is_tried(void **state)
{
	(void)state;
	answer = -ENOSPC;
	for (uint64_t i = 1; i <= 2; i++) {
		keeper_add_signal(keeper, 900 * NS_PER_SEC);
		write_window(ENDED_NS, false);
		assert_stats(0, i, 0);
	}
}

static void failure__is_told_with_its_reason(void **state)
{
	static const struct {
		int err;
		const char *reason;
	} row[] = {{-ENODATA, ": the store has nothing of it ("},
		   {-EFBIG, ": there is no room for it: --store-max is too small ("},
		   {-EPERM, ": its file system has no hard links, or refuses them ("},
		   {-EOPNOTSUPP, ": its file system has no hard links, or refuses them ("},
		   {-ENOSPC, ": No space left on device ("}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		answer = row[i].err;
		keeper_add_signal(keeper, 900 * NS_PER_SEC);
		write_window(ENDED_NS, false);
		assert_int_equal(told_lines, 1);
		assert_ptr_equal(strstr(told, "SIGUSR1: nothing is kept in "), told);
		if (!strstr(told, row[i].reason))
			fail_msg("'%s'", told);
		add(7, 1000, 999 * NS_PER_SEC);
		write_window(ENDED_NS + NS_PER_SEC, true);
		assert_int_equal(told_lines, 2);
		assert_ptr_equal(strstr(told, "process 7 ("), told);
		assert_non_null(strstr(told, row[i].reason));
		end(state);
		begin(state);
	}
}

/* Of many that end at once, the first. */
static void kept__is_told_by_its_reason_and_of_victims_once(void **state)
{
	(void)state;
	keeper_add_signal(keeper, 900 * NS_PER_SEC);
	write_window(ENDED_NS, false);
	assert_int_equal(told_lines, 1);
	assert_ptr_equal(strstr(told, "SIGUSR1: the last 1 s of everything are kept in "), told);
	for (uint32_t pid = 7; pid < 10; pid++)
		add(pid, 1000, 999 * NS_PER_SEC);
	write_window(ENDED_NS + NS_PER_SEC, true);
	assert_int_equal(told_lines, 2);
	assert_ptr_equal(strstr(told, "process 7 ("), told);
	assert_non_null(strstr(told, "; its last 1 s are kept in "));
}

static void finish__tells_how_many_are_not_kept(void **state)
{
	(void)state;
	keeper_finish(keeper);
	assert_int_equal(told_lines, 0);
	add(7, 1000, 999 * NS_PER_SEC);
	add(8, 1000, 999 * NS_PER_SEC);
	keeper_finish(keeper);
	assert_int_equal(told_lines, 1);
	assert_non_null(strstr(told, ": 2 times nothing is kept"));
	assert_stats(0, 2, 0);
	keeper_finish(keeper);
	assert_int_equal(told_lines, 1);
}

static void last_window__keeps_what_has_not_ended(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= 10; pid++)
		add(pid, 1000, 999 * NS_PER_SEC);
	keeper_add_signal(keeper, 1001 * NS_PER_SEC);
	write_window(ENDED_NS, true);
	keeper_finish(keeper);
	assert_stats(11, 0, 0);
	assert_int_equal(asked[10].until_ms, WALL_MS + 1);
}

/* A run that has ended before its first window was written. */
static void finish__without_a_window_counts_what_is_left(void **state)
{
	(void)state;
	keeper_add_signal(keeper, 1001 * NS_PER_SEC);
	keeper_finish(keeper);
	assert_stats(0, 1, 0);
	write_window(1010 * NS_PER_SEC, true);
	assert_int_equal(asked_count, 0);
	keeper_finish(NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(victim__waits_for_its_end_and_for_its_window),
		TEST(victim__is_not_kept_from_before_its_program),
		TEST(victim__that_is_told_twice_is_one),
		TEST(victim__that_does_not_end_counts_as_ended),
		TEST(victims__of_one_user_leave_room_for_others),
		TEST(victims__are_bounded_in_all),
		TEST(victims__beyond_four_wait_for_the_next_window),
		TEST(signal__asks_for_a_cut_until_it_is_written),
		TEST(failure__is_counted_and_the_next_one_is_tried),
		TEST(failure__is_told_with_its_reason),
		TEST(kept__is_told_by_its_reason_and_of_victims_once),
		TEST(finish__tells_how_many_are_not_kept),
		TEST(last_window__keeps_what_has_not_ended),
		TEST(finish__without_a_window_counts_what_is_left),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("store/keeper", tests, NULL, NULL);
}
