/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "store/file_output.h"
#include "store/kept.h"
#include "store/store_query.h"

/* ---- retention ---- */

/* The most names read of one directory: a day has 24, an hour 360 per kind, the top 27 years. */
#define MAX_DIRECTORY_ENTRIES 100000U
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Temporary files first, then by time of start; directories by name. */
static int compare_names(const void *a, const void *b)
{
	struct store_file file_a = {}, file_b = {};

	(void)store_file_parse(a, &file_a);
	(void)store_file_parse(b, &file_b);
	if (file_a.start_ms != file_b.start_ms)
		return file_a.start_ms < file_b.start_ms ? -1 : 1;
	return strcmp(a, b);
}

/* One walk through all hours, oldest first; a result of `visit` above 0, or an error, ends it. */
struct walk {
	int (*visit)(struct walk *walk, int hour_fd, const char *name,
		     const struct store_file *file);
	struct retention_totals totals;
	time_t stale;		       /* counting */
	uint64_t max_bytes, deleted;   /* trimming */
	const struct store_file *keep; /* trimming */
	uint64_t after_ms;	       /* trimming: only what begins later */
	uint64_t end_ms;	       /* expiring: what ends later is kept */
	bool remove_empty;
};

enum level { LEVEL_STORE, LEVEL_DAY, LEVEL_HOUR };

/* Adds a name that stands in a directory of a level. */
struct names {
	enum level level;
	struct name_list *list;
};

static int add_name(void *context, int directory_fd, const char *name)
{
	struct names *names = context;
	struct store_file file;
	const bool is_wanted = names->level == LEVEL_STORE ? store_day_parse(name)
			       : names->level == LEVEL_DAY ? store_hour_parse(name)
							   : store_file_parse(name, &file);

	(void)directory_fd;
	return is_wanted ? name_list_add(names->list, name) : 0;
}

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

static int walk_directory(struct walk *walk, int directory_fd, enum level level);

static int walk_below(struct walk *walk, int parent_fd, const char *name, enum level level)
{
	OWNED_FD int fd = openat(parent_fd, name, DIRECTORY_FLAGS | O_NOFOLLOW);
	const uint64_t deleted = walk->deleted;
	int err = fd < 0 ? -errno : walk_directory(walk, fd, level);

	if (err >= 0 && removes(walk, deleted))
		unlinkat(parent_fd, name, AT_REMOVEDIR); /* fails if not empty */
	return is_passed_over(err) ? 0 : err;
}

static int walk_directory(struct walk *walk, int directory_fd, enum level level)
{
	CLEANUP(name_list_release) struct name_list list = {0};
	struct names names = {.level = level, .list = &list};
	int err = store_each_name(directory_fd, ".", MAX_DIRECTORY_ENTRIES, add_name, &names);

	if (list.count)
		qsort(list.name, list.count, sizeof(list.name[0]), compare_names);
	for (size_t i = 0; !err && i < list.count; i++) {
		struct store_file file = {};

		if (level != LEVEL_HOUR)
			err = walk_below(walk, directory_fd, list.name[i], level + 1);
		else if (store_file_parse(list.name[i], &file))
			err = walk->visit(walk, directory_fd, list.name[i], &file);
	}
	return err;
}

static int walk_store(struct walk *walk, int store_fd)
{
	int err = walk_directory(walk, store_fd, LEVEL_STORE);

	return err < 0 ? err : 0;
}

