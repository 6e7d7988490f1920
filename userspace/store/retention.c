/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/name_list.h"

/* The most names read of one directory: a day has 24, an hour 360 per kind, the top 27 years. */
#define MAX_DIRECTORY_ENTRIES 100000U
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool is_file_name(const char *name)
{
	struct store_file file;

	return store_file_parse(name, &file);
}

/* Temporary files first, then by time of start. */
static int compare_files(const void *a, const void *b)
{
	struct store_file file_a = {}, file_b = {};

	(void)store_file_parse(a, &file_a);
	(void)store_file_parse(b, &file_b);
	if (file_a.start_ms != file_b.start_ms)
		return file_a.start_ms < file_b.start_ms ? -1 : 1;
	return strcmp(a, b);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Reads the names of a directory that is_wanted() accepts, oldest first. */
static int read_names(int directory_fd, bool (*is_wanted)(const char *name),
		      int (*compare)(const void *, const void *), struct name_list *ret_names)
{
	OWNED_FD int fd = openat(directory_fd, ".", DIRECTORY_FLAGS);
	CLEANUP(name_list_release) struct name_list names = {0};
	OWNED_DIR DIR *dir = NULL;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1; /* owned by the DIR now */
	for (uint32_t i = 0; i < MAX_DIRECTORY_ENTRIES; i++) {
		const struct dirent *entry = readdir(dir);
		int err;

		if (!entry)
			break;
		if (!is_wanted(entry->d_name))
			continue;
		err = name_list_add(&names, entry->d_name);
		if (err)
			return err;
	}
	if (names.count)
		qsort(names.name, names.count, sizeof(names.name[0]), compare);
	*ret_names = names;
	names = (struct name_list){0};
	return 0;
}

/* One walk through all hours, oldest first; a result of `visit` above 0, or an error, ends it. */
struct walk {
	int (*visit)(struct walk *walk, int hour_fd);
	struct retention_totals totals;
	time_t stale;		       /* counting */
	uint64_t max_bytes, deleted;   /* trimming */
	const struct store_file *keep; /* trimming */
	uint64_t after_ms;	       /* trimming: only what begins later */
	uint64_t end_ms;	       /* expiring: what ends later is kept */
	bool remove_empty;
};

/* Returns whether to skip a directory: it is gone, a link or a file, or may not be read. */
static bool is_passed_over(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EACCES;
}

/* Returns whether a directory goes if it is empty.  In the walk for what is from the future only
 * those go that this walk has emptied. */
static bool removes(const struct walk *walk, uint64_t deleted_before)
{
	return walk->remove_empty && (!walk->after_ms || walk->deleted > deleted_before);
}

static int walk_day(struct walk *walk, int day_fd)
{
	CLEANUP(name_list_release) struct name_list hours = {0};
	int err = read_names(day_fd, store_hour_parse, compare_names, &hours);

	for (size_t i = 0; !err && i < hours.count; i++) {
		OWNED_FD int hour_fd = openat(day_fd, hours.name[i], DIRECTORY_FLAGS);
		const uint64_t deleted = walk->deleted;

		err = hour_fd < 0 ? -errno : walk->visit(walk, hour_fd);
		if (err >= 0 && removes(walk, deleted))
			unlinkat(day_fd, hours.name[i], AT_REMOVEDIR); /* fails if not empty */
		if (is_passed_over(err))
			err = 0;
	}
	return err;
}

static int walk_store(struct walk *walk, int store_fd)
{
	CLEANUP(name_list_release) struct name_list days = {0};
	int err = read_names(store_fd, store_day_parse, compare_names, &days);

	for (size_t i = 0; !err && i < days.count; i++) {
		OWNED_FD int day_fd = openat(store_fd, days.name[i], DIRECTORY_FLAGS);
		const uint64_t deleted = walk->deleted;

		err = day_fd < 0 ? -errno : walk_day(walk, day_fd);
		if (err >= 0 && removes(walk, deleted))
			unlinkat(store_fd, days.name[i], AT_REMOVEDIR);
		if (is_passed_over(err))
			err = 0;
	}
	return err < 0 ? err : 0;
}

static int count_hour(struct walk *walk, int hour_fd)
{
	CLEANUP(name_list_release) struct name_list files = {0};
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
	       (walk->after_ms && file.start_ms <= walk->after_ms) ||
	       (file.start_ms == walk->keep->start_ms &&
		file.duration_ms == walk->keep->duration_ms &&
		!strcmp(file.kind, walk->keep->kind));
}

/* Deletes a file, unless it is no regular one, and keeps the totals up to date. */
static int delete_file(struct walk *walk, int hour_fd, const char *name)
{
	struct stat stat;
	uint64_t size;

	if (fstatat(hour_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || !S_ISREG(stat.st_mode))
		return 0;
	if (unlinkat(hour_fd, name, 0))
		return errno == ENOENT ? 0 : -errno;
	size = (uint64_t)stat.st_size;
	walk->totals.bytes -= size < walk->totals.bytes ? size : walk->totals.bytes;
	walk->totals.files -= walk->totals.files ? 1 : 0;
	walk->deleted++;
	return 0;
}

static int trim_hour(struct walk *walk, int hour_fd)
{
	CLEANUP(name_list_release) struct name_list files = {0};
	int err = read_names(hour_fd, is_file_name, compare_files, &files);

	for (size_t i = 0; !err && i < files.count; i++) {
		if (walk->totals.bytes <= walk->max_bytes)
			return 1;
		if (!is_kept(walk, files.name[i]))
			err = delete_file(walk, hour_fd, files.name[i]);
	}
	return err;
}

/* Ends the walk at the first hour that begins too late: all that follow do. */
static int expire_hour(struct walk *walk, int hour_fd)
{
	CLEANUP(name_list_release) struct name_list files = {0};
	int err = read_names(hour_fd, is_file_name, compare_files, &files);

	for (size_t i = 0; !err && i < files.count; i++) {
		struct store_file file = {};
		uint64_t end_ms;

		(void)store_file_parse(files.name[i], &file);
		if (file.start_ms > walk->end_ms)
			return 1;
		if (__builtin_add_overflow(file.start_ms, file.duration_ms, &end_ms))
			end_ms = UINT64_MAX;
		if (end_ms <= walk->end_ms && !is_kept(walk, files.name[i]))
			err = delete_file(walk, hour_fd, files.name[i]);
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
	int err;

	/* What begins after the window that was just written was written before somebody set the
	 * clock back: by its name it would outlive all that comes now. */
	if (__builtin_add_overflow(keep->start_ms, keep->duration_ms + STORE_RENAMES_MAX,
				   &walk.after_ms))
		walk.after_ms = UINT64_MAX;
	err = walk_store(&walk, store_fd);
	walk.after_ms = 0;
	if (!err && walk.totals.bytes > max_bytes)
		err = walk_store(&walk, store_fd);
	*totals = walk.totals;
	*ret_deleted = walk.deleted;
	return err;
}

int retention_expire(int store_fd, uint64_t end_ms, const struct store_file *keep,
		     struct retention_totals *totals, uint64_t *ret_deleted)
{
	struct walk walk = {.visit = expire_hour,
			    .totals = *totals,
			    .end_ms = end_ms,
			    .keep = keep,
			    .remove_empty = true};
	int err = walk_store(&walk, store_fd);

	*totals = walk.totals;
	*ret_deleted = walk.deleted;
	return err;
}
