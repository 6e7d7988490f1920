/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/ledger_sums.h"

#include <cmocka.h>
#include <string.h>

#define S 1000000000ULL

static struct ledger_line line_of(uint32_t tgid, uint64_t cpu_ns, uint64_t gil_ns)
{
	struct ledger_line line = {
		.id = {.tgid = tgid, .generation = 1}, .life_ns = cpu_ns + gil_ns, .threads = 2};

	line.total_ns[PP_LEDGER_CPU] = cpu_ns;
	line.total_ns[PP_LEDGER_GIL] = gil_ns;
	line.part[LEDGER_PYTHON] = cpu_ns / 4 * 3;
	line.part[LEDGER_KERNEL] = cpu_ns / 4;
	return line;
}

static void ledger_sums__windows_of_a_process_are_one_line(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	struct ledger_line line = line_of(7, 4 * S, 6 * S);
	size_t count;

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	assert_int_equal(ledger_sums_add(sums, &line, "python3"), 0);
	line = line_of(9, 8 * S, 0);
	assert_int_equal(ledger_sums_add(sums, &line, "other"), 0);
	line = line_of(7, 8 * S, 2 * S);
	line.threads = 3;
	line.over_ns = -1000;
	line.checked_ns = 5;
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].line.id.tgid, 7);
	assert_string_equal(list[0].comm, "python3");
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_CPU], 12 * S);
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_GIL], 8 * S);
	assert_int_equal(list[0].line.life_ns, 20 * S);
	assert_int_equal(list[0].line.threads, 3);
	assert_int_equal(list[0].line.over_ns, -1000);
	assert_int_equal(list[0].line.checked_ns, 5);
	assert_int_equal(list[0].line.part[LEDGER_PYTHON], 9 * S);
	assert_int_equal(list[0].line.part[LEDGER_KERNEL], 3 * S);
	assert_int_equal(list[0].line.processes, 0);
	assert_int_equal(list[1].line.id.tgid, 9);
	/* Fewer threads in a later window do not take away what was seen. */
	line.threads = 1;
	line.exits = 4;
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	free(TAKE(list));
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(list[0].line.threads, 3);
	assert_int_equal(list[0].line.exits, 8);
	assert_int_equal(list[0].line.checked_ns, 15);
	ledger_sums_clear(sums);
	free(TAKE(list));
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, 0);
}

static void ledger_sums__too_many_processes_share_a_line(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	size_t count;

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	for (uint32_t tgid = 1; tgid <= LEDGER_SUMS_MAX / 2 + 5; tgid++) {
		const struct ledger_line line = line_of(tgid, S, 0);

		assert_int_equal(ledger_sums_add(sums, &line, "a"), 0);
	}
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, LEDGER_SUMS_MAX / 2 + 1); /* root leaves the other half */
	assert_int_equal(list[0].line.id.tgid, 0);
	assert_int_equal(list[0].line.processes, 5);
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_CPU], 5 * S);
	assert_string_equal(list[0].comm, "");
	/* Of as much time the smaller pid comes first: 1, 2, 3 and so on. */
	for (size_t i = 1; i < count; i++)
		assert_int_equal(list[i].line.id.tgid, i);
}

static void ledger_sums__one_users_processes_leave_room_for_others(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	size_t count;

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	for (int profile = 0; profile < 2; profile++) {
		for (uint32_t tgid = 1; tgid <= LEDGER_SUMS_MAX; tgid++) {
			struct ledger_line line = line_of(tgid, S, 0);

			line.user = profile ? 1000 : 0;
			assert_int_equal(ledger_sums_add(sums, &line, "a"), 0);
		}
		for (uint32_t tgid = 1; tgid <= 10; tgid++) {
			struct ledger_line line = line_of(5000 + tgid, 2 * S, 0);

			line.user = 1001;
			assert_int_equal(ledger_sums_add(sums, &line, "b"), 0);
		}
		assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
		assert_int_equal(count, LEDGER_SUMS_MAX / 2 + 1 + 10);
		assert_int_equal(list[0].line.processes, LEDGER_SUMS_MAX / 2);
		for (size_t i = 1; i <= 10; i++) {
			assert_int_equal(list[i].line.id.tgid, 5000 + i);
			assert_int_equal(list[i].line.user, 1001);
		}
		free(TAKE(list));
		ledger_sums_clear(sums);
	}
}

