/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/resident.c processes/process_list.c profile/memory_line.c */
/* Processes, their files and the clients are stand-ins: the process PID has PID KiB, and the
 * kernel thread has none. */
#include "agent/resident.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/progress.h"
#include "attach/context_table.h"
#include "base/clock.h"
#include "discover/process_table.h"
#include "discover/process_user.h"
#include "discover/resident_memory.h"
#include "profile/memory_line.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define PROCESSES 20000U
#define KERNEL_THREAD 2U
#define SMALL_USER 5U /* has the three smallest processes */

static struct process process[PROCESSES];
static uint32_t count; /* of them */
static uint32_t reads; /* files */
static uint32_t added_kib;
static bool clients_want;
static char sent[4096]; /* pids */
static char *comment[2 * MEMORY_LINES_MAX + 2];
static size_t comments;
static struct summary summary;
static struct resident *resident;

struct process *process_table_next(const struct process_table *table, const struct process *before)
{
	const size_t next = before ? (size_t)(before - process) + 1 : 0;

	(void)table;
	return next < count ? &process[next] : NULL;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	for (uint32_t i = 0; i < count; i++)
		if (process[i].id.tgid == id.tgid)
			return &process[i];
	return NULL;
}

uint16_t context_table_flags(const struct process *of)
{
	return of->inner_pid ? PP_CONTEXT_MATCHES : 0;
}

uint32_t process_user_kept(struct process *of)
{
	of->is_user_known = true;
	return of->user;
}

int resident_memory_read(uint32_t pid, struct resident_memory *ret_memory)
{
	reads++;
	if (pid == KERNEL_THREAD)
		return -ENODATA;
	*ret_memory = (struct resident_memory){.anonymous_bytes = (pid + added_kib) * 1024ULL,
					       .file_bytes = 10,
					       .shared_bytes = 1,
					       .peak_bytes = pid * 2048ULL};
	return 0;
}

bool top_wants_memory(const struct top *top)
{
	(void)top;
	return clients_want;
}

void top_add_memory(struct top *top, struct pp_process_id id, const struct memory_line *line)
{
	const size_t used = strlen(sent);

	(void)top;
	assert_int_equal(line->pid, id.tgid);
	if (used < sizeof(sent) - 16)
		snprintf(sent + used, sizeof(sent) - used, " %u", id.tgid);
}

int profiles_add_comment_to(struct profiles *profiles, uint32_t kinds, const char *text)
{
	(void)profiles;
	assert_int_equal(kinds, 1U << PP_PROFILE_MEM | 1U << PP_PROFILE_ALLOC);
	assert_true(comments < ARRAY_SIZE(comment));
	comment[comments++] = strdup(text);
	return 0;
}

/* ---- */

static struct services services;

static void begin(uint32_t processes, bool is_filtered)
{
	services = (struct services){.summary = &summary, .is_filtered = is_filtered};

	count = processes;
	for (uint32_t i = 0; i < count; i++) {
		process[i] = (struct process){.id = {.tgid = i + 1, .generation = 9},
					      .user = i < 3 ? SMALL_USER : 7};
		snprintf(process[i].comm, sizeof(process[i].comm), "p %u", i + 1);
	}
	assert_int_equal(resident_new(&services, &resident), 0);
}

static int setup(void **state)
{
	(void)state;
	reads = added_kib = 0;
	clients_want = false;
	sent[0] = '\0';
	summary = (struct summary){0};
	return 0;
}

static void forget_comments(void)
{
	while (comments)
		free(comment[--comments]);
}

static int teardown(void **state)
{
	(void)state;
	forget_comments();
	resident_free(resident);
	resident = NULL;
	return 0;
}

static struct memory_line line_of(size_t index)
{
	struct memory_line line;

	assert_true(index < comments);
	assert_true(memory_line_parse(comment[index], &line));
	return line;
}

static void read__tells_each_process_once_users_in_turn(void **state)
{
	(void)state;
	begin(5, false);
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(reads, 5);
	/* 3 is the largest one of its user, and 2 a kernel thread. */
	assert_string_equal(sent, " 5 3 4 1");
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(comments, 4);
	assert_int_equal(line_of(0).pid, 5);
	assert_string_equal(line_of(0).comm, "p_5");
	assert_int_equal(line_of(0).anonymous_bytes, 5 * 1024);
	assert_int_equal(line_of(0).file_bytes, 10);
	assert_int_equal(line_of(0).shared_bytes, 1);
	assert_int_equal(line_of(0).peak_bytes, 5 * 2048);
	assert_int_equal(line_of(1).pid, 3);
	assert_int_equal(line_of(2).pid, 4);
	assert_int_equal(summary.memory_processes, 4);
	assert_int_equal(summary.memory_anonymous_bytes, (5 + 4 + 3 + 1) * 1024);
	assert_int_equal(summary.memory_file_bytes, 40);
	assert_int_equal(summary.memory_shared_bytes, 4);
	assert_int_equal(summary.memory_largest_bytes[0], 5 * 1024 + 11);
	assert_int_equal(summary.memory_largest_bytes[3], 1024 + 11);
	assert_int_equal(summary.memory_largest_bytes[4], 0);
	/* A kernel thread is not read again. */
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(reads, 5 + 4);
}

