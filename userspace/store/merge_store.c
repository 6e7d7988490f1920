/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/kinds.h"
#include "pprof/pprof.h"
#include "pprof/pprof_tables.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"

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

/* ---- one file of the files of several windows ---- */

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* A comment of a window. */
struct comment {
	const char *text; /* of merge.strings */
	uint32_t window;
};

struct merge {
	int hour_fd;
	const struct merge_group *group;
	struct window_mark *mark; /* owned; one a window */
	uint32_t window;	  /* whose file is read now */
	struct intern *strings;
	struct comment *comment;
	size_t comment_count, comment_capacity;
	int err; /* of a callback that returns none */
};

static void merge_release(struct merge *merge)
{
	intern_free(merge->strings);
	free(merge->comment);
	free(merge->mark);
}

/* A merged file, not yet written. */
struct merged_file {
	struct store_file name;
	void *bytes; /* owned */
	size_t size;
};

static void merged_file_release(struct merged_file *file)
{
	free(file->bytes);
	*file = (struct merged_file){0};
}

static void on_comment(void *context, const char *text)
{
	struct merge *merge = context;
	uint32_t string;

	if (!merge->err)
		merge->err = intern_string(merge->strings, text, &string);
	if (!merge->err)
		merge->err = ARRAY_RESERVE(merge->comment, merge->comment_count,
					   merge->comment_capacity);
	if (!merge->err)
		merge->comment[merge->comment_count++] = (struct comment){
			.text = intern_get(merge->strings, string, NULL), .window = merge->window};
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct merge *merge = context;
	struct window_mark *mark = &merge->mark[merge->window];

	(void)profile;
	mark->start_wall_ns = window->start_wall_ns;
	mark->duration_ns = window->duration_ns;
	mark->period = window->period;
	return window->period < 0 ? -EBADMSG : 0; /* the list of windows has no such number */
}

static void window_name(const char *kind, uint64_t start_ms, uint64_t duration_ms,
			char name[STORE_FILE_CHARS])
{
	struct store_file file = {.start_ms = start_ms, .duration_ms = duration_ms};

	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	store_file_name(&file, name);
}

