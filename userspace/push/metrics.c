/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/metrics.h"

#include <inttypes.h>

#define NS_PER_SECOND 1e9
#define MS_PER_SECOND 1e3

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_requests(const struct push_stats *stats, size_t count, FILE *out)
{
	const char name[] = "pyprofd_push_requests_total";

	put_head(out, name, "counter", "Requests by the status of the answer; none: no answer.");
	for (; count--; stats++)
		for (size_t i = 0; i < stats->code_count; i++) {
			fprintf(out, "%s{sink=\"%s\",code=\"", name, stats->name);
			if (stats->request[i].code)
				fprintf(out, "%u", stats->request[i].code);
			else
				fputs("none", out);
			fprintf(out, "\"} %" PRIu64 "\n", stats->request[i].count);
		}
}

static void put_drops(const struct push_stats *stats, size_t count, FILE *out)
{
	const char name[] = "pyprofd_push_dropped_profiles_total";

	put_head(out, name, "counter", "What was not sent, by reason.");
	for (; count--; stats++)
		for (unsigned int i = 0; i < PUSH_DROP_COUNT; i++)
			fprintf(out, "%s{sink=\"%s\",reason=\"%s\"} %" PRIu64 "\n", name,
				stats->name, push_drop_name((enum push_drop)i), stats->drop[i]);
}

static void put_durations(const struct push_stats *stats, size_t count, FILE *out)
{
	const char name[] = "pyprofd_push_duration_seconds";

	put_head(out, name, "histogram", "How long requests take.");
	for (; count--; stats++) {
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
}

/* Writes one metric of all sinks. */
#define PUT_METRIC(metric, type, help, number)                                                     \
	put_head(out, metric, type, help);                                                         \
	for (const struct push_stats *stats = all; stats < all + count; stats++)                   \
		fprintf(out, "%s{sink=\"%s\"} %" PRIu64 "\n", metric, stats->name, number);

void push_metrics_write(const struct push_stats *all, size_t count, FILE *out)
{
	if (!count)
		return;
	put_requests(all, count, out);
	put_drops(all, count, out);
	PUSH_METRICS(PUT_METRIC)
	put_durations(all, count, out);
}
