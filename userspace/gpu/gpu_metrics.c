/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gpu_metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "gpu/gauges.h"
#include "live/record.h"

#define LABELS_BYTES 384U
#define PARTS 1000000000ULL /* of LIVE_METRIC_NS */
#define MHZ_HERTZ 1000000ULL

enum where {
	WHERE_DEVICES,
	WHERE_FAILURES,
	WHERE_INFO,
	WHERE_GAUGE,
	WHERE_PROCESSES,
	WHERE_REASONS,
};
struct metric {
	const char *name;
	unsigned int kind; /* enum live_metric */
	const char *help;
	enum where where;
	enum gpu_gauge gauge;
	uint64_t factor; /* from a value to what the record has */
};

#define COUNTER LIVE_METRIC_COUNTER
#define GAUGE LIVE_METRIC_GAUGE
#define GAUGE_PARTS (LIVE_METRIC_GAUGE | LIVE_METRIC_NS)
#define DEVICES .where = WHERE_DEVICES
#define FAILURES .where = WHERE_FAILURES
#define INFO .where = WHERE_INFO
#define PROCESSES .where = WHERE_PROCESSES
#define REASONS .where = WHERE_REASONS
#define OF(id, times) .where = WHERE_GAUGE, .gauge = GPU_##id, .factor = (times)
#define SHARE(id) OF(id, PARTS / GPU_SHARE_MAX)
#define PLAIN(id) OF(id, 1)
#define TENTHS(id) OF(id, PARTS / 10)
#define CLOCK(id) OF(id, MHZ_HERTZ / 10)
#define METRIC(metric_name, metric_kind, labels, values, text)                                     \
	{.name = (metric_name), .kind = (metric_kind), .help = (text), values},

static const struct metric metrics[] = {AGENT_GPU_METRICS(METRIC)};

/* A metric that is being written. */
struct writing {
	FILE *out;
	const struct metric *metric;
	bool has_head; /* it gets one with its first value */
};

static void put(struct writing *to, const char *labels, uint64_t number)
{
	const struct live_record head = {.kind = LIVE_METRIC,
					 .number = {to->metric->kind},
					 .text = {to->metric->name, to->metric->help}};

	if (!to->has_head)
		live_record_write(to->out, &head);
	to->has_head = true;
	live_record_write(to->out, &(struct live_record){.kind = LIVE_VALUE,
							 .number = {number},
							 .text = {labels}});
}

/* gpu="0",uuid="GPU-..." */
static void label_gpu(char labels[LABELS_BYTES], uint32_t index, const char *uuid)
{
	snprintf(labels, LABELS_BYTES, "gpu=\"%" PRIu32 "\",uuid=\"%s\"", index, uuid);
}

/* A label's text ends at a quote, and a backslash begins an escape. */
static void copy_plain(const char *text, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s", text);
	for (; *ret_text; ret_text++)
		if (*ret_text == '"' || *ret_text == '\\')
			*ret_text = '_';
}

static uint32_t count_processes(const struct gauges_round *round, uint32_t index)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < round->process_count; i++)
		count += round->process[i].device == index;
	return count;
}

static void put_gauge(struct writing *to, const char *labels, const struct gauges_device *gpu)
{
	const struct metric *metric = to->metric;
	uint64_t number;

	if (!(gpu->has >> metric->gauge & 1))
		return;
	if (__builtin_mul_overflow(gpu->value[metric->gauge], metric->factor, &number))
		number = UINT64_MAX;
	put(to, labels, number);
}

static void put_device(struct writing *to, const struct gauges_round *round,
		       const struct gauges_round_device *device)
{
	char uuid[GPU_UUID_BYTES], name[GPU_NAME_BYTES], labels[LABELS_BYTES];
	const struct gauges_device *gpu = &device->gpu;
	const enum where where = to->metric->where;

	copy_plain(gpu->uuid, uuid, sizeof(uuid));
	copy_plain(gpu->name, name, sizeof(name));
	label_gpu(labels, device->index, uuid);
	if (where == WHERE_GAUGE)
		put_gauge(to, labels, gpu);
	if (where == WHERE_PROCESSES)
		put(to, labels, count_processes(round, device->index));
	if (where == WHERE_INFO) {
		const size_t used = strlen(labels);

		snprintf(labels + used, sizeof(labels) - used, ",name=\"%s\"", name);
		put(to, labels, 1);
	}
}

static void put_reasons(struct writing *to, const struct gauge_sums_device *sums)
{
	char uuid[GPU_UUID_BYTES], labels[LABELS_BYTES];
	size_t used;

	if (!sums->reason_rounds)
		return;
	copy_plain(sums->last.uuid, uuid, sizeof(uuid));
	label_gpu(labels, sums->index, uuid);
	used = strlen(labels);
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++) {
		snprintf(labels + used, sizeof(labels) - used, ",reason=\"%s\"",
			 gpu_reasons[i].name);
		put(to, labels, sums->reason[i]);
	}
}

static void put_failures(struct writing *to, const struct gauges_stats *stats)
{
	char labels[LABELS_BYTES];

	for (unsigned int i = 0; i < GAUGES_FAILURE_COUNT; i++) {
		snprintf(labels, sizeof(labels), "reason=\"%s\"",
			 gauges_failure_name((enum gauges_failure)i));
		put(to, labels, stats->failures[i]);
	}
}

static void put_metric(struct writing *to, const struct gauges *gauges,
		       const struct gauges_stats *stats)
{
	const struct gauges_round *round = gauges_now(gauges);
	const struct gauge_sums *total = gauges_total(gauges);
	const enum where where = to->metric->where;

	if (where == WHERE_DEVICES)
		put(to, "", round ? round->device_count : 0);
	if (where == WHERE_FAILURES)
		put_failures(to, stats);
	for (uint32_t i = 0; where == WHERE_REASONS && i < total->device_count; i++)
		put_reasons(to, &total->device[i]);
	for (uint32_t i = 0; round && i < round->device_count; i++)
		put_device(to, round, &round->device[i]);
}

void gpu_metrics_write(const struct gauges *gauges, FILE *out)
{
	struct gauges_stats stats;

	if (!gauges)
		return;
	gauges_get_stats(gauges, &stats);
	if (!stats.starts && !stats.failures[GAUGES_NOT_STARTED])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		put_metric(&(struct writing){.out = out, .metric = &metrics[i]}, gauges, &stats);
}
