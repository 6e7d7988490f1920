/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/file_totals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

enum file_state {
	FILE_SUMMED,
	FILE_LISTED, /* which windows it has is known, and not what they have */
	FILE_BROKEN,
	FILE_UNREADABLE,
};

struct known_file {
	struct file_key key;
	uint64_t status_ns;  /* ctime: new rights make an unreadable file another one */
	struct total *total; /* owned */
	uint32_t count;
	uint32_t call; /* the last one that asked for it */
	enum file_state state;
	char unit[FILE_TOTALS_UNIT_BYTES];
};

struct file_totals {
	pthread_mutex_t mutex; /* of all below */
	uint32_t windows_max;
	struct known_files {
		struct known_file *file;
		uint32_t count, capacity;
		struct index_table index;
		uint32_t windows; /* of all files */
	} known;
	uint32_t call;
};

/* One file that is to be read. */
struct wanted {
	char *path; /* owned */
	uint64_t start_ms, duration_ms;
	struct file_key key;
	uint64_t status_ns;
	bool is_list; /* which windows it has is enough */
};

/* One call of file_totals_read(). */
struct reading {
	struct file_totals *totals;
	const struct file_totals_calls *calls; /* NULL: only find what is to be read */
	bool is_full;			       /* files that are not known have no room */
	struct file_totals_state state;
	struct folder folder;
	struct wanted *wanted;
	uint32_t wanted_count, wanted_capacity;
};

/* ---- what is remembered ---- */

static void free_files(struct known_files *known)
{
	for (uint32_t i = 0; i < known->count; i++)
		free(known->file[i].total);
	free(known->file);
	index_table_release(&known->index);
}

void file_totals_free(struct file_totals *totals)
{
	if (!totals)
		return;
	free_files(&totals->known);
	pthread_mutex_destroy(&totals->mutex);
	free(totals);
}

int file_totals_new(uint32_t windows_max, struct file_totals **ret_totals)
{
	struct file_totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	pthread_mutex_init(&totals->mutex, NULL);
	totals->windows_max = windows_max;
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
	const struct file_key *a = &((const struct known_files *)context)->file[index].key;
	const struct file_key *b = wanted;

	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed_ns == b->changed_ns;
}

/* Returns what is known of a file, if that is enough. */
static struct known_file *find(struct file_totals *totals, const struct wanted *wanted)
{
	struct known_files *known = &totals->known;
	struct known_file *file;
	uint32_t index;

	if (!index_table_find(&known->index, hash(&wanted->key), is_equal, known, &wanted->key,
			      &index))
		return NULL;
	file = &known->file[index];
	file->call = totals->call;
	if ((file->state == FILE_LISTED && !wanted->is_list) ||
	    (file->state == FILE_UNREADABLE && file->status_ns != wanted->status_ns))
		return NULL;
	return file;
}

/* Adds a file, or replaces what was known of it.  Returns 0, and takes its windows; -ENOMEM. */
static int put_file(struct known_files *known, struct known_file *file)
{
	uint32_t index = known->count;
	int err;

	if (index_table_find(&known->index, hash(&file->key), is_equal, known, &file->key,
			     &index)) {
		known->windows -= known->file[index].count;
		free(known->file[index].total);
	} else {
		err = ARRAY_RESERVE(known->file, known->count, known->capacity);
		if (!err)
			err = index_table_add(&known->index, hash(&file->key), index);
		if (err)
			return err;
		known->count++;
	}
	known->windows += file->count;
	known->file[index] = *file;
	file->total = NULL;
	return 0;
}

/* Forgets the files that this call has not asked for: deleted ones, and those of other ranges. */
static int forget_others(struct file_totals *totals)
{
	struct known_files kept = {.count = 0};
	int err = 0;

	for (uint32_t i = 0; !err && i < totals->known.count; i++)
		if (totals->known.file[i].call == totals->call)
			err = put_file(&kept, &totals->known.file[i]);
	free_files(&totals->known);
	totals->known = kept;
	return err;
}

/* ---- reading one file ---- */

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

