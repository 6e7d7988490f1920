/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/profile_read.h"

#define FILE_MODE 0640

static bool is_free(int hour_fd, const struct store_file *file)
{
	char name[STORE_FILE_CHARS];

	store_file_name(file, name);
	return faccessat(hour_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

/* A merged file of the same time is there when the clock was set back. */
static int choose_name(int hour_fd, struct store_file *file)
{
	for (unsigned int i = 0; i < STORE_RENAMES_MAX; i++, file->duration_ms++) {
		struct store_file merging = *file;

		merging.is_merging = true;
		if (is_free(hour_fd, file) && is_free(hour_fd, &merging))
			return 0;
	}
	return -EEXIST;
}

static int rename_synced(int hour_fd, const struct store_file *from, const struct store_file *to)
{
	char old[STORE_FILE_CHARS], new[STORE_FILE_CHARS];

	store_file_name(from, old);
	store_file_name(to, new);
	if (renameat(hour_fd, old, hour_fd, new))
		return -errno;
	return fsync(hour_fd) ? -errno : 0;
}

static int delete_window(int hour_fd, const char *kind, uint64_t start_ms, uint64_t duration_ms)
{
	struct store_file file = {.start_ms = start_ms, .duration_ms = duration_ms};
	char name[STORE_FILE_CHARS];

	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	store_file_name(&file, name);
	/* The store may have deleted it for its age. */
	return unlinkat(hour_fd, name, 0) && errno != ENOENT ? -errno : 0;
}

/* Step 4. */
static int finish_name(int hour_fd, const struct store_file *merging)
{
	struct store_file merged = *merging;

	if (fsync(hour_fd))
		return -errno;
	merged.is_merging = false;
	return rename_synced(hour_fd, merging, &merged);
}

static int delete_windows(int hour_fd, const struct merge_group *group)
{
	int err = 0;

	for (size_t i = 0; !err && i < group->window_count; i++)
		if (group->window[i].has_file)
			err = delete_window(hour_fd, group->kind, group->window[i].start_ms,
					    group->window[i].duration_ms);
	return err;
}

int merge_step(int hour_fd, const struct merge_group *group, struct merged_file *file)
{
	struct store_file temporary, merging;
	char name[STORE_FILE_CHARS];
	int err = choose_name(hour_fd, &file->name);

	if (err)
		return err;
	temporary = merging = file->name;
	temporary.is_temporary = true;
	merging.is_merging = true;
	store_file_name(&temporary, name);
	err = write_file_at(hour_fd, name, FILE_MODE, file->bytes, file->size);
	if (!err)
		err = rename_synced(hour_fd, &temporary, &merging);
	if (err) {
		unlinkat(hour_fd, name, 0);
		return err;
	}
	err = delete_windows(hour_fd, group);
	return err ? err : finish_name(hour_fd, &merging);
}

struct finishing {
	int hour_fd, err;
	const char *kind;
};

static void delete_listed(void *context, const struct window_mark *mark)
{
	struct finishing *finishing = context;

	if (!finishing->err)
		finishing->err = delete_window(finishing->hour_fd, finishing->kind, mark->start_ms,
					       mark->duration_ms);
}

int merge_step_finish(int hour_fd, const struct store_file *merging)
{
	struct finishing finishing = {.hour_fd = hour_fd, .kind = merging->kind};
	char name[STORE_FILE_CHARS];
	OWNED_FD int fd = -1;
	int err;

	store_file_name(merging, name);
	fd = openat(hour_fd, name, MERGE_OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	err = profile_windows_list(fd, delete_listed, &finishing);
	if (!err)
		err = finishing.err;
	return err ? err : finish_name(hour_fd, merging);
}
