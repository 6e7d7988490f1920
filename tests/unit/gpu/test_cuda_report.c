/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of totals, processes, profiles and clients are stand-ins. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "discover/proc_scan.h"
#include "discover/process.h"
#include "drain/cuda_totals.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "profile/cuda_sums.h"
#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

#define UNKNOWN UINT64_MAX /* detail */
#define KERNELS 100000U	   /* details below: of kernels */
#define ROWS_MAX 512U
#define ROWS_WHOLE 384U
#define KEPT_MAX 65536U

extern const struct source cuda_report_source;

static struct cuda_fresh *row;
static size_t row_count, row_capacity;
static struct process process[2] = {{.id = {.tgid = 70}}, {.id = {.tgid = 71}}};
static bool is_alive, is_watched;
static int error;

/* Of the calls without label below. */
struct told {
	uint32_t tgid;
	char comm[16], api[32], kernel[64], device[8], direction[8];
	int64_t value[PP_EXACT_TIMED];
};
static struct told told[4096];
static size_t told_count;
static int64_t calls_told, timed_told, calls_sent;
static struct intern *strings;

int cuda_fresh(const struct cuda *cuda,
	       int (*on_fresh)(void *context, const struct cuda_fresh *fresh), void *context)
{
	int err = 0;

	assert_ptr_equal(cuda, &told);
	for (size_t i = 0; i < row_count && !err; i++)
		err = on_fresh(context, &row[i]);
	return err;
}

int cuda_find(const struct cuda *cuda, uint64_t detail, struct cuda_call *ret_call)
{
	static char kernel[64];

	assert_ptr_equal(cuda, &told);
	if (detail == UNKNOWN)
		return -ENOENT;
	snprintf(kernel, sizeof(kernel), "void f<%lu>()", (unsigned long)detail);
	*ret_call = detail < KERNELS
			    ? (struct cuda_call){.api = "cuLaunchKernel",
						 .device = "3",
						 .direction = "",
						 .kernel = kernel}
			    : (struct cuda_call){.device = "3", .direction = "DtoH", .kernel = ""};
	if (detail >= KERNELS)
		snprintf(ret_call->api, sizeof(ret_call->api), "f%lu",
			 (unsigned long)(detail - KERNELS));
	return 0;
}

void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who)
{
	(void)processes, (void)tid;
	*ret_who =
		(struct who){.process = is_alive ? &process[id.tgid >= 9000] : NULL, .comm = "a b"};
}

uint32_t process_user_kept(struct process *of)
{
	return of == &process[0] ? 1000 : 2000;
}

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	return record_begin(ret_record, sink->strings, kind, id, comm);
}

static void copy_label(const struct profile_label *label, const char *key, char *to, size_t size)
{
	if (!strcmp(label->key, key))
		snprintf(to, size, "%s", intern_get(strings, label->string, NULL));
}

int profiles_add_record(struct profiles *profiles, const struct record *record)
{
	const struct profile_sample *sample = &record->sample;
	struct told *at = &told[told_count];

	assert_ptr_equal(profiles->strings, strings);
	assert_int_equal(record->kind, PP_PROFILE_CUDA_CALLS);
	calls_told += sample->value[PP_EXACT_CALLS];
	timed_told += sample->value[PP_EXACT_TIMED];
	if (error || sample->value[PP_EXACT_TIMED])
		return error;
	*at = (struct told){.tgid = record->id.tgid};
	for (size_t i = 0; i < sample->label_count; i++) {
		copy_label(&sample->label[i], "comm", at->comm, sizeof(at->comm));
		copy_label(&sample->label[i], "api", at->api, sizeof(at->api));
		copy_label(&sample->label[i], "kernel", at->kernel, sizeof(at->kernel));
		copy_label(&sample->label[i], "device", at->device, sizeof(at->device));
		copy_label(&sample->label[i], "direction", at->direction, sizeof(at->direction));
	}
	memcpy(at->value, sample->value, sizeof(at->value));
	assert_true(++told_count < ARRAY_SIZE(told));
	return 0;
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	(void)top;
	assert_int_equal(kinds, 1U << PP_PROFILE_CUDA_CALLS);
	return is_watched;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return strings;
}