static int count_file(struct walk *walk, int hour_fd, const char *name,
		      const struct store_file *file)
{
	struct stat stat;

	if (fstatat(hour_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || !S_ISREG(stat.st_mode))
		return 0;
	if (!file->is_temporary) {
		walk->totals.files++;
		walk->totals.bytes += (uint64_t)stat.st_size;
	} else if (stat.st_mtime < walk->stale) {
		unlinkat(hour_fd, name, 0);
	}
	return 0;
}

int retention_count(int store_fd, time_t stale, struct retention_totals *ret_totals)
{
	struct walk walk = {.visit = count_file, .stale = stale};
	int err = walk_store(&walk, store_fd);

	if (!err)
		*ret_totals = walk.totals;
	return err;
}

static bool is_kept(const struct walk *walk, const struct store_file *file)
{
	return file->is_temporary || (walk->after_ms && file->start_ms <= walk->after_ms) ||
	       (file->start_ms == walk->keep->start_ms &&
		file->duration_ms == walk->keep->duration_ms &&
		!strcmp(file->kind, walk->keep->kind));
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

static int trim_file(struct walk *walk, int hour_fd, const char *name,
		     const struct store_file *file)
{
	if (walk->totals.bytes <= walk->max_bytes)
		return 1;
	return is_kept(walk, file) ? 0 : delete_file(walk, hour_fd, name);
}

/* Ends the walk at the first file that begins too late: all that follow do. */
static int expire_file(struct walk *walk, int hour_fd, const char *name,
		       const struct store_file *file)
{
	uint64_t end_ms;

	if (file->start_ms > walk->end_ms)
		return 1;
	if (__builtin_add_overflow(file->start_ms, file->duration_ms, &end_ms))
		end_ms = UINT64_MAX;
	return end_ms > walk->end_ms || is_kept(walk, file) ? 0 : delete_file(walk, hour_fd, name);
}

int retention_trim(int store_fd, uint64_t max_bytes, const struct store_file *keep,
		   struct retention_totals *totals, uint64_t *ret_deleted)
{
	struct walk walk = {.visit = trim_file,
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
	struct walk walk = {.visit = expire_file,
			    .totals = *totals,
			    .end_ms = end_ms,
			    .keep = keep,
			    .remove_empty = true};
	int err = walk_store(&walk, store_fd);

	*totals = walk.totals;
	*ret_deleted = walk.deleted;
	return err;
}

/* ---- as the owner of the store ---- */

/* Lets root access files as somebody else (setfsuid(2)): in a directory of another user root then
 * makes files that belong to that user, and can do no more there than that user could. */

/* What the calling thread had before. */
struct fs_user {
	uid_t uid;
	gid_t gid;
	bool is_changed;
};

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

/* Does something as the store's owner; where that one may not, as who we are: something there is
 * root's, who came another way. */
static int as_owner(struct store *store, int (*act)(struct store *store, void *context),
		    void *context)
{
	struct fs_user before = fs_user_become(store->uid, store->gid);
	int err = act(store, context);

	fs_user_return(&before);
	return err == -EACCES || err == -EPERM ? act(store, context) : err;
}

static int lock(struct store *store, void *context)
{
	(void)context;
	return lock_file_take(store->fd, LOCK_NAME, &store->lock_fd);
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
	err = as_owner(store, lock, NULL);
	if (!err)
		err = retention_count(store->fd, time(NULL) - STORE_STALE_TEMPORARY_SECONDS,
				      &store->totals);
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

/* A file with its contents, and where it went. */
struct content {
	struct store_file file;
	const void *bytes;
	size_t size;
	struct hour_directory directory;
	char name[STORE_FILE_CHARS];
};

static void content_release(struct content *content)
{
	hour_directory_release(&content->directory);
	content->directory.day_fd = content->directory.hour_fd = -1;
}

/* Writes a file into its directory, which is made if need be. */
static int put(struct store *store, void *context)
{
	struct content *content = context;
	int err;

	content_release(content); /* of an earlier try */
	err = open_hour(store, content->file.start_ms, &content->directory);
	return err ? err
		   : put_file(content->directory.hour_fd, &content->file, content->bytes,
			      content->size, content->name);
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
	CLEANUP(content_release) struct content content = {
		.file = {.start_ms = start_wall_ns / NS_PER_MS,
			 .duration_ms = duration_ns / NS_PER_MS},
		.bytes = bytes,
		.size = size,
		.directory = {.day_fd = -1, .hour_fd = -1}};
	size_t path_size = strlen(store->directory) + BELOW_CHARS;
	OWNED_MEM char *path = NULL;
	int err;

	if (!store_kind_is_valid(kind))
		return -EINVAL;
	snprintf(content.file.kind, sizeof(content.file.kind), "%s", kind);
	/* Before the file exists, because nothing may fail after that. */
	path = malloc(path_size);
	if (!path)
		return -ENOMEM;
	err = as_owner(store, put, &content);
	if (err) {
		remove_if_empty(store, &content.directory);
		return err;
	}
	store->totals.files++;
	store->totals.bytes += size;
	retain(store, &content.file);
	snprintf(path, path_size, "%s/%s/%s/%s", store->directory, content.directory.day,
		 content.directory.hour, content.name);
	if (ret_path)
		*ret_path = TAKE(path);
	return 0;
}

struct keeping {
	struct kept_request request;
	struct kept_result *result;
};

static int keep(struct store *store, void *context)
{
	const struct keeping *keeping = context;

	return kept_link(store->fd, &keeping->request, keeping->result);
}

int store_keep(struct store *store, const struct kept_request *request,
	       struct kept_result *ret_result)
{
	struct keeping keeping = {.request = *request, .result = ret_result};
	int err;

	keeping.request.max_bytes = kept_max_bytes(store->limits.max_bytes);
	err = as_owner(store, keep, &keeping);
	if (!err)
		trim_kept(store, ret_result->name);
	return err;
}
