/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/keep_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kinds.h"
#include "store/keep.h"

void keep_plan_release(struct keep_plan *plan)
{
	store_listing_release(&plan->listing);
	free(plan->kind);
	free(plan->window);
	free(plan->file);
	*plan = (struct keep_plan){0};
}

static bool is_of_one_window(const struct store_file *file)
{
	return !file->is_merged && !file->is_temporary;
}

static int compare_windows(const void *a, const void *b)
{
	const struct merge_window *left = a, *right = b;

	if (left->start_ms != right->start_ms)
		return left->start_ms < right->start_ms ? -1 : 1;
	return (left->duration_ms > right->duration_ms) - (left->duration_ms < right->duration_ms);
}

/* Fills plan->window out of the listing: each once, the last KEEP_WINDOWS_MAX. */
static int find_windows(struct keep_plan *plan)
{
	struct merge_window *window = calloc(plan->listing.count + 1, sizeof(*window));
	size_t found = 0, count = 0;

	plan->window = window;
	if (!window)
		return -ENOMEM;
	for (size_t i = 0; i < plan->listing.count; i++) {
		const struct store_file *file = &plan->listing.entry[i].file;

		if (is_of_one_window(file))
			window[found++] = (struct merge_window){.start_ms = file->start_ms,
								.duration_ms = file->duration_ms};
	}
	if (found)
		qsort(window, found, sizeof(*window), compare_windows);
	for (size_t i = 0; i < found; i++)
		if (!count || compare_windows(&window[count - 1], &window[i]))
			window[count++] = window[i];
	if (count > KEEP_WINDOWS_MAX) {
		memmove(window, window + count - KEEP_WINDOWS_MAX,
			KEEP_WINDOWS_MAX * sizeof(*window));
		count = KEEP_WINDOWS_MAX;
	}
	plan->window_count = count;
	return 0;
}

/* What is kept first has room for sure. */
static unsigned int rank(const char *kind)
{
	static const enum pp_profile first[] = {PP_PROFILE_MEM, PP_PROFILE_CPU, PP_PROFILE_ALLOC};

	for (unsigned int i = 0; i < ARRAY_SIZE(first); i++)
		if (kind_is(kind, first[i]))
			return i;
	return ARRAY_SIZE(first);
}

static int compare_kinds(const void *a, const void *b)
{
	const char *left = *(const char *const *)a, *right = *(const char *const *)b;

	if (rank(left) != rank(right))
		return rank(left) < rank(right) ? -1 : 1;
	return strcmp(left, right);
}

static int find_kinds(struct keep_plan *plan)
{
	plan->kind = calloc(KEEP_KINDS_MAX, sizeof(*plan->kind));
	if (!plan->kind)
		return -ENOMEM;
	for (size_t i = 0; i < plan->listing.count; i++) {
		const struct store_file *file = &plan->listing.entry[i].file;
		size_t known = 0;

		while (known < plan->kind_count && strcmp(plan->kind[known], file->kind))
			known++;
		if (is_of_one_window(file) && known == plan->kind_count && known < KEEP_KINDS_MAX)
			plan->kind[plan->kind_count++] = file->kind;
	}
	if (plan->kind_count)
		qsort(plan->kind, plan->kind_count, sizeof(*plan->kind), compare_kinds);
	return 0;
}

static size_t find_kind(const struct keep_plan *plan, const char *kind)
{
	size_t i = 0;

	while (i < plan->kind_count && strcmp(plan->kind[i], kind))
		i++;
	return i;
}

static int find_files(struct keep_plan *plan)
{
	const size_t count = plan->kind_count * plan->window_count;

	plan->file = calloc(count + 1, sizeof(*plan->file));
	if (!plan->file)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		plan->file[i] = SIZE_MAX;
	for (size_t i = 0; i < plan->listing.count; i++) {
		const struct store_file *file = &plan->listing.entry[i].file;
		const struct merge_window key = {.start_ms = file->start_ms,
						 .duration_ms = file->duration_ms};
		const struct merge_window *window = bsearch(&key, plan->window, plan->window_count,
							    sizeof(key), compare_windows);
		const size_t kind = find_kind(plan, file->kind);

		if (is_of_one_window(file) && window && kind < plan->kind_count)
			plan->file[kind * plan->window_count + (size_t)(window - plan->window)] = i;
	}
	return 0;
}

int keep_plan_make(const char *directory, uint64_t from_ms, uint64_t until_ms,
		   struct keep_plan *ret_plan)
{
	const struct store_range range = {.since_ms = from_ms, .until_ms = until_ms};
	CLEANUP(keep_plan_release) struct keep_plan plan = {0};
	int err = store_list(directory, &range, &plan.listing);

	if (!err)
		err = find_windows(&plan);
	if (!err)
		err = find_kinds(&plan);
	if (!err)
		err = find_files(&plan);
	if (err)
		return err;
	*ret_plan = plan;
	plan = (struct keep_plan){0};
	return 0;
}

const char *keep_plan_path(const struct keep_plan *plan, size_t kind, size_t window)
{
	return plan->listing.entry[plan->file[kind * plan->window_count + window]].path;
}

struct merge_window *keep_plan_windows(const struct keep_plan *plan, size_t kind)
{
	struct merge_window *window = calloc(plan->window_count, sizeof(*window));

	if (!window)
		return NULL;
	memcpy(window, plan->window, plan->window_count * sizeof(*window));
	for (size_t i = 0; i < plan->window_count; i++)
		window[i].has_file = plan->file[kind * plan->window_count + i] != SIZE_MAX;
	return window;
}

uint64_t keep_plan_from_ms(const struct keep_plan *plan)
{
	return plan->window[0].start_ms;
}

uint64_t keep_plan_to_ms(const struct keep_plan *plan)
{
	uint64_t to_ms = 0;

	for (size_t i = 0; i < plan->window_count; i++) {
		const struct merge_window *window = &plan->window[i];
		const uint64_t end_ms = window->duration_ms < UINT64_MAX - window->start_ms
						? window->start_ms + window->duration_ms
						: UINT64_MAX;

		if (end_ms > to_ms)
			to_ms = end_ms;
	}
	return to_ms;
}
