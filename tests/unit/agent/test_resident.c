/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, their files and the clients are stand-ins: the process PID has PID KiB, and the
 * kernel thread has none. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "discover/process_figures.h"
#include "discover/process_table.h"
#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/summary.h"
#include "windows/top.h"

extern const struct source resident_source;

#define PROCESSES 20000U
#define KERNEL_THREAD 2U
#define SMALL_USER 5U /* has the three smallest processes */

static struct process process[PROCESSES];
static uint32_t count; /* of them */
static uint32_t reads; /* files */
static uint32_t added_kib;
static bool clients_want;
static char sent[4096]; /* pids */
/* The rows of the profile, of which `other` are of the others. */
static struct {
	uint32_t pid;
	bool is_other;
	char comm[PP_COMM_BYTES + 1], memory[16];
	int64_t value[PP_VALUES_MAX];
} row[8 * 2500];
static size_t rows;
static struct intern *strings;
static struct profiles profiles;
static struct summary summary;
static void *resident; /* the source's state */

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

bool top_wants(const struct top *top, uint32_t kinds)
{
	(void)top;
	assert_int_equal(kinds, 1U << PP_PROFILE_RESIDENT);
	return clients_want;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return strings;
}

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	return record_begin(ret_record, sink->strings, kind, id, comm);
}

void top_add_record(struct top *top, const struct record *record)
{
	const size_t used = strlen(sent);

	(void)top;
	if (record->sample.value[PP_RESIDENT_PROCESSES] && used < sizeof(sent) - 16)
		snprintf(sent + used, sizeof(sent) - used, " %u", record->id.tgid);
}

int profiles_add_record(struct profiles *of, const struct record *record)
{
	assert_true(rows < ARRAY_SIZE(row));
	row[rows].pid = record->id.tgid;
	row[rows].is_other = !record->id.tgid;
	for (size_t i = 0; i < record->sample.label_count; i++) {
		const struct profile_label *label = &record->sample.label[i];
		const bool is_comm = !strcmp(label->key, "comm");

		if (!label->is_number)
			snprintf(is_comm ? row[rows].comm : row[rows].memory, 16, "%s",
				 intern_get(of->strings, label->string, NULL));
	}
	memcpy(row[rows].value, record->sample.value, sizeof(row[rows].value));
	rows++;
	return 0;
}

/* ---- */

#define READS_MAX 1024U /* agent/resident.c */

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
	assert_int_equal(source_new(&resident_source, &services, &resident), 0);
}

static int read_all(const struct slice *slice)
{
	const struct source_window window = {};

	return resident_source.finish(resident, &window, slice);
}

static int setup(void **state)
{
	(void)state;
	reads = added_kib = 0;
	clients_want = true;
	assert_int_equal(intern_new(&strings), 0);
	profiles.strings = strings;
	sent[0] = '\0';
	summary = (struct summary){0};
	return 0;
}

static void forget_rows(void)
{
	memset(row, 0, sizeof(row));
	rows = 0;
}

static int teardown(void **state)
{
	(void)state;
	forget_rows();
	source_free(&resident_source, resident);
	intern_free(strings);
	return 0;
}

/* Sums up a value over the rows of a process, of one memory or ("") all; 0: of the others. */
static int64_t value_of(uint32_t pid, const char *memory, enum pp_resident_value value)
{
	int64_t sum = 0;

	for (size_t i = 0; i < rows; i++)
		if ((pid ? row[i].pid == pid && !row[i].is_other
			 : row[i].is_other && strcmp(row[i].comm, RESIDENT_UNREAD) != 0) &&
		    (!memory[0] || !strcmp(row[i].memory, memory)))
			sum += row[i].value[value];
	return sum;
}

/* Returns how many processes have rows of their own. */
static size_t processes(void)
{
	size_t found = 0;

	for (size_t i = 0; i < rows; i++)
		found += !row[i].is_other && row[i].value[PP_RESIDENT_PROCESSES];
	return found;
}

static int64_t unread(void)
{
	int64_t sum = 0;

	for (size_t i = 0; i < rows; i++)
		if (!strcmp(row[i].comm, RESIDENT_UNREAD))
			sum += row[i].value[PP_RESIDENT_PROCESSES];
	return sum;
}

static void read__tells_each_process_once_users_in_turn(void **state)
{
	(void)state;
	begin(5, false);
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, 5);
	/* 3 is the largest one of its user, and 2 a kernel thread. */
	assert_string_equal(sent, " 5 3 4 1");
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(processes(), 4);
	assert_int_equal(row[0].pid, 5);
	assert_string_equal(row[0].comm, "p 5");
	assert_int_equal(value_of(5, "anonymous", PP_RESIDENT_BYTES), 5 * 1024);
	assert_int_equal(value_of(5, "file", PP_RESIDENT_BYTES), 10);
	assert_int_equal(value_of(5, "shared", PP_RESIDENT_BYTES), 1);
	assert_int_equal(value_of(5, "", PP_RESIDENT_BYTES), 5 * 1024 + 11);
	assert_int_equal(value_of(5, "", PP_RESIDENT_PEAK), 5 * 2048);
	assert_int_equal(value_of(5, "", PP_RESIDENT_GROWTH_TIME), 0);
	assert_int_equal(row[4].pid, 3);
	assert_int_equal(row[8].pid, 4);
	assert_int_equal(summary.memory_processes, 4);
	assert_int_equal(summary.memory_anonymous_bytes, (5 + 4 + 3 + 1) * 1024);
	assert_int_equal(summary.memory_file_bytes, 40);
	assert_int_equal(summary.memory_shared_bytes, 4);
	assert_int_equal(summary.memory_largest_bytes[0], 5 * 1024 + 11);
	assert_int_equal(summary.memory_largest_bytes[3], 1024 + 11);
	assert_int_equal(summary.memory_largest_bytes[4], 0);
	/* A kernel thread is not read again. */
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, 5 + 4);
}

