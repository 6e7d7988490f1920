/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/program_times.h"

#include <stdlib.h>
#include <string.h>

static const char *const programs[] = {
#define PROGRAM_NAME(id, name) name,
	PP_PROGRAMS(PROGRAM_NAME)};

static bool find_bucket(const char *digits, size_t size, uint32_t *ret_bucket)
{
	char *end;
	unsigned long long ns = strtoull(digits, &end, 10);

	if (end != digits + size)
		return false;
	for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS; bucket++) {
		if (pp_time_end_ns(bucket) == ns) {
			*ret_bucket = bucket;
			return true;
		}
	}
	return false;
}

bool program_times_add(struct program_times *times, const char *fact, size_t size, uint64_t runs)
{
	for (uint32_t i = 0; i < PP_PROGRAM_COUNT; i++) {
		size_t head = strlen(programs[i]);
		uint32_t bucket;

		if (size < head + 2 || strncmp(fact, programs[i], head) || fact[head] != '_' ||
		    !find_bucket(fact + head + 1, size - head - 1, &bucket))
			continue;
		times->of[i].count[bucket] += runs;
		return true;
	}
	return false;
}

uint64_t program_times_runs(const struct program_times *times, enum pp_program program)
{
	uint64_t runs = 0;

	for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS; bucket++)
		runs += times->of[program].count[bucket];
	return runs;
}

uint64_t program_times_ns(const struct program_times *times, enum pp_program program, double share)
{
	double wanted = (double)program_times_runs(times, program) * share;
	uint64_t seen = 0, ns = 0;

	for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS && (!seen || (double)seen < wanted);
	     bucket++) {
		if (!times->of[program].count[bucket])
			continue;
		seen += times->of[program].count[bucket];
		ns = pp_time_end_ns(bucket);
	}
	return ns;
}
