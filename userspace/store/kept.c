/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "store/store_query.h"

#define MS_PER_SEC 1000U
#define MS_PER_HOUR 3600000U
/* 9999-12-31T23:59:59Z: later times have more digits. */
#define MAX_SECONDS 253402300799ULL
#define DIRECTORY_MODE 0750
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TIME_FORMAT "%Y-%m-%dT%H%M%SZ"
#define TIME_CHARS 18U /* 2026-11-27T224059Z */
#define OOM "-oom-"
#define SIGNAL "-signal"
#define TEMPORARY_SUFFIX ".tmp"
#define TEMPORARY_CHARS (KEPT_NAME_CHARS + 8U)
/* Names read of one directory: an hour has 3600 windows of a second, or of a tenth 36000. */
#define MAX_NAMES 400000U
#define COMM_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
/* Files linked into one directory, and hours whose files are looked at. */
#define FILES_MAX 4096U
#define HOURS_MAX 4U
/* A name that is taken moves on by at most so many seconds. */
#define NAME_TRIES 60U
/* Directories that are listed: more than that is not of ours. */
#define LISTED_MAX 4096U
/* Who asked by a signal: no user of a process. */
#define NO_USER UINT32_MAX

/* ---- names ---- */

void kept_comm(const char *comm, char ret_comm[KEPT_COMM_CHARS])
{
	size_t size = 0;

	for (; comm[size] && size < KEPT_COMM_CHARS - 1; size++)
		ret_comm[size] = strchr(COMM_BYTES, comm[size]) ? comm[size] : '_';
	if (!size)
		ret_comm[size++] = '_';
	ret_comm[size] = '\0';
}

void kept_name_format(const struct kept_name *kept, char name[KEPT_NAME_CHARS])
{
	const uint64_t seconds = kept->time_ms / MS_PER_SEC;
	const time_t time = (time_t)(seconds < MAX_SECONDS ? seconds : MAX_SECONDS);
	char text[TIME_CHARS + 1];
	struct tm parts;

	gmtime_r(&time, &parts);
	strftime(text, sizeof(text), TIME_FORMAT, &parts);
	if (kept->reason == KEPT_OOM)
		snprintf(name, KEPT_NAME_CHARS, "%s" OOM "%" PRIu32 "-%" PRIu32 "-%.15s", text,
			 kept->pid, kept->uid, kept->comm);
	else
		snprintf(name, KEPT_NAME_CHARS, "%s" SIGNAL, text);
}

/* Reads PID-UID-COMM; what is not written like that does not come back when it is printed. */
static void parse_victim(const char *text, struct kept_name *kept)
{
	int comm = 0;

	(void)sscanf(text, "%" SCNu32 "-%" SCNu32 "-%n", &kept->pid, &kept->uid, &comm);
	kept_comm(text + comm, kept->comm);
}

bool kept_name_parse(const char *name, struct kept_name *ret_kept)
{
	struct kept_name kept = {.reason = KEPT_SIGNAL};
	char printed[KEPT_NAME_CHARS], text[TIME_CHARS + 1];
	struct tm parts = {0};
	const char *end;

	if (strlen(name) < TIME_CHARS)
		return false;
	memcpy(text, name, TIME_CHARS);
	text[TIME_CHARS] = '\0';
	end = strptime(text, TIME_FORMAT, &parts);
	if (!end || *end || timegm(&parts) < 0)
		return false;
	kept.time_ms = (uint64_t)timegm(&parts) * MS_PER_SEC;
	name += TIME_CHARS;
	if (!strncmp(name, OOM, strlen(OOM))) {
		kept.reason = KEPT_OOM;
		parse_victim(name + strlen(OOM), &kept);
	}
	kept_name_format(&kept, printed);
	if (strcmp(printed, name - TIME_CHARS))
		return false;
	*ret_kept = kept;
	return true;
}

static void temporary_name(const char *name, char temporary[TEMPORARY_CHARS])
{
	snprintf(temporary, TEMPORARY_CHARS, ".%.63s" TEMPORARY_SUFFIX, name);
}

static bool is_temporary(const char *name)
{
	const char *suffix = strrchr(name, '.');
	char inner[KEPT_NAME_CHARS];
	struct kept_name kept;

	if (name[0] != '.' || suffix == name || strcmp(suffix, TEMPORARY_SUFFIX))
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)(suffix - name - 1), name + 1);
	return kept_name_parse(inner, &kept);
}

/* ---- the directory ---- */

void kept_list_release(struct kept_list *list)
{
	free(list->entry);
	*list = (struct kept_list){0};
}

