/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts a pprof file's samples to rows of the profile. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "pprof/profile_reader.h"

#define MIB (1ULL << 20)

/* ---- memory ---- */

size_t profile_reader_bytes(const struct profile_reader *reader)
{
	return sizeof(*reader) + reader->unpacked.capacity + pprof_tables_bytes(&reader->tables) +
	       intern_bytes_used(reader->strings) +
	       (reader->profile ? profile_bytes(reader->profile) : 0) +
	       reader->function_capacity * sizeof(*reader->function) +
	       reader->resolved_capacity * sizeof(*reader->resolved) +
	       reader->stack_capacity * sizeof(*reader->stack) +
	       reader->label_set_capacity * sizeof(*reader->label_set) +
	       index_table_bytes(&reader->label_set_index) +
	       (reader->delta_capacity + reader->sorted_capacity) * sizeof(*reader->delta) +
	       reader->level_capacity * sizeof(*reader->level) +
	       reader->waiting_capacity * sizeof(*reader->waiting) +
	       reader->undo_capacity * sizeof(*reader->undo) +
	       reader->window_capacity * sizeof(*reader->window) + reader->verdict_capacity +
	       reader->clean_capacity;
}

/* Returns what is never passed, however many bytes the files have. */
static size_t most_memory(const struct profile_read_options *options)
{
	return options->memory_max && options->memory_max < PROFILE_READ_MEMORY_MAX
		       ? options->memory_max
		       : PROFILE_READ_MEMORY_MAX;
}

size_t reader_memory_max(const struct profile_read_options *options, uint64_t unpacked_bytes)
{
	const size_t most = most_memory(options);

	if (most < PROFILE_READ_MEMORY_FREE ||
	    unpacked_bytes > (most - PROFILE_READ_MEMORY_FREE) / PROFILE_READ_MEMORY_FACTOR)
		return most;
	return PROFILE_READ_MEMORY_FREE + unpacked_bytes * PROFILE_READ_MEMORY_FACTOR;
}

int reader_too_big(struct profile_reader *reader)
{
	reader->is_full = true;
	snprintf(reader->too_big, sizeof(reader->too_big),
		 "needs more than %llu MiB of memory: 64 MiB and %u times the unpacked size are "
		 "the most that is taken, and never more than %llu MiB",
		 (unsigned long long)reader->memory_max / MIB, PROFILE_READ_MEMORY_FACTOR,
		 most_memory(&reader->options) / MIB);
	return reader_fail(reader, -EFBIG, reader->too_big);
}

bool profile_reader_is_full(const struct profile_reader *reader)
{
	return reader->is_full;
}

static int check_memory(struct profile_reader *reader)
{
	return profile_reader_bytes(reader) > reader->memory_max ? reader_too_big(reader) : 0;
}

/* ---- levels and maxima ---- */

/* Puts the windows of sample types together that are not summed up: the last window's values of
 * levels, as what is held at the end of two windows is not held twice, and the most of maxima. */

void reader_find_levels(struct profile_reader *reader, const struct profile_options *options)
{
	for (size_t i = 0; i < options->value_count; i++) {
		const enum pp_merge merge =
			kind_value_merge(options->kind, options->value_type[i].type);

		reader->levels |= merge == PP_MERGE_LAST ? 1U << i : 0;
		reader->maxima |= merge == PP_MERGE_MAX ? 1U << i : 0;
	}
}

static bool is_level(const struct profile_reader *reader, size_t value_index)
{
	/* The windows of a file that is merged stay apart. */
	return !reader->adds_window && (reader->levels | reader->maxima) & 1U << value_index;
}

/* Notes the levels among a sample's values.  Returns 0 or -ENOMEM. */
static int take_levels(struct profile_reader *reader, uint32_t row, uint32_t window,
		       const int64_t *value)
{
	reader->window[window].has_rows = true;
	for (size_t i = 0; (reader->levels | reader->maxima) >> i; i++) {
		if (!value[i] || !is_level(reader, i))
			continue;
		if (ARRAY_RESERVE(reader->level, reader->level_count, reader->level_capacity))
			return -ENOMEM;
		reader->level[reader->level_count++] =
			(struct reader_level){.row = row,
					      .window = window,
					      .value_index = (uint32_t)i,
					      .value = value[i]};
	}
	return 0;
}

