/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, profiles and clients are stand-ins. */
#include "ledger/ledger_records.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define S 1000000000LL

static struct services services;
static struct profiles profiles;
static struct ledger_sums *sums;
static char row[2048][160]; /* "LABEL=TEXT ... VALUE,VALUE,...": up to the last one that is not 0 */
static size_t rows;

int process_record_begin(const struct record_sink *sink, enum pp_profile kind,
			 struct pp_process_id id, const char *comm, struct record *ret_record)
{
	assert_ptr_equal(sink->services, &services);
	return record_begin(ret_record, sink->strings, kind, id, comm);
}

int profiles_add_record(struct profiles *of, const struct record *record)
{
	const struct profile_sample *sample = &record->sample;
	unsigned int last = PP_VALUES_MAX;
	size_t used = 0;

	assert_ptr_equal(of, &profiles);
	assert_int_equal(record->kind, PP_PROFILE_LEDGER);
	assert_true(rows < ARRAY_SIZE(row));
	for (size_t i = 0; i < sample->label_count; i++) {
		const struct profile_label *label = &sample->label[i];

		used += (size_t)(label->is_number
					 ? snprintf(row[rows] + used, sizeof(row[0]) - used,
						    "%s=%lld ", label->key,
						    (long long)label->number)
					 : snprintf(row[rows] + used, sizeof(row[0]) - used,
						    "%s=%s ", label->key,
						    intern_get(profiles.strings, label->string,
							       NULL)));
	}
	while (last && !sample->value[last - 1])
		last--;
	for (unsigned int i = 0; i < last; i++)
		used += (size_t)snprintf(row[rows] + used, sizeof(row[0]) - used, "%s%lld",
					 i ? "," : "", (long long)sample->value[i]);
	rows++;
	return 0;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return profiles.strings;
}

void top_add_record(struct top *top, const struct record *record)
{
	(void)top, (void)record;
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	rows = 0;
	return ledger_sums_new(&sums) || intern_new(&profiles.strings);
}

static int teardown(void **state)
{
	(void)state;
	ledger_sums_free(sums);
	intern_free(profiles.strings);
	return 0;
}

static void add(uint32_t tgid, uint32_t user, int64_t cpu_ns)
{
	const struct ledger_line line = {.id = {.tgid = tgid, .generation = tgid != 0},
					 .total_ns = {[PP_LEDGER_CPU] = (uint64_t)cpu_ns},
					 .life_ns = (uint64_t)cpu_ns,
					 .threads = 1,
					 .user = user};

	assert_int_equal(ledger_sums_add(sums, &line, tgid ? "a" : ""), 0);
}

static void put_all(void)
{
	struct record_sink sink = record_sink_profiles(&services, &profiles);

	assert_int_equal(ledger_records_put(&sink, sums), 0);
}

static void put__rows_of_a_process_are_its_states_and_itself(void **state)
{
	const struct record_sink sink = record_sink_profiles(&services, &profiles);
	struct ledger_line line = {
		.id = {.tgid = 7, .generation = 1},
		.threads = 5,
		.life_ns = 10 * S,
		.part = {1, 2, 1},
		.over_ns = -3,
		.checked_ns = 9,
		.total_ns = {
			[PP_LEDGER_CPU] = 4 * S, [PP_LEDGER_GIL] = 6 * S, [PP_LEDGER_UNKNOWN] = 1}};

	(void)state;
	assert_int_equal(ledger_record_put(&sink, &line, "python3"), 0);
	assert_int_equal(rows, 6);
	assert_string_equal(row[0], "pid=7 comm=python3 0,10000000000,5,-3,9,1");
	assert_string_equal(row[1], "pid=7 comm=python3 state=python 1000000000");
	assert_string_equal(row[2], "pid=7 comm=python3 state=native 2000000000");
	assert_string_equal(row[3], "pid=7 comm=python3 state=kernel 1000000000");
	assert_string_equal(row[4], "pid=7 comm=python3 state=gil 6000000000");
	assert_string_equal(row[5], "pid=7 comm=python3 state=unknown 1");
	/* Its name is not known, and there is no sample of it. */
	line = (struct ledger_line){.id.tgid = 8, .life_ns = 3, .total_ns = {3}};
	rows = 0;
	assert_int_equal(ledger_record_put(&sink, &line, ""), 0);
	assert_string_equal(row[0], "pid=8 0,3,0,0,0,1");
	assert_string_equal(row[1], "pid=8 state=unsampled 3");
}

static void put__processes_beyond_256_are_rows_of_the_others(void **state)
{
	const struct ledger_line ended = {.life_ns = 1000, .processes = 20, .total_ns = {1000}};

	(void)state;
	/* Those that had no sum of their own stand among the first. */
	assert_int_equal(ledger_sums_add(sums, &ended, ""), 0);
	for (uint32_t i = 0; i < RECORD_PROCESSES_MAX + 2; i++)
		add(i + 1, 1000, 500 - i);
	put_all();
	assert_int_equal(rows, 2 * (RECORD_PROCESSES_MAX + 3));
	assert_string_equal(row[0], "comm=[others] 0,1000,0,0,0,20");
	assert_string_equal(row[1], "comm=[others] state=unsampled 1000");
	assert_string_equal(row[2], "pid=1 comm=a 0,500,1,0,0,1");
	assert_string_equal(row[rows - 5], "pid=256 comm=a state=unsampled 245");
	assert_string_equal(row[rows - 4], "comm=[others] 0,244,1,0,0,1");
	assert_string_equal(row[rows - 1], "comm=[others] state=unsampled 243");
}

static void put__users_take_turns(void **state)
{
	char order[64] = "";

	(void)state;
	add(6, 1001, 1);
	add(3, 1000, 7);
	add(1, 1000, 9);
	add(4, 0, 2);
	add(5, 1001, 3);
	add(2, 1000, 8);
	put_all();
	for (size_t i = 0; i < rows; i += 2)
		snprintf(order + strlen(order), sizeof(order) - strlen(order), "%.5s ", row[i]);
	assert_string_equal(order, "pid=1 pid=5 pid=4 pid=2 pid=6 pid=3 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put__rows_of_a_process_are_its_states_and_itself),
		TEST(put__processes_beyond_256_are_rows_of_the_others),
		TEST(put__users_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
