/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/strip_answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "query/file_totals.h"
#include "serve/strip.h"

struct strip_source {
	const char *store;
	struct file_totals *totals;
};

int strip_source_new(const char *store, struct strip_source **ret_source)
{
	struct strip_source *source = calloc(1, sizeof(*source));
	int err;

	if (!source)
		return -ENOMEM;
	err = file_totals_new(FILE_TOTALS_WINDOWS_MAX, &source->totals);
	if (err) {
		free(source);
		return err;
	}
	source->store = store;
	*ret_source = source;
	return 0;
}

void strip_source_free(struct strip_source *source)
{
	if (!source)
		return;
	file_totals_free(source->totals);
	free(source);
}

static void known(void *context, uint64_t start_ms, uint64_t duration_ms, int64_t value)
{
	strip_add(context, start_ms, duration_ms, value);
}

static void pending(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	strip_add_pending(context, start_ms, duration_ms);
}

static void left_out(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	strip_add_left_out(context, start_ms, duration_ms);
}

static int fill(struct strip_source *source, const struct request *request, struct strip *strip,
		struct file_totals_state *state)
{
	const struct store_range range = {.since_ms = strip->from_ms, .until_ms = strip->until_ms};
	const struct file_totals_calls calls = {
		.known = known, .pending = pending, .left_out = left_out, .context = strip};

	return file_totals_read(source->totals, source->store, request->stored, &range,
				STRIP_BUDGET_NS, &calls, state);
}

static int encode(const struct strip *strip, const struct request *request,
		  const struct file_totals_state *state, struct answer *answer)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	err = strip_write(strip, request->stored, state->unit, out);
	if (close_memory_file(out, &text) || err)
		return -ENOMEM;
	*answer = (struct answer){
		.status = 200, .type = ANSWER_JSON, .body = TAKE(text), .size = size};
	return 0;
}

void strip_answer(struct strip_source *source, const struct request *request, uint64_t now_ms,
		  struct answer *ret_answer)
{
	CLEANUP(strip_release) struct strip strip = {0};
	struct file_totals_state state = {0};
	uint64_t from_ms, until_ms;
	int err;

	request_range(request, now_ms, &from_ms, &until_ms);
	err = strip_init(&strip, from_ms, until_ms, request->points);

	*ret_answer = (struct answer){0};
	if (err == -EINVAL) {
		answer_say(ret_answer, 400, "from is not before until, or ten years before it\n");
		return;
	}
	if (!err)
		err = fill(source, request, &strip, &state);
	strip.broken = state.broken;
	strip.unreadable = state.unreadable;
	if (err == -EINVAL) {
		answer_say(ret_answer, 400,
			   "kind=%s: made of cpu and offcpu: ask for these\n", request->stored);
		return;
	}
	if (!err)
		err = encode(&strip, request, &state, ret_answer);
	if (err)
		answer_say_clean(ret_answer, err == -ENOMEM ? 503 : 404, strerror(-err));
}