void top_add_record(struct top *top, const struct record *record)
{
	(void)top;
	assert_int_not_equal(record->id.tgid, 0); /* else all users would get it */
	calls_sent += record->sample.value[PP_EXACT_CALLS];
}

/* ---- */

static const struct sources sources = {.state = {[PP_SOURCE_CUDA] = told}};
static const struct services services = {.sources = &sources};
static void *report;

static int setup(void **state)
{
	(void)state;
	is_alive = true;
	is_watched = false;
	row_count = 0;
	calls_sent = error = 0;
	return intern_new(&strings) || source_new(&cuda_report_source, &services, &report);
}

static int teardown(void **state)
{
	(void)state;
	source_free(&cuda_report_source, report);
	intern_free(strings);
	free(row);
	row = NULL;
	row_capacity = 0;
	return 0;
}

static void put(uint32_t tgid, uint64_t detail, uint64_t calls)
{
	if (row_count == row_capacity) {
		row_capacity = 2 * row_capacity + 16;
		row = realloc(row, row_capacity * sizeof(*row));
		assert_non_null(row);
	}
	row[row_count++] = (struct cuda_fresh){.id = detail,
					       .what = {.id = {.tgid = tgid, .generation = 3}},
					       .calls = calls,
					       .bytes = 5,
					       .host_ns = 7,
					       .wait_ns = 6,
					       .captured = 1,
					       .nodes = 2,
					       .spread = 9,
					       .histogram = {[4] = (uint32_t)calls}};
}

static void take(void)
{
	const struct source_window window = {0};

	assert_int_equal(cuda_report_source.finish(report, &window, NULL), 0);
}

static void describe(void)
{
	struct profiles profiles = {.strings = strings};

	told_count = 0;
	calls_told = timed_told = 0;
	assert_int_equal(cuda_report_source.describe(report, &profiles), error);
	if (!error)
		assert_int_equal(calls_told, timed_told);
}

static const struct told *find(uint32_t tgid, const char *api, const char *kernel)
{
	for (size_t i = 0; i < told_count; i++)
		if (told[i].tgid == tgid && !strcmp(told[i].api, api) &&
		    !strcmp(told[i].kernel, kernel))
			return &told[i];
	return NULL;
}

static void rows__have_all_sums(void **state)
{
	static const int64_t value[] = {3, 7, 6, 5, 1, 2, 9};
	const struct told *at;

	(void)state;
	put(70, 1, 3);
	put(70, UNKNOWN, 100);
	put(70, KERNELS, 4);
	put(71, 1, 5);
	take();
	describe();
	assert_int_equal(told_count, 3);
	at = find(70, "cuLaunchKernel", "void f<1>()");
	assert_non_null(at);
	assert_memory_equal(at->value, value, sizeof(value));
	assert_string_equal(at->comm, "a b");
	assert_string_equal(at->device, "3");
	assert_string_equal(at->direction, "");
	assert_string_equal(find(70, "f0", "")->direction, "DtoH");
	assert_int_equal(find(71, "cuLaunchKernel", "void f<1>()")->value[PP_EXACT_CALLS], 5);
	assert_int_equal(calls_sent, 0);
}

/* Parts of a window are sent one by one, and written together. */
static void parts__of_a_profile_add_up(void **state)
{
	(void)state;
	is_watched = true;
	put(70, 1, 3);
	take();
	assert_int_equal(calls_sent, 3);
	take();
	assert_int_equal(calls_sent, 6);
	describe();
	assert_int_equal(told_count, 1);
	assert_int_equal(told[0].value[PP_EXACT_CALLS], 6);
	/* The next profile begins. */
	describe();
	assert_int_equal(told_count, 0);
	take();
	describe();
	assert_int_equal(told[0].value[PP_EXACT_CALLS], 3);
}

static void process__that_is_gone_has_rows_all_the_same(void **state)
{
	(void)state;
	is_alive = false;
	put(70, 1, 3);
	take();
	describe();
	assert_int_equal(told_count, 1);
}

static void rows__few_are_as_they_were(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < ROWS_MAX; i++)
		put(70, i, i + 1);
	take();
	describe();
	assert_int_equal(told_count, ROWS_MAX);
	assert_null(find(70, "cuLaunchKernel", CUDA_OTHER_KERNELS));
}

