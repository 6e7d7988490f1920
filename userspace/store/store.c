/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "store/lock_file.h"
#include "store/retention.h"
#include "store/store_names.h"

/* Lets root access files as somebody else (setfsuid(2)): in a directory of another user root then
 * makes files that belong to that user, and can do no more there than that user could. */

/* Changes the calling thread's user and group for files.  Nothing changes for a caller who is not
 * root, or has no capability to. */
static struct fs_user fs_user_become(uid_t uid, gid_t gid)
{
	struct fs_user before = {.is_changed = !geteuid() && uid};

	if (!before.is_changed)
		return before;
	before.gid = (gid_t)setfsgid(gid);
	before.uid = (uid_t)setfsuid(uid);
	return before;
}

static void fs_user_return(struct fs_user *before)
{
	if (!before->is_changed)
		return;
	setfsuid(before->uid);
	setfsgid(before->gid);
}

#define DIRECTORY_MODE 0750
#define FILE_MODE 0640
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define LOCK_NAME ".lock"
/* A trim first counts the whole store, so it frees this part of the store, to make trims rare. */
#define TRIM_SHARE 64U
#define EXPIRE_EVERY_NS (60 * NS_PER_SEC)
#define TRIM_KEPT_EVERY_NS (60 * NS_PER_SEC)
/* A clock that is wrong makes all files old: at boot, before it is set, or when it is set wrong.
 * It is believed when it has gone as fast as CLOCK_MONOTONIC for so long. */
#define CLOCK_WATCH_NS (300 * NS_PER_SEC)
#define CLOCK_SLACK_MS 30000 /* windows wait for a slow disk */
/* "/day/hour/name" */
#define BELOW_CHARS (STORE_DAY_CHARS + STORE_HOUR_CHARS + STORE_FILE_CHARS)

struct store {
	char *directory; /* as given */
	int fd, lock_fd;
	/* Whose directory it is: a service without root has to be able to delete what root, started
	 * by hand, wrote beside it. */
	uid_t uid;
	gid_t gid;
	struct store_limits limits;
	/* When the ages are looked at next, and a window's end by the clock with the time at which
	 * it was written; 0: none was. */
	uint64_t expire_after_ns, seen_ns, seen_end_ms;
	struct retention_totals totals; /* of windows */
	uint64_t deleted_files;
	/* Of kept/, from which anybody may remove what is no longer wanted, and when its bounds are
	 * looked at next. */
	uint64_t kept_bytes, trim_kept_after_ns;
};

/* The two directories of a file. */
struct hour_directory {
	int day_fd, hour_fd;
	char day[STORE_DAY_CHARS], hour[STORE_HOUR_CHARS];
};

static void hour_directory_release(struct hour_directory *directory)
{
	close_owned_fd(&directory->day_fd);
	close_owned_fd(&directory->hour_fd);
}

void store_free(struct store *store)
{
	if (!store)
		return;
	close_owned_fd(&store->lock_fd);
	close_owned_fd(&store->fd);
	free(store->directory);
	free(store);
}

void store_set_limits(struct store *store, const struct store_limits *limits)
{
	store->limits = *limits;
}