static int sum(struct summing *summing, int fd, const char *kind)
{
	static const char *const no_labels[] = {NULL};
	const struct profile_read_options options = {.keep_labels = no_labels,
						     .drop_addresses = true,
						     .drop_lines = true,
						     .memory_max = FILE_TOTALS_MEMORY_MAX,
						     .wants_window = note_window,
						     .window_done = add_value,
						     .context = summing};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int err = profile_reader_new(&options, &reader);

	if (!err)
		err = profile_reader_add(reader, fd, kind);
	if (!err)
		err = summing->err;
	if (!err)
		note_unit(reader, summing->file);
	return err;
}

static void note_listed(void *context, const struct window_mark *mark)
{
	(void)note_window(context, mark);
}

static int list(struct summing *summing, int fd)
{
	int err = profile_windows_list(fd, note_listed, summing);

	return err ? err : summing->err;
}

/* Reads a file, without the lock.  Returns 0, also when it is broken or unreadable; -ENOMEM;
 * -EAGAIN: it has gone, or there is no descriptor for it now. */
static int read_file(const struct wanted *wanted, const char *kind, struct known_file *file)
{
	struct summing summing = {.file = file, .wanted = wanted};
	OWNED_FD int fd = open(wanted->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int err;

	*file = (struct known_file){.key = wanted->key, .status_ns = wanted->status_ns};
	if (fd < 0 && (errno == ENOENT || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return -EAGAIN;
	if (fd < 0) {
		file->state = FILE_UNREADABLE;
		return 0;
	}
	file->state = wanted->is_list ? FILE_LISTED : FILE_SUMMED;
	err = wanted->is_list ? list(&summing, fd) : sum(&summing, fd, kind);
	if (err == -ENOMEM)
		return err;
	if (err) {
		file->state = FILE_BROKEN;
		file->count = 0;
	}
	return 0;
}

/* Makes room for another file.  Returns 0; -ENOSPC: there is none; -ENOMEM. */
static int make_room(struct file_totals *totals)
{
	int err = 0;

	pthread_mutex_lock(&totals->mutex);
	if (totals->known.windows >= totals->windows_max)
		err = forget_others(totals);
	if (!err && totals->known.windows >= totals->windows_max)
		err = -ENOSPC;
	pthread_mutex_unlock(&totals->mutex);
	return err;
}

static int read_one(struct file_totals *totals, const struct wanted *wanted, const char *kind)
{
	struct known_file file = {.count = 0};
	int err = read_file(wanted, kind, &file);

	if (!err) {
		pthread_mutex_lock(&totals->mutex);
		file.call = totals->call;
		err = put_file(&totals->known, &file);
		pthread_mutex_unlock(&totals->mutex);
	}
	free(file.total);
	return err == -EAGAIN ? 0 : err;
}

/* Reads the files that are not known, the newest first.  Returns 0, and whether the rest has no
 * room; -ENOMEM; what is left when the budget is spent stays pending. */
static int read_wanted(const struct reading *reading, const char *kind, uint64_t budget_ns,
		       bool *ret_is_full)
{
	const uint64_t end_ns = mono_ns() + budget_ns;
	int err = 0;

	for (uint32_t i = reading->wanted_count; !err && i > 0; i--) {
		if (mono_ns() >= end_ns)
			break;
		err = make_room(reading->totals);
		if (!err)
			err = read_one(reading->totals, &reading->wanted[i - 1], kind);
	}
	*ret_is_full = err == -ENOSPC;
	return err == -ENOSPC ? 0 : err;
}

/* ---- the files of a range ---- */

/* Tells that a file is not known yet, or will not be. */
static void tell_unknown(struct reading *reading, const struct wanted *wanted)
{
	const struct file_totals_calls *calls = reading->calls;

	if (reading->is_full) {
		reading->state.left_out++;
		calls->left_out(calls->context, wanted->start_ms, wanted->duration_ms);
	} else {
		reading->state.pending++;
		calls->pending(calls->context, wanted->start_ms, wanted->duration_ms);
	}
}

/* Notes a file that is not known: to read it, or to tell that it is not. */
static int want(struct reading *reading, const char *path, const struct wanted *unknown)
{
	struct wanted *wanted;

	if (reading->calls) {
		tell_unknown(reading, unknown);
		return 0;
	}
	if (ARRAY_RESERVE(reading->wanted, reading->wanted_count, reading->wanted_capacity))
		return -ENOMEM;
	wanted = &reading->wanted[reading->wanted_count];
	*wanted = *unknown;
	wanted->path = strdup(path);
	if (!wanted->path)
		return -ENOMEM;
	reading->wanted_count++;
	return 0;
}

static void tell_windows(struct reading *reading, const struct known_file *file)
{
	reading->state.broken += file->state == FILE_BROKEN;
	reading->state.unreadable += file->state == FILE_UNREADABLE;
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

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_nsec;
}

/* Finds out which file a path is.  Returns 0; -ENOENT: it is gone; -EACCES: that cannot be told. */
static int identify(const char *path, bool is_list, struct wanted *ret_wanted)
{
	const char *slash = strrchr(path, '/');
	struct store_file file;
	struct stat status;

	if (stat(path, &status))
		return errno == ENOENT ? -ENOENT : -EACCES;
	if (!store_file_parse(slash ? slash + 1 : path, &file))
		return -EACCES;
	*ret_wanted = (struct wanted){.start_ms = file.start_ms,
				      .duration_ms = file.duration_ms,
				      .key = {.device = status.st_dev,
					      .inode = status.st_ino,
					      .size = (uint64_t)status.st_size,
					      .changed_ns = ns_of(&status.st_mtim)},
				      .status_ns = ns_of(&status.st_ctim),
				      .is_list = is_list};
	return 0;
}

static int look_at(void *context, const char *path, const char *kind)
{
	struct reading *reading = context;
	const struct known_file *file;
	struct wanted wanted;
	int err = identify(path, false, &wanted);

	(void)kind;
	if (err == -ENOENT)
		return err;
	reading->state.files++;
	reading->state.unreadable += err != 0;
	if (err)
		return 0;
	file = find(reading->totals, &wanted);
	if (!file)
		return want(reading, path, &wanted);
	tell_windows(reading, file);
	return 0;
}

/* Lists the windows of a merged file of cpu, which may be all that the kind has there.  That it
 * cannot be read is told to those who ask for cpu. */
static int list_known(void *context, const char *path,
		      void (*on_window)(void *windows, const struct window_mark *mark),
		      void *windows)
{
	struct reading *reading = context;
	const struct known_file *file;
	struct wanted wanted;
	int err = identify(path, true, &wanted);

	if (err)
		return err == -ENOENT ? err : 0;
	file = find(reading->totals, &wanted);
	if (!file)
		return want(reading, path, &wanted);
	for (uint32_t i = 0; i < file->count; i++) {
		const struct window_mark mark = {.start_ms = file->total[i].start_ms,
						 .duration_ms = file->total[i].duration_ms};

		on_window(windows, &mark);
	}
	return 0;
}

static int add_empty(void *context, const struct window_mark *mark)
{
	struct reading *reading = context;

	if (reading->calls)
		reading->calls->known(reading->calls->context, mark->start_ms, mark->duration_ms,
				      0);
	return 0;
}

static void reading_release(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->wanted_count; i++)
		free(reading->wanted[i].path);
	free(reading->wanted);
	folder_release(&reading->folder);
}

/* Looks at all files, under the lock: their names and times, and what is known of them.  Returns 0;
 * -ENOMEM; -errno of store_list(). */
static int look(struct reading *reading, const char *store, const char *kind,
		const struct store_range *range)
{
	const struct folder_calls calls = {
		.read = look_at, .add_empty = add_empty, .list = list_known, .context = reading};
	int err;

	pthread_mutex_lock(&reading->totals->mutex);
	reading->totals->call += !reading->calls;
	err = folder_list(&reading->folder, store, range);
	if (!err)
		err = folder_read(&reading->folder, store, kind, &calls);
	pthread_mutex_unlock(&reading->totals->mutex);
	return err;
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
	err = look(&missing, store, kind, range);
	if (!err)
		err = read_wanted(&missing, kind, budget_ns, &all.is_full);
	if (!err)
		err = look(&all, store, kind, range);
	if (!err)
		*ret_state = all.state;
	return err;
}