static void read__of_a_filter_only_what_matches(void **state)
{
	(void)state;
	begin(5, true);
	process[3].inner_pid = 1;
	process[4].inner_pid = 1;
	process[4].exit_ns = 1;
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(reads, 1);
	assert_string_equal(sent, " 4");
}

static void read__goes_on_in_slices(void **state)
{
	const struct slice over = {0};
	unsigned int steps = 0;

	(void)state;
	begin(5, false);
	while (resident_read(resident, NULL, false, &over) == 1) {
		assert_string_equal(sent, "");
		assert_true(++steps < 10);
	}
	assert_int_equal(steps, 4);
	assert_string_equal(sent, " 5 3 4 1");
}

static void read__of_a_part_only_for_clients_that_want_it(void **state)
{
	(void)state;
	begin(5, false);
	assert_int_equal(resident_read(resident, NULL, true, NULL), 0);
	assert_int_equal(reads, 0);
	clients_want = true;
	assert_int_equal(resident_read(resident, NULL, true, NULL), 0);
	assert_int_equal(reads, 5);
}

static void describe__beyond_256_are_summed_up(void **state)
{
	(void)state;
	begin(300, false);
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(comments, MEMORY_LINES_MAX + 1);
	assert_int_equal(line_of(MEMORY_LINES_MAX).pid, 0);
	assert_int_equal(line_of(MEMORY_LINES_MAX).others, 299 - MEMORY_LINES_MAX);
	assert_int_equal(line_of(MEMORY_LINES_MAX).unread, 0);
	/* Both of the small user are among the 256: of the other one the smallest are left out. */
	assert_int_equal(line_of(MEMORY_LINES_MAX).anonymous_bytes, 43 * (4 + 46) / 2 * 1024);
}

static void read__more_than_fit_take_turns(void **state)
{
	(void)state;
	begin(2500, false);
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(reads, RESIDENT_READS_MAX);
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(line_of(MEMORY_LINES_MAX).unread, 2500 - RESIDENT_READS_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
		forget_comments();
		assert_int_equal(resident_describe(resident, NULL), 0);
	}
	/* All have had a turn. */
	assert_int_equal(line_of(0).pid, 2500);
	assert_int_equal(line_of(MEMORY_LINES_MAX).unread, 0);
	assert_int_equal(line_of(MEMORY_LINES_MAX).others, 2499 - MEMORY_LINES_MAX);
}

/* One file for the whole run: growth is from the first reading to the last. */
static void describe__first_figures_of_a_profile_are_told_when_they_are_old(void **state)
{
	const struct timespec second = {.tv_sec = 1, .tv_nsec = 1000000};

	(void)state;
	begin(1, false);
	assert_int_equal(resident_start(resident), 0);
	nanosleep(&second, NULL);
	added_kib = 100;
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(comments, 2);
	assert_int_equal(line_of(0).anonymous_bytes, 1024);
	assert_int_equal(line_of(1).anonymous_bytes, 101 * 1024);
	assert_true(line_of(1).at_ms >= line_of(0).at_ms + 1000);
	/* The next profile begins with its own. */
	forget_comments();
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(comments, 1);
}

static void describe__ended_process_is_told_for_the_last_time(void **state)
{
	(void)state;
	begin(4, false);
	assert_int_equal(resident_read(resident, NULL, false, NULL), 0);
	process[3].exit_ns = 1;
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(line_of(0).pid, 4);
	forget_comments();
	assert_int_equal(resident_describe(resident, NULL), 0);
	assert_int_equal(comments, 2);
	assert_int_equal(line_of(0).pid, 3);
}

static void resident__none_is_not_captured(void **state)
{
	(void)state;
	assert_int_equal(resident_start(NULL), 0);
	assert_int_equal(resident_read(NULL, NULL, false, NULL), 0);
	assert_int_equal(resident_describe(NULL, NULL), 0);
	resident_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read__tells_each_process_once_users_in_turn),
		TEST(read__of_a_filter_only_what_matches),
		TEST(read__goes_on_in_slices),
		TEST(read__of_a_part_only_for_clients_that_want_it),
		TEST(describe__beyond_256_are_summed_up),
		TEST(read__more_than_fit_take_turns),
		TEST(describe__first_figures_of_a_profile_are_told_when_they_are_old),
		TEST(describe__ended_process_is_told_for_the_last_time),
		TEST(resident__none_is_not_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
