/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_plan.h"

#include <string.h>

#include "base/kinds.h"

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
