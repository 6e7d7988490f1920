/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store_query.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* ---- names ---- */

#define MS_PER_SEC 1000U
/* 9999-12-31T23:59:59.999Z: later times have no ten-character day. */
#define MAX_START_MS 253402300799999ULL
#define SUFFIX ".pb.gz"
#define TEMPORARY_SUFFIX ".tmp"
#define MERGED ".merged"
#define MERGING ".merging"

bool store_kind_is_valid(const char *kind)
{
	size_t size = strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return size && size < STORE_KIND_CHARS && !kind[size];
}

static struct tm utc(uint64_t start_ms)
{
	time_t seconds = (time_t)((start_ms > MAX_START_MS ? MAX_START_MS : start_ms) / MS_PER_SEC);
	struct tm parts;

	gmtime_r(&seconds, &parts);
	return parts;
}

void store_day_name(uint64_t start_ms, char name[STORE_DAY_CHARS])
{
	struct tm parts = utc(start_ms);

	strftime(name, STORE_DAY_CHARS, "%Y-%m-%d", &parts);
}

void store_hour_name(uint64_t start_ms, char name[STORE_HOUR_CHARS])
{
	struct tm parts = utc(start_ms);

	strftime(name, STORE_HOUR_CHARS, "%H", &parts);
}

void store_file_name(const struct store_file *file, char name[STORE_FILE_CHARS])
{
	const char *merged = file->is_merging ? MERGING : file->is_merged ? MERGED : "";

	snprintf(name, STORE_FILE_CHARS, "%s%" PRIu64 "-%" PRIu64 "-%.32s%s" SUFFIX "%s",
		 file->is_temporary ? "." : "", file->start_ms, file->duration_ms, file->kind,
		 merged, file->is_temporary ? TEMPORARY_SUFFIX : "");
}

static bool digits(const char *text, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return true;
}

bool store_day_parse(const char *name)
{
	return strlen(name) == 10 && digits(name, 4) && name[4] == '-' && digits(name + 5, 2) &&
	       name[7] == '-' && digits(name + 8, 2);
}

bool store_hour_parse(const char *name)
{
	return strlen(name) == 2 && digits(name, 2) &&
	       (name[0] < '2' || (name[0] == '2' && name[1] < '4'));
}

static bool parse_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (!digits(*at, 1))
		return false;
	*ret_number = strtoull(*at, &end, 10);
	if (*end != '-')
		return false;
	*at = end + 1;
	return true;
}

bool store_file_parse(const char *name, struct store_file *ret_file)
{
	struct store_file file = {.is_temporary = name[0] == '.'};
	const char *at = name + file.is_temporary;
	char printed[STORE_FILE_CHARS];
	size_t kind_size;

	if (!parse_number(&at, &file.start_ms) || !parse_number(&at, &file.duration_ms))
		return false;
	kind_size = strcspn(at, ".");
	if (kind_size >= STORE_KIND_CHARS)
		return false;
	memcpy(file.kind, at, kind_size);
	if (!store_kind_is_valid(file.kind))
		return false;
	file.is_merging = !strncmp(at + kind_size, MERGING ".", strlen(MERGING "."));
	file.is_merged =
		file.is_merging || !strncmp(at + kind_size, MERGED ".", strlen(MERGED "."));
	store_file_name(&file, printed);
	if (strcmp(printed, name))
		return false;
	*ret_file = file;
	return true;
}

/* A store of years: 16 million windows. */
#define MAX_ENTRIES (1U << 24)
/* How often a directory is read in which files come, go or are renamed meanwhile, and the pause
 * before the next time: shorter than a tick of the clock that stamps changes. */
#define STORE_LIST_TRIES 32U
#define STORE_LIST_PAUSE_NS 2000000

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
	return !file->is_temporary && store_range_has(range, file->start_ms, file->duration_ms) &&
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

/* Opens a directory to list it.  flags: of open(), besides those that it takes for that. */
static int open_listing(int parent_fd, const char *path, int flags, DIR **ret_dir)
{
	OWNED_FD int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -errno;
	(void)TAKE_FD(fd);
	*ret_dir = dir;
	return 0;
}

