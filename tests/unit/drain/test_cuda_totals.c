/* SPDX-License-Identifier: BSD-2-Clause */
/* Totals and counters as the kernel side leaves them, and the counters that are made of them. */
#include "drain/cuda_totals.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <pyprofd/sample.h>

#include "drain/counts.h"
#include "drain/table.h"

#define ID 0x701
static struct cuda_totals *totals;
static struct counts counts;

/* Instead of drain/table.c: the kernel's table is an array here. */
#define TABLE_FD 5
#define REMOVED_FD 6
#define ROWS (CUDA_TOTALS_MANY + 2)
static struct {
	uint64_t id[ROWS];
	struct pp_cuda_totals value[ROWS];
	size_t count;
	uint64_t removed[ROWS];
	size_t removed_count;
	uint64_t told; /* how many rows of `process` were removed */
	uint32_t dead; /* tgid */
	uint64_t busy; /* the row that gets a call after it was read */
	int err, remove_err;
} kernel;

static const struct pp_process_id process = {.tgid = 70, .generation = 3};
#define TIMED_API 9U

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	int err = kernel.err;

	if (map_fd == REMOVED_FD)
		return kernel.told ? on_entry(context, &process, &kernel.told) : 0;
	assert_int_equal(map_fd, TABLE_FD);
	assert_int_equal(key_bytes, sizeof(uint64_t));
	assert_int_equal(value_bytes, sizeof(struct pp_cuda_totals));
	for (size_t i = 0; i < kernel.count && !err; i++)
		err = on_entry(context, &kernel.id[i], &kernel.value[i]);
	return err;
}

static int get_row(uint64_t id, struct pp_cuda_totals *ret_row)
{
	for (size_t i = 0; i < kernel.count; i++)
		if (kernel.id[i] == id) {
			kernel.value[i].calls += kernel.busy == id;
			*ret_row = kernel.value[i];
			return 0;
		}
	return -ENOENT;
}

int table_get(int map_fd, const void *key, void *ret_value)
{
	if (map_fd == TABLE_FD)
		return get_row(*(const uint64_t *)key, ret_value);
	assert_int_equal(map_fd, REMOVED_FD);
	assert_int_equal(((const struct pp_process_id *)key)->tgid, 70);
	if (!kernel.told)
		return -ENOENT;
	*(uint64_t *)ret_value = kernel.told;
	return 0;
}

int table_set(int map_fd, const void *key, const void *value)
{
	assert_int_equal(map_fd, REMOVED_FD);
	assert_int_equal(((const struct pp_process_id *)key)->tgid, 70);
	kernel.told = *(const uint64_t *)value;
	return 0;
}

int table_remove(int map_fd, const void *key)
{
	if (map_fd == REMOVED_FD) {
		assert_memory_equal(key, &process, sizeof(process));
		kernel.told = 0;
		return 0;
	}
	assert_int_equal(map_fd, TABLE_FD);
	if (kernel.remove_err)
		return kernel.remove_err;
	kernel.removed[kernel.removed_count++] = *(const uint64_t *)key;
	return 0;
}

int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	(void)map_fd, (void)key_bytes, (void)on_row, (void)context;
	return -ENOENT;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	assert_ptr_equal(context, &kernel);
	return id.tgid != kernel.dead;
}

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return cuda_totals_new(&totals);
}

static int teardown(void **state)
{
	(void)state;
	cuda_totals_free(totals);
	counts_release(&counts);
	return 0;
}

static void note(uint64_t id, uint64_t calls, uint64_t bytes, uint64_t host_ns, uint64_t wait_ns)
{
	const struct pp_cuda_totals now = {.what = {.id = process, .ident = 0x1234, .api = 2},
					   .calls = calls,
					   .bytes = bytes,
					   .host_ns = host_ns,
					   .wait_ns = wait_ns};

	assert_int_equal(cuda_totals_note(totals, id, &now), 0);
}

