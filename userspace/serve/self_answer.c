/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/self_answer.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kinds.h"
#include "query/extent.h"
#include "serve/answer.h"
#include "version.h"

/* How people call the kinds. */
static const char *const titles[] = {
	[PP_PROFILE_CPU] = "CPU time",
	[PP_PROFILE_OFFCPU] = "Waits",
	[PP_PROFILE_WALL] = "CPU time and waits",
	[PP_PROFILE_GIL] = "Waits for the GIL",
	[PP_PROFILE_WAKER] = "Who ended waits",
	[PP_PROFILE_GC] = "Garbage collection",
	[PP_PROFILE_IMPORT] = "Imports",
	[PP_PROFILE_MEM] = "Memory touched",
	[PP_PROFILE_CALLS] = "Exact calls",
	[PP_PROFILE_LINES] = "Exact lines",
	[PP_PROFILE_CUDA] = "GPU calls",
	[PP_PROFILE_ALLOC] = "Allocations",
	[PP_PROFILE_PROBE] = "Probes",
	[PP_PROFILE_RESIDENT] = "Memory of processes",
	[PP_PROFILE_GPU] = "GPUs",
	[PP_PROFILE_LEDGER] = "Time of processes by state",
};

_Static_assert(ARRAY_SIZE(titles) == PP_PROFILE_COUNT, "one title a kind");

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
	if (extent->files) {
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
	const uint32_t kinds = extent->files ? extent->kinds : KINDS_SERVED;

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
	struct extent extent = {0};

	*ret_answer = (struct answer){0};
	if (!view->is_of_user)
		(void)extent_read(store, false, &extent);
	if (!json_answer_begin(&body)) {
		put_who(&body.json, view, now_ms);
		put_extent(&body.json, &extent);
		put_kinds(&body.json, &extent);
		if (!json_answer_end(&body, ret_answer))
			return;
	}
	answer_say(ret_answer, 503, "no memory\n");
}
