/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/profile_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/kinds.h"
#include "pprof/profile_reader.h"

#define WAIT_PERIOD_NS 1 /* of all kinds but cpu: what is measured is not sampled */

int profile_reader_new(const struct profile_read_options *options,
		       struct profile_reader **ret_reader)
{
	struct profile_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	err = intern_new(&reader->strings);
	if (err) {
		free(reader);
		return err;
	}
	reader->options = *options;
	reader->count_index = -1;
	reader->error = "";
	*ret_reader = reader;
	return 0;
}

void profile_reader_free(struct profile_reader *reader)
{
	if (!reader)
		return;
	profile_free(reader->profile);
	intern_free(reader->strings);
	unpack_release(&reader->unpacked);
	pprof_tables_release(&reader->tables);
	free(reader->function);
	free(reader->resolved);
	free(reader->stack);
	free(reader->label_set);
	index_table_release(&reader->label_set_index);
	free(reader->window);
	free(reader->delta);
	free(reader->sorted);
	free(reader->undo);
	free(reader->level);
	free(reader->waiting);
	free(reader->verdict);
	free(reader->clean);
	free(reader);
}

const char *profile_reader_error(const struct profile_reader *reader)
{
	return reader->error;
}

struct profile *profile_reader_profile(const struct profile_reader *reader)
{
	return reader->profile;
}

unsigned int profile_reader_value_index(const struct profile_reader *reader)
{
	return reader->value_index;
}

int profile_reader_count_index(const struct profile_reader *reader)
{
	return reader->count_index;
}

void profile_reader_totals(const struct profile_reader *reader,
			   struct profile_read_totals *ret_totals)
{
	*ret_totals = reader->totals;
}

/* ---- sample types ---- */

static int text_of(struct profile_reader *reader, uint64_t text, const char **ret_text)
{
	uint32_t string;
	int err = reader_text(reader, text, &string);

	if (!err)
		*ret_text = intern_get(reader->strings, string, NULL);
	return err;
}

static int value_type(struct profile_reader *reader, const struct pprof_value_type *type,
		      struct profile_value_type *ret_type)
{
	int err = text_of(reader, type->type, &ret_type->type);

	return err ? err : text_of(reader, type->unit, &ret_type->unit);
}

/* Chooses the kind by the default sample type: the first kind that has it. */
static const char *guess_kind(const struct profile_options *options)
{
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);

		if (profile_find_value(options, kind->value[kind->default_value].type, NULL) >= 0 ||
		    (i == PP_PROFILE_CPU && profile_find_value(options, PP_CYCLES_TYPE, NULL) >= 0))
			return kind->name;
	}
	return options->value_type[options->value_count - 1].type;
}

static int choose_value(struct profile_reader *reader, const struct profile_options *options)
{
	static const char *const counts[] = {"samples", "sample", "effective", "events",
					     "contentions"};
	const char *wanted = reader->options.sample_type;
	int index = -ENOENT;

	if (!wanted && options->default_value_type[0])
		index = profile_find_value(options, options->default_value_type, NULL);
	if (wanted) {
		index = profile_find_value(options, wanted, NULL);
		if (index < 0)
			return reader_fail(reader, -ENOENT, "has no such sample type");
	}
	/* The last one, as in pprof. */
	reader->value_index =
		index < 0 ? (unsigned int)options->value_count - 1 : (unsigned int)index;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && reader->count_index < 0; i++) {
		index = profile_find_value(options, counts[i], NULL);
		if (index >= 0 && !strcmp(options->value_type[index].unit, "count"))
			reader->count_index = index;
	}
	return 0;
}

static int make_profile(struct profile_reader *reader, const struct profile_options *options)
{
	int err = choose_value(reader, options);

	reader_find_levels(reader, options);
	return err ? err : profile_new(options, reader->strings, &reader->profile);
}

/* Returns whether a file's types can be those of a kind: another tool's file under one of our names
 * must not decide what all that follow have. */
