/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/kinds.h"
#include "store/store_query.h"

/* ---- sets of windows ---- */

static uint32_t hash(const struct window_times *times)
{
	const uint64_t mixed = (times->start_ms ^ times->duration_ms << 40) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(mixed >> 32);
}

static bool is_equal(const void *context, uint32_t index, const void *key)
{
	const struct window_times *item = &((const struct window_set *)context)->item[index];
	const struct window_times *times = key;

	return item->start_ms == times->start_ms && item->duration_ms == times->duration_ms;
}

void window_set_release(struct window_set *set)
{
	free(set->item);
	index_table_release(&set->index);
	*set = (struct window_set){0};
}

bool window_set_has(const struct window_set *set, uint64_t start_ms, uint64_t duration_ms)
{
	const struct window_times times = {.start_ms = start_ms, .duration_ms = duration_ms};
	uint32_t index;

	return index_table_find(&set->index, hash(&times), is_equal, set, &times, &index);
}

int window_set_add(struct window_set *set, uint64_t start_ms, uint64_t duration_ms)
{
	const struct window_times times = {.start_ms = start_ms, .duration_ms = duration_ms};
	int err;

	if (window_set_has(set, start_ms, duration_ms))
		return 0;
	err = ARRAY_RESERVE(set->item, set->count, set->capacity);
	if (err)
		return err;
	set->item[set->count] = times;
	err = index_table_add(&set->index, hash(&times), set->count);
	if (!err)
		set->count++;
	return err;
}

void folder_release(struct folder *folder)
{
	store_listing_release(&folder->listing);
	window_set_release(&folder->listed);
	window_set_release(&folder->merged);
	window_set_release(&folder->read);
	window_set_release(&folder->done);
	window_set_release(&folder->known);
	*folder = (struct folder){0};
}

int folder_list(struct folder *folder, const char *path, const struct store_range *range)
{
	folder->range = *range;
	folder->range.kind = NULL;
	store_listing_release(&folder->listing);
	return store_list(path, &folder->range, &folder->listing);
}

static void note_err(struct folder *folder, int err)
{
	if (!folder->err)
		folder->err = err;
}

bool folder_wants(struct folder *folder, const struct window_mark *mark)
{
	if (!store_range_has(&folder->range, mark->start_ms, mark->duration_ms))
		return false;
	if (folder->is_filtered && window_set_has(&folder->done, mark->start_ms, mark->duration_ms))
		return false;
	note_err(folder, window_set_add(&folder->known, mark->start_ms, mark->duration_ms));
	if (folder->is_filtered)
		note_err(folder, window_set_add(&folder->done, mark->start_ms, mark->duration_ms));
	return true;
}

/* ---- files of the kind ---- */

static int note_listed(struct folder *folder)
{
	int err = 0;

	window_set_release(&folder->listed);
	window_set_release(&folder->merged);
	for (size_t i = 0; !err && i < folder->listing.count; i++) {
		const struct store_file *file = &folder->listing.entry[i].file;

		if (!strcmp(file->kind, folder->kind))
			err = window_set_add(file->is_merged ? &folder->merged : &folder->listed,
					     file->start_ms, file->duration_ms);
	}
	return err;
}

/* Finds offcpu's file of the same windows, which begins where cpu's does. */
static const char *find_offcpu(const struct folder *folder, const struct store_entry *entry)
{
	const struct store_entry *end = folder->listing.entry + folder->listing.count;
	const struct store_file *cpu = &entry->file;

	while (++entry < end && entry->file.start_ms == cpu->start_ms)
		if (kind_is(entry->file.kind, PP_PROFILE_OFFCPU) &&
		    entry->file.duration_ms == cpu->duration_ms &&
		    entry->file.is_merged == cpu->is_merged)
			return entry->path;
	return NULL;
}

/* Reads a file of the kind, or for wall one of cpu, unless its windows were read.  Those of a
 * merged one that has just taken the place of others may have been read from those. */
