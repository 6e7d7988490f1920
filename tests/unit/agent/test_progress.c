/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/progress.h"

#include <cmocka.h>
#include <pty.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static const struct summary one_minute = {
	.elapsed_ns = 60000000000ULL,
	.processes = 34,
	.samples = 11880,
	.stop = {[PP_STOP_ROOT] = 9000,
		 [PP_STOP_FINISHED] = 860,
		 [PP_STOP_NO_USER] = 2000,
		 [PP_STOP_NO_INFO] = 12,
		 [PP_STOP_NO_ROWS] = 8},
	.py_stop = {[PP_PY_STOP_ROOT] = 4000,
		    [PP_PY_STOP_NOT_PYTHON] = 5000,
		    [PP_PY_STOP_BAD_CODE] = 1},
	.loss = {[PP_LOSS_COUNTS_FULL] = 1200, [PP_LOSS_NO_SCRATCH] = 34, [PP_LOSS_RING_FULL] = 5},
	.own_cpu_ns = 126000000ULL,
	.own_rss_bytes = 33ULL << 20,
	.own_map_bytes = 25ULL << 19,
};

static void progress_format__names_the_five_figures(void **state)
{
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	progress_format(&one_minute, 0, line, sizeof(line));
	assert_string_equal(line, "1m 00s  34 processes  11,880 samples  34 lost  99.8 % complete");
}

static void progress_format__nothing_yet_has_no_share(void **state)
{
	static const struct summary nothing = {.elapsed_ns = 999999999};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	progress_format(&nothing, 0, line, sizeof(line));
	assert_string_equal(line, "0s  0 processes  0 samples  0 lost");
}

static void progress_format__hours_and_millions(void **state)
{
	static const struct summary day = {.elapsed_ns = 90061000000000ULL,
					   .processes = 1,
					   .samples = 1234567,
					   .stop = {[PP_STOP_ROOT] = 1234567}};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	progress_format(&day, 0, line, sizeof(line));
	assert_string_equal(line,
			    "25h 01m  1 process  1,234,567 samples  0 lost  100.0 % complete");
}

static void progress_format__is_cut_to_the_columns_and_the_buffer(void **state)
{
	char line[PROGRESS_LINE_BYTES], small[8];

	(void)state;
	progress_format(&one_minute, 14, line, sizeof(line));
	assert_string_equal(line, "1m 00s  34 pro");
	progress_format(&one_minute, 80, small, sizeof(small));
	assert_string_equal(small, "1m 00s ");
}

static void summary_format__complete_is_rounded_down(void **state)
{
	static const struct summary nearly = {
		.elapsed_ns = 1000000000,
		.processes = 2,
		.samples = 100000,
		.stop = {[PP_STOP_ROOT] = 99999, [PP_STOP_MAX_TIME] = 1}};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&nearly, line, sizeof(line));
	assert_string_equal(line,
			    "1.0 s: 100,000 samples of 2 processes, 99.9 % complete (truncated: 1 "
			    "max_time), 0 lost; own CPU 0.00 % of one core, memory 0.0 MiB + 0.0 "
			    "MiB of maps");
}

static void summary_format__lists_reasons_by_name(void **state)
{
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&one_minute, line, sizeof(line));
	assert_string_equal(
		line, "60.0 s: 11,880 samples of 34 processes, 99.8 % complete (truncated: 8 "
		      "no_rows, 12 no_info, 1 python_bad_code), 34 lost (34 no_scratch), also 5 "
		      "ring_full, 1,200 counts_full; own CPU 0.21 % of one core, memory 33.0 MiB + "
		      "12.5 MiB of maps");
}

static void summary_format__steal_is_told_when_it_can_be_seen(void **state)
{
	struct summary summary = {.elapsed_ns = 10000000000,
				  .host_steal_start_ns = 5000000000,
				  .host_steal_ns = 5050000000};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&summary, line, sizeof(line));
	assert_null(strstr(line, "hypervisor"));
	summary.host_steal_ns = 6900000000;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, " of maps; the hypervisor took 1.9 s of CPU time (steal)"));
}

static void summary_format__every_counter_at_its_most_fits(void **state)
{
	struct summary most;
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	memset(&most, 0xff, sizeof(most));
	most.is_cycles = false; /* coverage is told */
	summary_format(&most, line, sizeof(line));
	assert_true(strlen(line) < sizeof(line));
	assert_non_null(strstr(line, "18,446,744,073,709,551,615 segments_full"));
}