static bool is_of_kind(const struct profile_options *options, const char *name)
{
	enum pp_profile kind;

	return !name || !kind_find(name, strlen(name), &kind) ||
	       profile_find_value(options, kind_get(kind)->value[0].type, NULL) >= 0;
}

/* Leaves only the types of a kind of records, in the order of its table: the file may have them
 * behind those of another kind. */
static int take_records(struct profile_reader *reader, struct profile_options *options,
			enum pp_profile kind)
{
	const struct kind *known = kind_get(kind);
	const struct profile_options all = *options;

	options->value_count = kind_value_count(kind);
	options->default_value_type = known->value[known->default_value].type;
	for (size_t i = 0; i < options->value_count; i++) {
		const int at = profile_find_value(&all, known->value[i].type, NULL);

		if (at < 0)
			return reader_fail(reader, -EPROTO, "has none of these records");
		options->value_type[i] = all.value_type[at];
		reader->type_of_value[i] = (uint32_t)at;
	}
	reader->takes_records = true;
	return 0;
}

static int new_profile(struct profile_reader *reader, const char *kind)
{
	enum pp_profile known;
	const struct pprof_tables *tables = &reader->tables;
	struct profile_options options = {.value_count = tables->type_count,
					  .period = tables->period};
	uint32_t kind_string;
	int err = 0;

	if (tables->type_count > PROFILE_MAX_VALUES)
		return reader_fail(reader, -EBADMSG, "has more than 16 sample types");
	for (uint32_t i = 0; !err && i < tables->type_count; i++) {
		err = value_type(reader, &tables->type[i], &options.value_type[i]);
		reader->type_of_value[i] = i;
	}
	if (!err)
		err = value_type(reader, &tables->period_type, &options.period_type);
	if (!err)
		err = text_of(reader, tables->default_type, &options.default_value_type);
	if (!err && !is_of_kind(&options, kind))
		err = reader_fail(reader, -EPROTO, "is not of the kind that its name says");
	if (!err && kind && kind_find(kind, strlen(kind), &known) && kind_is_record(known))
		err = take_records(reader, &options, known);
	if (!err)
		err = intern_string(reader->strings, kind ? kind : guess_kind(&options),
				    &kind_string);
	if (err)
		return err;
	options.kind = intern_get(reader->strings, kind_string, NULL);
	return make_profile(reader, &options);
}

/* Returns whether a file's type is the one that is wanted, or a part of wall's time. */
static bool is_type(const struct profile_reader *reader, const struct profile_value_type *type,
		    const struct profile_value_type *wanted)
{
	const char *cpu = kind_get(PP_PROFILE_CPU)->value[1].type;
	const char *offcpu = kind_get(PP_PROFILE_OFFCPU)->value[0].type;

	if (strcmp(type->unit, wanted->unit))
		return false;
	if (!strcmp(type->type, wanted->type))
		return true;
	return reader->makes_wall && (!strcmp(type->type, cpu) || !strcmp(type->type, offcpu));
}

/* Finds the sample types in a later file: they must all be there, in any order; further ones are
 * ignored, but not for a merged file, which takes the place of its windows. */
static int match_types(struct profile_reader *reader)
{
	const struct profile_options *options = &reader->profile->options;

	if (reader->tables.type_count > PROFILE_MAX_VALUES)
		return reader_fail(reader, -EBADMSG, "has more than 16 sample types");
	if (reader->adds_window && reader->tables.type_count != options->value_count)
		return reader_fail(reader, -EPROTO, "has other sample types than those before it");
	for (size_t i = 0; i < options->value_count; i++) {
		uint32_t k;

		for (k = 0; k < reader->tables.type_count; k++) {
			struct profile_value_type type;
			int err = value_type(reader, &reader->tables.type[k], &type);

			if (err)
				return err;
			if (is_type(reader, &type, &options->value_type[i]))
				break;
		}
		if (k == reader->tables.type_count)
			return reader_fail(reader, -EPROTO,
					   "is of another kind than the files before it");
		reader->type_of_value[i] = k;
	}
	return 0;
}