/* Makes the levels among the values 0, which are not added up. */
static void leave_levels_out(const struct profile_reader *reader, int64_t *value)
{
	for (size_t i = 0; (reader->levels | reader->maxima) >> i; i++)
		if (is_level(reader, i))
			value[i] = 0;
}

static void clear_levels(const struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const size_t values = profile->options.value_count;

	for (size_t i = 0; i < values; i++) {
		if (!is_level(reader, i) || !(reader->levels & 1U << i))
			continue;
		for (uint32_t row = 0; row < profile->row_count; row++)
			profile->value[(size_t)row * values + i] = 0;
	}
}

static uint64_t last_start_ns(const struct profile_reader *reader)
{
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < reader->window_count; i++) {
		const struct reader_window *window = &reader->window[i];

		if (window->has_rows && window->mark.start_wall_ns > last_ns)
			last_ns = window->mark.start_wall_ns;
	}
	return last_ns;
}

static int compare_levels(const void *left, const void *right)
{
	const struct reader_level *a = left, *b = right;

	if (a->value_index != b->value_index)
		return a->value_index < b->value_index ? -1 : 1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return (a->window > b->window) - (a->window < b->window);
}

/* Sums up what rows that are one have in one window, and keeps the most of all windows. */
static void finish_maxima(struct profile_reader *reader)
{
	const struct profile *profile = reader->profile;
	int64_t sum = 0;

	if (!reader->maxima || !reader->level_count)
		return;
	qsort(reader->level, reader->level_count, sizeof(*reader->level), compare_levels);
	for (size_t i = 0; i < reader->level_count; i++) {
		const struct reader_level *level = &reader->level[i];
		int64_t *value = &profile->value[(size_t)level->row * profile->options.value_count +
						 level->value_index];

		if (!(reader->maxima & 1U << level->value_index))
			continue;
		sum = i && !compare_levels(level - 1, level) ? add_saturating(sum, level->value)
							     : level->value;
		if (sum > *value)
			*value = sum;
	}
}

void reader_finish_levels(struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const uint64_t last_ns = reader->levels ? last_start_ns(reader) : 0;

	if (last_ns > reader->levels_start_ns) {
		clear_levels(reader);
		reader->levels_start_ns = last_ns;
	}
	for (size_t i = 0; i < reader->level_count; i++) {
		const struct reader_level *level = &reader->level[i];
		int64_t *value = &profile->value[(size_t)level->row * profile->options.value_count +
						 level->value_index];

		if (reader->levels & 1U << level->value_index &&
		    reader->window[level->window].mark.start_wall_ns == reader->levels_start_ns)
			*value = add_saturating(*value, level->value);
	}
	finish_maxima(reader);
	reader->level_count = 0;
}

struct raw_sample {
	struct wire stack; /* its locations; NULL: not in one piece */
	uint32_t stack_pieces;
	int64_t value[PROFILE_MAX_VALUES]; /* in the file's order */
	uint32_t value_count;
	struct raw_label label[PROFILE_MAX_LABELS];
	uint32_t label_count;
};

/* ---- labels ---- */

static bool is_kept(const struct profile_reader *reader, const char *key)
{
	const char *const *kept = reader->options.keep_labels;

	if (!kept || !strcmp(key, PROFILE_BASE_LABEL))
		return true;
	while (*kept && strcmp(*kept, key))
		kept++;
	return *kept;
}

static int read_label(struct profile_reader *reader, const struct raw_label *raw,
		      struct profile_label *ret_label)
{
	struct profile_label label = {.is_number = !raw->str, .number = (int64_t)raw->num};
	uint32_t key, unit;
	int err = reader_text(reader, raw->key, &key);

	if (!err)
		err = reader_text(reader, raw->str, &label.string);
	if (!err)
		err = reader_text(reader, raw->unit, &unit);
	if (err)
		return err;
	label.key = intern_get(reader->strings, key, NULL);
	label.unit = intern_get(reader->strings, unit, NULL);
	*ret_label = label;
	return 0;
}

