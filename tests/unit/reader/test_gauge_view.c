/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/kinds.c query/coverage.c profile/comments.c query/gpu_usage.c profile/gauge_line.c reader/gauge_view.c reader/text.c render/code_table.c render/short_paths.c render/format.c base/io.c pprof/profile_read.c pprof/read_memory.c pprof/read_frames.c pprof/read_samples.c pprof/read_levels.c pprof/read_windows.c pprof/pprof_tables.c pprof/unpack.c profile/profile.c pprof/pprof.c pprof/pprof_mappings.c pprof/gzip_sink.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c profile/cuda_line.c base/proto.c render/table.c base/json_writer.c */
#include "reader/gauge_view.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "no_input.h"

#define REST                                                                                       \
	"pcie_tx=absent pcie_rx=absent nvlink_tx=absent nvlink_rx=absent memory_used=3221225472 "  \
	"power=350.5 temperature=45.0 sm_clock=1980.0 memory_clock=absent "                        \
	"memory_total=85899345920 power_limit=700.0 "
#define HOPPER                                                                                     \
	"gpu device=0 uuid=GPU-0 seconds=10 utilization=63.0,20.0,97.0 memory_utilization=40.0 "   \
	"sm_active=35.5 sm_occupancy=22.2 tensor_active=11.0 dram_active=41.0 " REST               \
	"reasons=gpu_idle:10.0,sw_power_cap:40.0,other:0.1 name=NVIDIA H100 80GB HBM3"
#define AMPERE                                                                                     \
	"gpu device=1 uuid=GPU-1 seconds=10 utilization=absent memory_utilization=absent "         \
	"sm_active=absent sm_occupancy=absent tensor_active=absent dram_active=0.0 " REST          \
	"reasons=none name=A100"
#define HEAD                                                                                       \
	"  GPU  %BUSY   MOST    %SM   %OCC %TENSOR  %DRAM     MEMORY    POWER  DEG C    SM MHZ  "  \
	"NAME\n"

/* The text is the caller's to free. */
static char *printed(const char *const *comment, size_t count, unsigned int columns)
{
	CLEANUP(gpu_usage_release) struct gpu_usage usage = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(gpu_usage_add(&usage, comment[i]), 0);
	gpu_usage_print(&usage, 1, columns, false, out);
	fclose(out);
	return text;
}

static void view__what_is_not_known_is_no_0(void **state)
{
	static const char *const comment[] = {AMPERE, HOPPER};
	OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 0);

	(void)state;
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
	static const char *const comment[] = {
		AMPERE, "gpu pid=7 comm=a device=1 seconds=10 memory=1048576 sm=50.0",
		"gpu pid=8 comm=b device=1 seconds=10 memory=2097152 sm=absent",
		"gpu others=3 memory=500 sm=absent"};
	OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 0), *one = NULL;

	(void)state;
	assert_non_null(strstr(text, "\n  8 b on GPU 1: memory 2.00 MiB, SMs -\n"
				     "  over 1 more processes\n\n"));
	one = printed(comment, 2, 0);
	assert_non_null(strstr(one, "\n  7 a on GPU 1: memory 1.00 MiB, SMs 50.0 %\n\n"));
}

static void view__without_gpus_is_nothing(void **state)
{
	static const char *const comment[] = {"gpu others=3 memory=500 sm=absent"};
	OWNED_MEM char *text = printed(comment, 1, 0);

	(void)state;
	assert_string_equal(text, "");
}

static void view__a_narrow_terminal_cuts_names(void **state)
{
	static const char *const comment[] = {HOPPER};
	OWNED_MEM char *text = printed(comment, 1, 100);

	(void)state;
	assert_null(strstr(text, "NVIDIA H100 80GB HBM3"));
	assert_non_null(strstr(text, "NVIDIA"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(view__what_is_not_known_is_no_0),
		cmocka_unit_test(view__processes_have_a_bound),
		cmocka_unit_test(view__without_gpus_is_nothing),
		cmocka_unit_test(view__a_narrow_terminal_cuts_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
