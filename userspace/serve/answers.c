/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/saturating.h"
#include "pprof/folded.h"
#include "pprof/pprof.h"
#include "query/file_totals.h"
#include "query/machine.h"
#include "render/flame_html.h"
#include "render/flame_json.h"
#include "serve/answer.h"
#include "serve/labels.h"
#include "serve/strip.h"
#include "serve/waits.h"

/* ---- what a request names ---- */

static int add_labels(const struct request *request, struct select *select,
		      char why[SELECT_WHY_BYTES])
{
	int err = 0;

	for (unsigned int i = 0; !err && i < request->label_count; i++)
		err = select_add_label(select, request->label[i], why);
	return err;
}

/* Fills in what to read, to be released either way.  Returns 0; -errno, and in why one line. */
static int make_select(const struct answer_sources *sources, const struct request *request,
		       const struct answer_view *view, struct select *select,
		       char why[SELECT_WHY_BYTES])
{
	*select = (struct select){.since_ms = request->from_ms,
				  .until_ms = request->until_ms,
				  .kind = request_kind(request),
				  .pid = {request->pid},
				  .pid_count = request->pid != 0};
	if (request->endpoint == REQUEST_LIVE) {
		select->live = true;
		select->live_seconds = request->seconds;
		select->socket = sources->live;
		select->as_user = view->is_of_user;
		select->uid = view->uid;
		return add_labels(request, select, why);
	}
	select->path = calloc(1, sizeof(*select->path));
	if (!select->path) {
		snprintf(why, SELECT_WHY_BYTES, "no memory");
		return -ENOMEM;
	}
	select->path[select->path_count++] = (char *)sources->store;
	return add_labels(request, select, why);
}

/* Says why there is no profile: pyprofd does not give it, or the store does not have it. */
static void explain(const struct request *request, int err, const char *why, const char *words,
		    struct answer *answer)
{
	static const char prefix[] = "pyprof: ";
	const char *text = why[0] ? why : words;
	const bool is_ours = request->endpoint == REQUEST_LIVE || err == -ENOMEM || err == -EFBIG;
	OWNED_MEM char *line = NULL;
	size_t size;

	if (!strncmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	size = strlen(text);
	while (size && text[size - 1] == '\n')
		size--;
	line = strndup(text, size);
	/* A message of several lines. */
	for (char *at = line; at && *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	answer_say_clean(answer, is_ours ? 503 : 404, line && *line ? line : strerror(-err));
}

int request_read(const struct answer_sources *sources, const struct request *request,
		 const struct answer_view *view, const struct input_options *wanted,
		 struct input **ret_input, struct answer *ret_answer)
{
	struct input_options options = *wanted;
	struct watcher watcher = {.stop_fd = view->stop_fd};
	CLEANUP(select_release) struct select select = {0};
	OWNED_MEM char *words = NULL;
	const bool is_live = request->endpoint == REQUEST_LIVE;
	char why[WHY_BYTES] = "";
	size_t size;
	int err;

	watcher.words = open_memstream(&words, &size);
	if (!watcher.words) {
		answer_say_clean(ret_answer, 503, "no memory");
		return -ENOMEM;
	}
	options.select = &select;
	options.watcher = &watcher;
	options.memory_max = is_live ? ANSWER_LIVE_MAX_BYTES : ANSWER_STORED_MAX_BYTES;
	options.live_max = ANSWER_LIVE_FILE_MAX_BYTES;
	err = make_select(sources, request, view, &select, why);
	if (!err)
		err = input_read(&options, why, ret_input);
	if (close_memory_file(watcher.words, &words) && !err) {
		input_free(*ret_input);
		*ret_input = NULL;
		err = -ENOMEM;
	}
	if (err)
		explain(request, err, why, words ? words : "", ret_answer);
	return err;
}

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

/* ---- labels ---- */

static int encode_labels(const struct labels *labels, const struct request *request,
			 struct answer *answer)
{
	CLEANUP(json_answer_release) struct json_answer body = {0};
	int err = json_answer_begin(&body);

	if (err)
		return err;
	json_put_string(&body.json, "kind", request->stored);
	json_put_int(&body.json, "from_ms", (int64_t)request->from_ms);
	json_put_int(&body.json, "until_ms", (int64_t)request->until_ms);
	labels_put(labels, &body.json);
	return json_answer_end(&body, answer);
}

void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer)
{
	const struct input_options options = {.drop_stacks = true, .may_be_none = true};
	CLEANUP(labels_release) struct labels labels = {0};
	OWNED(input) struct input *input = NULL;
	struct request ranged = *request;
	int err = 0;

	*ret_answer = (struct answer){0};
	if (!json_answer_range(&ranged, now_ms, ret_answer) ||
	    request_read(sources, &ranged, view, &options, &input, ret_answer))
		return;
	if (input)
		err = labels_of_profile(input_profile(input),
					profile_reader_value_index(input_reader(input)), &labels);
	if (!err)
		err = encode_labels(&labels, &ranged, ret_answer);
	if (err)
		answer_say(ret_answer, 503, "no memory\n");
}

/* ---- waits ---- */

static int encode_waits(const struct machine *machine, const struct request *request,
			struct answer *answer)
{
	CLEANUP(json_answer_release) struct json_answer body = {0};
	int err = json_answer_begin(&body);

	if (err)
		return err;
	json_put_int(&body.json, "from_ms", (int64_t)request->from_ms);
	json_put_int(&body.json, "until_ms", (int64_t)request->until_ms);
	waits_put(machine, !request->pid, &body.json);
	return json_answer_end(&body, answer);
}

void waits_answer(const struct answer_sources *sources, const struct request *request,
		  const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer)
{
	const struct input_options options = machine_input();
	CLEANUP(machine_release) struct machine machine = {0};
	OWNED(input) struct input *input = NULL;
	struct request ranged = *request;
	int err = 0;

	*ret_answer = (struct answer){0};
	if (!json_answer_range(&ranged, now_ms, ret_answer) ||
	    request_read(sources, &ranged, view, &options, &input, ret_answer))
		return;
	if (input)
		err = machine_fill(&machine, input_profile(input), true);
	if (!err)
		err = encode_waits(&machine, &ranged, ret_answer);
	if (err)
		answer_say(ret_answer, 503, "no memory\n");
}

/* ---- the strip ---- */

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

static int encode_strip(const struct strip *strip, const struct request *request,
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
		answer_say(ret_answer, 400, "kind=%s: made of cpu and offcpu: ask for these\n",
			   request->stored);
		return;
	}
	if (!err)
		err = encode_strip(&strip, request, &state, ret_answer);
	if (err)
		answer_say_clean(ret_answer, err == -ENOMEM ? 503 : 404, strerror(-err));
}