int store_each_name(int parent_fd, const char *path, size_t most, store_on_name *on_name,
		    void *context)
{
	OWNED_DIR DIR *dir = NULL;
	const struct dirent *item;
	int err = open_listing(parent_fd, path, O_NOFOLLOW, &dir);

	for (size_t i = 0; !err && i < most && (item = readdir(dir)); i++)
		err = on_name(context, dirfd(dir), item->d_name);
	return err;
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

/* One directory. */
struct place {
	DIR *dir;
	const char *path;
	const struct store_range *range;
	const struct level *level;
	struct name_list *below; /* directories of the next level */
};

static int read_once(struct store_listing *listing, const struct place *place)
{
	const struct level *level = place->level;
	struct dirent *item;
	int err = 0;

	place->below->count = 0;
	rewinddir(place->dir);
	while (!err && (errno = 0, item = readdir(place->dir))) {
		struct store_file file;

		if (store_file_parse(item->d_name, &file)) {
			if (in_range(&file, place->range))
				err = append(listing, place->path, item->d_name, &file);
		} else if (level->below && level->is_below(item->d_name)) {
			err = name_list_add(place->below, item->d_name);
		}
	}
	return err ? err : -errno;
}

/* When a directory was changed last, and the tick of the clock that stamps changes. */
struct look {
	int64_t changed_ns, tick_ns;
};

static int look_at(DIR *dir, struct look *ret_look)
{
	struct timespec tick;
	struct stat stat;

	clock_gettime(CLOCK_REALTIME_COARSE, &tick);
	if (fstat(dirfd(dir), &stat))
		return -errno;
	*ret_look = (struct look){.changed_ns = (int64_t)timespec_ns(&stat.st_mtim),
				  .tick_ns = (int64_t)timespec_ns(&tick)};
	return 0;
}

/* Returns whether a directory was the same at both looks and in between.  A second change in one
 * tick leaves no trace. */
static bool is_settled(const struct look *before, const struct look *after)
{
	const int64_t since_tick_ns = before->changed_ns - before->tick_ns;

	return before->changed_ns == after->changed_ns &&
	       (since_tick_ns < 0 || since_tick_ns > (int64_t)NS_PER_SEC);
}

/* Takes the entries between two indexes out. */
static void cut(struct store_listing *listing, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++)
		free(listing->entry[i].path);
	if (begin < end)
		memmove(listing->entry + begin, listing->entry + end,
			(listing->count - end) * sizeof(listing->entry[0]));
	listing->count -= end - begin;
}

/* Reads a directory until nothing was changed meanwhile: a file that is renamed may be seen under
 * neither name.  Of one that never rests all names count that were seen; a file that has none of
 * them any more is gone for the caller, who lists again. */
static int read_settled(struct store_listing *listing, const struct place *place)
{
	static const struct timespec rest = {.tv_nsec = STORE_LIST_PAUSE_NS};
	const size_t first = listing->count;

	for (unsigned int tries = 1;; tries++) {
		const size_t begin = listing->count;
		struct look before, after;
		int err = look_at(place->dir, &before);

		if (!err)
			err = read_once(listing, place);
		if (!err)
			err = look_at(place->dir, &after);
		if (err)
			return err;
		if (is_settled(&before, &after)) {
			cut(listing, first, begin);
			return 0;
		}
		if (tries == STORE_LIST_TRIES)
			return 0;
		(void)nanosleep(&rest, NULL);
	}
}

/* Lists the files of one directory and of the levels below it. */
static int list_directory(struct store_listing *listing, const char *path,
			  const struct store_range *range, const struct level *level)
{
	CLEANUP(name_list_release) struct name_list below = {0};
	OWNED_DIR DIR *dir = NULL;
	int err = open_listing(AT_FDCWD, path, level->flags, &dir);

	if (!err)
		err = read_settled(listing, &(struct place){.dir = dir,
							    .path = path,
							    .range = range,
							    .level = level,
							    .below = &below});
	for (size_t i = 0; !err && i < below.count; i++) {
		OWNED_MEM char *path_below = NULL;

		if (asprintf(&path_below, "%s/%s", path, below.name[i]) < 0)
			return -ENOMEM;
		err = list_directory(listing, path_below, range, level->below);
		/* The agent deleted it meanwhile, or it is no directory. */
		if (err == -ENOENT || err == -ENOTDIR)
			err = 0;
	}
	return err;
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *entry_a = a, *entry_b = b;
	const struct store_file *file_a = &entry_a->file, *file_b = &entry_b->file;
	int result;

	if (file_a->start_ms != file_b->start_ms)
		return file_a->start_ms < file_b->start_ms ? -1 : 1;
	if (file_a->is_merged != file_b->is_merged)
		return file_a->is_merged ? -1 : 1;
	result = strcmp(file_a->kind, file_b->kind);
	return result ? result : strcmp(entry_a->path, entry_b->path);
}

/* Leaves out the second entry of a file. */
static void remove_doubles(struct store_listing *listing)
{
	size_t kept = 0;

	for (size_t i = 0; i < listing->count; i++) {
		if (kept && !compare_entries(&listing->entry[kept - 1], &listing->entry[i]))
			free(listing->entry[i].path);
		else
			listing->entry[kept++] = listing->entry[i];
	}
	listing->count = kept;
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
	remove_doubles(&listing);
	*ret_listing = listing;
	return 0;
}