/* Opens a directory and creates it when it does not exist (ret_is_new may be NULL). */
static int open_directory(int parent_fd, const char *name, int flags, bool *ret_is_new, int *ret_fd)
{
	bool is_new = !mkdirat(parent_fd, name, DIRECTORY_MODE);
	int mkdir_err = is_new ? 0 : -errno;
	OWNED_FD int fd = openat(parent_fd, name, DIRECTORY_FLAGS | flags);

	if (fd < 0) {
		/* When there is no directory, mkdir's error is closer to the cause. */
		return errno == ENOENT && mkdir_err ? mkdir_err : -errno;
	}
	if (is_new && fchmod(fd, DIRECTORY_MODE))
		return -errno;
	if (ret_is_new)
		*ret_is_new = is_new;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int lock_as_owner(struct store *store)
{
	CLEANUP(fs_user_return) struct fs_user before = fs_user_become(store->uid, store->gid);

	return lock_file_take(store->fd, LOCK_NAME, &store->lock_fd);
}

/* Locks and counts what is there, which may be root's by other ways. */
static int take(struct store *store)
{
	int err = lock_as_owner(store);

	if (err == -EACCES)
		err = lock_file_take(store->fd, LOCK_NAME, &store->lock_fd);
	if (err)
		return err;
	return retention_count(store->fd, time(NULL) - STORE_STALE_TEMPORARY_SECONDS,
			       &store->totals);
}

int store_open(const char *directory, const struct store_limits *limits, struct store **ret_store)
{
	OWNED(store) struct store *store = calloc(1, sizeof(*store));
	struct stat stat;
	int err;

	if (!store)
		return -ENOMEM;
	store->fd = -1;
	store->lock_fd = -1;
	store->limits = *limits;
	store->directory = strdup(directory);
	if (!store->directory)
		return -ENOMEM;
	/* DIR itself may be an administrator's link; below it no link is followed. */
	err = open_directory(AT_FDCWD, directory, 0, NULL, &store->fd);
	if (err)
		return err;
	if (fstat(store->fd, &stat))
		return -errno;
	store->uid = stat.st_uid;
	store->gid = stat.st_gid;
	err = take(store);
	if (err)
		return err;
	*ret_store = TAKE(store);
	return 0;
}

int store_directory_fd(const struct store *store)
{
	return store->fd;
}

void store_get_stats(const struct store *store, struct store_stats *ret_stats)
{
	*ret_stats = (struct store_stats){.files = store->totals.files,
					  .bytes = store->totals.bytes,
					  .deleted_files = store->deleted_files};
}

static int open_hour(const struct store *store, uint64_t start_ms, struct hour_directory *directory)
{
	bool is_new_day, is_new_hour;
	int err;

	store_day_name(start_ms, directory->day);
	store_hour_name(start_ms, directory->hour);
	err = open_directory(store->fd, directory->day, O_NOFOLLOW, &is_new_day,
			     &directory->day_fd);
	if (err)
		return err;
	err = open_directory(directory->day_fd, directory->hour, O_NOFOLLOW, &is_new_hour,
			     &directory->hour_fd);
	if (err)
		return err;
	/* Sync, so that a power cut does not remove the directory of the file. */
	if (is_new_hour && fsync(directory->day_fd))
		return -errno;
	return is_new_day && fsync(store->fd) ? -errno : 0;
}

/* Removes the directories of a file, unless there is something in them. */
static void remove_if_empty(const struct store *store, const struct hour_directory *directory)
{
	if (directory->day_fd >= 0)
		unlinkat(directory->day_fd, directory->hour, AT_REMOVEDIR);
	unlinkat(store->fd, directory->day, AT_REMOVEDIR);
}

/* Chooses a free name: when the clock was set back, an older window must not be overwritten. */
static int choose_name(int hour_fd, struct store_file *file, char name[STORE_FILE_CHARS])
{
	for (unsigned int i = 0; i < STORE_RENAMES_MAX; i++, file->start_ms++) {
		store_file_name(file, name);
		if (faccessat(hour_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

static int put_file(int hour_fd, struct store_file *file, const void *bytes, size_t size,
		    char name[STORE_FILE_CHARS])
{
	struct store_file temporary = *file;
	char temporary_name[STORE_FILE_CHARS];
	int err;

	temporary.is_temporary = true;
	store_file_name(&temporary, temporary_name);
	err = write_file_at(hour_fd, temporary_name, FILE_MODE, bytes, size);
	if (err)
		return err;
	err = choose_name(hour_fd, file, name);
	if (!err && renameat(hour_fd, temporary_name, hour_fd, name))
		err = -errno;
	if (err) {
		unlinkat(hour_fd, temporary_name, 0);
		return err;
	}
	if (!fsync(hour_fd))
		return 0;
	err = -errno;
	unlinkat(hour_fd, name, 0);
	return err;
}

/* A file with its contents. */
struct content {
	struct store_file *file;
	const void *bytes;
	size_t size;
};

/* Writes a file into its directory, which is made if need be. */
static int put(const struct store *store, const struct content *content,
	       struct hour_directory *directory, char name[STORE_FILE_CHARS])
{
	int err = open_hour(store, content->file->start_ms, directory);

	return err ? err
		   : put_file(directory->hour_fd, content->file, content->bytes, content->size,
			      name);
}

static int put_as_owner(const struct store *store, const struct content *content,
			struct hour_directory *directory, char name[STORE_FILE_CHARS])
{
	CLEANUP(fs_user_return) struct fs_user before = fs_user_become(store->uid, store->gid);

	return put(store, content, directory, name);
}

/* What fails is tried again a minute later. */
static void trim_kept(struct store *store, const char *newest)
{
	(void)kept_trim(store->fd, kept_max_bytes(store->limits.max_bytes), newest,
			&store->kept_bytes);
	store->trim_kept_after_ns = mono_ns() + TRIM_KEPT_EVERY_NS;
}

/* Returns what windows may take beside all that is kept, which keeps to a tenth of the bound. */
static uint64_t windows_max_bytes(const struct store *store)
{
	const uint64_t max_bytes = store->limits.max_bytes, most = kept_max_bytes(max_bytes);

	return max_bytes - (store->kept_bytes < most ? store->kept_bytes : most);
}

/* Counts the files again, because some may have been deleted by hand, and trims. */
static int trim(struct store *store, uint64_t max_bytes, const struct store_file *keep)
{
	time_t stale = time(NULL) - STORE_STALE_TEMPORARY_SECONDS;
	uint64_t deleted;
	int err = retention_count(store->fd, stale, &store->totals);

	if (err || store->totals.bytes <= max_bytes)
		return err;
	err = retention_trim(store->fd, max_bytes - max_bytes / TRIM_SHARE, keep, &store->totals,
			     &deleted);
	store->deleted_files += deleted;
	return err;
}

static void look_again(struct store *store, uint64_t end_ms, uint64_t now_ns, uint64_t after_ns)
{
	store->seen_ns = now_ns;
	store->seen_end_ms = end_ms;
	store->expire_after_ns = now_ns + after_ns;
}

/* Returns whether the clock went on as fast as time did since it was looked at. */
static bool has_gone_on(const struct store *store, uint64_t end_ms, uint64_t now_ns)
{
	const int64_t moved_ms = (int64_t)(end_ms - store->seen_end_ms);
	const int64_t passed_ms = (int64_t)((now_ns - store->seen_ns) / NS_PER_MS);

	return store->seen_ns && moved_ms - passed_ms < CLOCK_SLACK_MS &&
	       passed_ms - moved_ms < CLOCK_SLACK_MS;
}

/* Deletes what is too old, from the newest file's end on, which is the clock's time of now. */
static int expire(struct store *store, const struct store_file *newest)
{
	const uint64_t end_ms = newest->start_ms + newest->duration_ms;
	const uint64_t now_ns = mono_ns();
	uint64_t deleted;
	int err;

	if (!store->limits.max_age_ms || end_ms <= store->limits.max_age_ms)
		return 0;
	if (!has_gone_on(store, end_ms, now_ns)) {
		look_again(store, end_ms, now_ns, CLOCK_WATCH_NS);
		return 0;
	}
	if (now_ns < store->expire_after_ns)
		return 0;
	look_again(store, end_ms, now_ns, EXPIRE_EVERY_NS);
	err = retention_expire(store->fd, end_ms - store->limits.max_age_ms, newest, &store->totals,
			       &deleted);
	store->deleted_files += deleted;
	return err;
}

/* Deletes what is above the bounds.  What fails is tried again after the next file. */
static void retain(struct store *store, const struct store_file *newest)
{
	uint64_t max_bytes;

	(void)expire(store, newest);
	if (mono_ns() >= store->trim_kept_after_ns)
		trim_kept(store, NULL);
	if (!store->limits.max_bytes)
		return;
	max_bytes = windows_max_bytes(store);
	if (store->totals.bytes > max_bytes)
		(void)trim(store, max_bytes, newest);
}

int store_put(struct store *store, const char *kind, uint64_t start_wall_ns, uint64_t duration_ns,
	      const void *bytes, size_t size, char **ret_path)
{
	CLEANUP(hour_directory_release) struct hour_directory directory = {.day_fd = -1,
									   .hour_fd = -1};
	struct store_file file = {.start_ms = start_wall_ns / NS_PER_MS,
				  .duration_ms = duration_ns / NS_PER_MS};
	size_t path_size = strlen(store->directory) + BELOW_CHARS;
	char name[STORE_FILE_CHARS];
	const struct content content = {.file = &file, .bytes = bytes, .size = size};
	OWNED_MEM char *path = NULL;
	int err;

	if (!store_kind_is_valid(kind))
		return -EINVAL;
	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	/* Before the file exists, because nothing may fail after that. */
	path = malloc(path_size);
	if (!path)
		return -ENOMEM;
	err = put_as_owner(store, &content, &directory, name);
	if (err == -EACCES) {
		/* The day or the hour is root's, who came another way. */
		hour_directory_release(&directory);
		directory.day_fd = directory.hour_fd = -1;
		err = put(store, &content, &directory, name);
	}
	if (err) {
		remove_if_empty(store, &directory);
		return err;
	}
	store->totals.files++;
	store->totals.bytes += size;
	retain(store, &file);
	snprintf(path, path_size, "%s/%s/%s/%s", store->directory, directory.day, directory.hour,
		 name);
	if (ret_path)
		*ret_path = TAKE(path);
	return 0;
}

static int keep_as_owner(const struct store *store, const struct kept_request *request,
			 struct kept_result *ret_result)
{
	CLEANUP(fs_user_return) struct fs_user before = fs_user_become(store->uid, store->gid);

	return kept_link(store->fd, request, ret_result);
}

int store_keep(struct store *store, const struct kept_request *request,
	       struct kept_result *ret_result)
{
	struct kept_request bounded = *request;
	int err;

	bounded.max_bytes = kept_max_bytes(store->limits.max_bytes);
	err = keep_as_owner(store, &bounded, ret_result);
	if (err == -EACCES || err == -EPERM) /* there are files of root, who came another way */
		err = kept_link(store->fd, &bounded, ret_result);
	if (!err)
		trim_kept(store, ret_result->name);
	return err;
}
