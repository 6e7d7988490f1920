/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"

/* The most names read of one directory: a day has 24, an hour 360 per kind, the top 27 years. */
#define MAX_FOLDER_ENTRIES 100000U
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct names {
	char (*name)[STORE_FILE_CHARS];
	size_t count, capacity;
};

static void names_release(struct names *names)
{
	free(names->name);
	*names = (struct names){0};
}

static int names_add(struct names *names, const char *name)
{
	size_t size = strlen(name) + 1;

	if (size > sizeof(names->name[0]))
		return -ENAMETOOLONG;
	if (ARRAY_RESERVE(names->name, names->count, names->capacity))
		return -ENOMEM;
	memcpy(names->name[names->count++], name, size);
	return 0;
}

static bool is_file_name(const char *name)
{
	struct store_file file;

	return store_file_parse(name, &file);
}

/* Temporary files first, then by time of start. */
static int compare_files(const void *a, const void *b)
{
	struct store_file file_a, file_b;

	if (!store_file_parse(a, &file_a) || !store_file_parse(b, &file_b) ||
	    file_a.start_ms == file_b.start_ms)
		return strcmp(a, b);
	return file_a.start_ms < file_b.start_ms ? -1 : 1;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Reads the names of a directory that is_wanted() accepts, oldest first. */
static int read_names(int folder_fd, bool (*is_wanted)(const char *name),
		      int (*compare)(const void *, const void *), struct names *ret_names)
{
	OWNED_FD int fd = openat(folder_fd, ".", FOLDER_FLAGS);
	CLEANUP(names_release) struct names names = {0};
	OWNED_DIR DIR *dir = NULL;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1; /* owned by the DIR now */
	for (uint32_t i = 0; i < MAX_FOLDER_ENTRIES; i++) {
		const struct dirent *entry = readdir(dir);
		int err;

		if (!entry)
			break;
		if (!is_wanted(entry->d_name))
			continue;
		err = names_add(&names, entry->d_name);
		if (err)
			return err;
	}
	if (names.count)
		qsort(names.name, names.count, sizeof(names.name[0]), compare);
	*ret_names = names;
	names = (struct names){0};
	return 0;
}

/* One walk through all hours, oldest first; a result of `visit` above 0, or an error, ends it. */
struct walk {
	int (*visit)(struct walk *walk, int hour_fd);
	struct retention_totals totals;
	time_t stale;		       /* counting */
	uint64_t max_bytes, deleted;   /* trimming */
	const struct store_file *keep; /* trimming */
	bool remove_empty;
};

/* Returns whether to skip a directory: it is gone, a link or a file, or may not be read. */
static bool is_passed_over(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EACCES;
}

static int walk_day(struct walk *walk, int day_fd)
{
	CLEANUP(names_release) struct names hours = {0};
	int err = read_names(day_fd, store_hour_parse, compare_names, &hours);

	for (size_t i = 0; !err && i < hours.count; i++) {
		OWNED_FD int hour_fd = openat(day_fd, hours.name[i], FOLDER_FLAGS);

		err = hour_fd < 0 ? -errno : walk->visit(walk, hour_fd);
		if (err >= 0 && walk->remove_empty)
			unlinkat(day_fd, hours.name[i], AT_REMOVEDIR); /* fails if not empty */
		if (is_passed_over(err))
			err = 0;
	}
	return err;
}

static int walk_store(struct walk *walk, int store_fd)
{
	CLEANUP(names_release) struct names days = {0};
	int err = read_names(store_fd, store_day_parse, compare_names, &days);

	for (size_t i = 0; !err && i < days.count; i++) {
		OWNED_FD int day_fd = openat(store_fd, days.name[i], FOLDER_FLAGS);

		err = day_fd < 0 ? -errno : walk_day(walk, day_fd);
		if (err >= 0 && walk->remove_empty)
			unlinkat(store_fd, days.name[i], AT_REMOVEDIR);
		if (is_passed_over(err))
			err = 0;
	}
	return err < 0 ? err : 0;
}

static int count_hour(struct walk *walk, int hour_fd)
{
	CLEANUP(names_release) struct names files = {0};
	int err = read_names(hour_fd, is_file_name, compare_names, &files);

	for (size_t i = 0; !err && i < files.count; i++) {
		const char *name = files.name[i];
		struct stat stat;

		if (fstatat(hour_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || !S_ISREG(stat.st_mode))
			continue;
		if (name[0] == '.') {
			if (stat.st_mtime < walk->stale)
				unlinkat(hour_fd, name, 0);
			continue;
		}
		walk->totals.files++;
		walk->totals.bytes += (uint64_t)stat.st_size;
	}
	return err;
}

int retention_count(int store_fd, time_t stale, struct retention_totals *ret_totals)
{
	struct walk walk = {.visit = count_hour, .stale = stale};
	int err = walk_store(&walk, store_fd);

	if (!err)
		*ret_totals = walk.totals;
	return err;
}

static bool is_kept(const struct walk *walk, const char *name)
{
	struct store_file file;

	return !store_file_parse(name, &file) || file.is_temporary ||
	       (file.start_ms == walk->keep->start_ms &&
		file.duration_ms == walk->keep->duration_ms &&
		!strcmp(file.kind, walk->keep->kind));
}

static int trim_hour(struct walk *walk, int hour_fd)
{
	CLEANUP(names_release) struct names files = {0};
	int err;

	if (walk->totals.bytes <= walk->max_bytes)
		return 1;
	err = read_names(hour_fd, is_file_name, compare_files, &files);
	for (size_t i = 0; !err && i < files.count; i++) {
		const char *name = files.name[i];
		uint64_t size;
		struct stat stat;

		if (walk->totals.bytes <= walk->max_bytes)
			return 1;
		if (is_kept(walk, name) || fstatat(hour_fd, name, &stat, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(stat.st_mode))
			continue;
		if (unlinkat(hour_fd, name, 0)) {
			err = errno == ENOENT ? 0 : -errno;
			continue;
		}
		size = (uint64_t)stat.st_size;
		walk->totals.bytes -= size < walk->totals.bytes ? size : walk->totals.bytes;
		walk->totals.files -= walk->totals.files ? 1 : 0;
		walk->deleted++;
	}
	return err;
}

int retention_trim(int store_fd, uint64_t max_bytes, const struct store_file *keep,
		   struct retention_totals *totals, uint64_t *ret_deleted)
{
	struct walk walk = {.visit = trim_hour,
			    .totals = *totals,
			    .max_bytes = max_bytes,
			    .keep = keep,
			    .remove_empty = true};
	int err = walk_store(&walk, store_fd);

	*totals = walk.totals;
	*ret_deleted = walk.deleted;
	return err;
}
