/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/waits.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define NO_WAITS "\"net\":0,\"gpu\":0,\"sleep\":0,\"child\":0,\"fault\":0,\"stopped\":0,"

/* The text is the caller's to free. */
static char *written(const char *const *comment, size_t count, uint32_t pid)
{
	CLEANUP(machine_release) struct machine machine = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json_writer json = json_writer_to(out);

	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(machine_add(&machine, comment[i]), 0);
	machine_sort(&machine);
	waits_put(&machine, pid, &json);
	assert_int_equal(close_memory_file(out, &text), 0);
	return text;
}

static const char *const comments[] = {
	"ledger pid=9 comm=sh threads=1 child=2.000",
	"ledger pid=7 comm=python3 threads=2 python=0.200 native=0.100 kernel=0.050 gil=0.300 "
	"run_queue=0.010",
	"ledger pid=7 comm=python3 threads=2 unsampled=0.0504 gil=0.3004 lock=1.5 disk=0.25 "
	"unknown=0.001",
	"ledger pid=0 comm= threads=9 python=1.000 net=4.000 processes=9"};

static void waits__are_milliseconds_by_the_ledgers_names(void **state)
{
	OWNED_MEM char *text = written(comments, ARRAY_SIZE(comments), 7);

	(void)state;
	assert_string_equal(
		text, "\"processes\":[{\"pid\":7,\"comm\":\"python3\",\"ms\":{\"running\":400,"
		      "\"gil\":600,\"lock\":1500,\"disk\":250," NO_WAITS
		      "\"run_queue\":10,\"unknown\":1},\"running_ms\":{\"python\":200,"
		      "\"native\":100,\"kernel\":50,\"unsampled\":50}}],\"more\":0");
}

static void waits__of_all_have_the_others_too(void **state)
{
	OWNED_MEM char *text = written(comments, ARRAY_SIZE(comments), 0);
	const char *first = strstr(text, "{\"pid\":7,"), *second = strstr(text, "{\"pid\":9,");

	(void)state;
	assert_true(first && second && first < second);
	assert_null(strstr(text, "{\"pid\":0,"));
	assert_non_null(strstr(text, "\"more\":0,\"others\":{\"ms\":{\"running\":1000,\"gil\":0,"
				     "\"lock\":0,\"disk\":0,\"net\":4000,"));
}

static void waits__beyond_a_hundred_processes_are_among_the_others(void **state)
{
	const unsigned int count = WAITS_PROCESSES_SHOWN + 2;
	char *line[WAITS_PROCESSES_SHOWN + 2];
	OWNED_MEM char *text = NULL;

	(void)state;
	for (unsigned int i = 0; i < count; i++)
		assert_true(asprintf(&line[i], "ledger pid=%u comm=x threads=1 native=%u.000",
				     i + 1, i + 1) > 0);
	text = written((const char *const *)line, count, 0);
	for (unsigned int i = 0; i < count; i++)
		free(line[i]);
	assert_non_null(strstr(text, "{\"pid\":3,"));
	assert_null(strstr(text, "{\"pid\":2,"));
	assert_non_null(strstr(text, "\"more\":2,\"others\":{\"ms\":{\"running\":3000,"));
}

/* The 63rd byte may lie within a character. */
static void names__that_are_cut_or_hostile_stay_json(void **state)
{
	static const char *const hostile[] = {
		"ledger pid=1 comm=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aa\xc3\xa4"
		"bbb threads=1 gil=1.000",
		"ledger pid=2 comm=\"<\\ threads=1 gil=0.500"};
	OWNED_MEM char *text = written(hostile, ARRAY_SIZE(hostile), 0);

	(void)state;
	assert_non_null(strstr(text, "aaaa\xef\xbf\xbd\",\"ms\""));
	assert_non_null(strstr(text, "\"comm\":\"\\\"\\u003c\\\\\",\"ms\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits__are_milliseconds_by_the_ledgers_names),
		cmocka_unit_test(waits__of_all_have_the_others_too),
		cmocka_unit_test(waits__beyond_a_hundred_processes_are_among_the_others),
		cmocka_unit_test(names__that_are_cut_or_hostile_stay_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
