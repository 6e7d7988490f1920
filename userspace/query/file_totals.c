/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/file_totals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/index_table.h"
#include "base/kinds.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"
#include "query/folder.h"

struct total {
	uint64_t start_ms, duration_ms;
	int64_t value;
};

/* A file, whatever its name is now: one that was merged is renamed once more. */
struct file_key {
	uint64_t device, inode, size, changed_ns;
};

struct known_file {
	struct file_key key;
	struct total *total; /* owned */
	uint32_t count;
	uint32_t call; /* the last one that asked for it */
	bool is_broken;
	char unit[FILE_TOTALS_UNIT_BYTES];
};

struct file_totals {
	struct known_file *file;
	uint32_t count, capacity;
	struct index_table index;
	uint32_t windows; /* of all files */
	uint32_t call;
};

/* One file that is to be summed. */
struct wanted {
	char *path; /* owned */
	uint64_t start_ms, duration_ms;
	struct file_key key;
};

/* One call of file_totals_read(). */
struct reading {
	struct file_totals *totals;
	const struct file_totals_calls *calls; /* NULL: only find what is to be summed */
	struct file_totals_state state;
	struct folder folder;
	struct wanted *wanted;
	uint32_t wanted_count, wanted_capacity;
};

/* ---- what is remembered ---- */

static void free_files(struct file_totals *totals)
{
	for (uint32_t i = 0; i < totals->count; i++)
		free(totals->file[i].total);
	free(totals->file);
	index_table_release(&totals->index);
}

void file_totals_free(struct file_totals *totals)
{
	if (!totals)
		return;
	free_files(totals);
	free(totals);
}

int file_totals_new(struct file_totals **ret_totals)
{
	struct file_totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	*ret_totals = totals;
	return 0;
}

static uint32_t hash(const struct file_key *key)
{
	const uint64_t mixed =
		(key->inode ^ key->changed_ns ^ key->size << 32) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(mixed >> 32);
}

static bool is_equal(const void *context, uint32_t index, const void *wanted)
{
	const struct file_key *a = &((const struct file_totals *)context)->file[index].key;
	const struct file_key *b = wanted;

	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed_ns == b->changed_ns;
}

static struct known_file *find(struct file_totals *totals, const struct file_key *key)
{
	uint32_t index;

	if (!index_table_find(&totals->index, hash(key), is_equal, totals, key, &index))
		return NULL;
	totals->file[index].call = totals->call;
	return &totals->file[index];
}

static int add_file(struct file_totals *totals, const struct known_file *file)
{
	int err = ARRAY_RESERVE(totals->file, totals->count, totals->capacity);

	if (!err)
		err = index_table_add(&totals->index, hash(&file->key), totals->count);
	if (err)
		return err;
	totals->windows += file->count;
	totals->file[totals->count++] = *file;
	return 0;
}

/* Forgets the files that this call has not asked for: deleted ones, and those of other ranges. */
static int forget_others(struct file_totals *totals)
{
	struct file_totals kept = {.call = totals->call};
	int err = 0;

	for (uint32_t i = 0; !err && i < totals->count; i++) {
		struct known_file *file = &totals->file[i];

		if (file->call != totals->call)
			continue;
		err = add_file(&kept, file);
		if (!err)
			file->total = NULL; /* kept has it */
	}
	free_files(totals);
	*totals = kept;
	return err;
}

/* ---- summing one file ---- */

struct summing {
	struct known_file *file;
	const struct wanted *wanted;
	uint32_t capacity;
	uint32_t done; /* windows that have their values */
	int err;
};

static int add_total(struct summing *summing, uint64_t start_ms, uint64_t duration_ms)
{
	struct known_file *file = summing->file;
	int err = ARRAY_RESERVE(file->total, file->count, summing->capacity);

	if (err)
		return err;
	file->total[file->count++] =
		(struct total){.start_ms = start_ms, .duration_ms = duration_ms};
	return 0;
}

/* Notes a window of a merged file by its name's times, which tell it from others. */
static bool note_window(void *context, const struct window_mark *mark)
{
	struct summing *summing = context;

	if (!summing->err)
		summing->err = add_total(summing, mark->start_ms, mark->duration_ms);
	return !summing->err;
}

/* Takes the values, in the order of note_window(); other files have one window, their own. */
static int add_value(void *context, struct profile *profile, const struct profile_window *window)
{
	struct summing *summing = context;
	int err = summing->err;

	(void)profile;
	if (!err && summing->done == summing->file->count)
		err = add_total(summing, summing->wanted->start_ms, summing->wanted->duration_ms);
	if (!err)
		summing->file->total[summing->done++].value = window->total;
	return err;
}

static void note_unit(const struct profile_reader *reader, struct known_file *file)
{
	const struct profile *profile = profile_reader_profile(reader);
	const unsigned int index = profile_reader_value_index(reader);

	if (profile)
		snprintf(file->unit, sizeof(file->unit), "%s",
			 profile->options.value_type[index].unit);
}

