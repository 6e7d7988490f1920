/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/record.h"

#include <errno.h>
#include <string.h>

#include "base/kinds.h"
#include "profile/profile_data.h"

int record_label(struct record *record, struct intern *strings, const char *key, const char *text)
{
	struct profile_sample *sample = &record->sample;
	struct profile_label *label = &sample->label[sample->label_count];

	if (!text[0] || sample->label_count == PROFILE_MAX_LABELS)
		return 0;
	*label = (struct profile_label){.key = key};
	sample->label_count++;
	return intern_string(strings, text, &label->string);
}

int record_begin(struct record *record, struct intern *strings, enum pp_profile kind,
		 struct pp_process_id id, const char *comm)
{
	int err;

	*record = (struct record){.kind = kind, .id = id, .is_of_device = !id.tgid && !comm[0]};
	if (id.tgid)
		record->sample.label[record->sample.label_count++] =
			(struct profile_label){.key = "pid", .number = id.tgid, .is_number = 1};
	err = record_label(record, strings, "comm", comm);
	record->own_labels = record->sample.label_count;
	if (!err)
		err = intern_string(strings, comm, &record->name);
	record_next(record);
	return err;
}

void record_next(struct record *record)
{
	memset(record->sample.value, 0, sizeof(record->sample.value));
	record->sample.label_count = record->own_labels;
	record->frame = (struct frame){.kind = FRAME_MARKER, .name = record->name};
}

int record_about(struct record *record, struct intern *strings, const char *key, const char *text)
{
	int err = record_label(record, strings, key, text);

	return err ? err : intern_string(strings, text, &record->frame.name);
}

int record_make_other(struct record *record, struct intern *strings)
{
	struct profile_sample *sample = &record->sample;
	const size_t rest = sample->label_count - record->own_labels;
	const bool is_about_all = record->frame.name == record->name;
	struct profile_label *label = sample->label;
	int err;

	if (!record->id.tgid)
		return 0;
	err = intern_string(strings, RECORD_OTHERS, &record->name);
	/* A process has at least its pid. */
	memmove(label + 1, label + record->own_labels, rest * sizeof(*label));
	label[0] = (struct profile_label){.key = "comm", .string = record->name};
	sample->label_count = rest + 1;
	record->own_labels = 1;
	record->id = (struct pp_process_id){};
	if (is_about_all)
		record->frame.name = record->name;
	return err;
}

int record_values_at(const struct profile *profile, enum pp_profile kind)
{
	const struct profile_options *options = &profile->options;
	const char *first = kind_get(kind)->value[0].type;

	for (size_t i = 0; i + kind_value_count(kind) <= options->value_count; i++)
		if (!strcmp(options->value_type[i].type, first))
			return (int)i;
	return -ENOENT;
}

int profile_add_record(struct profile *profile, const struct record *record)
{
	struct profile_sample sample = record->sample;
	const int at = record_values_at(profile, record->kind);

	if (at < 0)
		return 0;
	memset(sample.value, 0, sizeof(sample.value));
	memcpy(&sample.value[at], record->sample.value,
	       kind_value_count(record->kind) * sizeof(sample.value[0]));
	sample.frame = &record->frame;
	sample.frame_count = 1;
	return profile_add(profile, &sample);
}

static int append_row(struct profile *profile, enum pp_profile kind, const struct profile *records,
		      uint32_t number)
{
	const struct profile_row *row = &records->row[number];
	const struct label_set *set = &records->label_set[row->label_set];
	const struct stack *stack = &records->stacks.stack[row->stack];
	struct record record = {.kind = kind, .frame.kind = FRAME_MARKER};
	struct profile_sample *sample = &record.sample;
	int err = 0;

	memcpy(sample->value, profile_row_values(records, number),
	       kind_value_count(kind) * sizeof(sample->value[0]));
	for (uint32_t i = 0; i < set->count && i < PROFILE_MAX_LABELS && !err; i++) {
		const struct stored_label *from = &records->label[set->first + i];
		struct profile_label *label = &sample->label[sample->label_count++];

		*label = (struct profile_label){.key = records->key[from->key].name,
						.number = from->value,
						.is_number = (uint8_t)from->is_number,
						.unit = records->key[from->key].unit};
		if (!from->is_number)
			err = intern_string(profile->strings,
					    intern_get(records->strings, (uint32_t)from->value,
						       NULL),
					    &label->string);
	}
	if (!err && stack->count)
		err = intern_string(profile->strings,
				    intern_get(records->strings,
					       records->stacks.location[stack->location[0]].name,
					       NULL),
				    &record.frame.name);
	return err ? err : profile_add_record(profile, &record);
}

int profile_append_records(struct profile *profile, enum pp_profile kind,
			   const struct profile *records)
{
	int err = profile_add_values(profile, records->options.value_type, kind_value_count(kind));

	for (uint32_t i = 0; i < records->row_count && !err; i++)
		err = append_row(profile, kind, records, i);
	return err;
}

const char *record_text(const struct profile *profile, uint32_t row, const char *key)
{
	const uint32_t text = profile_label_text(profile, profile->row[row].label_set, key);

	return intern_get(profile->strings, text, NULL);
}

int64_t record_number(const struct profile *profile, uint32_t row, const char *key)
{
	return profile_label_number(profile, profile->row[row].label_set, key);
}