/* Adds the part that one directory has of a file's bytes. */
static int add_bytes(void *context, int directory_fd, const char *name)
{
	uint64_t *bytes = context;
	struct stat stat;

	if (!fstatat(directory_fd, name, &stat, AT_SYMLINK_NOFOLLOW) && S_ISREG(stat.st_mode) &&
	    stat.st_nlink)
		*bytes += (uint64_t)stat.st_size / stat.st_nlink;
	return 0;
}

/* By time: names begin with it. */
static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct kept_entry *)a)->name, ((const struct kept_entry *)b)->name);
}

static int add_entry(void *context, int kept_fd, const char *name)
{
	struct kept_list *list = context;
	struct kept_entry entry = {0};

	/* Other names are none of ours; one that is gone or is no directory counts as none. */
	if (!kept_name_parse(name, &entry.is) || list->count == LISTED_MAX ||
	    store_each_name(kept_fd, name, MAX_NAMES, add_bytes, &entry.bytes))
		return 0;
	if (ARRAY_RESERVE(list->entry, list->count, list->capacity))
		return -ENOMEM;
	snprintf(entry.name, sizeof(entry.name), "%.63s", name);
	list->entry[list->count++] = entry;
	list->bytes += entry.bytes;
	return 0;
}

static int list(int kept_fd, struct kept_list *ret_list)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	int err = store_each_name(kept_fd, ".", MAX_NAMES, add_entry, &list);

	if (err)
		return err;
	if (list.count)
		qsort(list.entry, list.count, sizeof(list.entry[0]), compare_entries);
	*ret_list = list;
	list = (struct kept_list){0};
	return 0;
}

int kept_list(int store_fd, struct kept_list *ret_list)
{
	OWNED_FD int kept_fd = openat(store_fd, KEPT_DIRECTORY, DIRECTORY_FLAGS);

	*ret_list = (struct kept_list){0};
	if (kept_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return list(kept_fd, ret_list);
}

/* ---- removing ---- */

static int remove_name(void *context, int directory_fd, const char *name)
{
	(void)context;
	if (strcmp(name, ".") && strcmp(name, ".."))
		(void)unlinkat(directory_fd, name, 0);
	return 0;
}

static int remove_directory(int kept_fd, const char *name)
{
	int err = store_each_name(kept_fd, name, MAX_NAMES, remove_name, NULL);

	if (!err && unlinkat(kept_fd, name, AT_REMOVEDIR))
		err = -errno;
	return err == -ENOENT ? 0 : err;
}

static int remove_kept(int kept_fd, const char *name)
{
	char temporary[TEMPORARY_CHARS];

	temporary_name(name, temporary);
	if (renameat(kept_fd, name, kept_fd, temporary))
		return errno == ENOENT ? 0 : -errno;
	return remove_directory(kept_fd, temporary);
}

static int remove_temporary(void *context, int kept_fd, const char *name)
{
	(void)context;
	if (is_temporary(name))
		(void)remove_directory(kept_fd, name);
	return 0;
}

/* ---- room ---- */

static uint32_t user_of(const struct kept_entry *entry)
{
	return entry->is.reason == KEPT_OOM ? entry->is.uid : NO_USER;
}

static bool is_same(const struct kept_entry *a, const struct kept_entry *b)
{
	return a->is.reason == KEPT_OOM && b->is.reason == KEPT_OOM && a->is.uid == b->is.uid &&
	       !strcmp(a->is.comm, b->is.comm);
}

static bool may_go(const struct kept_entry *entry, const char *newest)
{
	return !entry->must_go && (!newest || strcmp(entry->name, newest));
}

/* Marks those of one program and user that KEPT_SAME_MAX newer ones follow. */
static void choose_same(struct kept_list *list, const char *newest)
{
	for (size_t i = 0; i < list->count; i++) {
		size_t same = 0;

		for (size_t j = i + 1; j < list->count && same < KEPT_SAME_MAX; j++)
			same += is_same(&list->entry[i], &list->entry[j]);
		list->entry[i].must_go = same == KEPT_SAME_MAX && may_go(&list->entry[i], newest);
	}
}

/* Returns what a directory counts as, which is more than its files for a small one: names take
 * room, too. */
static uint64_t cost_of(const struct kept_entry *entry, uint64_t max_bytes)
{
	const uint64_t least = max_bytes / KEPT_MAX;

	if (entry->must_go)
		return 0;
	return entry->bytes > least ? entry->bytes : least;
}

static uint64_t cost_of_user(const struct kept_list *list, uint64_t max_bytes, uint32_t uid)
{
	uint64_t cost = 0;

	for (size_t i = 0; i < list->count; i++)
		if (user_of(&list->entry[i]) == uid)
			cost += cost_of(&list->entry[i], max_bytes);
	return cost;
}

/* Returns the oldest of the user who takes most; NULL: none may go. */
static struct kept_entry *find_oldest(struct kept_list *list, uint64_t max_bytes,
				      const char *newest)
{
	struct kept_entry *oldest = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct kept_entry *entry = &list->entry[i];
		uint64_t cost;

		if (!may_go(entry, newest) || (oldest && user_of(entry) == user_of(oldest)))
			continue;
		cost = cost_of_user(list, max_bytes, user_of(entry));
		if (cost <= most)
			continue;
		oldest = entry;
		most = cost;
	}
	return oldest;
}