static int read_window(struct merge *merge, struct profile_reader *reader)
{
	const struct merge_window *window = &merge->group->window[merge->window];
	char name[STORE_FILE_CHARS];
	OWNED_FD int fd = -1;
	int err;

	window_name(merge->group->kind, window->start_ms, window->duration_ms, name);
	fd = openat(merge->hour_fd, name, OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	profile_reader_set_window(reader, merge->mark[merge->window].offset_ms);
	err = profile_reader_add(reader, fd, merge->group->kind);
	return err ? err : merge->err;
}

/* Lists the windows by their names.  A name that another one has begun with moves on by
 * milliseconds, as its offset tells windows apart. */
static int list_windows(struct merge *merge)
{
	const struct merge_window *window = merge->group->window;
	uint64_t offset_ms = 0;

	merge->mark = calloc(merge->group->window_count, sizeof(*merge->mark));
	if (!merge->mark)
		return -ENOMEM;
	for (size_t i = 0; i < merge->group->window_count; i++) {
		const uint64_t own_ms = window[i].start_ms - window[0].start_ms;

		offset_ms = i && own_ms <= offset_ms ? offset_ms + 1 : own_ms;
		merge->mark[i] = (struct window_mark){
			.offset_ms = offset_ms,
			.start_ms = window[i].start_ms,
			.duration_ms = window[i].duration_ms,
			.start_wall_ns = window[i].start_ms * NS_PER_MS,
			.duration_ns = window[i].duration_ms * NS_PER_MS,
		};
	}
	return 0;
}

static int read_all(struct merge *merge, struct profile_reader *reader)
{
	int err = 0;

	for (size_t i = 0; !err && i < merge->group->window_count; i++) {
		merge->window = (uint32_t)i;
		if (merge->group->window[i].has_file)
			err = read_window(merge, reader);
	}
	return err;
}

static int compare_comments(const void *a, const void *b)
{
	const struct comment *comment_a = a, *comment_b = b;
	int result = strcmp(comment_a->text, comment_b->text);

	if (result)
		return result;
	return (comment_a->window > comment_b->window) - (comment_a->window < comment_b->window);
}

/* Returns whether comments of one text are one of each window. */
static bool is_of_all(const struct merge *merge, const struct comment *comment, size_t count)
{
	if (count != merge->group->window_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (comment[i].window != i)
			return false;
	return true;
}

static int add_of_window(const struct merge *merge, struct profile *profile,
			 const struct comment *comment)
{
	OWNED_MEM char *text =
		window_comment_format(merge->mark[comment->window].offset_ms, comment->text);

	return text ? profile_add_comment(profile, text) : -ENOMEM;
}

/* Adds comments of one text. */
static int add_alike(const struct merge *merge, struct profile *profile,
		     const struct comment *comment, size_t count)
{
	int err = 0;

	if (is_of_all(merge, comment, count))
		return profile_add_comment(profile, comment->text);
	for (size_t i = 0; !err && i < count; i++)
		err = add_of_window(merge, profile, &comment[i]);
	return err;
}

/* Replaces the profile's comments by the list of its windows, and what these said.  Sorted: those
 * of one kind lie together. */
static int set_comments(struct merge *merge, struct profile *profile)
{
	const struct comment *comment = merge->comment;
	int err = 0;

	if (merge->comment_count + merge->group->window_count > PPROF_MAX_COMMENTS)
		return -E2BIG;
	profile->comment_count = 0;
	for (size_t i = 0; !err && i < merge->group->window_count; i++) {
		char text[WINDOW_MARK_CHARS];

		window_mark_format(&merge->mark[i], text);
		err = profile_add_comment(profile, text);
	}
	if (merge->comment_count)
		qsort(merge->comment, merge->comment_count, sizeof(*merge->comment),
		      compare_comments);
	for (size_t i = 0, end; !err && i < merge->comment_count; i = end) {
		for (end = i + 1; end < merge->comment_count; end++)
			if (comment[end].text != comment[i].text)
				break;
		err = add_alike(merge, profile, &comment[i], end - i);
	}
	return err;
}

static void set_times(const struct merge *merge, struct profile *profile, struct store_file *name)
{
	const struct merge_group *group = merge->group;
	uint64_t end_ms = 0, duration_ns = 0;

	for (size_t i = 0; i < group->window_count; i++) {
		uint64_t own_ms;

		if (__builtin_add_overflow(group->window[i].start_ms, group->window[i].duration_ms,
					   &own_ms))
			own_ms = UINT64_MAX;
		if (own_ms > end_ms)
			end_ms = own_ms;
		if (__builtin_add_overflow(duration_ns, merge->mark[i].duration_ns, &duration_ns))
			duration_ns = INT64_MAX;
	}
	*name = (struct store_file){.start_ms = group->window[0].start_ms,
				    .duration_ms = end_ms - group->window[0].start_ms,
				    .is_merged = true};
	snprintf(name->kind, sizeof(name->kind), "%s", group->kind);
	profile->options.start_wall_ns = merge->mark[0].start_wall_ns;
	profile->options.duration_ns = duration_ns;
}

/* Makes the file of all that was read. */
static int encode(struct merge *merge, struct profile *profile, struct merged_file *ret_file)
{
	CLEANUP(merged_file_release) struct merged_file file = {0};
	int err;

	profile_weigh_modules(profile);
	err = profile_order_rows(profile, WINDOW_LABEL);
	if (!err)
		err = set_comments(merge, profile);
	if (err)
		return err;
	set_times(merge, profile, &file.name);
	err = profile_encode_pprof_small(profile, &file.bytes, &file.size);
	if (err)
		return err;
	*ret_file = file;
	file = (struct merged_file){0};
	return 0;
}

/* Reads the files of a group in their directory.  Returns 0; -ENOENT: one is gone; -EBADMSG,
 * -EPROTO, -EFBIG, ...: what profile_reader_add() says of one of them; -E2BIG: more comments than
 * a file may have; -ENODATA: it has no file; -ENOMEM. */
static int merge_files(int hour_fd, const struct merge_group *group, struct merged_file *ret_file)
{
	CLEANUP(merge_release) struct merge merge = {.hour_fd = hour_fd, .group = group};
	const struct profile_read_options options = {
		.window_done = window_done, .comment = on_comment, .context = &merge};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int err = intern_new(&merge.strings);

	if (!err)
		err = profile_reader_new(&options, &reader);
	if (!err)
		err = list_windows(&merge);
	if (!err)
		err = read_all(&merge, reader);
	if (err)
		return err;
	return profile_reader_profile(reader)
		       ? encode(&merge, profile_reader_profile(reader), ret_file)
		       : -ENODATA;
}

/* ---- a pass over the store ---- */

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
	char name[STORE_FILE_CHARS];

	window_name(kind, start_ms, duration_ms, name);
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

/* Does all steps.  The file's name becomes longer by milliseconds where one is taken.  Returns 0;
 * -EEXIST; -errno (-ENOSPC, -EROFS, ...): the windows are in their own files, or, after step 2, for
 * merge_step_finish(). */
static int merge_step(int hour_fd, const struct merge_group *group, struct merged_file *file)
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
	fd = openat(hour_fd, name, OPEN_FLAGS);
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

static int merge_group(int hour_fd, const void *what)
{
	const struct merge_group *group = what;
	CLEANUP(merged_file_release) struct merged_file file = {0};
	int err = merge_files(hour_fd, group, &file);

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
	return try(pass, &first, listing->entry[slot->begin].path, merge_group, &group);
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
