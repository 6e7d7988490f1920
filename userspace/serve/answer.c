/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory_file.h"
#include "base/saturating.h"
#include "base/utf8.h"
#include "pprof/folded.h"
#include "pprof/pprof.h"
#include "query/input.h"
#include "render/flame_html.h"
#include "render/flame_json.h"

static const char text_type[] = "text/plain; charset=utf-8";
static const char json_type[] = "application/json";
/* Of the flame graph's page: its own scripts alone, and an origin of its own, so that whatever a
 * name in it did could neither use the viewer's session nor ask anybody. */
static const char page_policy[] =
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
	"sandbox allow-scripts allow-downloads";

void answer_release(struct answer *answer)
{
	free(answer->body);
	*answer = (struct answer){0};
}

void answer_say(struct answer *answer, unsigned int status, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	answer_release(answer);
	if (size < 0) {
		answer->status = 500;
		answer->type = text_type;
		return;
	}
	*answer = (struct answer){
		.status = status, .type = text_type, .body = text, .size = (size_t)size};
}

void answer_say_clean(struct answer *answer, unsigned int status, const char *line)
{
	const size_t size = strlen(line);
	OWNED_MEM char *clean = calloc(size + 1, UTF8_CLEAN_MAX_GROWTH);

	if (clean)
		clean[utf8_clean(line, size, clean)] = '\0';
	answer_say(answer, clean ? status : 500, "%s\n", clean ? clean : "no memory");
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
	const char *type, *policy; /* as in struct answer */
	const char *ending;	   /* NULL: it is shown, not saved */
	bool keeps_all; /* labels and addresses */
	int (*encode)(const struct input *input, struct answer *answer);
} formats[] = {
	[REQUEST_PPROF] = {"application/octet-stream", NULL, ".pb.gz", true, encode_pprof},
	[REQUEST_JSON] = {json_type, NULL, ".json", false, encode_json},
	[REQUEST_FOLDED] = {text_type, NULL, ".folded", false, encode_folded},
	[REQUEST_HTML] = {"text/html; charset=utf-8", page_policy, NULL, false, encode_html},
};

/* Sets what the headers say of a profile of this kind. */
static void set_headers(const struct request *request, const char *kind, struct answer *answer)
{
	answer->status = 200;
	answer->type = formats[request->format].type;
	answer->policy = formats[request->format].policy;
	if (formats[request->format].ending)
		snprintf(answer->file_name, sizeof(answer->file_name), "%s%s", kind,
			 formats[request->format].ending);
}

void answer_head(const struct request *request, struct answer *answer)
{
	*answer = (struct answer){.is_head = true};
	set_headers(request,
		    request->endpoint == REQUEST_LIVE ? kind_get(request->kind)->name
						      : request->stored, answer);
	if (request->endpoint == REQUEST_STRIP) {
		answer->type = json_type;
		answer->policy = NULL;
		answer->file_name[0] = '\0';
	}
}

/* ---- reading ---- */

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
				  .kind = request->stored,
				  .pid = {request->pid},
				  .pid_count = request->pid != 0};
	if (request->endpoint == REQUEST_LIVE) {
		select->kind = kind_get(request->kind)->name;
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

static void encode(const struct request *request, const struct select *select,
		   const struct input *input, struct answer *answer)
{
	int err = formats[request->format].encode(input, answer);

	if (!err && answer->size > ANSWER_MAX_BYTES)
		err = -EFBIG;
	if (err == -EFBIG)
		answer_say(answer, 503, "the profile has more than %u MiB: choose less\n",
			   ANSWER_MAX_BYTES >> 20);
	else if (err)
		answer_say_clean(answer, err == -ENOMEM ? 503 : 500, strerror(-err));
	if (!err)
		set_headers(request, select->kind, answer);
}

/* Says why there is no profile: pyprofd does not give it, or the store does not have it. */
static void explain(const struct request *request, int err, const char *why, const char *words,
		    struct answer *answer)
{
	static const char prefix[] = "pyprof: ";
	const char *text = why[0] ? why : words;

	if (!strncmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	answer_say_clean(answer, request->endpoint == REQUEST_LIVE || err == -ENOMEM ? 503 : 404,
		  text[0] ? text : strerror(-err));
	/* A message of several lines. */
	if (answer->body)
		for (char *at = answer->body; at + 1 < answer->body + answer->size; at++)
			*at = *at == '\n' ? ' ' : *at;
}

void answer_profile(const struct answer_sources *sources, const struct request *request,
		    const struct answer_view *view, struct answer *ret_answer)
{
	static const char *const threads[] = {"pid", "tid", "comm", "thread_name", "thread", NULL};
	const bool keeps_all = formats[request->format].keeps_all;
	struct watcher watcher = {.stop_fd = view->stop_fd};
	CLEANUP(select_release) struct select select = {0};
	struct input_options options = {.select = &select,
					.watcher = &watcher,
					.keep_labels = keeps_all ? NULL : threads,
					.drop_addresses = !keeps_all};
	OWNED(input) struct input *input = NULL;
	OWNED_MEM char *words = NULL;
	char why[WHY_BYTES] = "";
	size_t size;
	int err;

	*ret_answer = (struct answer){0};
	watcher.words = open_memstream(&words, &size);
	if (!watcher.words) {
		answer_say_clean(ret_answer, 503, "no memory");
		return;
	}
	err = make_select(sources, request, view, &select, why);
	if (!err)
		err = input_read(&options, why, &input);
	if (close_memory_file(watcher.words, &words))
		err = -ENOMEM;
	if (err)
		explain(request, err, why, words ? words : "", ret_answer);
	else
		encode(request, &select, input, ret_answer);
}