static void add(uint64_t id, uint64_t stack, uint64_t samples, uint64_t weight)
{
	const struct pp_count_key key = {
		.user_stack = stack, .detail = id, .id = process, .tid = 71, .kind = PP_KIND_CUDA};
	const struct pp_count count = {.samples = samples, .weight = weight};

	assert_int_equal(counts_add(&counts, &key, &count), 0);
}

/* What a stack has of a kind; all of its rows together. */
static struct pp_count of(uint64_t stack, enum pp_count_kind kind)
{
	struct pp_count sum = {};

	for (size_t i = 0; i < counts.count; i++) {
		const struct counted *one = &counts.entry[i];

		if ((stack && one->key.user_stack != stack) || one->key.kind != kind)
			continue;
		sum.samples += one->count.samples;
		sum.weight += one->count.weight;
	}
	return sum;
}

static void divide(void)
{
	assert_int_equal(cuda_totals_divide(totals, &counts), 0);
}

/* The next window begins. */
static void next(void)
{
	counts_release(&counts);
	counts = (struct counts){};
}

static void calls__are_divided_by_calls(void **state)
{
	(void)state;
	note(ID, 1000, 0, 500, 0);
	add(ID, 11, 30, 0);
	add(ID, 13, 10, 0);
	divide();
	assert_int_equal(of(11, PP_KIND_CUDA).samples, 750);
	assert_int_equal(of(13, PP_KIND_CUDA).samples, 250);
	assert_int_equal(of(11, PP_KIND_CUDA).weight, 375);
	assert_int_equal(of(0, PP_KIND_CUDA_WAIT).weight, 0);
	assert_int_equal(of(0, PP_KIND_CUDA_BYTES).weight, 0);
}

static void sums__are_the_totals_whatever_the_shares(void **state)
{
	(void)state;
	for (uint64_t calls = 1; calls < 40; calls++) {
		note(ID, calls * calls, calls * 1001, calls * 7, calls * 3);
		for (uint64_t stack = 1; stack < 8; stack++)
			add(ID, stack * 2 + 1, stack, stack * stack);
		divide();
		assert_int_equal(of(0, PP_KIND_CUDA).samples, 2 * calls - 1);
		assert_int_equal(of(0, PP_KIND_CUDA).weight, 7);
		assert_int_equal(of(0, PP_KIND_CUDA_WAIT).weight, 3);
		assert_int_equal(of(0, PP_KIND_CUDA_BYTES).weight, 1001);
		next();
	}
}

static void sums__of_large_numbers_do_not_wrap(void **state)
{
	(void)state;
	note(ID, UINT64_MAX / 3, UINT64_MAX / 2, 0, 0);
	add(ID, 11, 1ULL << 40, 1ULL << 50);
	add(ID, 13, 1ULL << 41, 1ULL << 50);
	divide();
	assert_int_equal(of(0, PP_KIND_CUDA).samples, UINT64_MAX / 3);
	assert_int_equal(of(0, PP_KIND_CUDA_BYTES).weight, UINT64_MAX / 2);
	assert_true(of(13, PP_KIND_CUDA).samples > of(11, PP_KIND_CUDA).samples);
}

static void bytes__go_by_bytes_and_calls_by_calls(void **state)
{
	(void)state;
	note(ID, 100, 10100, 0, 0);
	add(ID, 11, 50, 10000);
	add(ID, 13, 50, 100);
	divide();
	assert_int_equal(of(11, PP_KIND_CUDA).samples, 50);
	assert_int_equal(of(11, PP_KIND_CUDA_BYTES).weight, 10000);
	assert_int_equal(of(13, PP_KIND_CUDA_BYTES).weight, 100);
}

static void waits__go_by_the_walked_calls_own_times(void **state)
{
	(void)state;
	note(ID, 4, 0, 4400, 4000);
	add(ID, 11, 2, 30);
	add(ID, 13, 2, 10);
	divide();
	assert_int_equal(of(11, PP_KIND_CUDA_WAIT).weight, 3000);
	assert_int_equal(of(13, PP_KIND_CUDA_WAIT).weight, 1000);
	assert_int_equal(of(11, PP_KIND_CUDA).weight, 3300);
	assert_int_equal(of(11, PP_KIND_CUDA).samples, 2);
}