static void progress__not_a_terminal_shows_the_summary_alone(void **state)
{
	struct progress progress;
	char path[] = "/tmp/pyprofd-test-XXXXXX";
	OWNED_FD int fd = mkstemp(path);
	FILE *stream = fdopen(dup(fd), "w");
	char line[PROGRESS_LINE_BYTES] = "";

	(void)state;
	assert_non_null(stream);
	unlink(path);
	progress_init(&progress, stream, false);
	progress_update(&progress, &one_minute, 5);
	progress_clear(&progress);
	progress_finish(&progress, &one_minute, false);
	progress_finish(&progress, &one_minute, true);
	fclose(stream);
	assert_true(pread(fd, line, sizeof(line) - 1, 0) > 0);
	assert_memory_equal(line, "pyprofd: 60.0 s: 11,880 samples", 31);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void progress__a_terminal_is_rewritten_once_a_second_and_erased(void **state)
{
	struct winsize window = {.ws_row = 24, .ws_col = 21};
	struct progress progress;
	OWNED_FD int terminal = -1;
	int inner;
	FILE *stream;
	char text[512] = "";
	size_t used = 0;
	ssize_t size;

	(void)state;
	if (openpty(&terminal, &inner, NULL, NULL, &window)) {
		print_message("skipped: no pseudo terminal here\n");
		skip();
	}
	stream = fdopen(inner, "w");
	assert_non_null(stream);
	setenv("TERM", "xterm", 1);
	progress_init(&progress, stream, false);
	progress_update(&progress, &one_minute, 1000000000ULL);
	progress_update(&progress, &one_minute, 1900000000ULL);
	progress_update(&progress, &one_minute, 2000000000ULL);
	progress_clear(&progress);
	progress_clear(&progress);
	fclose(stream);
	/* The kernel moves the bytes in pieces; behind the last one is EIO. */
	while ((size = read(terminal, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)size;
	assert_string_equal(text, "\r\033[K1m 00s  34 processes"
				  "\r\033[K1m 00s  34 processes"
				  "\r\033[K");
}

static void progress__quiet_or_dumb_terminals_show_nothing(void **state)
{
	struct progress progress;
	OWNED_FD int terminal = -1;
	int inner;
	FILE *stream;

	(void)state;
	if (openpty(&terminal, &inner, NULL, NULL, NULL)) {
		print_message("skipped: no pseudo terminal here\n");
		skip();
	}
	stream = fdopen(inner, "w");
	assert_non_null(stream);
	setenv("TERM", "xterm", 1);
	progress_init(&progress, stream, true);
	assert_false(progress.is_shown);
	progress_init(&progress, stream, false);
	assert_true(progress.is_shown);
	setenv("TERM", "dumb", 1);
	progress_init(&progress, stream, false);
	assert_false(progress.is_shown);
	fclose(stream);
}

static void summary_format__tells_what_has_lost_its_stack(void **state)
{
	struct summary summary = {.coarse_wait_ns = 20040000000};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(
		strstr(line, "; 20.0 s of waits counted without their stacks: tables were full"));
	summary.coarse_cpu_ns = 3100000000;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, "; 3.1 s of CPU time and 20.0 s of waits counted without"));
	summary.coarse_wait_ns = 0;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, "; 3.1 s of CPU time counted without"));
}

static void summary_format__tells_that_minutes_were_kept(void **state)
{
	struct summary summary = {.kept = 1};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, "; the last minutes were kept 1 time"));
	summary.kept = 0;
	summary_format(&summary, line, sizeof(line));
	assert_null(strstr(line, "kept"));
}

static void summary_format__tells_how_much_of_the_time_is_in_the_profile(void **state)
{
	struct summary summary = {.cpu_ns = 3100000000, .scheduler_ns = 22400000000};
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(
		strstr(line, "; 13.8 % of the scheduler's 22.4 s of CPU time are in the profile"));
	summary.wait_ns = 9960000000;
	summary.ledger_wait_ns = 10000000000;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, "; 13.8 % of the scheduler's 22.4 s of CPU time and 99.6 % of "
				     "the ledger's 10.0 s of waits are in the profile"));
	summary.is_cycles = true;
	summary_format(&summary, line, sizeof(line));
	assert_null(strstr(line, "scheduler's"));
	assert_non_null(
		strstr(line, "; 99.6 % of the ledger's 10.0 s of waits are in the profile"));
	summary.wait_ns = 11000000000;
	summary_format(&summary, line, sizeof(line));
	assert_non_null(strstr(line, "; 100.0 % of the ledger's"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_format__names_the_five_figures),
		cmocka_unit_test(progress_format__nothing_yet_has_no_share),
		cmocka_unit_test(progress_format__hours_and_millions),
		cmocka_unit_test(progress_format__is_cut_to_the_columns_and_the_buffer),
		cmocka_unit_test(summary_format__complete_is_rounded_down),
		cmocka_unit_test(summary_format__lists_reasons_by_name),
		cmocka_unit_test(summary_format__tells_what_has_lost_its_stack),
		cmocka_unit_test(summary_format__tells_that_minutes_were_kept),
		cmocka_unit_test(summary_format__tells_how_much_of_the_time_is_in_the_profile),
		cmocka_unit_test(summary_format__steal_is_told_when_it_can_be_seen),
		cmocka_unit_test(summary_format__every_counter_at_its_most_fits),
		cmocka_unit_test(progress__not_a_terminal_shows_the_summary_alone),
		cmocka_unit_test(progress__a_terminal_is_rewritten_once_a_second_and_erased),
		cmocka_unit_test(progress__quiet_or_dumb_terminals_show_nothing),
	};

	return cmocka_run_group_tests_name("agent/progress", tests, NULL, NULL);
}