/* ---- a file ---- */

static void add_window_times(struct profile_read_totals *totals, const struct window_mark *mark)
{
	uint64_t end_ns;

	totals->windows++;
	if (__builtin_add_overflow(totals->duration_ns, mark->duration_ns, &totals->duration_ns))
		totals->duration_ns = INT64_MAX;
	if (__builtin_add_overflow(mark->start_wall_ns, mark->duration_ns, &end_ns))
		end_ns = INT64_MAX;
	if (mark->start_wall_ns &&
	    (!totals->start_wall_ns || mark->start_wall_ns < totals->start_wall_ns))
		totals->start_wall_ns = mark->start_wall_ns;
	if (mark->start_wall_ns && end_ns > totals->end_wall_ns)
		totals->end_wall_ns = end_ns;
}

static void add_times(struct profile_reader *reader)
{
	struct profile_read_totals *totals = &reader->totals;

	totals->files++;
	totals->bytes += reader->unpacked.packed_size;
	totals->raw_bytes += reader->unpacked.size;
	for (uint32_t i = 0; i < reader->window_count; i++)
		if (reader->window[i].is_wanted)
			add_window_times(totals, &reader->window[i].mark);
	reader->profile->options.start_wall_ns = totals->start_wall_ns;
	reader->profile->options.duration_ns = totals->duration_ns;
}

void profile_reader_set_window(struct profile_reader *reader, uint64_t offset_ms)
{
	reader->adds_window = true;
	reader->window_to_add = offset_ms;
}

/* Adds the file that was unpacked. */
static int add_file(struct profile_reader *reader, const char *kind)
{
	int err;

	reader->memory_max = reader_memory_max(&reader->options,
					       reader->totals.raw_bytes + reader->unpacked.size);
	reader->tables.max_bytes = reader->memory_max;
	err = pprof_tables_read(&reader->tables, reader->unpacked.byte, reader->unpacked.size);
	if (err == -EFBIG)
		return reader_too_big(reader);
	if (err)
		return reader_fail(reader, err, reader->tables.error);
	reader->error = "not enough memory";
	err = reader->profile ? match_types(reader) : new_profile(reader, kind);
	if (!err)
		err = reader->is_second ? reader_compare_windows(reader)
					: reader_list_windows(reader);
	return err ? err : reader_add_samples(reader);
}

static int read_part(struct profile_reader *reader, int fd, const char *kind)
{
	int err = unpack_file(&reader->unpacked, fd, PROFILE_READ_MAX_BYTES);

	if (err)
		return reader_fail(reader, err, reader->unpacked.error);
	return add_file(reader, kind);
}

/* Makes the profile of one of our kinds, before there is a file. */
static int new_empty(struct profile_reader *reader, const char *name)
{
	struct profile_options options = {0};
	const struct kind *kind;
	enum pp_profile number;

	if (!kind_find(name, strlen(name), &number))
		return reader_fail(reader, -EINVAL, "is of a kind that is not known");
	kind = kind_get(number);
	options.kind = kind->name;
	options.value_count = kind_value_count(number);
	for (size_t i = 0; i < options.value_count; i++) {
		options.value_type[i] = (struct profile_value_type){.type = kind->value[i].type,
								    .unit = kind->value[i].unit};
		reader->type_of_value[i] = (uint32_t)i;
	}
	options.default_value_type = kind->value[kind->default_value].type;
	options.period_type = options.value_type[kind->default_value];
	options.period = WAIT_PERIOD_NS;
	return make_profile(reader, &options);
}

static int add_empty_now(struct profile_reader *reader, const struct window_mark *mark)
{
	int err = reader_add_empty_window(reader, mark);

	if (err)
		return err;
	add_window_times(&reader->totals, mark);
	reader->profile->options.start_wall_ns = reader->totals.start_wall_ns;
	reader->profile->options.duration_ns = reader->totals.duration_ns;
	return 0;
}

