/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: gpu/gauge_lines.c gpu/gauge_sums.c profile/gauge_line.c */
/* Processes, profiles and clients are stand-ins: the process PID is of the user PID / 100. */
#include "gpu/gauge_lines.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "discover/process_table.h"
#include "discover/proc_scan.h"
#include "gpu/gauge_sums.h"
#include "windows/profiles.h"
#include "windows/top.h"

#define UNKNOWN_PID 999U

static struct gauge_sums *sums;
static struct gauge_lines_sources sources;
static char comment[GAUGE_LINES_MAX + GAUGE_PROCESS_LINES_MAX + 2][GAUGE_LINE_CHARS];
static uint32_t kinds[ARRAY_SIZE(comment)];
static size_t comments;
static char sent[4096];

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	static struct process process[1000];

	(void)table;
	if (tgid >= UNKNOWN_PID)
		return NULL;
	process[tgid].id = (struct pp_process_id){.tgid = tgid, .generation = 1};
	memcpy(process[tgid].comm, "sixteen letters.", PP_COMM_BYTES);
	return &process[tgid];
}

uint32_t process_user_kept(struct process *process)
{
	return process->id.tgid / 100;
}

uint16_t context_table_flags(const struct process *process)
{
	return process->id.tgid % 2 ? PP_CONTEXT_MATCHES : 0;
}

int profiles_add_comment_to(struct profiles *profiles, uint32_t of_kinds, const char *text)
{
	(void)profiles;
	assert_true(comments < ARRAY_SIZE(comment));
	kinds[comments] = of_kinds;
	snprintf(comment[comments++], GAUGE_LINE_CHARS, "%s", text);
	return 0;
}

static void note(const char *text)
{
	const size_t used = strlen(sent);

	snprintf(sent + used, sizeof(sent) - used, " %s", text);
}

void top_add_gpu(struct top *top, const char *text)
{
	(void)top, (void)text;
	note("gpu");
}

void top_add_gpu_process(struct top *top, struct pp_process_id id,
			 const struct gauge_process_line *line)
{
	char text[32];

	(void)top;
	assert_int_equal(line->pid, id.tgid);
	snprintf(text, sizeof(text), "%u", id.tgid);
	note(text);
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	sums = calloc(1, sizeof(*sums));
	sources = (struct gauge_lines_sources){.is_filtered = false};
	comments = 0;
	sent[0] = '\0';
	return !sums;
}

static int teardown(void **state)
{
	(void)state;
	free(sums);
	return 0;
}

static void add_process(uint32_t pid, uint64_t bytes)
{
	sums->process[sums->process_count++] = (struct gauge_sums_process){
		.pid = pid,
		.rounds = 1,
		.memory_bytes = {.count = 1, .sum = bytes, .min = bytes, .max = bytes}};
}

static uint64_t pid_of(size_t index)
{
	struct gauge_process_line line;

	assert_true(index < comments);
	assert_true(gauge_process_line_parse(comment[index], &line));
	return line.pid;
}

static void describe__gpus_in_two_kinds_and_processes_in_one(void **state)
{
	(void)state;
	sums->device_count = 2;
	add_process(101, 5);
	assert_int_equal(gauge_lines_describe(sums, &sources, NULL), 0);
	assert_int_equal(comments, 3);
	assert_int_equal(kinds[0], 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_CUDA);
	assert_int_equal(kinds[1], kinds[0]);
	assert_int_equal(kinds[2], 1U << PP_PROFILE_CUDA);
	assert_string_equal(comment[2], "gpu pid=101 comm=sixteen_letters. device=0 seconds=1 "
					"memory=5 sm=absent");
}

static void describe__users_take_turns(void **state)
{
	(void)state;
	sums->device_count = 1;
	add_process(101, 50);
	add_process(102, 60);
	add_process(103, 70);
	add_process(201, 5);
	add_process(301, 6);
	assert_int_equal(gauge_lines_describe(sums, &sources, NULL), 0);
	assert_int_equal(comments, 6);
	assert_int_equal(pid_of(1), 103);
	assert_int_equal(pid_of(2), 301);
	assert_int_equal(pid_of(3), 201);
	assert_int_equal(pid_of(4), 102);
	assert_int_equal(pid_of(5), 101);
}

static void describe__further_processes_share_a_line(void **state)
{
	(void)state;
	sums->device_count = 1;
	sums->left_out = 1000;
	for (uint32_t i = 0; i < GAUGE_PROCESS_LINES_MAX + 2; i++)
		add_process(100 + i, 1000 - i);
	add_process(UNKNOWN_PID, 7);
	assert_int_equal(gauge_lines_describe(sums, &sources, NULL), 0);
	assert_int_equal(comments, 1 + GAUGE_PROCESS_LINES_MAX + 1);
	assert_string_equal(comment[comments - 1], "gpu others=1003 memory=1878 sm=absent");
}

static void describe__of_a_filter_only_what_matches(void **state)
{
	(void)state;
	sources.is_filtered = true;
	sums->device_count = 1;
	add_process(101, 1);
	add_process(102, 2);
	assert_int_equal(gauge_lines_describe(sums, &sources, NULL), 0);
	assert_int_equal(comments, 3);
	assert_int_equal(pid_of(1), 101);
	assert_string_equal(comment[2], "gpu others=1 memory=2 sm=absent");
}

static void describe__without_gauges_nothing(void **state)
{
	(void)state;
	assert_int_equal(gauge_lines_describe(NULL, &sources, NULL), 0);
	assert_int_equal(gauge_lines_describe(sums, &sources, NULL), 0);
	assert_int_equal(comments, 0);
}

static void send__gpus_and_each_known_process(void **state)
{
	struct top *top = (struct top *)sent;

	(void)state;
	sums->device_count = 2;
	add_process(101, 1);
	add_process(UNKNOWN_PID, 1);
	add_process(201, 1);
	gauge_lines_send(sums, &sources, NULL);
	gauge_lines_send(NULL, &sources, top);
	assert_string_equal(sent, "");
	gauge_lines_send(sums, &sources, top);
	assert_string_equal(sent, " gpu gpu 101 201");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(describe__gpus_in_two_kinds_and_processes_in_one),
		TEST(describe__users_take_turns),
		TEST(describe__further_processes_share_a_line),
		TEST(describe__of_a_filter_only_what_matches),
		TEST(describe__without_gauges_nothing),
		TEST(send__gpus_and_each_known_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
