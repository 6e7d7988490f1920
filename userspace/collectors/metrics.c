/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* ---- counting ---- */

#define DROP_NAME(id, name) [PUSH_DROP_##id] = name,
static const char *const drop_names[] = {PUSH_DROPS(DROP_NAME)};
#define DURATION_BOUND(ms) ms,
static const uint64_t duration_bounds[] = {PUSH_DURATIONS(DURATION_BOUND) UINT64_MAX};

const char *push_drop_name(enum push_drop drop)
{
	return drop_names[drop];
}

uint64_t push_duration_bound_ms(size_t bucket)
{
	return duration_bounds[bucket];
}

void push_counters_init(struct push_counters *counters, const char *name)
{
	memset(counters, 0, sizeof(*counters));
	pthread_mutex_init(&counters->mutex, NULL);
	snprintf(counters->stats.name, sizeof(counters->stats.name), "%s", name);
	counters->stats.works = true;
}

void push_counters_destroy(struct push_counters *counters)
{
	pthread_mutex_destroy(&counters->mutex);
}

void push_count_request(struct push_counters *counters, unsigned int code, uint64_t duration_ns)
{
	struct push_stats *stats = &counters->stats;
	size_t at = 0, bucket = 0;

	pthread_mutex_lock(&counters->mutex);
	while (at < stats->code_count && stats->request[at].code != code)
		at++;
	if (at == PUSH_CODES_MAX)
		at--;
	if (at == stats->code_count) {
		stats->request[at].code = code;
		stats->code_count++;
	}
	stats->request[at].count++;
	while (bucket + 1 < PUSH_DURATION_COUNT &&
	       duration_ns / NS_PER_MS > duration_bounds[bucket])
		bucket++;
	stats->duration[bucket]++;
	stats->duration_ns += duration_ns;
	pthread_mutex_unlock(&counters->mutex);
}

void push_count_drop(struct push_counters *counters, enum push_drop drop, uint64_t count)
{
	PUSH_COUNT(counters, drop[drop], count);
}

void push_counters_get(struct push_counters *counters, struct push_stats *ret_stats)
{
	pthread_mutex_lock(&counters->mutex);
	*ret_stats = counters->stats;
	pthread_mutex_unlock(&counters->mutex);
}

/* ---- printing ---- */

#define NS_PER_SECOND 1e9
#define MS_PER_SECOND 1e3

#define METRIC_ID(name, type, labels, metric, help) metric,
enum metric { PUSH_METRICS(METRIC_ID) };

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
	const uint64_t numbers[] = {
		[BYTES] = stats->bytes,	  [WINDOWS] = stats->windows, [REPEATED] = stats->repeated,
		[FOLDED] = stats->folded, [AGAIN] = stats->again,     [WAITING] = stats->files_left,
		[WORKS] = stats->works};

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
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", all[i].name, all[i].help, all[i].name,
			all[i].type);
		for (size_t k = 0; k < count; k++)
			put_metric(out, all[i].metric, all[i].name, &stats[k], now_ms);
	}
}