static void choose(struct kept_list *list, uint64_t max_bytes, const char *newest)
{
	struct kept_entry *oldest;
	uint64_t cost = 0;

	choose_same(list, newest);
	for (size_t i = 0; i < list->count; i++)
		cost += cost_of(&list->entry[i], max_bytes);
	while (cost > max_bytes && (oldest = find_oldest(list, max_bytes, newest))) {
		cost -= cost_of(oldest, max_bytes);
		oldest->must_go = true;
	}
}

uint64_t kept_max_bytes(uint64_t store_max_bytes)
{
	const uint64_t share = store_max_bytes / KEPT_SHARE;

	return store_max_bytes && share < KEPT_MAX_BYTES ? share : KEPT_MAX_BYTES;
}

int kept_trim(int store_fd, uint64_t max_bytes, const char *newest, uint64_t *ret_bytes)
{
	CLEANUP(kept_list_release) struct kept_list kept = {0};
	OWNED_FD int kept_fd = openat(store_fd, KEPT_DIRECTORY, DIRECTORY_FLAGS);
	int err;

	*ret_bytes = 0;
	if (kept_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	(void)store_each_name(kept_fd, ".", MAX_NAMES, remove_temporary, NULL);
	err = list(kept_fd, &kept);
	if (err)
		return err;
	choose(&kept, max_bytes, newest);
	for (size_t i = 0; i < kept.count; i++) {
		const int remove_err =
			kept.entry[i].must_go ? remove_kept(kept_fd, kept.entry[i].name) : 0;

		if (!kept.entry[i].must_go || remove_err)
			*ret_bytes += kept.entry[i].bytes;
		err = err ? err : remove_err;
	}
	return err;
}

/* ---- the windows of some minutes ---- */

struct window_file {
	struct store_file is;
	uint64_t bytes;
	unsigned int hour; /* of windows.hour_fd */
};

/* Release with windows_release(). */
struct windows {
	struct window_file *file; /* owned */
	size_t count, capacity;
	int hour_fd[HOURS_MAX]; /* owned; -1: the store has no such hour */
	unsigned int hours;
	const struct store_range *range; /* which are wanted */
};

static void windows_release(struct windows *windows)
{
	for (unsigned int i = 0; i < windows->hours; i++)
		close_owned_fd(&windows->hour_fd[i]);
	free(windows->file);
}

/* Newest first. */
static int compare_windows(const void *a, const void *b)
{
	const struct store_file *left = &((const struct window_file *)a)->is;
	const struct store_file *right = &((const struct window_file *)b)->is;

	if (left->start_ms != right->start_ms)
		return left->start_ms > right->start_ms ? -1 : 1;
	return strcmp(left->kind, right->kind);
}

/* Adds a window of the last hour. */
static int add_window(void *context, int hour_fd, const char *name)
{
	struct windows *windows = context;
	struct window_file file = {.hour = windows->hours - 1};
	struct stat stat;

	if (!store_file_parse(name, &file.is) || file.is.is_temporary || file.is.is_merged ||
	    !store_range_has(windows->range, file.is.start_ms, file.is.duration_ms))
		return 0;
	if (fstatat(hour_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || !S_ISREG(stat.st_mode))
		return 0;
	if (ARRAY_RESERVE(windows->file, windows->count, windows->capacity))
		return -ENOMEM;
	file.bytes = (uint64_t)stat.st_size;
	windows->file[windows->count++] = file;
	return 0;
}

/* Adds the windows of one hour; the store may have no such hour. */
static int add_hour(struct windows *windows, int store_fd, uint64_t hour_ms)
{
	char path[STORE_DAY_CHARS + STORE_HOUR_CHARS];
	OWNED_FD int day_fd = -1;
	int hour_fd;

	store_day_name(hour_ms, path);
	day_fd = openat(store_fd, path, DIRECTORY_FLAGS);
	store_hour_name(hour_ms, path);
	hour_fd = day_fd < 0 ? -1 : openat(day_fd, path, DIRECTORY_FLAGS);
	windows->hour_fd[windows->hours++] = hour_fd;
	if (hour_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return store_each_name(hour_fd, ".", MAX_NAMES, add_window, windows);
}

static int find_windows(int store_fd, struct windows *windows)
{
	const struct store_range *range = windows->range;
	const uint64_t before_ms =
		range->since_ms > KEPT_WINDOW_MAX_MS ? range->since_ms - KEPT_WINDOW_MAX_MS : 0;
	const uint64_t last = range->until_ms / MS_PER_HOUR;
	uint64_t hour = before_ms / MS_PER_HOUR;
	int err = 0;

	if (last >= HOURS_MAX && hour <= last - HOURS_MAX)
		hour = last - HOURS_MAX + 1;
	for (; !err && hour <= last; hour++)
		err = add_hour(windows, store_fd, hour * MS_PER_HOUR);
	if (windows->count)
		qsort(windows->file, windows->count, sizeof(windows->file[0]), compare_windows);
	return err ? err : windows->count ? 0 : -ENODATA;
}

/* ---- linking ---- */

static int link_windows(const struct windows *windows, int directory_fd, uint64_t max_bytes,
			struct kept_result *result)
{
	uint64_t from_ms = UINT64_MAX, to_ms = 0;

	for (size_t i = 0; i < windows->count && result->files < FILES_MAX; i++) {
		const struct window_file *file = &windows->file[i];
		char name[STORE_FILE_CHARS];

		if (result->bytes + file->bytes > max_bytes)
			break;
		store_file_name(&file->is, name);
		if (linkat(windows->hour_fd[file->hour], name, directory_fd, name, 0)) {
			if (errno == ENOENT) /* somebody has deleted it meanwhile */
				continue;
			return -errno;
		}
		result->bytes += file->bytes;
		result->files++;
		if (file->is.start_ms < from_ms)
			from_ms = file->is.start_ms;
		if (file->is.start_ms + file->is.duration_ms > to_ms)
			to_ms = file->is.start_ms + file->is.duration_ms;
	}
	if (!result->files)
		return -EFBIG;
	result->span_ms = to_ms > from_ms ? to_ms - from_ms : 0;
	return 0;
}

/* Chooses a free name: an end in the same second may be there. */
static int choose_name(int kept_fd, struct kept_name name, char ret_name[KEPT_NAME_CHARS])
{
	for (unsigned int i = 0; i < NAME_TRIES; i++, name.time_ms += MS_PER_SEC) {
		kept_name_format(&name, ret_name);
		if (faccessat(kept_fd, ret_name, F_OK, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

/* Opens a directory, which it makes when there is none. */
static int make_directory(int parent_fd, const char *name, int *ret_fd)
{
	const bool is_new = !mkdirat(parent_fd, name, DIRECTORY_MODE);
	OWNED_FD int fd = -1;

	if (!is_new && errno != EEXIST)
		return -errno;
	fd = openat(parent_fd, name, DIRECTORY_FLAGS);
	if (fd < 0 || (is_new && (fchmod(fd, DIRECTORY_MODE) || fsync(parent_fd))))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Makes the directory under its temporary name, and gives it its own when it is whole. */
static int link_into(int kept_fd, const struct windows *windows, uint64_t max_bytes,
		     struct kept_result *result)
{
	char temporary[TEMPORARY_CHARS];
	OWNED_FD int fd = -1;
	int err;

	temporary_name(result->name, temporary);
	err = make_directory(kept_fd, temporary, &fd);
	if (!err)
		err = link_windows(windows, fd, max_bytes, result);
	if (!err && (fsync(fd) || renameat(kept_fd, temporary, kept_fd, result->name)))
		err = -errno;
	if (err)
		(void)remove_directory(kept_fd, temporary);
	else if (fsync(kept_fd))
		err = -errno;
	return err;
}

int kept_link(int store_fd, const struct kept_request *request, struct kept_result *ret_result)
{
	const struct store_range range = {.since_ms = request->from_ms,
					  .until_ms = request->until_ms};
	CLEANUP(windows_release) struct windows windows = {.range = &range};
	OWNED_FD int kept_fd = -1;
	int err = find_windows(store_fd, &windows);

	*ret_result = (struct kept_result){0};
	if (!err)
		err = make_directory(store_fd, KEPT_DIRECTORY, &kept_fd);
	if (!err)
		err = choose_name(kept_fd, request->name, ret_result->name);
	return err ? err
		   : link_into(kept_fd, &windows, request->max_bytes / KEPT_ONE_SHARE, ret_result);
}
