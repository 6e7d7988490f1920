/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as gzip'd pprof, element by element: the whole message is never in memory. */
#include "pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>

#include "pprof/gzip_sink.h"
#include "pprof/pprof_code.h"
#include "pprof/pprof_fields.h"
#include "pprof/pprof_strings.h"
#include "profile.pb-c.h"
#include "profile/profile_data.h"

struct pprof_writer {
	const struct profile *profile;
	struct gzip_sink *sink;
	struct pprof_strings strings;
	struct pprof_code code;
	uint64_t *location_id; /* of one sample */
	uint32_t *key, *unit;  /* texts of profile.key */
};

static void writer_release(struct pprof_writer *writer)
{
	pprof_code_release(&writer->code);
	pprof_strings_release(&writer->strings);
	gzip_sink_free(writer->sink);
	free(writer->location_id);
	free(writer->key);
	free(writer->unit);
}

static size_t deepest_stack(const struct profile *profile)
{
	size_t deepest = 0;

	for (uint32_t i = 0; i < profile->stacks.stack_count; i++)
		if (profile->stacks.stack[i].count > deepest)
			deepest = profile->stacks.stack[i].count;
	return deepest;
}

static int add_keys(struct pprof_writer *writer)
{
	const struct profile *profile = writer->profile;
	int err = 0;

	for (uint32_t i = 0; !err && i < profile->key_count; i++) {
		err = pprof_strings_add_text(&writer->strings, profile->key[i].name,
					     &writer->key[i]);
		if (!err)
			err = pprof_strings_add_text(&writer->strings, profile->key[i].unit,
						     &writer->unit[i]);
	}
	return err;
}

static int writer_init(struct pprof_writer *writer, const struct profile *profile,
		       enum gzip_effort effort)
{
	int err;

	writer->profile = profile;
	err = gzip_sink_new(effort, &writer->sink);
	if (!err)
		err = pprof_strings_init(&writer->strings, profile->strings);
	if (!err)
		err = pprof_code_init(&writer->code, profile, &writer->strings, writer->sink);
	if (err)
		return err;
	writer->location_id = calloc(deepest_stack(profile) + 1, sizeof(*writer->location_id));
	writer->key = calloc((size_t)profile->key_count + 1, sizeof(*writer->key));
	writer->unit = calloc((size_t)profile->key_count + 1, sizeof(*writer->unit));
	if (!writer->location_id || !writer->key || !writer->unit)
		return -ENOMEM;
	return add_keys(writer);
}

static int value_type_message(struct pprof_writer *writer, const struct profile_value_type *type,
			      Perftools__Profiles__ValueType *ret_message)
{
	uint32_t name, unit;
	int err = pprof_strings_add_text(&writer->strings, type->type ? type->type : "", &name);

	if (!err)
		err = pprof_strings_add_text(&writer->strings, type->unit ? type->unit : "", &unit);
	if (err)
		return err;
	perftools__profiles__value_type__init(ret_message);
	ret_message->type = name;
	ret_message->unit = unit;
	return 0;
}

static int put_sample_types(struct pprof_writer *writer)
{
	const struct profile_options *options = &writer->profile->options;
	Perftools__Profiles__ValueType message;

	for (size_t i = 0; i < options->value_count; i++) {
		int err = value_type_message(writer, &options->value_type[i], &message);

		if (!err)
			err = gzip_sink_put_message(writer->sink, PPROF_PROFILE_SAMPLE_TYPE,
						    &message.base);
		if (err)
			return err;
	}
	return 0;
}

/* Writes the fields of Profile that are not lists of messages or strings. */
static int put_window(struct pprof_writer *writer)
{
	const struct profile *profile = writer->profile;
	const struct profile_options *options = &profile->options;
	Perftools__Profiles__Profile message = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType period_type;
	OWNED_MEM int64_t *comment = calloc((size_t)profile->comment_count + 1, sizeof(*comment));
	const char *default_type = options->default_value_type ? options->default_value_type : "";
	uint32_t text;
	int err;

	if (!comment)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->comment_count; i++) {
		err = pprof_strings_add(&writer->strings, profile->comment[i], &text);
		if (err)
			return err;
		comment[i] = text;
	}
	err = value_type_message(writer, &options->period_type, &period_type);
	if (!err)
		err = pprof_strings_add_text(&writer->strings, default_type, &text);
	if (err)
		return err;
	message.default_sample_type = text;
	message.time_nanos = (int64_t)options->start_wall_ns;
	message.duration_nanos = (int64_t)options->duration_ns;
	message.period_type = &period_type;
	message.period = options->period;
	message.n_comment = profile->comment_count;
	message.comment = comment;
	return gzip_sink_put_fields(writer->sink, &message.base);
}