/* Its processes have no line in any window. */
static void ledger_sums__line_of_many_processes_counts_them(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	struct ledger_line line = line_of(0, S, 0);
	size_t count;

	(void)state;
	line.processes = 40;
	assert_int_equal(ledger_sums_new(&sums), 0);
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(list[0].line.processes, 80);
}

static void ledger_sums_print__says_where_the_time_was_and_how_far_it_is_off(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	struct ledger_line line = line_of(7, 4 * S, 6 * S);
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	line.over_ns = -20000000;
	line.checked_ns = 10 * S;
	assert_int_equal(ledger_sums_new(&sums), 0);
	assert_int_equal(ledger_sums_add(sums, &line, "python3"), 0);
	ledger_sums_print(sums, stream);
	fclose(stream);
	assert_string_equal(
		text, "pyprofd: ledger: 10.0 thread-seconds, 100.00 % of threads x wall; time on "
		      "the CPU is -0.20 % of it off the scheduler's own\n"
		      "pyprofd:   7 python3: 10.0 thread-seconds: Python 30.0 %, kernel 10.0 %, "
		      "GIL wait 60.0 %\n");
	free(text);
}

/* What is printed of the sums of these lines; the caller frees it. */
static char *printed(const struct ledger_line *line, const char *comm, size_t count)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(ledger_sums_new(&sums), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ledger_sums_add(sums, &line[i], comm), 0);
	ledger_sums_print(sums, stream);
	fclose(stream);
	return text;
}