static int add_waiting(struct profile_reader *reader)
{
	int err = 0;

	for (size_t i = 0; !err && i < reader->waiting_count; i++)
		err = add_empty_now(reader, &reader->waiting[i]);
	reader->waiting_count = 0;
	return err;
}

/* Adds what a file is besides its samples; takes these back when they could not be read. */
static int finish_file(struct profile_reader *reader, const struct profile_read_totals *before,
		       int err)
{
	if (err) {
		reader_undo_samples(reader);
		reader->totals = *before;
		return err;
	}
	reader->profile->signs = reader->totals.signs;
	reader_finish_levels(reader);
	err = add_waiting(reader);
	if (err)
		return err;
	add_times(reader);
	err = reader_add_comments(reader);
	return err ? err : reader_finish_windows(reader);
}

int profile_reader_add(struct profile_reader *reader, int fd, const char *kind)
{
	const struct profile_read_totals before = reader->totals;
	int err;

	reader->undo_count = 0;
	err = read_part(reader, fd, kind);
	return finish_file(reader, &before, err);
}

int profile_reader_again(struct profile_reader **reader, const struct profile_read_options *options,
			 const char *kind)
{
	static const struct profile_read_totals none;
	struct profile_reader *again;
	int err = profile_reader_new(options, &again);

	if (err)
		return err;
	again->unpacked = (*reader)->unpacked;
	(*reader)->unpacked = (struct unpacked){0};
	profile_reader_free(*reader);
	*reader = again;
	return finish_file(again, &none, add_file(again, kind));
}

int profile_reader_add_wall(struct profile_reader *reader, int cpu_fd, int offcpu_fd)
{
	const char *kind = kind_get(PP_PROFILE_WALL)->name;
	const struct profile_read_totals before = reader->totals;
	int err = reader->profile ? 0 : new_empty(reader, kind);

	if (err)
		return err;
	reader->undo_count = 0;
	reader->makes_wall = true;
	if (offcpu_fd >= 0) {
		err = read_part(reader, offcpu_fd, kind);
		reader->is_second = true;
	}
	/* The last one, as its comments are told. */
	if (!err)
		err = read_part(reader, cpu_fd, kind);
	reader->makes_wall = reader->is_second = false;
	for (uint32_t i = 0; !err && i < reader->window_count; i++)
		reader->window[i].mark.period = WAIT_PERIOD_NS;
	return finish_file(reader, &before, err);
}

int profile_reader_add_empty(struct profile_reader *reader, const struct window_mark *mark)
{
	if (reader->profile)
		return add_empty_now(reader, mark);
	if (ARRAY_RESERVE(reader->waiting, reader->waiting_count, reader->waiting_capacity))
		return reader_fail(reader, -ENOMEM, "not enough memory");
	reader->waiting[reader->waiting_count++] = *mark;
	return 0;
}

int profile_reader_end(struct profile_reader *reader, const char *kind)
{
	int err = reader->waiting_count && !reader->profile ? new_empty(reader, kind) : 0;

	return err ? err : add_waiting(reader);
}

/* ---- the list of a merged file's windows alone ---- */

struct lister {
	void (*on_window)(void *context, const struct window_mark *mark);
	void *context;
};

static bool list_window(void *context, const struct window_mark *mark)
{
	const struct lister *lister = context;

	lister->on_window(lister->context, mark);
	return false;
}

int profile_windows_list(int fd, void (*on_window)(void *context, const struct window_mark *mark),
			 void *context)
{
	struct lister lister = {.on_window = on_window, .context = context};
	const struct profile_read_options options = {.wants_window = list_window,
						     .context = &lister};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int err = profile_reader_new(&options, &reader);

	return err ? err : profile_reader_add(reader, fd, NULL);
}
