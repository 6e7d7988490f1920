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

static bool in_range(const struct store_file *file, const struct store_range *range)
{
	uint64_t end_ms;

	if (__builtin_add_overflow(file->start_ms, file->duration_ms, &end_ms))
		end_ms = UINT64_MAX;
	return !file->is_temporary && end_ms >= range->since_ms &&
	       file->start_ms < range->until_ms &&
	       (!range->kind || !strcmp(range->kind, file->kind));
}

static int append(struct store_listing *listing, const char *folder, const char *name,
		  const struct store_file *file)
{
	struct store_entry entry = {.file = *file};

	if (listing->count >= MAX_ENTRIES)
		return -E2BIG;
	if (ARRAY_RESERVE(listing->entry, listing->count, listing->capacity))
		return -ENOMEM;
	if (asprintf(&entry.path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	listing->entry[listing->count++] = entry;
	return 0;
}

static int open_folder(const char *path, DIR **ret_dir)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
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

/* Lists the files of one directory and, with is_below, of the directories below it that it
 * accepts. */
static int list_folder(struct store_listing *listing, const char *path,
		       const struct store_range *range, bool (*is_below)(const char *),
		       int (*list_below)(struct store_listing *, const char *,
					 const struct store_range *))
{
	OWNED_DIR DIR *dir = NULL;
	struct dirent *item;
	int err = open_folder(path, &dir);

	/* The agent deleted it meanwhile. */
	if (err)
		return err;
	while (!err && (errno = 0, item = readdir(dir))) {
		OWNED_MEM char *below = NULL;
		struct store_file file;

		if (store_file_parse(item->d_name, &file)) {
			if (in_range(&file, range))
				err = append(listing, path, item->d_name, &file);
		} else if (is_below && is_below(item->d_name)) {
			if (asprintf(&below, "%s/%s", path, item->d_name) < 0) {
				below = NULL;
				return -ENOMEM;
			}
			err = list_below(listing, below, range);
			if (err == -ENOENT || err == -ENOTDIR)
				err = 0;
		}
	}
	return err ? err : -errno;
}

static int list_hour(struct store_listing *listing, const char *path,
		     const struct store_range *range)
{
	return list_folder(listing, path, range, NULL, NULL);
}

static int list_day(struct store_listing *listing, const char *path,
		    const struct store_range *range)
{
	return list_folder(listing, path, range, store_hour_parse, list_hour);
}

/* Returns whether a name is that of a day or an hour. */
static bool is_day_or_hour(const char *name)
{
	return store_day_parse(name) || store_hour_parse(name);
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_file *file_a = &((const struct store_entry *)a)->file;
	const struct store_file *file_b = &((const struct store_entry *)b)->file;

	if (file_a->start_ms != file_b->start_ms)
		return file_a->start_ms < file_b->start_ms ? -1 : 1;
	return strcmp(file_a->kind, file_b->kind);
}

int store_list(const char *directory, const struct store_range *range,
	       struct store_listing *ret_listing)
{
	struct store_listing listing = {0};
	int err = list_folder(&listing, directory, range, is_day_or_hour, list_day);

	if (err) {
		store_listing_release(&listing);
		return err;
	}
	if (listing.count)
		qsort(listing.entry, listing.count, sizeof(listing.entry[0]), compare_entries);
	*ret_listing = listing;
	return 0;
}
