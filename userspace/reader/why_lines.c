/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/text.h"
#include "reader/why_processes.h"

static int by_number(uint32_t left, uint32_t right)
{
	return (left > right) - (left < right);
}

static int compare_codes(const void *left, const void *right)
{
	const struct why_weight *a = left, *b = right;
	int order = by_number(a->process, b->process);

	if (!order)
		order = by_number(a->finding, b->finding);
	return order ? order : by_number(a->code, b->code);
}

static int compare_weights(const void *left, const void *right)
{
	const struct why_weight *a = left, *b = right;

	if (a->weight > b->weight || a->weight < b->weight)
		return a->weight > b->weight ? -1 : 1;
	return by_number(a->code, b->code);
}

/* Sums up what is of the same code in a sorted list.  Returns how many are left. */
static uint32_t sum_up(struct why_weight *weight, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (kept && !compare_codes(&weight[kept - 1], &weight[i]))
			weight[kept - 1].weight += weight[i].weight;
		else
			weight[kept++] = weight[i];
	}
	return kept;
}

static int set_line(struct why_line *line, const struct code_table *table, const struct code *code)
{
	char place[TEXT_PLACE_BYTES];

	*line = (struct why_line){.name = strdup(code->name ? code_text(table, code->name)
							    : "[unknown]"),
				  .file = strdup(code_text(table, code->file)),
				  .place = strdup(text_place(table, code, place)),
				  .line = code_line(code)};
	return line->name && line->file && line->place ? 0 : -ENOMEM;
}

static int take_group(struct why_lines *lines, const struct code_table *code,
		      struct why_weight *weight, uint32_t count)
{
	double all = 0;
	int err = 0;

	for (uint32_t i = 0; i < count; i++)
		all += weight[i].weight;
	qsort(weight, count, sizeof(*weight), compare_weights);
	for (uint32_t i = 0; i < count && lines->count < WHY_LINES && !err; i++) {
		struct why_line *line = &lines->line[lines->count++];

		err = set_line(line, code, &code->code[weight[i].code]);
		line->share = weight[i].weight / all;
	}
	return err;
}

int why_take_lines(struct why_processes *processes, const struct code_table *code,
		   struct why_weight *weight, uint32_t count)
{
	int err = 0;

	if (!count)
		return 0;
	qsort(weight, count, sizeof(*weight), compare_codes);
	count = sum_up(weight, count);
	for (uint32_t i = 0, next; i < count && !err; i = next) {
		for (next = i + 1; next < count && weight[next].process == weight[i].process &&
				   weight[next].finding == weight[i].finding;
		     next++)
			;
		err = take_group(&processes->process[weight[i].process].lines[weight[i].finding],
				 code, &weight[i], next - i);
	}
	return err;
}