/* It began in the window before, and its time comes now. */
static void waits__of_a_call_that_ends_late_have_its_stack(void **state)
{
	(void)state;
	note(ID, 1, 0, 0, 0);
	add(ID, 11, 1, 0);
	divide();
	next();
	note(ID, 1, 0, 900, 900);
	add(ID, 11, 0, 900);
	divide();
	assert_int_equal(of(11, PP_KIND_CUDA_WAIT).weight, 900);
	assert_int_equal(of(11, PP_KIND_CUDA).weight, 900);
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 0);
}

static void row__without_counters_has_those_of_an_earlier_window(void **state)
{
	(void)state;
	note(ID, 4, 0, 0, 0);
	add(ID, 11, 3, 0);
	add(ID, 13, 1, 0);
	divide();
	next();
	note(ID, 404, 0, 0, 0);
	divide();
	assert_int_equal(of(11, PP_KIND_CUDA).samples, 300);
	assert_int_equal(of(13, PP_KIND_CUDA).samples, 100);
	assert_int_equal(counts.entry[0].key.tid, 71);
	/* The dictionary may have forgotten their stacks by now. */
	for (int i = 0; i < 7; i++) {
		next();
		divide();
		assert_int_equal(counts.count, 0);
	}
	note(ID, 405, 0, 0, 0);
	divide();
	assert_int_equal(of(PP_STACK_OTHERS, PP_KIND_CUDA).samples, 1);
}

static void row__that_was_never_walked_has_no_stack(void **state)
{
	(void)state;
	note(ID, 5, 50, 0, 0);
	divide();
	assert_int_equal(of(PP_STACK_OTHERS, PP_KIND_CUDA).samples, 5);
	assert_int_equal(of(PP_STACK_OTHERS, PP_KIND_CUDA_BYTES).weight, 50);
	assert_int_equal(counts.entry[0].key.id.tgid, 70);
	assert_int_equal(counts.entry[0].key.detail, ID);
}

static void counters__of_no_row_count_nothing(void **state)
{
	const struct pp_count_key other = {.user_stack = 11, .kind = PP_KIND_PROBE, .detail = ID};
	const struct pp_count count = {.samples = 9};

	(void)state;
	note(ID, 5, 0, 0, 0);
	add(ID, 11, 1, 0);
	add(0, PP_STACK_OTHERS, 400, 0); /* as the kernel side's coarse rows */
	assert_int_equal(counts_add(&counts, &other, &count), 0);
	divide();
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 5);
	assert_int_equal(of(11, PP_KIND_PROBE).samples, 9);
}

static void many__counters_of_a_row_keep_the_largest(void **state)
{
	(void)state;
	note(ID, 100, 0, 0, 0);
	for (uint64_t stack = 1; stack <= 10; stack++)
		add(ID, 2 * stack + 1, stack, 0);
	divide();
	next();
	note(ID, 134, 0, 0, 0);
	divide();
	assert_int_equal(counts.count, 4);
	assert_int_equal(of(21, PP_KIND_CUDA).samples, 10);
	assert_int_equal(of(15, PP_KIND_CUDA).samples, 7);
}

static bool is_timed(size_t api)
{
	return api == TIMED_API;
}

static int collect(uint64_t *ret_rows)
{
	const struct cuda_tables tables = {.totals = TABLE_FD,
					   .removed = REMOVED_FD,
					   .is_timed = is_timed,
					   .is_alive = is_alive,
					   .context = &kernel};

	return cuda_totals_collect(totals, &tables, &counts, ret_rows);
}

