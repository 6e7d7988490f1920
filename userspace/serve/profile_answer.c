/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/profile_answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/saturating.h"
#include "pprof/folded.h"
#include "pprof/pprof.h"
#include "render/flame_html.h"
#include "render/flame_json.h"
#include "serve/answer_head.h"
#include "serve/request_read.h"

/* ---- formats ---- */

static int encode_pprof(const struct input *input, struct answer *answer)
{
	struct profile *profile = input_profile(input);
	void *bytes;
	int err;

	profile_weigh_modules(profile);
	err = profile_encode_pprof(profile, &bytes, &answer->size);
	if (err)
		return err;
	answer->body = bytes;
	return 0;
}

static int encode_folded(const struct input *input, struct answer *answer)
{
	return profile_encode_folded_value(input_profile(input),
					   profile_reader_value_index(input_reader(input)),
					   &answer->body, &answer->size);
}

static uint64_t count_samples(const struct input *input)
{
	const struct profile *profile = input_profile(input);
	const int index = profile_reader_count_index(input_reader(input));
	int64_t sum = 0;

	for (uint32_t i = 0; index >= 0 && i < profile->row_count; i++)
		sum = add_saturating(sum, profile_row_values(profile, i)[index]);
	return (uint64_t)sum;
}

struct graph {
	const struct flame_tree *tree;
	struct flame_json_facts facts;
};

static int write_json(FILE *out, void *arg)
{
	const struct graph *graph = arg;

	return flame_json_write(graph->tree, &graph->facts, out);
}

static int write_html(FILE *out, void *arg)
{
	const struct graph *graph = arg;

	return flame_html_write(out, graph->facts.title, write_json, arg);
}

/* Makes the flame graph and writes it in one of its formats. */
static int encode_graph(const struct input *input, int (*write)(FILE *out, void *graph),
			struct answer *answer)
{
	const struct flame_options options = {
		.value_index = profile_reader_value_index(input_reader(input)),
		.lines = true,
		.group_by = {.keys = GROUP_BY_THREAD}};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	OWNED_MEM char *text = NULL;
	struct profile_read_totals totals;
	struct graph graph = {.facts.title = input_title(input)};
	size_t size;
	FILE *out;
	int err = flame_tree_new(input_profile(input), &options, &tree);

	if (err)
		return err;
	profile_reader_totals(input_reader(input), &totals);
	graph.tree = tree;
	graph.facts.short_paths = input_short_paths(input);
	graph.facts.windows = totals.windows;
	graph.facts.start_wall_ns = totals.start_wall_ns;
	graph.facts.duration_ns = totals.duration_ns;
	graph.facts.sample_count = count_samples(input);
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	err = write(out, &graph);
	if (close_memory_file(out, &text) || err)
		return err ? err : -ENOMEM;
	answer->body = TAKE(text);
	answer->size = size;
	return 0;
}

static int encode_json(const struct input *input, struct answer *answer)
{
	return encode_graph(input, write_json, answer);
}

static int encode_html(const struct input *input, struct answer *answer)
{
	return encode_graph(input, write_html, answer);
}

static const struct {
	bool keeps_all; /* labels and addresses */
	int (*encode)(const struct input *input, struct answer *answer);
} formats[] = {
	[REQUEST_PPROF] = {true, encode_pprof},
	[REQUEST_JSON] = {false, encode_json},
	[REQUEST_FOLDED] = {false, encode_folded},
	[REQUEST_HTML] = {false, encode_html},
};

static void encode(const struct request *request, const struct input *input, struct answer *answer)
{
	int err = formats[request->format].encode(input, answer);

	if (!err && answer->size > ANSWER_MAX_BYTES)
		err = -EFBIG;
	if (err == -EFBIG)
		answer_say(answer, 503, "the profile has more than %u MiB: choose less\n",
			   ANSWER_MAX_BYTES >> 20);
	else if (err)
		answer_say_clean(answer, err == -ENOMEM ? 503 : 500, strerror(-err));
	else
		answer_head_set(request, answer);
}

void profile_answer(const struct answer_sources *sources, const struct request *request,
		    const struct answer_view *view, struct answer *ret_answer)
{
	static const char *const threads[] = {"pid", "tid", "comm", "thread_name", "thread", NULL};
	const bool keeps_all = formats[request->format].keeps_all;
	const struct input_options options = {.keep_labels = keeps_all ? NULL : threads,
					      .drop_addresses = !keeps_all};
	OWNED(input) struct input *input = NULL;

	*ret_answer = (struct answer){0};
	if (!request_read(sources, request, view, &options, &input, ret_answer))
		encode(request, input, ret_answer);
}