static int add_window_label(struct profile_reader *reader, struct profile_label *label,
			    size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(label[i].key, WINDOW_LABEL))
			return reader_fail(reader, -EBADMSG, "has the label `window` already");
	if (*count == PROFILE_MAX_LABELS)
		return reader_fail(reader, -EBADMSG, "a sample has too many labels");
	label[(*count)++] = (struct profile_label){.key = WINDOW_LABEL,
						   .unit = WINDOW_LABEL_UNIT,
						   .is_number = 1,
						   .number = (int64_t)reader->window_to_add};
	return 0;
}

static int add_label_set(struct profile_reader *reader, const struct raw_label *raw, size_t count,
			 uint32_t *ret_set)
{
	struct profile_label label[PROFILE_MAX_LABELS] = {0};
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = read_label(reader, &raw[i], &label[i]);
		if (err)
			return err;
	}
	if (reader->options.wants_labels &&
	    !reader->options.wants_labels(reader->options.context, reader->strings, label, count)) {
		*ret_set = LABEL_SET_UNWANTED;
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		if (is_kept(reader, label[i].key))
			label[kept++] = label[i];
	if (reader->adds_window) {
		err = add_window_label(reader, label, &kept);
		if (err)
			return err;
	}
	return profile_add_label_set(reader->profile, label, kept, ret_set);
}

static bool label_set_equal(const void *context, uint32_t index, const void *key)
{
	const struct profile_reader *reader = context;

	return reader->label_set[index].hash == *(const uint64_t *)key;
}

/* Finds the label set of a sample's labels.  Returns 0 and a set or LABEL_SET_UNWANTED; -EBADMSG,
 * -ENOMEM. */
static int find_label_set(struct profile_reader *reader, const struct raw_label *raw, size_t count,
			  uint32_t *ret_set)
{
	const uint64_t hash = XXH3_64bits(raw, count * sizeof(*raw));
	uint32_t at = reader->label_set_count;

	if (!index_table_find(&reader->label_set_index, (uint32_t)hash, label_set_equal, reader,
			      &hash, &at)) {
		struct read_label_set set = {.hash = hash};
		int err = add_label_set(reader, raw, count, &set.set);

		if (err)
			return err;
		if (INDEX_RESERVE(&reader->label_set_index, (uint32_t)hash, reader->label_set, at,
				  reader->label_set_capacity))
			return reader_fail(reader, -ENOMEM, "not enough memory");
		reader->label_set[reader->label_set_count++] = set;
	}
	*ret_set = reader->label_set[at].set;
	return 0;
}

/* ---- samples ---- */

static int add_value(struct raw_sample *sample, uint64_t value)
{
	if (sample->value_count == PROFILE_MAX_VALUES)
		return -EBADMSG;
	sample->value[sample->value_count++] = (int64_t)value;
	return 0;
}

static int take_locations(struct profile_reader *reader, struct wire packed)
{
	uint64_t id;
	int err = 0;

	while (!err && packed.at < packed.end) {
		if (!wire_varint(&packed, &id))
			return reader_fail(reader, -EBADMSG, "broken: a sample does not parse");
		err = reader_add_location(reader, id);
	}
	return err;
}

static int take_values(struct raw_sample *sample, struct wire packed)
{
	uint64_t value;
	int err = 0;

	while (!err && packed.at < packed.end)
		err = wire_varint(&packed, &value) ? add_value(sample, value) : -EBADMSG;
	return err;
}

/* Labels after the 32nd are left out. */
static int take_label(struct raw_sample *sample, struct wire message)
{
	struct raw_label label = {0};
	uint64_t *const place[] = {NULL, &label.key, &label.str, &label.num, &label.unit};
	int err = wire_numbers(message, place, ARRAY_SIZE(place));

	if (!err && sample->label_count < PROFILE_MAX_LABELS)
		sample->label[sample->label_count++] = label;
	return err;
}

static int take_field(struct profile_reader *reader, struct raw_sample *sample,
		      const struct wire_field *field)
{
	switch (field->number) {
	case 1:
		if (field->is_bytes)
			return take_locations(reader, field->bytes);
		return reader_add_location(reader, field->value);
	case 2:
		if (field->is_bytes)
			return take_values(sample, field->bytes);
		return add_value(sample, field->value);
	case 3:
		return field->is_bytes ? take_label(sample, field->bytes) : -EBADMSG;
	default:
		return 0;
	}
}