static void read__of_a_filter_only_what_matches(void **state)
{
	(void)state;
	begin(5, true);
	process[3].inner_pid = 1;
	process[4].inner_pid = 1;
	process[4].exit_ns = 1;
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, 1);
	assert_string_equal(sent, " 4");
}

static void read__goes_on_in_slices(void **state)
{
	const struct slice over = {0};
	unsigned int steps = 0;

	(void)state;
	begin(5, false);
	while (read_all(&over) == 1) {
		assert_string_equal(sent, "");
		assert_true(++steps < 10);
	}
	assert_int_equal(steps, 4);
	assert_string_equal(sent, " 5 3 4 1");
}

static void read__of_a_part_only_for_clients_that_want_it(void **state)
{
	const struct source_window part = {.is_part = true};

	(void)state;
	begin(5, false);
	clients_want = false;
	assert_int_equal(resident_source.finish(resident, &part, NULL), 0);
	assert_int_equal(reads, 0);
	clients_want = true;
	assert_int_equal(resident_source.finish(resident, &part, NULL), 0);
	assert_int_equal(reads, 5);
}

static void describe__beyond_256_are_summed_up(void **state)
{
	(void)state;
	begin(300, false);
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(processes(), RECORD_PROCESSES_MAX);
	assert_int_equal(value_of(0, "", PP_RESIDENT_PROCESSES), 299 - RECORD_PROCESSES_MAX);
	assert_int_equal(unread(), 0);
	/* Both of the small user are among the 256: of the other one the smallest are left out. */
	assert_int_equal(value_of(0, "anonymous", PP_RESIDENT_BYTES), 43 * (4 + 46) / 2 * 1024);
}

static void read__more_than_fit_take_turns(void **state)
{
	(void)state;
	begin(2500, false);
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, READS_MAX);
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(unread(), 2500 - READS_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(read_all(NULL), 0);
		forget_rows();
		assert_int_equal(resident_source.describe(resident, &profiles), 0);
	}
	/* All have had a turn. */
	assert_int_equal(row[0].pid, 2500);
	assert_int_equal(unread(), 0);
	assert_int_equal(value_of(0, "", PP_RESIDENT_PROCESSES), 2499 - RECORD_PROCESSES_MAX);
}

/* Those that do not run have what they had. */
static void read__few_of_those_that_have_not_run(void **state)
{
	(void)state;
	begin(600, false);
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, 600); /* one of a kernel thread */
	for (unsigned int i = 0; i < 100; i++)
		process[500 + i].is_at_rest = false;
	reads = 0;
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(reads, 100 + 128 - 1);
	/* They take turns. */
	added_kib = 1;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(read_all(NULL), 0);
	assert_int_equal(summary.memory_anonymous_bytes, (600 * 601 / 2 - 2 + 599) * 1024);
}

/* One file for the whole run: growth is from the first reading to the last. */
static void describe__growth_is_since_the_profile_before(void **state)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	(void)state;
	begin(1, false);
	assert_int_equal(resident_source.begin(resident, 0), 0);
	nanosleep(&pause, NULL);
	added_kib = 100;
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(value_of(1, "anonymous", PP_RESIDENT_BYTES), 101 * 1024);
	assert_int_equal(value_of(1, "", PP_RESIDENT_GROWTH), 100 * 1024);
	assert_in_range(value_of(1, "", PP_RESIDENT_GROWTH_TIME), 1000000, 60 * NS_PER_SEC);
	/* The next profile goes on where this one ends. */
	forget_rows();
	added_kib = 70;
	assert_int_equal(read_all(NULL), 0);
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(value_of(1, "", PP_RESIDENT_GROWTH), -30 * 1024);
}

static void describe__ended_process_is_told_for_the_last_time(void **state)
{
	(void)state;
	begin(4, false);
	assert_int_equal(read_all(NULL), 0);
	process[3].exit_ns = 1;
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(row[0].pid, 4);
	forget_rows();
	assert_int_equal(resident_source.describe(resident, &profiles), 0);
	assert_int_equal(processes(), 2);
	assert_int_equal(row[0].pid, 3);
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
		TEST(read__few_of_those_that_have_not_run),
		TEST(describe__growth_is_since_the_profile_before),
		TEST(describe__ended_process_is_told_for_the_last_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
