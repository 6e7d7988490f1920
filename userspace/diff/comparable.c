/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/comparable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/kinds.h"
#include "profile/comments.h"

#define MAX_PERIOD_CHANGE 0.01
#define UNKNOWN -1.0

static void add_fact(void *context, const char *name, size_t size, uint64_t value)
{
	struct diff_facts *facts = context;

	if (size == strlen("elapsed_ns") && !strncmp(name, "elapsed_ns", size))
		facts->elapsed_ns += value;
	else if (size == strlen("host_busy_ns") && !strncmp(name, "host_busy_ns", size))
		facts->host_busy_ns += value;
	else if (size == strlen("host_cpus") && !strncmp(name, "host_cpus", size))
		facts->host_cpus = value;
}

void diff_facts_add_comment(struct diff_facts *facts, const char *text)
{
	struct profile_writer writer;

	facts_read(text, add_fact, facts);
	if (!profile_writer_parse(text, &writer) || !writer.hz)
		return;
	snprintf(facts->kind, sizeof(facts->kind), "%s", writer.kind);
	snprintf(facts->host, sizeof(facts->host), "%s", writer.host);
	facts->hz = writer.hz;
}

static bool period_differs(int64_t a, int64_t b)
{
	return a > 0 && b > 0 && fabs((double)a - (double)b) > MAX_PERIOD_CHANGE * (double)b;
}

void diff_facts_add_window(struct diff_facts *facts, int64_t period, int64_t value)
{
	if (!facts->period)
		facts->period = period;
	facts->mixed += period_differs(period, facts->period);
	facts->windows++;
	if (__builtin_add_overflow(facts->value, value, &facts->value))
		facts->value = INT64_MAX;
}

double diff_facts_load(const struct diff_facts *facts)
{
	double capacity = (double)facts->elapsed_ns * (double)facts->host_cpus, others;

	if (capacity <= 0 || !facts->host_busy_ns || facts->unit_ns <= 0 || facts->is_part ||
	    !kind_is(facts->kind, PP_PROFILE_CPU))
		return UNKNOWN;
	others = (double)facts->host_busy_ns - (double)facts->value * facts->unit_ns;
	return others > 0 ? others / capacity : 0;
}

static bool rates_differ(const struct diff_facts *a, const struct diff_facts *b,
			 char ret_why[DIFF_WHY_BYTES])
{
	bool mixed = a->mixed || b->mixed;

	if (a->hz && b->hz && a->hz != b->hz)
		snprintf(ret_why, DIFF_WHY_BYTES, "one was sampled at %u Hz, the other at %u Hz",
			 a->hz, b->hz);
	else if (mixed || period_differs(a->period, b->period))
		snprintf(ret_why, DIFF_WHY_BYTES,
			 "their sampling periods differ: %" PRId64 " and %" PRId64 "%s", a->period,
			 b->period, mixed ? ", some windows have others" : "");
	else
		return false;
	return true;
}

static bool loads_differ(const struct diff_facts *a, const struct diff_facts *b,
			 char ret_why[DIFF_WHY_BYTES])
{
	double load_a = diff_facts_load(a), load_b = diff_facts_load(b);

	if (load_a < 0 || load_b < 0 || fabs(load_a - load_b) <= DIFF_MAX_LOAD_CHANGE)
		return false;
	snprintf(ret_why, DIFF_WHY_BYTES,
		 "other load on the host: what is not in the profiles took %.0f %% of its CPUs, "
		 "then %.0f %%",
		 load_a * 100, load_b * 100);
	return true;
}

enum comparable comparable_sides(const struct diff_facts *a, const struct diff_facts *b,
				 char ret_why[DIFF_WHY_BYTES])
{
	if (a->value <= 0 || b->value <= 0) {
		snprintf(ret_why, DIFF_WHY_BYTES, "%s no samples: nothing to compare",
			 a->value <= 0 && b->value <= 0 ? "both have"
			 : a->value <= 0		? "the first one has"
							: "the second one has");
		return NOTHING_TO_COMPARE;
	}
	if (a->kind[0] && b->kind[0] && strcmp(a->kind, b->kind)) {
		snprintf(ret_why, DIFF_WHY_BYTES, "one is of kind %s, the other of %s", a->kind,
			 b->kind);
		return NOT_COMPARABLE;
	}
	if (rates_differ(a, b, ret_why) || loads_differ(a, b, ret_why))
		return NOT_COMPARABLE;
	return COMPARABLE;
}
