/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/stats.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

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