/* Reads the labels first, so that the stack of an unwanted sample need not be resolved.  They
 * follow the stack in the message, which is therefore read twice; that costs less than resolving a
 * stack. */
static int parse_labels_and_values(struct raw_sample *sample, struct wire message)
{
	struct wire_field field;
	int more, err = 0;

	sample->value_count = sample->label_count = sample->stack_pieces = 0;
	while (!err && (more = wire_next(&message, &field)) > 0) {
		if (field.number != 1) {
			err = take_field(NULL, sample, &field);
			continue;
		}
		sample->stack_pieces += field.is_bytes ? 1 : 2;
		sample->stack = field.bytes;
	}
	return err ? err : more;
}

static int parse_stack(struct profile_reader *reader, struct raw_sample *sample,
		       struct wire message)
{
	struct wire_field field;
	int err = 0;

	reader->stack_count = 0;
	while (!err && wire_next(&message, &field) > 0)
		if (field.number == 1)
			err = take_field(reader, sample, &field);
	if (!err && !reader->stack_count && reader->options.python_only)
		err = reader_add_no_python(reader);
	return err;
}

/* Finds the stack of a sample.  In a merged file most samples have that of the one before. */
static int find_stack(struct profile_reader *reader, struct raw_sample *sample, struct wire message,
		      uint32_t *ret_stack)
{
	const struct wire *last = &reader->last_stack;
	const size_t size = (size_t)(sample->stack.end - sample->stack.at);
	int err;

	if (reader->options.drop_stacks)
		return profile_add_stack(reader->profile, NULL, 0, ret_stack)
			       ? reader_fail(reader, -ENOMEM, "not enough memory")
			       : 0;
	if (sample->stack_pieces == 1 && last->at && (size_t)(last->end - last->at) == size &&
	    !memcmp(last->at, sample->stack.at, size)) {
		*ret_stack = reader->last_stack_id;
		return 0;
	}
	err = parse_stack(reader, sample, message);
	if (err)
		return err;
	if (profile_add_stack(reader->profile, reader->stack, reader->stack_count, ret_stack))
		return reader_fail(reader, -ENOMEM, "not enough memory");
	reader->last_stack = sample->stack_pieces == 1 ? sample->stack : (struct wire){0};
	reader->last_stack_id = *ret_stack;
	return 0;
}

static int stack_is_wanted(struct profile_reader *reader, uint32_t stack, bool *ret_wanted)
{
	if (!reader->options.wants_stack) {
		*ret_wanted = true;
		return 0;
	}
	if (stack >= reader->verdict_capacity &&
	    ARRAY_EXTEND(reader->verdict, (size_t)stack * 2 + 64, reader->verdict_capacity))
		return reader_fail(reader, -ENOMEM, "not enough memory");
	if (reader->verdict[stack] == STACK_NOT_ASKED)
		reader->verdict[stack] =
			reader->options.wants_stack(reader->options.context, reader->profile, stack)
				? STACK_WANTED
				: STACK_UNWANTED;
	*ret_wanted = reader->verdict[stack] == STACK_WANTED;
	return 0;
}

static int note_undo(struct profile_reader *reader, uint32_t row, const int64_t *value)
{
	const size_t values = reader->profile->options.value_count;

	for (size_t i = 0; i <= values; i++) {
		if (ARRAY_RESERVE(reader->undo, reader->undo_count, reader->undo_capacity))
			return -ENOMEM;
		reader->undo[reader->undo_count++] = i ? value[i - 1] : (int64_t)row;
	}
	return 0;
}

void reader_undo_samples(struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const size_t values = profile ? profile->options.value_count : 0;

	for (size_t at = 0; at + values < reader->undo_count; at += values + 1) {
		int64_t *value = &profile->value[(size_t)reader->undo[at] * values];

		for (size_t i = 0; i < values; i++)
			value[i] =
				(int64_t)((uint64_t)value[i] - (uint64_t)reader->undo[at + 1 + i]);
	}
	reader->undo_count = 0;
}

