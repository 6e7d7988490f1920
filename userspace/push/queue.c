/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/queue.h"

#include <string.h>

#include "base/kinds.h"

void push_queue_release(struct push_queue *queue)
{
	store_listing_release(&queue->listing);
}

static bool kind_of(const struct push_queue *queue, const struct store_entry *entry,
		    enum pp_profile *ret_kind)
{
	return kind_find(entry->file.kind, strlen(entry->file.kind), ret_kind) &&
	       queue->kind_bits >> *ret_kind & 1;
}

/* Returns whether a file has, or may have, windows behind the cursor's: a merged one that begins
 * before may, unless it was read. */
static bool is_wanted(const struct push_queue *queue, const struct store_entry *entry,
		      const struct push_cursor *cursor, enum pp_profile *ret_kind)
{
	const struct store_file *file = &entry->file;
	uint64_t sent_ms;

	if (!kind_of(queue, entry, ret_kind))
		return false;
	sent_ms = cursor->sent_ms[*ret_kind];
	if (file->start_ms > sent_ms)
		return true;
	if (!file->is_merged)
		return false;
	if (file->start_ms == queue->read_ms[*ret_kind] &&
	    file->duration_ms == queue->read_duration_ms[*ret_kind])
		return false;
	return sent_ms - file->start_ms < file->duration_ms;
}

static uint64_t oldest_mark(const struct push_queue *queue, const struct push_cursor *cursor)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (queue->kind_bits >> i & 1 && cursor->sent_ms[i] < oldest)
			oldest = cursor->sent_ms[i];
	return oldest == UINT64_MAX ? 0 : oldest;
}

/* Returns whether the new list has a file's time: the file itself, or one that took it in. */
static bool is_covered(const struct store_listing *listing, size_t *at,
		       const struct store_file *file)
{
	/* Both lists go up; a file that covers this one begins no later. */
	while (*at < listing->count && listing->entry[*at].file.start_ms < file->start_ms)
		(*at)++;
	for (size_t i = *at; i < listing->count && listing->entry[i].file.start_ms ==
							   file->start_ms; i++)
		if (!strcmp(listing->entry[i].file.kind, file->kind))
			return true;
	for (size_t i = *at; i--;) {
		const struct store_file *other = &listing->entry[i].file;

		if (strcmp(other->kind, file->kind) != 0)
			continue;
		return file->start_ms - other->start_ms < other->duration_ms;
	}
	return false;
}

/* Returns whether a list has this file; *at: both lists go up. */
static bool has_file(const struct store_listing *listing, size_t *at,
		     const struct store_file *file)
{
	while (*at < listing->count && listing->entry[*at].file.start_ms < file->start_ms)
		(*at)++;
	for (size_t i = *at; i < listing->count && listing->entry[i].file.start_ms ==
							   file->start_ms; i++)
		if (!listing->entry[i].file.is_merged &&
		    !strcmp(listing->entry[i].file.kind, file->kind))
			return true;
	return false;
}

/* The cursor passes only what was listed, so what is new and in front of it will not be sent. */
static uint64_t count_late(const struct push_queue *queue, const struct push_cursor *cursor,
			   const struct store_listing *listing)
{
	enum pp_profile kind;
	uint64_t late = 0;
	size_t at = 0;

	for (size_t i = 0; queue->has_listed && i < listing->count; i++) {
		const struct store_file *file = &listing->entry[i].file;

		if (kind_of(queue, &listing->entry[i], &kind) && !file->is_merged &&
		    file->start_ms >= queue->since_ms &&
		    file->start_ms <= cursor->sent_ms[kind] &&
		    !has_file(&queue->listing, &at, file))
			late++;
	}
	return late;
}

int push_queue_list(struct push_queue *queue, const struct push_cursor *cursor,
		    uint64_t *ret_gone, uint64_t *ret_late)
{
	const uint64_t mark_ms = oldest_mark(queue, cursor);
	const struct store_range range = {
		.since_ms = mark_ms > PUSH_AHEAD_MAX_MS ? mark_ms - PUSH_AHEAD_MAX_MS : 0,
		.until_ms = UINT64_MAX};
	struct store_listing listing = {0};
	enum pp_profile kind;
	uint64_t gone = 0;
	size_t at = 0;
	int err = store_list(queue->directory, &range, &listing);

	if (err)
		return err;
	for (size_t i = queue->next; i < queue->listing.count; i++) {
		const struct store_entry *entry = &queue->listing.entry[i];

		if (is_wanted(queue, entry, cursor, &kind) &&
		    !is_covered(&listing, &at, &entry->file))
			gone++;
	}
	*ret_late = count_late(queue, cursor, &listing);
	store_listing_release(&queue->listing);
	queue->listing = listing;
	queue->next = 0;
	queue->since_ms = range.since_ms;
	queue->has_listed = true;
	*ret_gone = gone;
	return 0;
}

const struct store_entry *push_queue_first(struct push_queue *queue,
					   const struct push_cursor *cursor,
					   enum pp_profile *ret_kind)
{
	for (; queue->next < queue->listing.count; queue->next++)
		if (is_wanted(queue, &queue->listing.entry[queue->next], cursor, ret_kind))
			return &queue->listing.entry[queue->next];
	return NULL;
}

void push_queue_pass(struct push_queue *queue)
{
	const struct store_entry *entry = &queue->listing.entry[queue->next++];
	enum pp_profile kind;

	if (!kind_of(queue, entry, &kind))
		return;
	queue->read_ms[kind] = entry->file.start_ms;
	queue->read_duration_ms[kind] = entry->file.duration_ms;
}

size_t push_queue_count(const struct push_queue *queue, const struct push_cursor *cursor)
{
	enum pp_profile kind;
	size_t count = 0;

	for (size_t i = queue->next; i < queue->listing.count; i++)
		count += is_wanted(queue, &queue->listing.entry[i], cursor, &kind);
	return count;
}

size_t push_queue_left(const struct push_queue *queue)
{
	return queue->listing.count - queue->next;
}

int push_queue_begin(const struct push_queue *queue, struct push_cursor *ret_cursor)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	struct store_listing listing = {0};
	enum pp_profile kind;
	int err = store_list(queue->directory, &all, &listing);

	if (err)
		return err;
	memset(ret_cursor, 0, sizeof(*ret_cursor));
	for (size_t i = 0; i < listing.count; i++) {
		const struct store_file *file = &listing.entry[i].file;

		/* With all that a merged file has inside; the next window begins at its end. */
		if (kind_of(queue, &listing.entry[i], &kind))
			push_cursor_pass(ret_cursor, kind,
					 file->start_ms +
						 (file->duration_ms ? file->duration_ms - 1 : 0));
	}
	store_listing_release(&listing);
	return 0;
}
