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

#define MS_PER_SEC 1000U
/* 9999-12-31T23:59:59Z: later times have more digits. */
#define MAX_SECONDS 253402300799ULL
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TIME_FORMAT "%Y-%m-%dT%H%M%SZ"
#define TIME_CHARS 18U /* 2026-11-27T224059Z */
#define OOM "-oom-"
#define SIGNAL "-signal"
#define TEMPORARY_SUFFIX ".tmp"
/* Names read of one directory; a directory that is kept has a file a kind and `about`. */
#define MAX_NAMES (2 * KEPT_MAX)
#define COMM_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

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
		snprintf(name, KEPT_NAME_CHARS, "%s" OOM "%" PRIu32 "-%.15s", text, kept->pid,
			 kept->comm);
	else
		snprintf(name, KEPT_NAME_CHARS, "%s" SIGNAL, text);
}

static bool parse_victim(const char *text, struct kept_name *kept)
{
	unsigned long long pid;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	pid = strtoull(text, &end, 10);
	if (*end != '-' || pid > UINT32_MAX)
		return false;
	kept->pid = (uint32_t)pid;
	kept_comm(end + 1, kept->comm);
	return true;
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
		if (!parse_victim(name + strlen(OOM), &kept))
			return false;
	}
	kept_name_format(&kept, printed);
	if (strcmp(printed, name - TIME_CHARS))
		return false;
	*ret_kept = kept;
	return true;
}

void kept_temporary_name(const char *name, char temporary[KEPT_TEMPORARY_CHARS])
{
	snprintf(temporary, KEPT_TEMPORARY_CHARS, ".%.63s" TEMPORARY_SUFFIX, name);
}

static bool is_temporary(const char *name)
{
	const size_t size = strlen(name), suffix_size = strlen(TEMPORARY_SUFFIX);
	char inner[KEPT_NAME_CHARS];
	struct kept_name kept;

	if (name[0] != '.' || size < 1 + suffix_size || size - 1 - suffix_size >= sizeof(inner) ||
	    strcmp(name + size - suffix_size, TEMPORARY_SUFFIX))
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)(size - 1 - suffix_size), name + 1);
	return kept_name_parse(inner, &kept);
}

uint64_t kept_max_bytes(uint64_t store_max_bytes)
{
	const uint64_t share = store_max_bytes / KEPT_SHARE;

	return store_max_bytes && share < KEPT_MAX_BYTES ? share : KEPT_MAX_BYTES;
}

/* ---- the directory ---- */

void kept_list_release(struct kept_list *list)
{
	free(list->entry);
	*list = (struct kept_list){0};
}

int kept_open(int store_fd, int *ret_fd)
{
	int fd = openat(store_fd, KEPT_DIRECTORY, DIRECTORY_FLAGS);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Opens a directory to list it. */
static int open_listing(int parent_fd, const char *name, DIR **ret_dir)
{
	OWNED_FD int fd = openat(parent_fd, name, DIRECTORY_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -errno;
	(void)TAKE_FD(fd);
	*ret_dir = dir;
	return 0;
}

/* Sums the files of one that is kept. */
static int count_bytes(int kept_fd, const char *name, uint64_t *ret_bytes)
{
	OWNED_DIR DIR *dir = NULL;
	uint64_t bytes = 0;
	int err = open_listing(kept_fd, name, &dir);

	for (size_t i = 0; !err && i < MAX_NAMES; i++) {
		const struct dirent *item = readdir(dir);
		struct stat stat;

		if (!item)
			break;
		if (!fstatat(dirfd(dir), item->d_name, &stat, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(stat.st_mode))
			bytes += (uint64_t)stat.st_size;
	}
	if (!err)
		*ret_bytes = bytes;
	return err;
}

/* By time: names begin with it. */
static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct kept_entry *)a)->name, ((const struct kept_entry *)b)->name);
}

static int add_entry(int kept_fd, const char *name, struct kept_list *list)
{
	struct kept_entry entry = {0};

	/* Other names are none of ours; one that is gone or is no directory counts as none. */
	if (!kept_name_parse(name, &entry.is) || count_bytes(kept_fd, name, &entry.bytes))
		return 0;
	if (ARRAY_RESERVE(list->entry, list->count, list->capacity))
		return -ENOMEM;
	snprintf(entry.name, sizeof(entry.name), "%.63s", name);
	list->entry[list->count++] = entry;
	list->bytes += entry.bytes;
	return 0;
}

int kept_list(int kept_fd, struct kept_list *ret_list)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_DIR DIR *dir = NULL;
	int err = open_listing(kept_fd, ".", &dir);

	for (size_t i = 0; !err && i < MAX_NAMES && list.count < KEPT_MAX; i++) {
		const struct dirent *item = readdir(dir);

		if (!item)
			break;
		err = add_entry(kept_fd, item->d_name, &list);
	}
	if (err)
		return err;
	if (list.count)
		qsort(list.entry, list.count, sizeof(list.entry[0]), compare_entries);
	*ret_list = list;
	list = (struct kept_list){0};
	return 0;
}

uint64_t kept_count_bytes(int store_fd)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_FD int fd = -1;

	return kept_open(store_fd, &fd) || kept_list(fd, &list) ? 0 : list.bytes;
}

/* ---- removing ---- */

static int remove_directory(int kept_fd, const char *name)
{
	OWNED_DIR DIR *dir = NULL;
	int err = open_listing(kept_fd, name, &dir);

	for (size_t i = 0; !err && i < MAX_NAMES; i++) {
		const struct dirent *item = readdir(dir);

		if (!item)
			break;
		if (strcmp(item->d_name, ".") && strcmp(item->d_name, ".."))
			(void)unlinkat(dirfd(dir), item->d_name, 0);
	}
	if (!err && unlinkat(kept_fd, name, AT_REMOVEDIR))
		err = -errno;
	return err == -ENOENT ? 0 : err;
}

int kept_remove(int kept_fd, const char *name)
{
	char temporary[KEPT_TEMPORARY_CHARS];

	kept_temporary_name(name, temporary);
	if (renameat(kept_fd, name, kept_fd, temporary))
		return errno == ENOENT ? 0 : -errno;
	return remove_directory(kept_fd, temporary);
}

void kept_remove_temporary(int kept_fd)
{
	OWNED_DIR DIR *dir = NULL;

	if (open_listing(kept_fd, ".", &dir))
		return;
	for (size_t i = 0; i < MAX_NAMES; i++) {
		const struct dirent *item = readdir(dir);

		if (!item)
			return;
		if (is_temporary(item->d_name))
			(void)remove_directory(kept_fd, item->d_name);
	}
}
