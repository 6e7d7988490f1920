/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store_query.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

/* A store of years: 16 million windows. */
#define MAX_ENTRIES (1U << 24)

void store_listing_release(struct store_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->entry[i].path);
	free(listing->entry);
	*listing = (struct store_listing){0};
}

bool store_range_has(const struct store_range *range, uint64_t start_ms, uint64_t duration_ms)
{
	uint64_t end_ms;

	if (__builtin_add_overflow(start_ms, duration_ms, &end_ms))
		end_ms = UINT64_MAX;
	/* A window of less than a millisecond ends where it begins. */
	return (start_ms >= range->since_ms || end_ms > range->since_ms) &&
	       start_ms < range->until_ms;
}

static bool in_range(const struct store_file *file, const struct store_range *range)
{
	return !file->is_temporary &&
	       store_range_has(range, file->start_ms, file->duration_ms) &&
	       (!range->kind || !strcmp(range->kind, file->kind));
}

static int append(struct store_listing *listing, const char *directory, const char *name,
		  const struct store_file *file)
{
	struct store_entry entry = {.file = *file};

	if (listing->count >= MAX_ENTRIES)
		return -E2BIG;
	if (ARRAY_RESERVE(listing->entry, listing->count, listing->capacity))
		return -ENOMEM;
	if (asprintf(&entry.path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	listing->entry[listing->count++] = entry;
	return 0;
}

static int open_directory(const char *path, int flags, DIR **ret_dir)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)TAKE_FD(fd);
	*ret_dir = dir;
	return 0;
}

/* Returns whether a name is that of a day or an hour. */
static bool is_day_or_hour(const char *name)
{
	return store_day_parse(name) || store_hour_parse(name);
}

/* A level of directories.  The top itself may be an administrator's link; below it no link is
 * followed. */
struct level {
	int flags;			    /* of open() */
	bool (*is_below)(const char *name); /* whether a directory is one of the next level */
	const struct level *below;	    /* NULL: there are only files */
};
static const struct level hour_level = {.flags = O_NOFOLLOW};
static const struct level day_level = {
	.flags = O_NOFOLLOW, .is_below = store_hour_parse, .below = &hour_level};
static const struct level top_level = {.is_below = is_day_or_hour, .below = &day_level};

/* Lists the files of one directory and of the levels below it. */
static int list_directory(struct store_listing *listing, const char *path,
			  const struct store_range *range, const struct level *level)
{
	OWNED_DIR DIR *dir = NULL;
	struct dirent *item;
	int err = open_directory(path, level->flags, &dir);

	if (err)
		return err;
	while (!err && (errno = 0, item = readdir(dir))) {
		struct store_file file;
		char *below;

		if (store_file_parse(item->d_name, &file)) {
			if (in_range(&file, range))
				err = append(listing, path, item->d_name, &file);
		} else if (level->below && level->is_below(item->d_name)) {
			if (asprintf(&below, "%s/%s", path, item->d_name) < 0)
				return -ENOMEM;
			err = list_directory(listing, below, range, level->below);
			free(below);
			/* The agent deleted it meanwhile, or it is no directory. */
			if (err == -ENOENT || err == -ENOTDIR)
				err = 0;
		}
	}
	return err ? err : -errno;
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_file *file_a = &((const struct store_entry *)a)->file;
	const struct store_file *file_b = &((const struct store_entry *)b)->file;

	if (file_a->start_ms != file_b->start_ms)
		return file_a->start_ms < file_b->start_ms ? -1 : 1;
	if (file_a->is_merged != file_b->is_merged)
		return file_a->is_merged ? -1 : 1;
	return strcmp(file_a->kind, file_b->kind);
}

int store_list(const char *directory, const struct store_range *range,
	       struct store_listing *ret_listing)
{
	struct store_listing listing = {0};
	int err = list_directory(&listing, directory, range, &top_level);

	if (err) {
		store_listing_release(&listing);
		return err;
	}
	if (listing.count)
		qsort(listing.entry, listing.count, sizeof(listing.entry[0]), compare_entries);
	*ret_listing = listing;
	return 0;
}
