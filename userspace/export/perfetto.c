/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile's samples as a Perfetto trace: PerfSample packets, which viewers show as flame
 * graphs. */
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "export/exports.h"
#include "timeline/trace_format.h"

#define FLUSH_BYTES (1U << 20)
#define MAX_SAMPLES 1000000	/* in one trace: more make it slow to open */
#define NS_OF_A_SAMPLE 10000000 /* when no value counts samples: one per 10 ms */

struct perfetto {
	struct proto_writer proto;
	struct profile *profile;
	const struct export_facts *facts;
	struct code_table code;
	struct groups groups;
	FILE *out;
	int64_t values_per_sample; /* 0: samples are counted */
};

static void perfetto_release(struct perfetto *perfetto)
{
	proto_release(&perfetto->proto);
	code_table_release(&perfetto->code);
	groups_release(&perfetto->groups);
}

static int flush_some(struct perfetto *perfetto, size_t above)
{
	return perfetto->proto.size > above || perfetto->proto.error
		       ? proto_flush(&perfetto->proto, perfetto->out)
		       : 0;
}

static void put_process(struct perfetto *perfetto, const struct group *group)
{
	struct proto_writer *proto = &perfetto->proto;
	const struct intern *strings = perfetto->profile->strings;

	proto_open(proto, 1);
	proto_uint(proto, 1, (uint64_t)group->pid);
	proto_text(proto, 3, intern_get(strings, group->comm, NULL));
	proto_close(proto);
	proto_open(proto, 2);
	proto_uint(proto, 1, (uint64_t)group->tid);
	proto_uint(proto, 3, (uint64_t)group->pid);
	proto_text(proto, 2,
		   intern_get(strings, group->thread ? group->thread : group->comm, NULL));
	proto_close(proto);
}

static int put_processes(struct perfetto *perfetto)
{
	uint32_t group;

	for (uint32_t i = 0; i < perfetto->profile->row_count; i++) {
		int err = groups_of_set(&perfetto->groups, perfetto->profile->row[i].label_set,
					&group);

		if (err)
			return err;
	}
	perfetto_open_packet(&perfetto->proto, PERFETTO_CLEARED);
	proto_uint(&perfetto->proto, PACKET_TIMESTAMP, perfetto->facts->start_wall_ns);
	proto_open(&perfetto->proto, PACKET_PROCESS_TREE);
	for (uint32_t i = 0; i < perfetto->groups.count; i++)
		put_process(perfetto, &perfetto->groups.group[i]);
	proto_close(&perfetto->proto);
	proto_close(&perfetto->proto);
	return 0;
}

/* ---- interned data: ids count from 1 ---- */

static void open_interned(struct perfetto *perfetto)
{
	perfetto_open_packet(&perfetto->proto, PERFETTO_NEEDED);
	proto_open(&perfetto->proto, PACKET_INTERNED_DATA);
}

static int close_interned(struct perfetto *perfetto)
{
	proto_close(&perfetto->proto);
	proto_close(&perfetto->proto);
	return flush_some(perfetto, FLUSH_BYTES);
}

static void put_string(struct perfetto *perfetto, enum perfetto_interned table, uint64_t id,
		       const char *text)
{
	perfetto_put_text(&perfetto->proto, table, id, text, strlen(text));
}

/* Writes a function.  Its strings and its mapping have its own number: readers need no more. */
static int put_code(struct perfetto *perfetto, uint32_t index)
{
	const struct code *code = &perfetto->code.code[index];
	struct proto_writer *proto = &perfetto->proto;
	uint64_t id = (uint64_t)index + 1;
	const char *module = code->module ? code_text(&perfetto->code, code->module)
					  : frame_class_name((enum frame_class)code->class);

	open_interned(perfetto);
	put_string(perfetto, INTERNED_FUNCTION_NAMES, id, code_name(&perfetto->code, code));
	put_string(perfetto, INTERNED_MAPPING_PATHS, id, module);
	put_string(perfetto, INTERNED_SOURCE_PATHS, id, code_text(&perfetto->code, code->file));
	proto_open(proto, INTERNED_MAPPINGS);
	proto_uint(proto, 1, id);
	proto_uint(proto, 7, id);
	proto_close(proto);
	proto_open(proto, INTERNED_FRAMES);
	proto_uint(proto, 1, id);
	proto_uint(proto, 2, id);
	proto_uint(proto, 3, id);
	proto_uint(proto, 4, id); /* tells the frames of one mapping apart */
	proto_uint(proto, 5, id);
	proto_uint(proto, 6, code_line(code));
	proto_close(proto);
	return close_interned(perfetto);
}

