/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_data.h"

/* How many independent waits a sum rests on: our reader's errors, nothing that adds up. */
#define OWN_VALUE_TYPE "effective"

static bool is_own(const struct profile_value_type *type)
{
	return !strcmp(type->type, OWN_VALUE_TYPE);
}

static int begin(const struct profile *from, const struct push_part_facts *facts,
		 struct profile **ret_part)
{
	struct profile_options options = from->options;
	OWNED(profile) struct profile *part = NULL;
	uint32_t ignored;
	int err;

	options.value_count = 0;
	for (size_t i = 0; i < from->options.value_count; i++)
		if (!is_own(&from->options.value_type[i]))
			options.value_type[options.value_count++] = from->options.value_type[i];
	if (!options.value_count)
		return -EBADMSG;
	/* Parca shows nothing of a store with a single profile that has none. */
	if (!options.period_type.type || !options.period_type.type[0])
		options.period_type = options.value_type[0];
	if (options.period <= 0)
		options.period = 1;
	options.start_wall_ns = facts->start_wall_ns;
	options.duration_ns = facts->duration_ns;
	err = profile_new(&options, from->strings, &part);
	/* In the same order, as frames refer to them by number. */
	for (uint32_t i = 0; !err && i < from->module_count; i++)
		err = profile_add_module(part, &from->module[i].module, &ignored);
	if (err)
		return err;
	*ret_part = TAKE(part);
	return 0;
}

static int add_stack(const struct profile *from, uint32_t stack, struct profile *part,
		     uint32_t *ret_stack)
{
	const struct stack *old = &from->stacks.stack[stack];
	OWNED_MEM uint32_t *location = calloc((size_t)old->count + 1, sizeof(*location));
	int err = location ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < old->count; i++)
		err = profile_add_location(part, &from->stacks.location[old->location[i]],
					   &location[i]);
	return err ? err : profile_add_stack(part, location, old->count, ret_stack);
}

static int add_labels(const struct push_series *series, const struct push_part_facts *facts,
		      struct profile *part, uint32_t *ret_set)
{
	struct profile_label label[1 + PUSH_LABELS_MAX];
	size_t count = 0;

	for (size_t i = 0; facts->label_key && i < facts->label_count; i++)
		if (series->value[i])
			label[count++] = (struct profile_label){.key = facts->label_key[i],
								.string = series->value[i]};
	return profile_add_label_set(part, label, count, ret_set);
}

int push_part_add(const struct profile *from, const struct push_series *series, uint32_t first,
		  uint32_t count, const struct push_part_facts *facts, struct profile **part)
{
	uint32_t set, stack, ignored;
	int err = *part ? 0 : begin(from, facts, part);

	if (!err)
		err = add_labels(series, facts, *part, &set);
	for (uint32_t i = first; !err && i < first + count; i++) {
		const int64_t *value = profile_row_values(from, series->row[i]);
		int64_t kept[PROFILE_MAX_VALUES] = {0};
		size_t kept_count = 0;

		for (size_t k = 0; k < from->options.value_count; k++)
			if (!is_own(&from->options.value_type[k]))
				kept[kept_count++] = value[k];
		err = add_stack(from, from->row[series->row[i]].stack, *part, &stack);
		if (!err)
			err = profile_add_row(*part, stack, set, kept, &ignored);
	}
	return err;
}
