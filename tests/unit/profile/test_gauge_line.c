/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/gauge_line.c */
#include "profile/gauge_line.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

#define GPU                                                                                        \
	"gpu device=3 uuid=GPU-1 seconds=10 utilization=63.0,20.0,97.0 memory_utilization=40.0 "   \
	"sm_active=absent sm_occupancy=absent tensor_active=absent dram_active=0.0 "               \
	"pcie_tx=1048576 pcie_rx=absent nvlink_tx=absent nvlink_rx=absent "                        \
	"memory_used=4096,1,8000 power=350.5 temperature=45.0 sm_clock=1980.0 "                    \
	"memory_clock=absent memory_total=85899345920 power_limit=700.0 "

static struct gpu_figures figures(uint64_t mean, uint64_t min, uint64_t max)
{
	return (struct gpu_figures){true, mean, min, max};
}

static struct gauge_line some_line(void)
{
	struct gauge_line line = {.device = 3,
				  .uuid = "GPU-1",
				  .seconds = 10,
				  .memory_total_bytes = 80ULL << 30,
				  .power_limit = 7000,
				  .has_reasons = true};

	line.gauge[GPU_UTILIZATION] = figures(630, 200, 970);
	line.gauge[GPU_MEMORY_UTILIZATION] = figures(400, 400, 400);
	line.gauge[GPU_DRAM_ACTIVE] = figures(0, 0, 0);
	line.gauge[GPU_PCIE_TX] = figures(1 << 20, 1 << 20, 1 << 20);
	line.gauge[GPU_MEMORY_USED] = figures(4096, 1, 8000);
	line.gauge[GPU_POWER] = figures(3505, 3505, 3505);
	line.gauge[GPU_TEMPERATURE] = figures(450, 450, 450);
	line.gauge[GPU_SM_CLOCK] = figures(19800, 19800, 19800);
	line.reason_share[GPU_REASON_SW_POWER] = 400;
	line.reason_share[GPU_REASON_OTHER] = 1;
	gauge_line_set_name(&line, "NVIDIA H100\n\x1b[7m");
	return line;
}

/* Absent is not 0, and both come back as what they are. */
static void line__reads_as_it_is_documented_and_comes_back(void **state)
{
	struct gauge_line line = some_line(), back;
	char text[GAUGE_LINE_CHARS];

	(void)state;
	gauge_line_format(&line, text);
	assert_string_equal(text, GPU "reasons=sw_power_cap:40.0,other:0.1 name=NVIDIA H100??[7m");
	assert_true(gauge_line_parse(text, &back));
	assert_int_equal(back.device, 3);
	assert_string_equal(back.uuid, "GPU-1");
	assert_string_equal(back.name, "NVIDIA H100??[7m");
	assert_int_equal(back.memory_total_bytes, 80ULL << 30);
	assert_int_equal(back.power_limit, 7000);
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++) {
		assert_int_equal(back.gauge[i].is_known, line.gauge[i].is_known);
		assert_int_equal(back.gauge[i].mean, line.gauge[i].mean);
		assert_int_equal(back.gauge[i].min, line.gauge[i].min);
		assert_int_equal(back.gauge[i].max, line.gauge[i].max);
	}
	assert_memory_equal(back.reason_share, line.reason_share, sizeof(line.reason_share));
}

static void line__no_reason_is_not_an_unknown_one(void **state)
{
	struct gauge_line line = some_line(), back;
	char text[GAUGE_LINE_CHARS];

	(void)state;
	memset(line.reason_share, 0, sizeof(line.reason_share));
	gauge_line_format(&line, text);
	assert_non_null(strstr(text, " reasons=none name="));
	assert_true(gauge_line_parse(text, &back) && back.has_reasons);
	line.has_reasons = false;
	line.uuid[0] = line.name[0] = '\0';
	gauge_line_format(&line, text);
	assert_non_null(strstr(text, " uuid=- "));
	assert_non_null(strstr(text, " reasons=absent name="));
	assert_true(gauge_line_parse(text, &back) && !back.has_reasons);
	assert_string_equal(back.uuid, "");
	assert_string_equal(back.name, "");
}

/* The longest line fits. */
static void line__of_the_largest_numbers_is_whole(void **state)
{
	struct gauge_line line = {.device = UINT64_MAX,
				  .seconds = UINT64_MAX,
				  .memory_total_bytes = UINT64_MAX,
				  .power_limit = UINT64_MAX,
				  .has_reasons = true},
			  back;
	char text[GAUGE_LINE_CHARS], name[GPU_NAME_BYTES];

	(void)state;
	memset(line.uuid, 'u', sizeof(line.uuid) - 1);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	gauge_line_set_name(&line, name);
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		line.gauge[i] = figures(UINT64_MAX, UINT64_MAX - 1, UINT64_MAX);
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++)
		line.reason_share[i] = GPU_SHARE_MAX;
	gauge_line_format(&line, text);
	assert_true(strlen(text) < sizeof(text) - 1);
	assert_true(gauge_line_parse(text, &back));
	assert_string_equal(back.name, name);
	assert_true(back.gauge[GPU_POWER].max == UINT64_MAX);
	assert_int_equal(back.reason_share[GPU_REASON_OTHER], GPU_SHARE_MAX);
}