/* Converts labels; *ret_count is their number.  Labels with an empty text are left out, because a
 * reader would take them for the number 0. */
static int label_messages(struct pprof_writer *writer, const struct label_set *set,
			  Perftools__Profiles__Label *message, size_t *ret_count)
{
	size_t count = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		const struct stored_label *label = &writer->profile->label[set->first + i];
		uint32_t text = 0;

		if (!label->is_number) {
			int err =
				pprof_strings_add(&writer->strings, (uint32_t)label->value, &text);

			if (err)
				return err;
			if (!text)
				continue;
		}
		perftools__profiles__label__init(&message[count]);
		message[count].key = writer->key[label->key];
		message[count].str = text;
		message[count].num = label->is_number ? label->value : 0;
		message[count].num_unit = writer->unit[label->key];
		count++;
	}
	*ret_count = count;
	return 0;
}

static int put_sample(struct pprof_writer *writer, uint32_t index)
{
	const struct profile *profile = writer->profile;
	const struct profile_row *row = &profile->row[index];
	const struct stack *stack = &profile->stacks.stack[row->stack];
	Perftools__Profiles__Sample message = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Label label[PROFILE_MAX_LABELS];
	Perftools__Profiles__Label *labels[PROFILE_MAX_LABELS];
	int64_t value[PROFILE_MAX_VALUES];
	int err = label_messages(writer, &profile->label_set[row->label_set], label,
				 &message.n_label);

	if (err)
		return err;
	for (size_t i = 0; i < message.n_label; i++)
		labels[i] = &label[i];
	for (uint32_t i = 0; i < stack->count; i++)
		writer->location_id[i] = (uint64_t)stack->location[i] + 1;
	for (size_t i = 0; i < profile->options.value_count; i++)
		value[i] = profile_row_values(profile, index)[i];
	message.n_location_id = stack->count;
	message.location_id = writer->location_id;
	message.n_value = profile->options.value_count;
	message.value = value;
	message.label = labels;
	return gzip_sink_put_message(writer->sink, PPROF_PROFILE_SAMPLE, &message.base);
}

static int put_string_table(struct pprof_writer *writer)
{
	const struct intern *table = writer->strings.table;

	for (uint32_t i = 0; i < intern_count(table); i++) {
		size_t size;
		const char *text = intern_get(table, i, &size);
		int err = gzip_sink_put_bytes(writer->sink, PPROF_PROFILE_STRING_TABLE, text, size);

		if (err)
			return err;
	}
	return 0;
}

static int put_all(struct pprof_writer *writer)
{
	const struct profile *profile = writer->profile;
	int err = put_sample_types(writer);

	if (!err)
		err = put_window(writer);
	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = put_sample(writer, i);
	if (!err)
		err = pprof_code_write(&writer->code);
	/* Last, because all others add texts. */
	return err ? err : put_string_table(writer);
}

static int encode(const struct profile *profile, enum gzip_effort effort, void **ret_bytes,
		  size_t *ret_size)
{
	CLEANUP(writer_release) struct pprof_writer writer = {0};
	int err = writer_init(&writer, profile, effort);

	if (!err)
		err = put_all(&writer);
	return err ? err : gzip_sink_finish(writer.sink, ret_bytes, ret_size);
}

int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size)
{
	return encode(profile, GZIP_FAST, ret_bytes, ret_size);
}

int profile_encode_pprof_small(const struct profile *profile, void **ret_bytes, size_t *ret_size)
{
	return encode(profile, GZIP_SMALL, ret_bytes, ret_size);
}