/* Returns whether a sample has a value of a type that the profile has. */
static bool has_value(const struct profile_reader *reader, const struct raw_sample *sample)
{
	for (size_t i = 0; i < reader->profile->options.value_count; i++)
		if (sample->value[reader->type_of_value[i]])
			return true;
	return false;
}

static void add_sign(struct profile_reader *reader, uint32_t label_set, int64_t value)
{
	struct profile_signs *signs = &reader->totals.signs;

	signs->all = add_saturating(signs->all, magnitude_of(value));
	if (value >= 0)
		return;
	signs->has_negative = true;
	if (profile_find_label(reader->profile, label_set, PROFILE_BASE_LABEL))
		signs->base = add_saturating(signs->base, magnitude_of(value));
}

static int add_row(struct profile_reader *reader, const struct raw_sample *sample, uint32_t stack,
		   uint32_t label_set, uint32_t window)
{
	int64_t value[PROFILE_MAX_VALUES], summed[PROFILE_MAX_VALUES];
	uint32_t row;
	int err;

	for (size_t i = 0; i < reader->profile->options.value_count; i++)
		value[i] = summed[i] = sample->value[reader->type_of_value[i]];
	leave_levels_out(reader, summed);
	err = profile_add_row(reader->profile, stack, label_set, summed, &row);
	if (!err)
		err = note_undo(reader, row, summed);
	if (!err)
		err = take_levels(reader, row, window, value);
	if (!err && reader->options.window_done)
		err = ARRAY_RESERVE(reader->delta, reader->delta_count, reader->delta_capacity);
	if (err)
		return reader_fail(reader, err, "not enough memory");
	reader->totals.samples_kept++;
	add_sign(reader, label_set, value[reader->value_index]);
	if (reader->options.window_done)
		reader->delta[reader->delta_count++] = (struct profile_delta){
			.row = row,
			.window = window,
			.value = value[reader->value_index],
			.count = reader->count_index < 0 ? 0 : value[reader->count_index]};
	return 0;
}

static int add_sample(struct profile_reader *reader, struct wire message, struct raw_sample *sample)
{
	uint32_t label_set, stack, window = 0;
	bool wanted;
	int err = 0;

	if (parse_labels_and_values(sample, message))
		return reader_fail(reader, -EBADMSG, "broken: a sample does not parse");
	if (sample->value_count != reader->tables.type_count)
		return reader_fail(reader, -EBADMSG,
				   "broken: a sample has not one value for each sample type");
	if (reader->takes_records && !has_value(reader, sample))
		return 0;
	if (reader->is_merged)
		err = reader_take_window(reader, sample->label, &sample->label_count, &window);
	if (err || !reader->window[window].is_wanted)
		return err;
	err = find_label_set(reader, sample->label, sample->label_count, &label_set);
	if (err)
		return err;
	if (label_set == LABEL_SET_UNWANTED) {
		reader->totals.samples_dropped++;
		return 0;
	}
	err = find_stack(reader, sample, message, &stack);
	if (err)
		return err;
	err = stack_is_wanted(reader, stack, &wanted);
	if (err)
		return err;
	if (!wanted) {
		reader->totals.samples_dropped++;
		return 0;
	}
	return add_row(reader, sample, stack, label_set, window);
}

int reader_add_samples(struct profile_reader *reader)
{
	struct wire wire = {reader->unpacked.byte, reader->unpacked.byte + reader->unpacked.size};
	struct raw_sample sample;
	struct wire_field field;
	int err = 0;

	if (!reader->is_second)
		reader->delta_count = reader->level_count = 0;
	reader->function_count = reader->resolved_count = 0;
	reader->frames_left = reader->unpacked.size * READER_MAX_FRAMES_A_BYTE;
	reader->label_set_count = 0;
	index_table_clear(&reader->label_set_index);
	reader->last_stack = (struct wire){0};
	while (!err && wire_next(&wire, &field) > 0)
		if (field.number == PPROF_PROFILE_SAMPLE) {
			err = add_sample(reader, field.bytes, &sample);
			if (!err)
				err = check_memory(reader);
		}
	return err;
}
