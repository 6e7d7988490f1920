/* SPDX-License-Identifier: BSD-2-Clause */
/* The gauges are a stand-in. */
#include "gpu/gpu_metrics.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gpu/gauges.h"
#include "live/record.h"

static struct gauges_round now;
static struct gauge_sums total;
static struct gauges_stats stats;
static bool is_known;

const struct gauges_round *gauges_now(const struct gauges *gauges)
{
	(void)gauges;
	return is_known ? &now : NULL;
}

const struct gauge_sums *gauges_total(const struct gauges *gauges)
{
	(void)gauges;
	return &total;
}

void gauges_get_stats(const struct gauges *gauges, struct gauges_stats *ret_stats)
{
	(void)gauges;
	*ret_stats = stats;
}

/* ---- */

static int setup(void **state)
{
	struct gauges_device *gpu = &now.device[0].gpu;

	(void)state;
	memset(&now, 0, sizeof(now));
	memset(&total, 0, sizeof(total));
	stats = (struct gauges_stats){.starts = 1};
	is_known = true;
	now.device_count = 1;
	now.device[0].index = 3;
	snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-3");
	snprintf(gpu->name, sizeof(gpu->name), "A \"GPU\" \\");
	gpu->has = 1ULL << GPU_UTILIZATION | 1ULL << GPU_POWER | 1ULL << GPU_MEMORY_USED |
		   1ULL << GPU_SM_CLOCK | 1ULL << GPU_TEMPERATURE;
	gpu->value[GPU_UTILIZATION] = 975;
	gpu->value[GPU_POWER] = 3505;
	gpu->value[GPU_MEMORY_USED] = 12345;
	gpu->value[GPU_SM_CLOCK] = 19800;
	gpu->value[GPU_TEMPERATURE] = 450;
	gpu->has |= 1ULL << GPU_MEMORY_TOTAL | 1ULL << GPU_POWER_LIMIT;
	gpu->value[GPU_MEMORY_TOTAL] = 99999;
	gpu->value[GPU_POWER_LIMIT] = 7000;
	now.process_count = 3;
	now.process[0].device = now.process[2].device = 3;
	return 0;
}

static char *written(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	gpu_metrics_write((const struct gauges *)&now, out);
	fclose(out);
	return text;
}

#define LABELS "gpu=\"3\",uuid=\"GPU-3\""

static void metrics__are_the_last_seconds_values(void **state)
{
	static const char *const wanted[] = {
		"pyprofd_gpus\tGPUs whose gauges are known now.\nvalue\t1\t\n",
		"value\t1\t" LABELS ",name=\"A _GPU_ _\"\n",
		/* Billionths, as those of seconds are. */
		"value\t975000000\t" LABELS "\nmetric\t1\tpyprofd_gpu_memory_used_bytes\t",
		"value\t350500000000\t" LABELS "\nmetric\t3\tpyprofd_gpu_power_limit_watts\t",
		"value\t700000000000\t" LABELS "\n",
		"value\t45000000000\t" LABELS "\n",
		"value\t12345\t" LABELS "\n",
		"value\t99999\t" LABELS "\n",
		"metric\t1\tpyprofd_gpu_sm_clock_hertz\tClock of the SMs.\nvalue\t1980000000\t",
		"value\t2\t" LABELS "\n",
	};
	OWNED_MEM char *text = written();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_non_null(strstr(text, wanted[i]));
	/* What is not known is no 0, and no metric without values. */
	assert_null(strstr(text, "pyprofd_gpu_sm_active_ratio"));
	assert_null(strstr(text, "value\t0\t" LABELS));
}

static void metrics__reasons_and_failures_are_counted(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	total.device_count = 1;
	total.device[0].index = 3;
	snprintf(total.device[0].last.uuid, GPU_UUID_BYTES, "GPU-3");
	total.device[0].reason_rounds = 9;
	total.device[0].reason[GPU_REASON_SW_POWER] = 7;
	stats.failures[GAUGES_SILENT] = 5;
	text = written();
	assert_non_null(strstr(text, "value\t7\t" LABELS ",reason=\"sw_power_cap\"\n"));
	assert_non_null(strstr(text, "value\t0\t" LABELS ",reason=\"hw_slowdown\"\n"));
	assert_non_null(strstr(text, "value\t5\treason=\"silent\"\n"));
}

static void metrics__of_no_round_have_no_values(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	is_known = false;
	text = written();
	assert_non_null(strstr(text, "\nvalue\t0\t\n"));
	assert_null(strstr(text, LABELS));
}

static void metrics__where_there_is_no_cuda_are_none(void **state)
{
	OWNED_MEM char *text = NULL;

	(void)state;
	stats.starts = 0;
	text = written();
	assert_string_equal(text, "");
}

static void metrics__have_good_names(void **state)
{
	static const char *const ends[] = {"_ratio", "_watts", "_celsius"};
	OWNED_MEM char *text = NULL;
	unsigned int count = 0;

	(void)state;
	now.device[0].gpu.has = (1ULL << GPU_GAUGE_COUNT) - 1;
	total.device_count = 1;
	total.device[0].reason_rounds = 1;
	text = written();
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct live_record record;
		bool is_of_parts = false;
		const char *name;

		*end = '\0';
		assert_int_equal(live_record_parse(line, (size_t)(end - line), &record), 0);
		if (record.kind != LIVE_METRIC)
			continue;
		name = record.text[0];
		count++;
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		assert_int_equal(strncmp(name, "pyprofd_gpu", 11), 0);
		assert_int_equal(!strcmp(name + strlen(name) - 6, "_total"),
				 !(record.number[0] & LIVE_METRIC_GAUGE));
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			is_of_parts |= !strcmp(name + strlen(name) - strlen(ends[i]), ends[i]);
		assert_int_equal(is_of_parts, (record.number[0] & LIVE_METRIC_NS) != 0);
	}
	assert_int_equal(count, GPU_GAUGE_COUNT + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(metrics__are_the_last_seconds_values, setup),
		cmocka_unit_test_setup(metrics__reasons_and_failures_are_counted, setup),
		cmocka_unit_test_setup(metrics__of_no_round_have_no_values, setup),
		cmocka_unit_test_setup(metrics__where_there_is_no_cuda_are_none, setup),
		cmocka_unit_test_setup(metrics__have_good_names, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