/* Functions keep their sums when kernels are too many. */
static void rows__kernels_beyond_the_bound_are_one_row_of_their_function(void **state)
{
	(void)state;
	is_watched = true;
	for (uint64_t i = 0; i < 2000; i++)
		put(70, i, i + 1);
	put(70, KERNELS, 1);
	take();
	describe();
	assert_int_equal(told_count, ROWS_WHOLE + 2);
	assert_int_equal(calls_told, 2000 * 2001 / 2 + 1);
	assert_int_equal(calls_sent, calls_told);
	assert_int_equal(find(70, "f0", "")->value[PP_EXACT_CALLS], 1);
	assert_int_equal(find(70, "cuLaunchKernel", "void f<1999>()")->value[PP_EXACT_CALLS], 2000);
	assert_int_equal(find(70, "cuLaunchKernel", CUDA_OTHER_KERNELS)->value[PP_EXACT_CALLS],
			 (2000 - ROWS_WHOLE) * (2001 - ROWS_WHOLE) / 2);
}

/* Each process has a sum of what is beyond all rows; those of further processes are others'. */
static void rows__beyond_the_bound_are_the_processes(void **state)
{
	int64_t of_processes = 0;
	size_t others = 0;

	(void)state;
	is_watched = true;
	for (uint32_t i = 0; i < 3000; i++)
		put(100 + i, KERNELS + i % 3, 2);
	take();
	describe();
	assert_int_equal(calls_told, 6000);
	assert_int_equal(calls_sent, 6000);
	for (size_t i = 0; i < told_count; i++) {
		others += !told[i].tgid;
		of_processes += told[i].tgid ? told[i].value[PP_EXACT_CALLS] : 0;
		assert_string_equal(told[i].comm, told[i].tgid ? "a b" : RECORD_OTHERS);
	}
	assert_int_equal(of_processes, 2 * RECORD_PROCESSES_MAX);
	assert_int_equal(others, told_count - RECORD_PROCESSES_MAX);
}

static void rows__beyond_the_bound_of_one_process_are_its_sum(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		put(70, KERNELS + i, 2);
	take();
	describe();
	assert_int_equal(told_count, ROWS_MAX + 1);
	assert_int_equal(find(70, "", "")->value[PP_EXACT_CALLS], 2 * (1000 - ROWS_MAX));
	assert_string_equal(find(70, "", "")->device, "");
}

/* A user with a thousand busy programs leaves the row of another's idle one. */
static void rows__users_take_turns(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3000; i++)
		put(100 + i, KERNELS, 1000000);
	put(9999, KERNELS + 7, 1);
	take();
	describe();
	assert_int_equal(find(9999, "f7", "")->value[PP_EXACT_CALLS], 1);
}

static void rows__time_counts_more_than_calls(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 600; i++)
		put(70, KERNELS + i, 1);
	put(70, KERNELS + 600, 1);
	row[row_count - 1].host_ns = 1000000;
	take();
	describe();
	assert_non_null(find(70, "f600", ""));
}

static void rows__are_bounded_in_memory(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < KEPT_MAX + 10; i++)
		put(70, KERNELS + i, 1);
	take();
	describe();
	assert_int_equal(told_count, ROWS_MAX + 1);
	assert_int_equal(calls_told, KEPT_MAX + 10);
}

static void describe__ends_with_an_error(void **state)
{
	(void)state;
	put(70, 1, 3);
	put(71, 1, 3);
	take();
	error = -ENOMEM;
	describe();
	assert_int_equal(calls_told, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows__have_all_sums),
		TEST(parts__of_a_profile_add_up),
		TEST(process__that_is_gone_has_rows_all_the_same),
		TEST(rows__few_are_as_they_were),
		TEST(rows__kernels_beyond_the_bound_are_one_row_of_their_function),
		TEST(rows__beyond_the_bound_are_the_processes),
		TEST(rows__beyond_the_bound_of_one_process_are_its_sum),
		TEST(rows__users_take_turns),
		TEST(rows__time_counts_more_than_calls),
		TEST(rows__are_bounded_in_memory),
		TEST(describe__ends_with_an_error),
	};

	return cmocka_run_group_tests_name("gpu/cuda_report", tests, NULL, NULL);
}
