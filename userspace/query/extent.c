/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/extent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "store/store_query.h"

/* The newest windows, whose median tells the interval: one that was cut early is shorter, and the
 * others are off by a millisecond now and then. */
#define WINDOWS_ASKED 15U
#define INTERVAL_STEP_MS 10U

static void find_kinds(const struct store_listing *listing, struct extent *extent)
{
	for (size_t i = 0; i < listing->count; i++) {
		const char *name = listing->entry[i].file.kind;
		enum pp_profile kind;

		if (kind_find(name, strlen(name), &kind))
			extent->kinds |= 1U << kind;
	}
}

static int compare_lengths(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t find_interval_ms(const struct store_listing *listing)
{
	uint64_t length_ms[WINDOWS_ASKED];
	size_t count = 0;

	for (size_t i = listing->count; i > 0 && count < WINDOWS_ASKED; i--)
		if (!listing->entry[i - 1].file.is_merged)
			length_ms[count++] = listing->entry[i - 1].file.duration_ms;
	if (!count)
		return 0;
	qsort(length_ms, count, sizeof(length_ms[0]), compare_lengths);
	return (length_ms[count / 2] + INTERVAL_STEP_MS / 2) / INTERVAL_STEP_MS * INTERVAL_STEP_MS;
}

static void find_times(const struct store_listing *listing, struct extent *extent)
{
	extent->from_ms = listing->entry[0].file.start_ms;
	for (size_t i = 0; i < listing->count; i++) {
		const struct store_file *file = &listing->entry[i].file;
		const uint64_t end_ms = file->start_ms + file->duration_ms;

		if (end_ms > extent->until_ms)
			extent->until_ms = end_ms;
	}
	extent->interval_ms = find_interval_ms(listing);
}

/* A file that is gone meanwhile has none. */
static uint64_t sum_bytes(const struct store_listing *listing)
{
	uint64_t bytes = 0;
	struct stat status;

	for (size_t i = 0; i < listing->count; i++)
		if (!lstat(listing->entry[i].path, &status))
			bytes += (uint64_t)status.st_size;
	return bytes;
}

int extent_read(const char *store, bool wants_bytes, struct extent *ret_extent)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	struct extent extent = {0};
	int err = store_list(store, &all, &listing);

	if (err)
		return err;
	extent.files = listing.count;
	if (listing.count) {
		find_kinds(&listing, &extent);
		find_times(&listing, &extent);
	}
	if (wants_bytes)
		extent.bytes = sum_bytes(&listing);
	*ret_extent = extent;
	return 0;
}
