/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../query/gpu_rows.h"
#include "base/cleanup.h"
#include "reader/read_input.h"
#include "reader/verb.h"

#define HEAD                                                                                       \
	"  GPU  %BUSY   MOST    %SM   %OCC %TENSOR  %DRAM     MEMORY    POWER  DEG C    SM MHZ  "  \
	"NAME\n"

/* Ten readings of a gauge of a GPU. */
static void gauge(unsigned int device, const char *name, const char *of, int64_t mean, int64_t max)
{
	GPU_ROW(.device = device, .name = name, .gauge = of, .sum = 10 * mean, .readings = 10,
		.max = max);
}

static void add_rest(unsigned int device, const char *name)
{
	gauge(device, name, "memory_used", 3221225472, 3221225472);
	gauge(device, name, "power", 3505, 3505);
	gauge(device, name, "temperature", 450, 450);
	gauge(device, name, "sm_clock", 19800, 19800);
	gauge(device, name, "clock_event", 0, 0);
}

static void add_hopper(void)
{
	static const char *const reason[] = {"gpu_idle", "sw_power_cap", "other"};
	static const int64_t sum[] = {1000, 4000, 10};
	const char *name = "NVIDIA H100 80GB HBM3";

	gauge(0, name, "utilization", 630, 970);
	gauge(0, name, "sm_active", 355, 355);
	gauge(0, name, "sm_occupancy", 222, 222);
	gauge(0, name, "tensor_active", 110, 110);
	gauge(0, name, "dram_active", 410, 410);
	add_rest(0, name);
	for (size_t i = 0; i < ARRAY_SIZE(reason); i++)
		GPU_ROW(.name = name, .gauge = "clock_event", .reason = reason[i], .sum = sum[i]);
}

static void add_ampere(void)
{
	gauge(1, "A100", "dram_active", 0, 0);
	add_rest(1, "A100");
}

static int setup(void **state)
{
	(void)state;
	gpu_rows_open();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gpu_rows_close();
	return 0;
}

/* The text is the caller's to free. */
static char *printed(unsigned int columns)
{
	CLEANUP(gpu_usage_release) struct gpu_usage usage = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(gpu_usage_fill(&usage, profile, NULL), 0);
	gpu_usage_print(&usage, 1, columns, false, out);
	fclose(out);
	return text;
}

static void view__what_is_not_known_is_no_0(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	add_ampere();
	add_hopper();
	text = printed(0);
	assert_string_equal(
		text,
		HEAD "    0   63.0   97.0   35.5   22.2    11.0   41.0   3.00 GiB  350.5 W   45.0  "
		     "  1980.0  NVIDIA H100 80GB HBM3  clocks held down: gpu_idle 10 %, "
		     "sw_power_cap 40 %\n"
		     "    1      -      -      -      -       -    0.0   3.00 GiB  350.5 W   45.0  "
		     "  1980.0  A100\n\n");
}

static void view__processes_have_a_bound(void **state)
{
	OWNED_MEM char *text = NULL, *one = NULL;

	(void)state;
	add_ampere();
	GPU_ROW(.pid = 7, .comm = "a", .device = 1, .gauge = "process_memory", .sum = 1048576,
		.readings = 1);
	GPU_ROW(.pid = 7, .comm = "a", .device = 1, .gauge = "process_sm", .sum = 500,
		.readings = 1);
	one = printed(0);
	assert_non_null(strstr(one, "\n  7 a on GPU 1: memory 1.00 MiB, SMs 50.0 %\n\n"));
	GPU_ROW(.pid = 8, .comm = "b", .device = 1, .gauge = "process_memory", .sum = 2097152,
		.readings = 1);
	GPU_ROW(.comm = RECORD_OTHERS, .device = 1, .gauge = "processes", .sum = 3, .readings = 1);
	text = printed(0);
	assert_non_null(strstr(text, "\n  8 b on GPU 1: memory 2.00 MiB, SMs -\n"
				     "  over 1 more processes\n\n"));
}

static void view__without_gpus_is_nothing(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	GPU_ROW(.comm = RECORD_OTHERS, .device = 1, .gauge = "processes", .sum = 3, .readings = 1);
	text = printed(0);
	assert_string_equal(text, "");
}

static void view__a_narrow_terminal_cuts_names(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	add_hopper();
	text = printed(100);
	assert_null(strstr(text, "NVIDIA H100 80GB HBM3"));
	assert_non_null(strstr(text, "NVIDIA"));
}

/* ---- reading ---- */

static struct select asked;
static const char *asked_kind;

int input_read(const struct input_options *options, char why[WHY_BYTES], struct input **ret_input)
{
	(void)why;
	asked = *options->select;
	asked_kind = options->kind;
	*ret_input = NULL;
	return 0;
}

static void read__is_of_all_processes(void **state)
{
	struct select select = {.pid_count = 1, .pid = {7}};
	struct gpu_usage usage = {0};
	struct input *input;

	(void)state;
	assert_int_equal(gpu_usage_read(&usage, &select, NULL, &input), 0);
	assert_null(input);
	assert_string_equal(asked_kind, "gpu");
	assert_int_equal(asked.pid_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(view__what_is_not_known_is_no_0), TEST(view__processes_have_a_bound),
		TEST(view__without_gpus_is_nothing),   TEST(view__a_narrow_terminal_cuts_names),
		TEST(read__is_of_all_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
