/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/profile_data.h"
#include "profile/record.h"

#define MINUTE_NS 60000000000

/* What is read, one window after the other. */
static struct intern *strings;
static struct profile *profile;
static struct process_memories memories;
static struct select selection;
static struct input_options reading;
static struct profile_delta delta[16];
static size_t deltas;

static int setup(void **state)
{
	struct profile_options options = {.kind = "resident"};

	(void)state;
	for (const struct kind_value *value = kind_get(PP_PROFILE_RESIDENT)->value; value->type;
	     value++)
		options.value_type[options.value_count++] =
			(struct profile_value_type){value->type, value->unit};
	memories = (struct process_memories){0};
	reading = process_memories_input(&memories, &selection);
	return intern_new(&strings) || profile_new(&options, strings, &profile);
}

static int teardown(void **state)
{
	(void)state;
	process_memories_release(&memories);
	profile_free(profile);
	intern_free(strings);
	return 0;
}

static void end_window(uint64_t start_ns)
{
	const struct profile_window window = {
		.start_wall_ns = start_ns, .delta = delta, .delta_count = deltas};

	assert_int_equal(reading.window_done(reading.context, profile, &window), 0);
	deltas = 0;
}

/* Adds a row, as the decoder does one of a window. */
static void add(unsigned int pid, const char *comm, const char *memory, const int64_t *value)
{
	struct record record;

	assert_int_equal(record_begin(&record, strings, PP_PROFILE_RESIDENT,
				      (struct pp_process_id){.tgid = pid}, comm),
			 0);
	assert_int_equal(record_label(&record, strings, "memory", memory), 0);
	memcpy(record.sample.value, value, 5 * sizeof(*value));
	assert_int_equal(profile_add_record(profile, &record), 0);
	for (uint32_t row = 0; row < profile->row_count; row++)
		if (record_number(profile, row, "pid") == pid &&
		    !strcmp(record_text(profile, row, "comm"), comm) &&
		    !strcmp(record_text(profile, row, "memory"), memory))
			delta[deltas++] = (struct profile_delta){.row = row,
								 .value = value[PP_RESIDENT_BYTES]};
}

#define ADD(pid, comm, memory, ...) add(pid, comm, memory, (const int64_t[5]){__VA_ARGS__})

static void memories__are_of_the_last_window_by_time_not_by_order(void **state)
{
	const struct process_memory *process;

	(void)state;
	ADD(7, "a", "anonymous", 300);
	ADD(7, "a", "file", 5);
	ADD(7, "a", "", 0, 900, 300, MINUTE_NS / 2, 1);
	end_window(30);
	ADD(7, "a", "anonymous", 700);
	ADD(7, "a", "", 0, 100, 100, MINUTE_NS / 2, 1);
	end_window(120);
	ADD(7, "a", "anonymous", 500);
	end_window(60);
	assert_int_equal(process_memories_fill(&memories, profile), 0);
	assert_int_equal(memories.count, 1);
	process = &memories.process[0];
	assert_int_equal(process->pid, 7);
	assert_int_equal(process->bytes[PP_MEMORY_ANONYMOUS], 700);
	/* The last window has none. */
	assert_int_equal(process->bytes[PP_MEMORY_FILE], 0);
	assert_int_equal(process_memory_bytes(process), 700);
	assert_true(fabs(process_memory_growth(process) - 400) < 1e-9);
}

static void growth__of_one_reading_is_not_known(void **state)
{
	(void)state;
	ADD(7, "a", "", 0, 900, 0, 0, 1);
	end_window(60);
	assert_int_equal(process_memories_fill(&memories, profile), 0);
	assert_true(isnan(process_memory_growth(&memories.process[0])));
	assert_int_equal(memories.process[0].peak_bytes, 900);
}

static void memories__largest_come_first(void **state)
{
	(void)state;
	ADD(1, "a", "anonymous", 100);
	ADD(2, "b", "shared", 300);
	ADD(2, "other", "anonymous", 200);
	end_window(60);
	assert_int_equal(process_memories_fill(&memories, profile), 0);
	assert_int_equal(memories.count, 3);
	assert_string_equal(memories.process[0].comm, "b");
	assert_string_equal(memories.process[1].comm, "other");
	assert_string_equal(memories.process[2].comm, "a");
}

/* A process that has ended is there with what it had last. */
static void memories__ended_process_keeps_its_last_figures(void **state)
{
	(void)state;
	ADD(1, "a", "anonymous", 100);
	end_window(60);
	ADD(2, "b", "anonymous", 50);
	end_window(70);
	assert_int_equal(process_memories_fill(&memories, profile), 0);
	assert_int_equal(memories.count, 2);
	assert_int_equal(process_memory_bytes(&memories.process[0]), 100);
}

static void memories__others_are_no_process(void **state)
{
	(void)state;
	ADD(0, RECORD_OTHERS, "", 0, 7, 0, 0, 3);
	ADD(0, RECORD_OTHERS, "anonymous", 11);
	ADD(0, RESIDENT_UNREAD, "", 0, 0, 0, 0, 9);
	end_window(60);
	assert_int_equal(process_memories_fill(&memories, profile), 0);
	assert_int_equal(memories.count, 0);
	assert_int_equal(memories.others.processes, 3);
	assert_int_equal(process_memory_bytes(&memories.others), 11);
	assert_int_equal(memories.unread, 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memories__are_of_the_last_window_by_time_not_by_order),
		TEST(growth__of_one_reading_is_not_known),
		TEST(memories__largest_come_first),
		TEST(memories__ended_process_keeps_its_last_figures),
		TEST(memories__others_are_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