/* A share of 0.1 % of the threads' time is printed, a smaller one is not. */
static void ledger_sums_print__shares_of_a_thousandth(void **state)
{
	static const struct {
		uint64_t cpu_ns, gil_ns, unknown_ns;
		uint64_t part[LEDGER_PART_COUNT];
		const char *shares;
	} cases[] = {
		{S, 0, 0, {1, 0, 0}, "Python 0.1 %"},
		{S, 0, 0, {0, 7, 0}, "native 0.1 %"},
		{S - 1000, 0, 0, {1, 0, 0}, ""},
		{S, 0, 0, {}, "on CPU, unsampled 0.1 %"},
		{S - 1000, 0, 0, {}, ""},
		{100 * S, 0, 0, {999, 0, 1}, "Python 10.0 %"},
		{100 * S, 0, 0, {1, 1, 2}, "Python 2.5 %, native 2.5 %, kernel 5.0 %"},
		{0, S, 0, {}, "GIL wait 0.1 %"},
		{0, S - 1000, 0, {}, ""},
		{0, S, 250 * S, {}, "GIL wait 0.1 %, unknown 25.0 %"},
		{500 * S,
		 S,
		 250 * S,
		 {},
		 "on CPU, unsampled 50.0 %, GIL wait 0.1 %, unknown 25.0 %"},
		{500 * S, S, 0, {0, 1, 0}, "native 50.0 %, GIL wait 0.1 %"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ledger_line line = {.id.tgid = 7, .life_ns = 1000 * S};
		char expected[512];
		char *text;

		line.total_ns[PP_LEDGER_CPU] = cases[i].cpu_ns;
		line.total_ns[PP_LEDGER_GIL] = cases[i].gil_ns;
		line.total_ns[PP_LEDGER_UNKNOWN] = cases[i].unknown_ns;
		memcpy(line.part, cases[i].part, sizeof(line.part));
		snprintf(expected, sizeof(expected), "pyprofd:   7 a: 1000.0 thread-seconds: %s\n",
			 cases[i].shares);
		text = printed(&line, "a", 1);
		assert_string_equal(strchr(text, '\n') + 1, expected);
		free(text);
	}
}

static size_t lines_of(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void ledger_sums_print__ten_processes_and_how_many_more(void **state)
{
	struct ledger_line line[13];
	char *text;

	(void)state;
	for (uint32_t i = 0; i < 13; i++)
		line[i] = line_of(100 + i, (13 - i) * S, 0);
	text = printed(line, "a", 10);
	assert_int_equal(lines_of(text), 11);
	assert_null(strstr(text, "more"));
	free(text);
	text = printed(line, "a", 11);
	assert_non_null(strstr(text, "  109 a: 4.0 thread"));
	assert_null(strstr(text, "  110 a: "));
	assert_non_null(strstr(text, "\npyprofd:   and 1 more, in the profiles\n"));
	free(text);
	text = printed(line, "a", 13);
	assert_int_equal(lines_of(text), 12);
	assert_non_null(strstr(text, "\npyprofd:   and 3 more, in"));
	free(text);
}

static void ledger_sums_print__processes_without_time_or_name(void **state)
{
	const struct ledger_line line[3] = {line_of(7, 2 * S, 0), line_of(8, 0, 0),
					    line_of(0, S, 0)};
	char *text = printed(line, "", 3);

	(void)state;
	assert_string_equal(text,
			    "pyprofd: ledger: 3.0 thread-seconds, 100.00 % of threads x wall\n"
			    "pyprofd:   7 (name not known): 2.0 thread-seconds: Python 75.0 %, "
			    "kernel 25.0 %\n"
			    "pyprofd:   processes without a line of their own: 1.0 thread-seconds: "
			    "Python 75.0 %, kernel 25.0 %\n");
	free(text);
	/* Threads whose times are unknown are told from those that waited. */
	text = printed(&(struct ledger_line){.id.tgid = 7, .life_ns = 4 * S, .total_ns = {S}}, "a",
		       1);
	assert_non_null(strstr(text, "ledger: 1.0 thread-seconds, 25.00 % of threads x wall\n"));
	free(text);
	text = printed(&(struct ledger_line){.id.tgid = 7, .over_ns = 1, .checked_ns = 1}, "a", 1);
	assert_non_null(strstr(text, "; time on the CPU is +100.00 % of it off"));
	free(text);
	text = printed(&(struct ledger_line){.id.tgid = 7}, "a", 1);
	assert_string_equal(text,
			    "pyprofd: ledger: 0.0 thread-seconds, 0.00 % of threads x wall\n");
	free(text);
}

static void ledger_sums_print__name_that_would_control_a_terminal(void **state)
{
	const struct ledger_line line = line_of(7, 2 * S, 0);
	char *text = printed(&line,
			     "\033[2J\n\xe2\x80\xae"
			     "b",
			     1);

	(void)state;
	assert_non_null(strstr(text, "\npyprofd:   7 \\x1b[2J\\n\\u202eb: 2.0 thread-"));
	free(text);
}

static void ledger_sums_print__says_nothing_of_nothing(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	ledger_sums_print(sums, stream);
	fclose(stream);
	assert_int_equal(size, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ledger_sums__windows_of_a_process_are_one_line),
		cmocka_unit_test(ledger_sums__too_many_processes_share_a_line),
		cmocka_unit_test(ledger_sums__one_users_processes_leave_room_for_others),
		cmocka_unit_test(ledger_sums__line_of_many_processes_counts_them),
		cmocka_unit_test(ledger_sums_print__says_where_the_time_was_and_how_far_it_is_off),
		cmocka_unit_test(ledger_sums_print__shares_of_a_thousandth),
		cmocka_unit_test(ledger_sums_print__ten_processes_and_how_many_more),
		cmocka_unit_test(ledger_sums_print__processes_without_time_or_name),
		cmocka_unit_test(ledger_sums_print__name_that_would_control_a_terminal),
		cmocka_unit_test(ledger_sums_print__says_nothing_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