static int read_file(struct folder *folder, const struct store_entry *entry,
		     const struct folder_calls *calls)
{
	const struct store_file *file = &entry->file;
	struct window_set *read = file->is_merged ? &folder->read : &folder->done;
	int err;

	if (window_set_has(read, file->start_ms, file->duration_ms))
		return 0;
	folder->is_filtered = file->is_merged && (file->is_merging || folder->round);
	if (!strcmp(file->kind, folder->kind))
		err = calls->read(calls->context, entry->path, folder->kind);
	else
		err = calls->read_wall(calls->context, entry->path, find_offcpu(folder, entry));
	if (err == -ENOENT) {
		folder->was_gone = true;
		return 0;
	}
	if (!err)
		err = folder->err ?: window_set_add(read, file->start_ms, file->duration_ms);
	if (!err && !file->is_merged)
		err = window_set_add(&folder->known, file->start_ms, file->duration_ms);
	return err;
}

/* ---- windows that only cpu has: somebody recorded, and there was nothing of the kind ---- */

struct empties {
	struct folder *folder;
	const struct folder_calls *calls;
	int err;
};

static void add_empty(void *context, const struct window_mark *mark)
{
	struct empties *empties = context;
	struct folder *folder = empties->folder;

	if (empties->err || !store_range_has(&folder->range, mark->start_ms, mark->duration_ms) ||
	    window_set_has(&folder->known, mark->start_ms, mark->duration_ms) ||
	    window_set_has(&folder->listed, mark->start_ms, mark->duration_ms))
		return;
	empties->err = window_set_add(&folder->known, mark->start_ms, mark->duration_ms);
	if (!empties->err)
		empties->err = empties->calls->add_empty(empties->calls->context, mark);
}

/* Reads the files of the kind that begin before a merged file of cpu ends, so that their windows
 * are known. */
static int read_ahead(struct folder *folder, size_t index, const struct folder_calls *calls)
{
	const struct store_file *file = &folder->listing.entry[index].file;
	int err = 0;

	for (size_t i = index + 1; !err && i < folder->listing.count; i++) {
		const struct store_entry *entry = &folder->listing.entry[i];

		if (entry->file.start_ms - file->start_ms >= file->duration_ms)
			break;
		if (!strcmp(entry->file.kind, folder->kind))
			err = read_file(folder, entry, calls);
	}
	return err;
}

/* That it is broken is told to those who read cpu.  Returns 0; -ENOENT: it is gone. */
static int list_windows(const char *path,
			void (*on_window)(void *context, const struct window_mark *mark),
			void *context)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : 0;
	(void)profile_windows_list(fd, on_window, context);
	return 0;
}

static int add_empty_of(struct folder *folder, size_t index, const struct folder_calls *calls)
{
	const struct store_entry *entry = &folder->listing.entry[index];
	const struct store_file *file = &entry->file;
	const struct window_mark mark = {.start_ms = file->start_ms,
					 .duration_ms = file->duration_ms,
					 .start_wall_ns = file->start_ms * NS_PER_MS,
					 .duration_ns = file->duration_ms * NS_PER_MS};
	struct empties empties = {.folder = folder, .calls = calls};
	int err;

	if (!calls->add_empty)
		return 0;
	if (!file->is_merged) {
		add_empty(&empties, &mark);
		return empties.err;
	}
	/* A file of the kind that was merged with it lists the same windows. */
	if (window_set_has(&folder->merged, file->start_ms, file->duration_ms))
		return 0;
	err = read_ahead(folder, index, calls);
	if (err)
		return err;
	err = calls->list ? calls->list(calls->context, entry->path, add_empty, &empties)
			  : list_windows(entry->path, add_empty, &empties);
	folder->was_gone |= err == -ENOENT;
	if (err && err != -ENOENT)
		return err;
	return empties.err;
}