static void collect__removes_the_rows_of_ended_processes_once_counted(void **state)
{
	uint64_t rows = 99;

	(void)state;
	kernel.id[0] = ID;
	kernel.id[1] = ID + 2;
	kernel.value[0] = (struct pp_cuda_totals){.what = {.id = process}, .calls = 3};
	kernel.value[1] = (struct pp_cuda_totals){.what = {.id = {.tgid = 80}}, .calls = 4};
	kernel.count = 2;
	/* It has ended, but the row was not known to be its: there may have come more. */
	kernel.dead = 80;
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(rows, 2);
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 7);
	next();
	kernel.value[1].calls = 6;
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 2);
	assert_int_equal(rows, 1);
	assert_int_equal(kernel.removed_count, 1);
	assert_int_equal(kernel.removed[0], ID + 2);
	/* The window's counters are named after that. */
	assert_non_null(cuda_totals_what(totals, ID + 2));
	kernel.count = 1;
	next();
	assert_int_equal(collect(&rows), 0);
	assert_null(cuda_totals_what(totals, ID + 2));
	assert_int_equal(cuda_totals_what(totals, ID)->id.tgid, 70);
	assert_int_equal(counts.count, 0);
}

/* A table of many rows with one call each. */
static void fill_kernel(void)
{
	kernel.count = ROWS;
	for (size_t i = 0; i < ROWS; i++) {
		kernel.id[i] = 2 * i + 1;
		kernel.value[i] = (struct pp_cuda_totals){.what = {.id = process}, .calls = 1};
	}
}

/* Where there are many rows, those go that had nothing new for some windows. */
static void collect__removes_idle_rows_of_many(void **state)
{
	uint64_t rows = 0;

	(void)state;
	fill_kernel();
	kernel.value[1].what.ident = PP_CUDA_IDENT_OTHERS;
	for (uint32_t i = 0; i <= CUDA_TOTALS_IDLE_WINDOWS; i++) {
		assert_int_equal(kernel.removed_count, 0);
		kernel.value[0].calls++;
		next();
		assert_int_equal(collect(&rows), 0);
	}
	assert_int_equal(rows, 2);
	assert_int_equal(kernel.removed_count, ROWS - 2);
	assert_int_equal(kernel.told, ROWS - 2);
	assert_non_null(cuda_totals_what(totals, 5));
	/* One that comes again is a new one. */
	kernel.count = 3;
	kernel.value[2].calls = 9;
	next();
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 9);
	assert_int_equal(rows, 3);
}

static void collect_until_idle(uint64_t *ret_rows)
{
	for (uint32_t i = 0; i <= CUDA_TOTALS_IDLE_WINDOWS; i++) {
		next();
		assert_int_equal(collect(ret_rows), 0);
	}
}

static void collect__keeps_an_idle_row_that_gets_a_call_meanwhile(void **state)
{
	uint64_t rows = 0;

	(void)state;
	fill_kernel();
	kernel.busy = 5;
	collect_until_idle(&rows);
	assert_int_equal(rows, 1);
	kernel.busy = 0;
	kernel.id[0] = 5;
	kernel.value[0] = kernel.value[2];
	kernel.count = 1;
	next();
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(of(0, PP_KIND_CUDA).samples, 1);
}

/* A synchronisation may take for many windows. */
static void collect__keeps_an_idle_row_of_a_call_that_goes_on(void **state)
{
	uint64_t rows = 0;

	(void)state;
	fill_kernel();
	kernel.value[2].what.api = kernel.value[3].what.api = TIMED_API;
	kernel.value[3].histogram[4] = 1;
	collect_until_idle(&rows);
	assert_int_equal(rows, 1);
	for (size_t i = 0; i < kernel.removed_count; i++)
		assert_int_not_equal(kernel.removed[i], kernel.id[2]);
}

/* The kernel side has room for so many processes only. */
static void collect__forgets_the_rows_removed_of_ended_processes(void **state)
{
	uint64_t rows = 0;

	(void)state;
	fill_kernel();
	collect_until_idle(&rows);
	assert_int_equal(kernel.told, ROWS);
	kernel.count = 0;
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(kernel.told, ROWS);
	kernel.dead = process.tgid;
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(kernel.told, 0);
}

