/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "../query/ledger_rows.h"
#include "base/cleanup.h"
#include "base/io.h"

#define NO_WAITS "\"net\":0,\"gpu\":0,\"sleep\":0,\"child\":0,\"fault\":0,\"stopped\":0,"

/* The text is the caller's to free. */
static char *written(const struct ledger_row *row, size_t count, bool is_of_all)
{
	CLEANUP(machine_release) struct machine machine = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json_writer json = json_writer_to(out);

	assert_non_null(out);
	ledger_rows_fill(&machine, row, count, true);
	waits_put(&machine, is_of_all, &json);
	ledger_rows_close();
	assert_int_equal(close_memory_file(out, &text), 0);
	return text;
}

static void waits__are_milliseconds_by_the_ledgers_names(void **state)
{
	static const struct ledger_row row[] = {
		{.pid = 7,
		 .comm = "python3",
		 .python = 200,
		 .native = 100,
		 .kernel = 50,
		 .where = PP_LEDGER_RUN_QUEUE,
		 .waited = 10,
		 .also_gil = 300},
		{.pid = 7,
		 .comm = "python3",
		 .unsampled = 50,
		 .where = PP_LEDGER_LOCK,
		 .waited = 1500,
		 .also_gil = 300},
		{.pid = 7, .comm = "python3", .where = PP_LEDGER_DISK, .waited = 250},
		{.pid = 7, .comm = "python3", .where = PP_LEDGER_UNKNOWN, .waited = 1}};
	OWNED_MEM char *text = written(row, ARRAY_SIZE(row), false);

	(void)state;
	assert_string_equal(
		text, "\"processes\":[{\"pid\":7,\"comm\":\"python3\",\"ms\":{\"running\":400,"
		      "\"gil\":600,\"lock\":1500,\"disk\":250," NO_WAITS
		      "\"run_queue\":10,\"unknown\":1},\"running_ms\":{\"python\":200,"
		      "\"native\":100,\"kernel\":50,\"unsampled\":50}}],\"more\":0");
}

static void waits__of_all_have_the_others_too(void **state)
{
	static const struct ledger_row row[] = {
		{.pid = 9, .comm = "sh", .where = PP_LEDGER_CHILD, .waited = 2000},
		{.pid = 7, .comm = "python3", .python = 200},
		{.python = 1000, .where = PP_LEDGER_NET, .waited = 4000}};
	OWNED_MEM char *text = written(row, ARRAY_SIZE(row), true);
	const char *first = strstr(text, "{\"pid\":7,"), *second = strstr(text, "{\"pid\":9,");

	(void)state;
	assert_true(first && second && first < second);
	assert_null(strstr(text, "{\"pid\":0,"));
	assert_non_null(strstr(text, "\"more\":0,\"others\":{\"ms\":{\"running\":1000,\"gil\":0,"
				     "\"lock\":0,\"disk\":0,\"net\":4000,"));
}

static void waits__beyond_a_hundred_processes_are_among_the_others(void **state)
{
	struct ledger_row row[WAITS_PROCESSES_SHOWN + 2];
	OWNED_MEM char *text = NULL;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(row); i++)
		row[i] = (struct ledger_row){
			.pid = i + 1, .comm = "\"<\\", .native = (i + 1) * 1000LL};
	text = written(row, ARRAY_SIZE(row), true);
	assert_non_null(strstr(text, "{\"pid\":3,\"comm\":\"\\\"\\u003c\\\\\",\"ms\""));
	assert_null(strstr(text, "{\"pid\":2,"));
	assert_non_null(strstr(text, "\"more\":2,\"others\":{\"ms\":{\"running\":3000,"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits__are_milliseconds_by_the_ledgers_names),
		cmocka_unit_test(waits__of_all_have_the_others_too),
		cmocka_unit_test(waits__beyond_a_hundred_processes_are_among_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
