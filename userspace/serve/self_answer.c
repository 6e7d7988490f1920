/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/self_answer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kinds.h"
#include "serve/json_answer.h"
#include "store/store_query.h"
#include "version.h"

/* The newest windows, whose median tells the interval: one that was cut early is shorter, and the
 * others are off by a millisecond now and then. */
#define WINDOWS_ASKED 15U
#define INTERVAL_STEP_MS 10U

/* How people call the kinds. */
static const char *const titles[] = {
	[PP_PROFILE_CPU] = "CPU time",
	[PP_PROFILE_OFFCPU] = "Waits",
	[PP_PROFILE_WALL] = "CPU time and waits",
	[PP_PROFILE_GIL] = "Waits for the GIL",
	[PP_PROFILE_WAKER] = "Who ended waits",
};

_Static_assert(ARRAY_SIZE(titles) == PP_PROFILE_COUNT, "one title a kind");

/* What the names of a store's files say. */
struct extent {
	bool is_known;
	uint64_t from_ms, until_ms, interval_ms;
	uint32_t kinds; /* bits 1 << enum pp_profile */
};

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

static void look(const char *store, struct extent *extent)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};

	if (store_list(store, &all, &listing) || !listing.count)
		return;
	extent->is_known = true;
	find_kinds(&listing, extent);
	find_times(&listing, extent);
}

/* ---- JSON ---- */

static void put_null(struct json_writer *json, const char *key)
{
	json_put_double(json, key, __builtin_nan(""));
}

static void put_who(struct json_writer *json, const struct answer_view *view, uint64_t now_ms)
{
	char host[HOST_NAME_MAX + 1] = "";

	(void)gethostname(host, sizeof(host) - 1);
	json_put_string(json, "version", PYPROFD_VERSION);
	json_put_string(json, "host", host);
	json_put_int(json, "now_ms", (int64_t)now_ms);
	if (view->has_uid)
		json_put_int(json, "uid", view->uid);
	else
		put_null(json, "uid");
	json_put_string(json, "sees", view->is_of_user ? "own" : "all");
}

static void put_extent(struct json_writer *json, const struct extent *extent)
{
	if (extent->is_known) {
		json_key(json, "store");
		json_open(json, '{');
		json_put_int(json, "from_ms", (int64_t)extent->from_ms);
		json_put_int(json, "until_ms", (int64_t)extent->until_ms);
		json_close(json, '}');
	} else {
		put_null(json, "store");
	}
	json_put_int(json, "interval_ms",
		     extent->interval_ms ? (int64_t)extent->interval_ms : SELF_INTERVAL_MS);
}

/* Without a store what runs now is all that can be asked for. */
static void put_kinds(struct json_writer *json, const struct extent *extent)
{
	const uint32_t kinds = extent->is_known ? extent->kinds : KINDS_SERVED;

	json_key(json, "kinds");
	json_open(json, '[');
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);

		if (!(kinds & 1U << i))
			continue;
		json_open(json, '{');
		json_put_string(json, "kind", kind->name);
		json_put_string(json, "title", titles[i]);
		json_put_string(json, "unit", kind->value[kind->default_value].unit);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void self_answer(const char *store, const struct answer_view *view, uint64_t now_ms,
		 struct answer *ret_answer)
{
	CLEANUP(json_answer_release) struct json_answer body = {0};
	struct extent extent = {.is_known = false};

	*ret_answer = (struct answer){0};
	if (!view->is_of_user)
		look(store, &extent);
	if (!json_answer_begin(&body)) {
		put_who(&body.json, view, now_ms);
		put_extent(&body.json, &extent);
		put_kinds(&body.json, &extent);
		if (!json_answer_end(&body, ret_answer))
			return;
	}
	answer_say(ret_answer, 503, "no memory\n");
}