static void collect__counts_a_row_once_that_cannot_be_removed(void **state)
{
	uint64_t rows = 0;

	(void)state;
	kernel.id[0] = ID;
	kernel.value[0] = (struct pp_cuda_totals){.what = {.id = process}, .calls = 3};
	kernel.count = 1;
	assert_int_equal(collect(&rows), 0);
	kernel.dead = process.tgid;
	kernel.remove_err = -EBUSY;
	for (uint32_t i = 0; i < 3; i++) {
		next();
		assert_int_equal(collect(&rows), 0);
		assert_int_equal(counts.count, 0);
		assert_int_equal(rows, 1);
	}
	kernel.remove_err = -ENOENT;
	assert_int_equal(collect(&rows), 0);
	assert_int_equal(rows, 0);
}

static void collect__keeps_idle_rows_whose_memory_is_live(void **state)
{
	uint64_t rows = 0;

	(void)state;
	kernel.count = ROWS;
	for (size_t i = 0; i < ROWS; i++) {
		kernel.id[i] = 2 * i + 1;
		kernel.value[i] = (struct pp_cuda_totals){.what = {.id = process}, .calls = 1};
	}
	for (uint32_t i = 0; i <= CUDA_TOTALS_IDLE_WINDOWS; i++) {
		cuda_totals_hold(totals, 5);
		cuda_totals_hold(totals, 4); /* is none */
		next();
		assert_int_equal(collect(&rows), 0);
	}
	assert_int_equal(rows, 1);
	assert_non_null(cuda_totals_what(totals, 5));
}

static void collect__few_rows_stay(void **state)
{
	uint64_t rows = 0;

	(void)state;
	kernel.count = 1;
	kernel.id[0] = ID;
	kernel.value[0] = (struct pp_cuda_totals){.what = {.id = process}, .calls = 1};
	for (uint32_t i = 0; i < 3 * CUDA_TOTALS_IDLE_WINDOWS; i++)
		assert_int_equal(collect(&rows), 0);
	assert_int_equal(rows, 1);
	assert_int_equal(kernel.removed_count, 0);
}

static void collect__passes_errors_on(void **state)
{
	uint64_t rows = 99;

	(void)state;
	kernel.err = -EPERM;
	assert_int_equal(collect(&rows), -EPERM);
	assert_int_equal(rows, 99);
}

static struct cuda_fresh fresh;

static int on_fresh(void *context, const struct cuda_fresh *one)
{
	if (one->id == ID)
		fresh = *one;
	++*(unsigned int *)context;
	return fresh.calls == 13 ? -ENOSPC : 0;
}

static unsigned int take_fresh(void)
{
	unsigned int count = 0;

	fresh = (struct cuda_fresh){};
	assert_int_equal(cuda_totals_fresh(totals, on_fresh, &count), 0);
	return count;
}

static void fresh__is_what_the_last_window_had(void **state)
{
	struct pp_cuda_totals now = {.what = {.id = process, .api = 2},
				     .calls = 10,
				     .bytes = 100,
				     .host_ns = 50,
				     .wait_ns = 40};

	(void)state;
	now.histogram[3] = UINT32_MAX - 1;
	now.histogram[7] = 5;
	assert_int_equal(cuda_totals_note(totals, ID, &now), 0);
	note(ID + 2, 1, 0, 0, 0);
	divide();
	assert_int_equal(take_fresh(), 2);
	assert_int_equal(fresh.calls, 10);
	assert_int_equal(fresh.what.api, 2);
	assert_int_equal(fresh.histogram[7], 5);
	next();
	now.calls = 12;
	now.host_ns = 90;
	now.histogram[3] = 1; /* it has gone round */
	assert_int_equal(cuda_totals_note(totals, ID, &now), 0);
	divide();
	assert_int_equal(take_fresh(), 1);
	assert_int_equal(fresh.calls, 2);
	assert_int_equal(fresh.host_ns, 40);
	assert_int_equal(fresh.bytes, 0);
	assert_int_equal(fresh.histogram[3], 3);
	assert_int_equal(fresh.histogram[7], 0);
}