static void line__other_comments_are_none(void **state)
{
	static const char *const others[] = {
		"",
		"gpu ",
		"memory pid=1",
		"gpu device=0",
		"gpu device=x uuid=GPU-1 seconds=1",
		GPU "reasons=none",
		GPU "reasons=idle:10.0 name=a",
		GPU "reasons= name=a",
		GPU "reasons=gpu_idle:0.0 name=a",
		GPU "reasons=gpu_idle:100.1 name=a",
		GPU "reasons=sw_power_cap:1.0,gpu_idle:1.0 name=a",
		GPU "reasons=gpu_idle:1.0,gpu_idle:1.0 name=a",
		GPU "reasons=gpu_idle:1 name=a",
		GPU "reasons=none name=a\n",
	};
	struct gauge_line line = {.device = 77};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(gauge_line_parse(others[i], &line));
	assert_int_equal(line.device, 77);
	assert_true(gauge_line_parse(GPU "reasons=gpu_idle:1.0,other:2.5 name=a", &line));
}

static void process_line__what_is_written_comes_back(void **state)
{
	struct gauge_process_line line = {.pid = 12,
					  .device = 1,
					  .seconds = 9,
					  .memory_bytes = {true, 5, 4, 6}},
				  back, sum = {0};
	char text[GAUGE_LINE_CHARS];

	(void)state;
	gauge_process_line_set_comm(&line, "my python");
	gauge_process_line_format(&line, text);
	assert_string_equal(text,
			    "gpu pid=12 comm=my_python device=1 seconds=9 memory=5,4,6 sm=absent");
	assert_true(gauge_process_line_parse(text, &back));
	assert_int_equal(back.pid, 12);
	assert_int_equal(back.device, 1);
	assert_string_equal(back.comm, "my_python");
	assert_int_equal(back.memory_bytes.max, 6);
	assert_false(back.sm.is_known);
	gauge_process_line_add(&sum, &line);
	line.sm = figures(355, 0, 900);
	gauge_process_line_add(&sum, &line);
	gauge_process_line_format(&sum, text);
	assert_string_equal(text, "gpu others=2 memory=10,8,12 sm=35.5,0.0,90.0");
	assert_true(gauge_process_line_parse(text, &back));
	assert_int_equal(back.others, 2);
	assert_int_equal(back.pid, 0);
	gauge_process_line_add(&sum, &back);
	assert_int_equal(sum.others, 4);
}

static void process_line__other_comments_are_none(void **state)
{
	static const char *const others[] = {
		"gpu others=1 memory=1",
		"gpu others=1 memory=1 sm=1",
		"gpu others=1 memory=1 sm=1.0 ",
		"gpu others=1 memory=1 sm=1.00",
		"gpu others=1 memory=1 sm=1.0,2.0",
		"gpu others=1 memory=-1 sm=1.0",
		"gpu pid=0 comm=a device=0 seconds=1 memory=1 sm=1.0",
		"gpu pid=1 comm=a seconds=1 memory=1 sm=1.0",
		"gpu pid=1 comm=a device=99999999999999999999 seconds=1 memory=1 sm=1.0",
	};
	struct gauge_process_line line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(gauge_process_line_parse(others[i], &line));
}

static void reasons__each_bit_has_one_name(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++) {
		assert_int_equal(all & gpu_reason_mask((enum gpu_reason)i), 0);
		all |= gpu_reason_mask((enum gpu_reason)i);
	}
	assert_true(all == UINT64_MAX);
	assert_string_equal(gpu_reason_name(GPU_REASON_HW_THERMAL), "hw_thermal_slowdown");
	assert_int_equal(gpu_reason_mask(GPU_REASON_HW_THERMAL), 0x40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__reads_as_it_is_documented_and_comes_back),
		cmocka_unit_test(line__no_reason_is_not_an_unknown_one),
		cmocka_unit_test(line__of_the_largest_numbers_is_whole),
		cmocka_unit_test(line__other_comments_are_none),
		cmocka_unit_test(process_line__what_is_written_comes_back),
		cmocka_unit_test(process_line__other_comments_are_none),
		cmocka_unit_test(reasons__each_bit_has_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