/* Returns 0, also when the file is broken, or has gone; -ENOMEM. */
static int sum_file(struct file_totals *totals, const struct wanted *wanted, const char *kind)
{
	static const char *const no_labels[] = {NULL};
	struct known_file file = {.key = wanted->key, .call = totals->call};
	struct summing summing = {.file = &file, .wanted = wanted};
	const struct profile_read_options options = {.keep_labels = no_labels,
						     .drop_addresses = true,
						     .drop_lines = true,
						     .memory_max = FILE_TOTALS_MEMORY_MAX,
						     .wants_window = note_window,
						     .window_done = add_value,
						     .context = &summing};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = open(wanted->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int err;

	if (fd < 0)
		return 0;
	err = profile_reader_new(&options, &reader);
	if (!err)
		err = profile_reader_add(reader, fd, kind);
	if (!err)
		err = summing.err;
	file.is_broken = err && err != -ENOMEM;
	if (!err)
		note_unit(reader, &file);
	if (file.is_broken)
		file.count = 0;
	if (!err || file.is_broken)
		err = add_file(totals, &file);
	if (err)
		free(file.total);
	return err;
}

/* Returns 0 or -ENOMEM; what is left when the budget is spent stays pending. */
static int sum_wanted(struct reading *reading, const char *kind, uint64_t budget_ns)
{
	struct file_totals *totals = reading->totals;
	const uint64_t end_ns = mono_ns() + budget_ns;
	int err = 0;

	if (totals->windows >= FILE_TOTALS_WINDOWS_MAX)
		err = forget_others(totals);
	for (uint32_t i = reading->wanted_count; !err && i > 0; i--) {
		if (totals->windows >= FILE_TOTALS_WINDOWS_MAX || mono_ns() >= end_ns)
			break;
		err = sum_file(totals, &reading->wanted[i - 1], kind);
	}
	return err;
}

/* ---- the files of a range ---- */

/* Notes a file whose windows are not known: to sum it, or to tell that it is pending. */
static int want(struct reading *reading, const char *path, const struct file_key *key)
{
	struct wanted *wanted;
	struct store_file file;
	const char *name = strrchr(path, '/');

	if (!store_file_parse(name ? name + 1 : path, &file))
		return 0;
	if (reading->calls) {
		reading->state.pending++;
		reading->calls->pending(reading->calls->context, file.start_ms, file.duration_ms);
		return 0;
	}
	if (ARRAY_RESERVE(reading->wanted, reading->wanted_count, reading->wanted_capacity))
		return -ENOMEM;
	wanted = &reading->wanted[reading->wanted_count];
	*wanted = (struct wanted){.path = strdup(path),
				  .start_ms = file.start_ms,
				  .duration_ms = file.duration_ms,
				  .key = *key};
	if (!wanted->path)
		return -ENOMEM;
	reading->wanted_count++;
	return 0;
}

static void tell_windows(struct reading *reading, const struct known_file *file)
{
	reading->state.broken += file->is_broken;
	if (file->unit[0])
		memcpy(reading->state.unit, file->unit, sizeof(file->unit));
	for (uint32_t i = 0; i < file->count; i++) {
		const struct total *total = &file->total[i];
		const struct window_mark mark = {.start_ms = total->start_ms,
						 .duration_ms = total->duration_ms};

		if (folder_wants(&reading->folder, &mark) && reading->calls)
			reading->calls->known(reading->calls->context, total->start_ms,
					      total->duration_ms, total->value);
	}
}

static int not_found(struct reading *reading)
{
	if (errno == ENOENT)
		return -ENOENT;
	reading->state.broken++;
	return 0;
}

static int look_at(void *context, const char *path, const char *kind)
{
	struct reading *reading = context;
	const struct known_file *file;
	struct file_key key;
	struct stat status;

	(void)kind;
	if (stat(path, &status))
		return not_found(reading);
	key = (struct file_key){.device = status.st_dev,
				.inode = status.st_ino,
				.size = (uint64_t)status.st_size,
				.changed_ns = (uint64_t)status.st_mtim.tv_sec * NS_PER_SEC +
					      (uint64_t)status.st_mtim.tv_nsec};
	reading->state.files++;
	file = find(reading->totals, &key);
	if (!file)
		return want(reading, path, &key);
	tell_windows(reading, file);
	return 0;
}

static int add_empty(void *context, const struct window_mark *mark)
{
	struct reading *reading = context;

	reading->calls->known(reading->calls->context, mark->start_ms, mark->duration_ms, 0);
	return 0;
}

static void reading_release(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->wanted_count; i++)
		free(reading->wanted[i].path);
	free(reading->wanted);
	folder_release(&reading->folder);
}

/* Looks at all files.  Returns 0; -ENOMEM; -errno of store_list(). */
static int look(struct reading *reading, const char *store, const char *kind,
		const struct store_range *range)
{
	const struct folder_calls calls = {
		.read = look_at,
		.add_empty = reading->calls ? add_empty : NULL,
		.context = reading};
	int err = folder_list(&reading->folder, store, range);

	return err ? err : folder_read(&reading->folder, store, kind, &calls);
}

int file_totals_read(struct file_totals *totals, const char *store, const char *kind,
		     const struct store_range *range, uint64_t budget_ns,
		     const struct file_totals_calls *calls, struct file_totals_state *ret_state)
{
	CLEANUP(reading_release) struct reading missing = {.totals = totals};
	CLEANUP(reading_release) struct reading all = {.totals = totals, .calls = calls};
	int err;

	if (kind_is(kind, PP_PROFILE_WALL))
		return -EINVAL;
	totals->call++;
	err = look(&missing, store, kind, range);
	if (!err)
		err = sum_wanted(&missing, kind, budget_ns);
	if (!err)
		err = look(&all, store, kind, range);
	if (!err)
		*ret_state = all.state;
	return err;
}