/* Root first. */
static int put_stack(struct perfetto *perfetto, uint32_t index)
{
	const struct stack *stack = &perfetto->profile->stacks.stack[index];
	uint32_t known = perfetto->code.count, code;

	for (uint32_t i = 0; i < stack->count; i++) {
		int err = code_table_of_location(&perfetto->code, stack->location[i], &code);

		if (err)
			return err;
	}
	for (; known < perfetto->code.count; known++) {
		int err = put_code(perfetto, known);

		if (err)
			return err;
	}
	open_interned(perfetto);
	proto_open(&perfetto->proto, INTERNED_CALLSTACKS);
	proto_uint(&perfetto->proto, 1, (uint64_t)index + 1);
	for (uint32_t i = stack->count; i-- > 0;) {
		(void)code_table_of_location(&perfetto->code, stack->location[i], &code);
		proto_uint(&perfetto->proto, 2, (uint64_t)code + 1);
	}
	proto_close(&perfetto->proto);
	return close_interned(perfetto);
}

/* ---- samples ---- */

static int64_t samples_of(const struct perfetto *perfetto, uint32_t row)
{
	const int64_t *value = profile_row_values(perfetto->profile, row);
	int64_t samples = perfetto->values_per_sample ? value[perfetto->facts->value_index] /
								perfetto->values_per_sample
						      : value[perfetto->facts->count_index];

	if (samples < 0 || !value[perfetto->facts->value_index])
		return 0;
	return samples ? samples : 1;
}

/* Writes a row's samples evenly over the time; each row begins at another point of its first
 * step. */
static int put_row(struct perfetto *perfetto, uint32_t row)
{
	const struct profile_row *at = &perfetto->profile->row[row];
	const struct export_facts *facts = perfetto->facts;
	int64_t samples = samples_of(perfetto, row);
	double step = samples ? (double)facts->duration_ns / (double)samples : 0;
	double begin = (double)(row * 2654435761U) / 4294967296.0 * step;
	uint32_t group_index;
	int err = groups_of_set(&perfetto->groups, at->label_set, &group_index);

	for (int64_t i = 0; !err && i < samples; i++) {
		const struct group *group = &perfetto->groups.group[group_index];
		struct proto_writer *proto = &perfetto->proto;

		perfetto_open_packet(proto, PERFETTO_NEEDED);
		proto_uint(proto, PACKET_TIMESTAMP,
			   facts->start_wall_ns + (uint64_t)(begin + step * (double)i));
		proto_open(proto, PACKET_PERF_SAMPLE);
		proto_uint(proto, 2, (uint64_t)group->pid);
		proto_uint(proto, 3, (uint64_t)group->tid);
		proto_uint(proto, 4, (uint64_t)at->stack + 1);
		proto_close(proto);
		proto_close(proto);
		err = flush_some(perfetto, FLUSH_BYTES);
	}
	return err;
}

static int64_t at_least_0(int64_t value)
{
	return value > 0 ? value : 0;
}

static void choose_quantum(struct perfetto *perfetto)
{
	const struct export_facts *facts = perfetto->facts;
	int64_t values = 0, counted = 0;

	for (uint32_t i = 0; i < perfetto->profile->row_count; i++) {
		const int64_t *value = profile_row_values(perfetto->profile, i);

		/* Rows of negative values, which have no samples, make no room for others. */
		values = add_saturating(values, at_least_0(value[facts->value_index]));
		if (facts->count_index >= 0)
			counted = add_saturating(counted, at_least_0(value[facts->count_index]));
	}
	if (facts->count_index >= 0 && counted <= MAX_SAMPLES)
		return;
	perfetto->values_per_sample = values / MAX_SAMPLES;
	if (perfetto->values_per_sample < NS_OF_A_SAMPLE)
		perfetto->values_per_sample = NS_OF_A_SAMPLE;
}

int export_perfetto(struct profile *profile, const struct export_facts *facts, FILE *out)
{
	CLEANUP(perfetto_release) struct perfetto perfetto = {
		.profile = profile, .facts = facts, .out = out};
	int err;

	code_table_init(&perfetto.code, profile, CODE_BY_LINE);
	groups_init(&perfetto.groups, profile, &(struct grouping){.keys = GROUP_BY_THREAD});
	choose_quantum(&perfetto);
	err = put_processes(&perfetto);
	for (uint32_t i = 0; !err && i < profile->stacks.stack_count; i++)
		err = put_stack(&perfetto, i);
	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = put_row(&perfetto, i);
	return err ? err : flush_some(&perfetto, 0);
}
