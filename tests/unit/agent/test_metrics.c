/* SPDX-License-Identifier: BSD-2-Clause */
/* Those of GPUs are a stand-in. */
#include "agent/progress.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gpu/gpu_metrics.h"
#include "live/record.h"
#include "version.h"
#include "windows/source.h"

static struct gauges *const some_gauges = (struct gauges *)&some_gauges;

void gpu_metrics_write(const struct gauges *gauges, FILE *out)
{
	if (gauges == some_gauges)
		live_record_write(out, &(struct live_record){.kind = LIVE_VALUE,
							     .number = {71},
							     .text = {"gpu=\"0\""}});
}

static char *tell(struct summary *summary)
{
	const struct sources sources = {.state = {[PP_SOURCE_GAUGES] = (void *)some_gauges}};
	const struct services services = {.summary = summary, .sources = &sources};
	char *text;
	size_t size;

	assert_int_equal(metrics_tell(&services, &text, &size), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

static void metrics__are_the_numbers_of_the_summary(void **state)
{
	struct summary summary = {.elapsed_ns = 5, .samples = 12, .cpu_ns = 7, .wait_ns = 8};
	OWNED_MEM char *text = NULL;

	(void)state;
	summary.stop[PP_STOP_ROOT] = 9;
	summary.stop[PP_STOP_NO_ROWS] = 3;
	summary.loss[PP_LOSS_NO_SCRATCH] = 4;
	summary.loss[PP_LOSS_RING_FULL] = 6;
	text = tell(&summary);
	assert_non_null(strstr(text, "metric\t1\tpyprofd_build_info\t"));
	assert_non_null(strstr(text, "\nvalue\t1\tversion=\"" PYPROFD_VERSION "\"\n"));
	assert_non_null(strstr(text, "\nmetric\t3\tpyprofd_uptime_seconds\tTime since the agent "
				     "began to record.\nvalue\t5\t\n"));
	assert_non_null(strstr(text, "\nvalue\t12\tkind=\"cpu\"\n"));
	assert_non_null(strstr(text, "\nvalue\t7\tkind=\"cpu\"\nvalue\t8\tkind=\"offcpu\"\n"));
	assert_non_null(strstr(text, "\nvalue\t3\treason=\"no_rows\"\n"));
	assert_non_null(strstr(text, "\nend\t0\t0\t0\t0\n"));
	assert_non_null(strstr(text, "\nvalue\t71\tgpu=\"0\"\nend\t"));
	/* A whole stack is no error. */
	assert_null(strstr(text, "reason=\"root\""));
}

/* Sums and places, but no names of processes. */
static void metrics__memory_is_summed_up(void **state)
{
	struct summary summary = {.memory_processes = 40,
				  .memory_anonymous_bytes = 41,
				  .memory_file_bytes = 42,
				  .memory_shared_bytes = 43};
	OWNED_MEM char *text = NULL;

	(void)state;
	summary.memory_largest_bytes[0] = 45;
	summary.memory_largest_bytes[15] = 44;
	text = tell(&summary);
	assert_non_null(strstr(text,
			       "\nvalue\t41\tmemory=\"anonymous\"\nvalue\t42\tmemory=\"file\"\n"
			       "value\t43\tmemory=\"shared\"\n"));
	assert_non_null(strstr(text, "\nvalue\t40\t\n"));
	assert_non_null(strstr(text, "\nvalue\t45\tplace=\"1\"\n"));
	assert_non_null(strstr(text, "\nvalue\t44\tplace=\"16\"\n"));
}

/* A loss of samples is in one metric, any other one in the other, and each is somewhere. */
static void losses__are_told_apart(void **state)
{
	struct summary summary = {0};
	OWNED_MEM char *text = NULL;
	const char *lost, *others, *end;

	(void)state;
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++)
		summary.loss[i] = 1000 + i;
	text = tell(&summary);
	lost = strstr(text, "\tpyprofd_samples_lost_total\t");
	others = strstr(text, "\tpyprofd_losses_total\t");
	assert_true(lost && others && lost < others);
	end = strstr(others, "\nmetric\t");
	assert_non_null(end);
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++) {
		char line[32];
		const char *at;

		snprintf(line, sizeof(line), "\nvalue\t%u\treason=", 1000 + i);
		at = strstr(lost, line);
		assert_true(at && at < end);
		assert_int_equal(at < others, summary_is_sample_loss(i));
		assert_null(strstr(at + 1, line));
	}
}

/* Each record can be read, and names are as Prometheus wants them. */
static void metrics__have_good_names(void **state)
{
	struct summary summary = {0};
	OWNED_MEM char *text = tell(&summary);
	unsigned int count = 0;

	(void)state;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct live_record record;
		const char *name;

		*end = '\0';
		assert_int_equal(live_record_parse(line, (size_t)(end - line), &record), 0);
		if (record.kind != LIVE_METRIC)
			continue;
		name = record.text[0];
		count++;
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		assert_int_equal(strncmp(name, "pyprofd_", 8), 0);
		assert_int_equal(!strcmp(name + strlen(name) - 6, "_total"),
				 !(record.number[0] & LIVE_METRIC_GAUGE));
		if (record.number[0] & LIVE_METRIC_NS)
			assert_non_null(strstr(name, "_seconds"));
	}
	assert_true(count >= 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics__are_the_numbers_of_the_summary),
		cmocka_unit_test(metrics__memory_is_summed_up),
		cmocka_unit_test(losses__are_told_apart),
		cmocka_unit_test(metrics__have_good_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