static void fresh__has_what_was_captured_and_what_graphs_ran(void **state)
{
	struct pp_cuda_totals now = {.what = {.id = process, .ident = 0x1234, .stream = 2},
				     .name = 77,
				     .calls = 5,
				     .captured = 7,
				     .nodes = 900,
				     .unknown = 1};

	(void)state;
	assert_int_equal(cuda_totals_note(totals, ID, &now), 0);
	divide();
	assert_int_equal(take_fresh(), 1);
	assert_int_equal(fresh.what.stream, 2);
	assert_int_equal(fresh.name, 77);
	assert_int_equal(fresh.calls, 5);
	assert_int_equal(fresh.captured, 7);
	assert_int_equal(fresh.nodes, 900);
	assert_int_equal(fresh.unknown, 1);
	assert_int_equal(cuda_totals_name(totals, ID), 77);
	assert_int_equal(cuda_totals_name(totals, ID + 2), 0);
	/* Of the next window only what is new. */
	now.captured = 9;
	assert_int_equal(cuda_totals_note(totals, ID, &now), 0);
	next();
	divide();
	assert_int_equal(take_fresh(), 1);
	assert_int_equal(fresh.captured, 2);
	assert_int_equal(fresh.calls, 0);
	/* Such calls have no stacks. */
	assert_int_equal(counts.count, 0);
	next();
	divide();
	assert_int_equal(take_fresh(), 0);
}

static void fresh__ends_with_an_error(void **state)
{
	unsigned int count = 0;

	(void)state;
	note(ID, 13, 0, 0, 0);
	divide();
	assert_int_equal(cuda_totals_fresh(totals, on_fresh, &count), -ENOSPC);
}

static void spread_is(uint64_t calls, uint64_t squares, uint64_t walked, uint64_t spread)
{
	static uint64_t all_calls, all_squares;
	const struct pp_cuda_totals now = {.what = {.id = process},
					   .calls = all_calls += calls,
					   .squares = all_squares += squares};

	assert_int_equal(cuda_totals_note(totals, ID, &now), 0);
	if (walked)
		add(ID, 11, walked, 0);
	divide();
	take_fresh();
	assert_int_equal(fresh.spread, spread);
	next();
}

static void spread__is_0_where_each_call_was_walked(void **state)
{
	(void)state;
	spread_is(4, 4, 4, 0);
	/* Ten walks that each stand for 100 calls. */
	spread_is(1000, 10 * 100 * 100, 1000, 1000 * 99);
	/* As before, but the last 1,000 calls came after the last walk. */
	spread_is(2000, 10 * 100 * 100, 1000, 2000 * 199);
	/* No walk: all may have come from elsewhere. */
	spread_is(50, 0, 0, 50 * 49);
	/* Several threads: walks stand for more than there was. */
	spread_is(3, 4, 4, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls__are_divided_by_calls),
		TEST(sums__are_the_totals_whatever_the_shares),
		TEST(sums__of_large_numbers_do_not_wrap),
		TEST(bytes__go_by_bytes_and_calls_by_calls),
		TEST(waits__go_by_the_walked_calls_own_times),
		TEST(waits__of_a_call_that_ends_late_have_its_stack),
		TEST(row__without_counters_has_those_of_an_earlier_window),
		TEST(row__that_was_never_walked_has_no_stack),
		TEST(counters__of_no_row_count_nothing),
		TEST(many__counters_of_a_row_keep_the_largest),
		TEST(collect__removes_the_rows_of_ended_processes_once_counted),
		TEST(collect__removes_idle_rows_of_many),
		TEST(collect__keeps_an_idle_row_that_gets_a_call_meanwhile),
		TEST(collect__keeps_an_idle_row_of_a_call_that_goes_on),
		TEST(collect__forgets_the_rows_removed_of_ended_processes),
		TEST(collect__counts_a_row_once_that_cannot_be_removed),
		TEST(collect__keeps_idle_rows_whose_memory_is_live),
		TEST(collect__few_rows_stay),
		TEST(collect__passes_errors_on),
		TEST(fresh__is_what_the_last_window_had),
		TEST(fresh__has_what_was_captured_and_what_graphs_ran),
		TEST(fresh__ends_with_an_error),
		TEST(spread__is_0_where_each_call_was_walked),
	};

	return cmocka_run_group_tests_name("drain/cuda_totals", tests, NULL, NULL);
}
