/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/kinds.h"
#include "pprof/profile_read.h"

/* ---- which files become one ---- */

static bool is_of_one_window(const struct store_file *file)
{
	return !file->is_merged && !file->is_temporary;
}

/* Returns how long the directory's part of a path is. */
static size_t directory_size(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_in_same_slot(const struct store_entry *a, const struct store_entry *b)
{
	const size_t size = directory_size(a->path);

	return a->file.start_ms / MERGE_SLOT_MS == b->file.start_ms / MERGE_SLOT_MS &&
	       size == directory_size(b->path) && !strncmp(a->path, b->path, size);
}

static bool is_old(const struct store_file *file, uint64_t now_ms)
{
	const uint64_t slot_ms = file->start_ms - file->start_ms % MERGE_SLOT_MS;
	uint64_t due_ms;

	return !__builtin_add_overflow(slot_ms, (uint64_t)MERGE_SLOT_MS + MERGE_AFTER_MS,
				       &due_ms) &&
	       due_ms <= now_ms;
}

bool merge_plan_slot(const struct store_listing *listing, uint64_t now_ms,
		     struct merge_slot *ret_slot)
{
	for (size_t i = ret_slot->end; i < listing->count; i++) {
		const struct store_entry *first = &listing->entry[i];
		size_t end = i + 1;

		if (!is_of_one_window(&first->file) || !is_old(&first->file, now_ms))
			continue;
		while (end < listing->count && is_in_same_slot(first, &listing->entry[end]))
			end++;
		*ret_slot = (struct merge_slot){.begin = i, .end = end};
		return true;
	}
	return false;
}

/* Returns the window of a file, which is a new one when the last one is another; NULL: there is no
 * room for it.  Files come by start. */
static struct merge_window *window_of(struct merge_group *group, const struct store_file *file)
{
	struct merge_window *window;

	for (size_t i = group->window_count; i > 0; i--) {
		window = &group->window[i - 1];
		if (window->start_ms != file->start_ms)
			break;
		if (window->duration_ms == file->duration_ms)
			return window;
	}
	if (group->window_count == MERGE_WINDOWS_MAX)
		return NULL;
	window = &group->window[group->window_count++];
	*window =
		(struct merge_window){.start_ms = file->start_ms, .duration_ms = file->duration_ms};
	return window;
}

/* Returns whether a file tells that a window without one of the kind has nothing of it.  Wall of
 * such a window is made of cpu and offcpu; only older versions wrote it. */
static bool tells_of(const struct store_file *file, const char *kind)
{
	return kind_is(file->kind, PP_PROFILE_CPU) && !kind_is(kind, PP_PROFILE_WALL);
}

/* Returns whether a merge of these windows was begun and not finished: their own files count no
 * more, though some are still there.  It bears the start of its first window, which may be gone. */
static bool is_begun(const struct store_listing *listing, const struct merge_slot *slot,
		     const char *kind)
{
	const struct store_entry *first = &listing->entry[slot->begin];
	size_t i = slot->begin;

	while (i && listing->entry[i - 1].file.start_ms / MERGE_SLOT_MS ==
			    first->file.start_ms / MERGE_SLOT_MS)
		i--;
	for (; i < slot->end; i++) {
		const struct store_entry *entry = &listing->entry[i];

		if (entry->file.is_merging && !strcmp(entry->file.kind, kind) &&
		    is_in_same_slot(entry, first))
			return true;
	}
	return false;
}

bool merge_plan_group(const struct store_listing *listing, const struct merge_slot *slot,
		      const char *kind, struct merge_group *ret_group)
{
	struct merge_group group = {0};

	memccpy(group.kind, kind, '\0', sizeof(group.kind) - 1);
	for (size_t i = slot->begin; i < slot->end; i++) {
		const struct store_file *file = &listing->entry[i].file;
		const bool is_kind = !strcmp(file->kind, kind);
		struct merge_window *window;

		if (!is_of_one_window(file) || (!is_kind && !tells_of(file, kind)))
			continue;
		window = window_of(&group, file);
		if (!window)
			break;
		if (is_kind && !window->has_file) {
			window->has_file = true;
			group.file_count++;
		}
	}
	if (group.window_count < 2 || !group.file_count || is_begun(listing, slot, kind))
		return false;
	*ret_group = group;
	return true;
}

/* Puts a merged file in the place of the files that it was made of, such that whoever is killed at
 * any moment, or loses power, loses no window and leaves none twice:
 *
 *   1. .NAME.merged.pb.gz.tmp is written and synced
 *   2. it becomes NAME.merging.pb.gz: from now on its windows count, and their own files no more
 *   3. these are deleted
 *   4. it becomes NAME.merged.pb.gz
 *
 * What a .merging file lists is deleted at the next start; it is its own journal. */

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

/* Does steps 3 and 4 for a .merging file.  Returns 0; -errno: of merged_file_windows(), of deleting
 * or renaming. */
static int merge_step_finish(int hour_fd, const struct store_file *merging)
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

/* Kinds of one slot. */
#define KINDS_MAX 16U

void merge_refuse(struct merge_refused *refused, const char *kind, uint64_t start_ms)
{
	const size_t at = refused->count++ % MERGE_REFUSED_MAX;

	refused->group[at].start_ms = start_ms;
	snprintf(refused->group[at].kind, sizeof(refused->group[at].kind), "%s", kind);
}

static bool is_refused(const struct merge_refused *refused, const char *kind, uint64_t start_ms)
{
	for (size_t i = 0; i < refused->count && i < MERGE_REFUSED_MAX; i++)
		if (refused->group[i].start_ms == start_ms && !strcmp(refused->group[i].kind, kind))
			return true;
	return false;
}

/* Returns whether the next group would fail as well. */
static bool is_of_disk(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS || err == -EIO;
}

/* Does one piece of work unless it was refused before; only an error of the disk is one. */
static int try(const struct merge_pass *pass, const struct store_file *first, const char *path,
	       int (*work)(int hour_fd, const void *what), const void *what)
{
	OWNED_FD int fd = -1;
	const char *name;
	int err;

	if (is_refused(pass->refused, first->kind, first->start_ms))
		return 0;
	if (pass->begins)
		pass->begins(pass->context, first);
	err = open_directory_of(path, O_NOFOLLOW, &name, &fd);
	if (!err)
		err = work(fd, what);
	if (pass->done)
		pass->done(pass->context, first, err);
	if (is_of_disk(err))
		return err;
	/* A file that is gone: the store has deleted it, and the next pass sees what is left. */
	if (err && err != -ENOENT)
		merge_refuse(pass->refused, first->kind, first->start_ms);
	return 0;
}

static int finish(int hour_fd, const void *what)
{
	return merge_step_finish(hour_fd, what);
}

static int finish_begun(const struct store_listing *listing, const struct merge_pass *pass)
{
	int err = 0;

	for (size_t i = 0; !err && i < listing->count; i++) {
		const struct store_entry *entry = &listing->entry[i];

		if (entry->file.is_merging)
			err = try(pass, &entry->file, entry->path, finish, &entry->file);
	}
	return err;
}

static int merge(int hour_fd, const void *what)
{
	const struct merge_group *group = what;
	CLEANUP(merged_file_release) struct merged_file file = {0};
	int err = merge_group_files(hour_fd, group, &file);

	/* One file that the disk does not give is broken; other groups can be merged. */
	if (err == -EIO)
		return -EBADMSG;
	return err ? err : merge_step(hour_fd, group, &file);
}

static int merge_kind(const struct store_listing *listing, const struct merge_slot *slot,
		      const char *kind, const struct merge_pass *pass)
{
	struct store_file first = {0};
	struct merge_group group;

	if (!merge_plan_group(listing, slot, kind, &group))
		return 0;
	first.start_ms = group.window[0].start_ms;
	first.duration_ms = group.window[0].duration_ms;
	memcpy(first.kind, group.kind, sizeof(first.kind));
	return try(pass, &first, listing->entry[slot->begin].path, merge, &group);
}

/* Merges all kinds of a slot, `cpu` as the last one: its files tell which windows the others
 * lack. */
static int merge_slot(const struct store_listing *listing, const struct merge_slot *slot,
		      const struct merge_pass *pass)
{
	const char *done[KINDS_MAX];
	size_t count = 0;
	int err = 0;

	for (size_t i = slot->begin; !err && i < slot->end && count < KINDS_MAX; i++) {
		const char *kind = listing->entry[i].file.kind;
		size_t known = 0;

		while (known < count && strcmp(done[known], kind))
			known++;
		if (known < count || kind_is(kind, PP_PROFILE_CPU))
			continue;
		done[count++] = kind;
		err = merge_kind(listing, slot, kind, pass);
	}
	return err ? err : merge_kind(listing, slot, kind_get(PP_PROFILE_CPU)->name, pass);
}

int merge_store(const char *directory, uint64_t now_ms, const struct merge_pass *pass)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	struct merge_slot slot = {0};
	int err = store_list(directory, &all, &listing);

	if (!err)
		err = finish_begun(&listing, pass);
	while (!err && merge_plan_slot(&listing, now_ms, &slot))
		err = merge_slot(&listing, &slot, pass);
	return err;
}