/* ---- all ---- */

static int read_entry(struct folder *folder, size_t index, const struct folder_calls *calls)
{
	const struct store_entry *entry = &folder->listing.entry[index];
	const struct store_file *file = &entry->file;

	if (!strcmp(file->kind, folder->kind))
		return read_file(folder, entry, calls);
	if (!kind_is(file->kind, PP_PROFILE_CPU))
		return 0;
	if (!kind_is(folder->kind, PP_PROFILE_WALL))
		return add_empty_of(folder, index, calls);
	/* Older versions wrote wall into files of its own. */
	return window_set_has(file->is_merged ? &folder->merged : &folder->listed, file->start_ms,
			      file->duration_ms)
		       ? 0
		       : read_file(folder, entry, calls);
}

int folder_read(struct folder *folder, const char *path, const char *kind,
		const struct folder_calls *calls)
{
	int err = 0;

	folder->kind = kind;
	for (folder->round = 0; !err && folder->round < FOLDER_ROUNDS_MAX; folder->round++) {
		if (folder->round)
			err = folder_list(folder, path, &folder->range);
		if (!err)
			err = note_listed(folder);
		folder->was_gone = false;
		for (size_t i = 0; !err && i < folder->listing.count; i++)
			err = read_entry(folder, i, calls);
		if (!folder->was_gone)
			break;
	}
	return err;
}

/* ---- what a store has ---- */

/* The newest windows, whose median tells the interval: one that was cut early is shorter, and the
 * others are off by a millisecond now and then. */
#define WINDOWS_ASKED 15U
#define INTERVAL_STEP_MS 10U

static void find_kinds(const struct store_listing *listing, struct extent *extent)
{
	for (size_t i = 0; i < listing->count; i++) {
		const char *name = listing->entry[i].file.kind;
		enum pp_profile kind;

		if (kind_find(name, strlen(name), &kind))
			extent->kinds |= 1U << kind;
	}
}

static int compare_lengths(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static uint64_t find_interval_ms(const struct store_listing *listing)
{
	uint64_t length_ms[WINDOWS_ASKED];
	size_t count = 0;

	for (size_t i = listing->count; i > 0 && count < WINDOWS_ASKED; i--)
		if (!listing->entry[i - 1].file.is_merged)
			length_ms[count++] = listing->entry[i - 1].file.duration_ms;
	if (!count)
		return 0;
	qsort(length_ms, count, sizeof(length_ms[0]), compare_lengths);
	return (length_ms[count / 2] + INTERVAL_STEP_MS / 2) / INTERVAL_STEP_MS * INTERVAL_STEP_MS;
}

static void find_times(const struct store_listing *listing, struct extent *extent)
{
	extent->from_ms = listing->entry[0].file.start_ms;
	for (size_t i = 0; i < listing->count; i++) {
		const struct store_file *file = &listing->entry[i].file;
		const uint64_t end_ms = file->start_ms + file->duration_ms;

		if (end_ms > extent->until_ms)
			extent->until_ms = end_ms;
	}
	extent->interval_ms = find_interval_ms(listing);
}

/* A file that is gone meanwhile has none. */
static uint64_t sum_bytes(const struct store_listing *listing)
{
	uint64_t bytes = 0;
	struct stat status;

	for (size_t i = 0; i < listing->count; i++)
		if (!lstat(listing->entry[i].path, &status))
			bytes += (uint64_t)status.st_size;
	return bytes;
}

int extent_read(const char *store, bool wants_bytes, struct extent *ret_extent)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	struct extent extent = {0};
	int err = store_list(store, &all, &listing);

	if (err)
		return err;
	extent.files = listing.count;
	if (listing.count) {
		find_kinds(&listing, &extent);
		find_times(&listing, &extent);
	}
	if (wants_bytes)
		extent.bytes = sum_bytes(&listing);
	*ret_extent = extent;
	return 0;
}
