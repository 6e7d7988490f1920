/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/metrics.h"

#include <inttypes.h>

#include "base/cleanup.h"

#define NS_PER_SECOND 1e9
#define MS_PER_SECOND 1e3

enum metric {
	REQUESTS, DROPS, BYTES, WINDOWS, REPEATED, AGAIN, FOLDED, WAITING, LAG, WORKS, DURATIONS
};

static void put_number(FILE *out, const char *name, const struct push_stats *stats, uint64_t number)
{
	fprintf(out, "%s{sink=\"%s\"} %" PRIu64 "\n", name, stats->name, number);
}

static void put_requests(FILE *out, const char *name, const struct push_stats *stats)
{
	for (size_t i = 0; i < stats->code_count; i++) {
		fprintf(out, "%s{sink=\"%s\",code=\"", name, stats->name);
		if (stats->request[i].code)
			fprintf(out, "%u", stats->request[i].code);
		else
			fputs("none", out);
		fprintf(out, "\"} %" PRIu64 "\n", stats->request[i].count);
	}
}

static void put_drops(FILE *out, const char *name, const struct push_stats *stats)
{
	for (unsigned int i = 0; i < PUSH_DROP_COUNT; i++)
		fprintf(out, "%s{sink=\"%s\",reason=\"%s\"} %" PRIu64 "\n", name, stats->name,
			push_drop_name((enum push_drop)i), stats->drop[i]);
}

static void put_lag(FILE *out, const char *name, const struct push_stats *stats, uint64_t now_ms)
{
	const uint64_t lag_ms = now_ms > stats->sent_end_ms ? now_ms - stats->sent_end_ms : 0;

	fprintf(out, "%s{sink=\"%s\"} %.3f\n", name, stats->name, (double)lag_ms / MS_PER_SECOND);
}

static void put_durations(FILE *out, const char *name, const struct push_stats *stats)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PUSH_DURATION_COUNT; i++) {
		uint64_t bound_ms = push_duration_bound_ms(i);

		sum += stats->duration[i];
		fprintf(out, "%s_bucket{sink=\"%s\",le=\"", name, stats->name);
		if (bound_ms == UINT64_MAX)
			fputs("+Inf", out);
		else
			fprintf(out, "%g", (double)bound_ms / MS_PER_SECOND);
		fprintf(out, "\"} %" PRIu64 "\n", sum);
	}
	fprintf(out, "%s_sum{sink=\"%s\"} %.6f\n", name, stats->name,
		(double)stats->duration_ns / NS_PER_SECOND);
	fprintf(out, "%s_count{sink=\"%s\"} %" PRIu64 "\n", name, stats->name, sum);
}

static void put_metric(FILE *out, enum metric metric, const char *name,
		       const struct push_stats *stats, uint64_t now_ms)
{
	const uint64_t numbers[] = {[BYTES] = stats->bytes,	  [WINDOWS] = stats->windows,
				    [REPEATED] = stats->repeated, [FOLDED] = stats->folded,
				    [AGAIN] = stats->again,
				    [WAITING] = stats->files_left, [WORKS] = stats->works};

	switch (metric) {
	case REQUESTS:
		put_requests(out, name, stats);
		break;
	case DROPS:
		put_drops(out, name, stats);
		break;
	case LAG:
		put_lag(out, name, stats, now_ms);
		break;
	case DURATIONS:
		put_durations(out, name, stats);
		break;
	default:
		put_number(out, name, stats, numbers[metric]);
	}
}

void push_metrics_write(const struct push_stats *stats, size_t count, uint64_t now_ms, FILE *out)
{
#define COUNTER "counter"
#define GAUGE "gauge"
#define HISTOGRAM "histogram"
#define METRIC(name, type, labels, metric, help) {name, type, metric, help},
	static const struct {
		const char *name, *type;
		enum metric metric;
		const char *help;
	} all[] = {PUSH_METRICS(METRIC)};

	for (size_t i = 0; count && i < ARRAY_SIZE(all); i++) {
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", all[i].name, all[i].help,
			all[i].name, all[i].type);
		for (size_t k = 0; k < count; k++)
			put_metric(out, all[i].metric, all[i].name, &stats[k], now_ms);
	}
}
