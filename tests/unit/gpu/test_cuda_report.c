/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows, processes, profiles and clients are stand-ins. */
#include "gpu/cuda_report.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "discover/process.h"
#include "discover/proc_scan.h"
#include "drain/cuda_totals.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "profile/cuda_line.h"
#include "windows/profiles.h"
#include "windows/top.h"

#define KNOWN 1U /* detail */
#define UNKNOWN 2U
#define OTHER 3U

static struct cuda_fresh row[4];
static size_t row_count;
static struct process process;
static bool is_alive;
static struct cuda_line told[8];
static size_t told_count;
static uint64_t sent_calls;
static uint32_t sent_user;

int cuda_fresh(const struct cuda *cuda,
	       int (*on_fresh)(void *context, const struct cuda_fresh *fresh), void *context)
{
	int err = 0;

	assert_ptr_equal(cuda, row);
	for (size_t i = 0; i < row_count && !err; i++)
		err = on_fresh(context, &row[i]);
	return err;
}

int cuda_find(const struct cuda *cuda, uint64_t detail, struct cuda_call *ret_call)
{
	(void)cuda;
	if (detail == UNKNOWN)
		return -ENOENT;
	*ret_call = (struct cuda_call){.api = "cuMemcpyDtoH",
				       .device = "3",
				       .direction = "DtoH",
				       .kernel = detail == KNOWN ? "void f<int, 2>()\n" : ""};
	return 0;
}

void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who)
{
	(void)processes, (void)tid;
	*ret_who = (struct who){.process = is_alive ? &process : NULL, .comm = "a b"};
	assert_int_equal(id.tgid, 70);
}

uint32_t process_user_kept(struct process *of)
{
	assert_ptr_equal(of, &process);
	return 1000;
}

void top_add_cuda(struct top *top, struct pp_process_id id, const struct cuda_line *line,
		  uint32_t user)
{
	assert_ptr_equal(top, &sent_calls);
	assert_int_equal(id.generation, 3);
	sent_calls += line->sums.calls;
	sent_user = user;
}

int profiles_add_comment_to(struct profiles *profiles, uint32_t kinds, const char *comment)
{
	assert_ptr_equal(profiles, &told_count);
	assert_int_equal(kinds, 1U << PP_PROFILE_CUDA);
	assert_true(cuda_line_parse(comment, &told[told_count++]));
	return 0;
}

/* ---- */

static struct cuda_report *make(void)
{
	const struct cuda_report_sources sources = {.cuda = (const struct cuda *)row};
	struct cuda_report *report;

	assert_int_equal(cuda_report_new(&sources, &report), 0);
	is_alive = true;
	told_count = row_count = 0;
	sent_calls = 0;
	return report;
}

static void put(uint64_t detail, uint64_t calls)
{
	row[row_count++] = (struct cuda_fresh){.id = detail,
					       .what = {.id = {.tgid = 70, .generation = 3}},
					       .calls = calls,
					       .bytes = 5,
					       .host_ns = 7,
					       .wait_ns = 6,
					       .spread = 9,
					       .histogram = {[4] = 2}};
}

static void take(struct cuda_report *report)
{
	assert_int_equal(cuda_report_take(report, (struct top *)&sent_calls), 0);
}

static void describe(struct cuda_report *report)
{
	told_count = 0;
	assert_int_equal(cuda_report_describe(report, (struct profiles *)&told_count), 0);
}

static void report__is_nothing_where_it_is_not_captured(void **state)
{
	const struct cuda_report_sources sources = {};
	struct cuda_report *report;

	(void)state;
	assert_int_equal(cuda_report_new(&sources, &report), 0);
	assert_null(report);
	assert_int_equal(cuda_report_take(NULL, NULL), 0);
	assert_int_equal(cuda_report_describe(NULL, NULL), 0);
	cuda_report_free(NULL);
}

static void rows__become_lines(void **state)
{
	OWNED(cuda_report) struct cuda_report *report = make();

	(void)state;
	put(KNOWN, 3);
	put(UNKNOWN, 100);
	put(OTHER, 4);
	take(report);
	describe(report);
	assert_int_equal(told_count, 2);
	assert_int_equal(told[1].pid, 70);
	assert_string_equal(told[1].comm, "a_b");
	assert_string_equal(told[1].api, "cuMemcpyDtoH");
	assert_string_equal(told[1].device, "3");
	assert_string_equal(told[1].direction, "DtoH");
	assert_string_equal(told[1].kernel, "void f<int, 2>()_");
	assert_string_equal(told[0].kernel, "");
	assert_int_equal(told[1].sums.calls, 3);
	assert_int_equal(told[1].sums.bytes, 5);
	assert_int_equal(told[1].sums.host_ns, 7);
	assert_int_equal(told[1].sums.wait_ns, 6);
	assert_int_equal(told[1].sums.spread, 9);
	assert_int_equal(told[1].sums.histogram[4], 2);
	assert_int_equal(sent_calls, 7);
	assert_int_equal(sent_user, 1000);
}

/* Parts of a window are sent one by one, and written together. */
static void parts__of_a_profile_add_up(void **state)
{
	OWNED(cuda_report) struct cuda_report *report = make();

	(void)state;
	put(KNOWN, 3);
	take(report);
	take(report);
	describe(report);
	assert_int_equal(told_count, 1);
	assert_int_equal(told[0].sums.calls, 6);
	assert_int_equal(told[0].sums.histogram[4], 4);
	assert_int_equal(sent_calls, 6);
	/* The next profile begins. */
	describe(report);
	assert_int_equal(told_count, 0);
	take(report);
	describe(report);
	assert_int_equal(told[0].sums.calls, 3);
}

static void process__that_is_gone_has_lines_all_the_same(void **state)
{
	OWNED(cuda_report) struct cuda_report *report = make();

	(void)state;
	is_alive = false;
	put(KNOWN, 3);
	take(report);
	describe(report);
	assert_int_equal(told_count, 1);
	assert_int_equal(sent_user, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report__is_nothing_where_it_is_not_captured),
		cmocka_unit_test(rows__become_lines),
		cmocka_unit_test(parts__of_a_profile_add_up),
		cmocka_unit_test(process__that_is_gone_has_lines_all_the_same),
	};

	return cmocka_run_group_tests_name("agent/cuda_report", tests, NULL, NULL);
}
