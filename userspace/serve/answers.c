/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "pprof/pprof.h"
#include "query/folder.h"
#include "render/flame_html.h"
#include "version.h"

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
	struct profile_read_totals totals;
	struct graph graph = {.facts.title = input_title(input)};
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
	return answer_write(answer, write, &graph);
}

static const struct {
	bool keeps_all; /* labels and addresses */
	int (*encode)(const struct input *input, struct answer *answer);
	int (*write)(FILE *out, void *graph); /* instead: of a graph */
} formats[] = {
	[REQUEST_PPROF] = {true, encode_pprof, NULL},
	[REQUEST_JSON] = {false, NULL, write_json},
	[REQUEST_FOLDED] = {false, encode_folded, NULL},
	[REQUEST_HTML] = {false, NULL, write_html},
};

static void encode(const struct request *request, const struct input *input, struct answer *answer)
{
	int err = formats[request->format].write
			  ? encode_graph(input, formats[request->format].write, answer)
			  : formats[request->format].encode(input, answer);

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

/* ---- waits ---- */

static void put_ms(struct json_writer *json, const char *name, int64_t ns)
{
	json_put_int(json, name, (ns + (int64_t)NS_PER_MS / 2) / (int64_t)NS_PER_MS);
}

/* Writes "ms": the time on the CPU and each wait; and "running_ms": the parts of the first. */
static void put_times(struct json_writer *json, const struct machine_process *process)
{
	json_put_open(json, "ms", '{');
	put_ms(json, "running", machine_cpu_ns(process));
	for (unsigned int i = LEDGER_WAITS_BEGIN; i < LEDGER_STATE_COUNT; i++)
		put_ms(json, ledger_state_name(i), process->ns[i]);
	json_close(json, '}');
	json_put_open(json, "running_ms", '{');
	for (unsigned int i = 0; i < LEDGER_WAITS_BEGIN; i++)
		put_ms(json, ledger_state_name(i), process->ns[i]);
	json_close(json, '}');
}

static void put_process(struct json_writer *json, const struct machine_process *process)
{
	json_open(json, '{');
	json_put_int(json, "pid", process->pid);
	json_put_string(json, "comm", process->comm);
	put_times(json, process);
	json_close(json, '}');
}

void waits_put(const struct machine *machine, bool is_of_all, struct json_writer *json)
{
	struct machine_process others = machine->others;
	const uint32_t count = machine->count;

	json_put_open(json, "processes", '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i < WAITS_PROCESSES_SHOWN)
			put_process(json, &machine->process[i]);
		else
			machine_add_up(&others, &machine->process[i]);
	}
	json_close(json, ']');
	json_put_int(json, "more",
		     count > WAITS_PROCESSES_SHOWN ? count - WAITS_PROCESSES_SHOWN : 0);
	if (!is_of_all)
		return;
	json_put_open(json, "others", '{');
	put_times(json, &others);
	json_close(json, '}');
}

struct told_waits {
	const struct machine *machine;
	const struct request *request;
};

static void put_told_waits(struct json_writer *json, const void *context)
{
	const struct told_waits *told = context;

	json_put_int(json, "from_ms", (int64_t)told->request->from_ms);
	json_put_int(json, "until_ms", (int64_t)told->request->until_ms);
	waits_put(told->machine, !told->request->pid, json);
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
	if (!answer_range(&ranged, now_ms, ret_answer) ||
	    request_read(sources, &ranged, view, &options, &input, ret_answer))
		return;
	if (input)
		err = machine_fill(&machine, input_profile(input), true);
	if (err)
		answer_say(ret_answer, 503, "no memory\n");
	else
		answer_json(ret_answer, put_told_waits, &(struct told_waits){&machine, &ranged});
}

/* ---- who asks, and what there is ---- */

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
	[PP_PROFILE_CUDA_CALLS] = "GPU calls, exact sums",
};

_Static_assert(ARRAY_SIZE(titles) == PP_PROFILE_COUNT, "one title a kind");

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
		json_put_open(json, "store", '{');
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

	json_put_open(json, "kinds", '[');
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

struct told_self {
	const struct answer_view *view;
	uint64_t now_ms;
	struct extent extent;
};

static void put_told_self(struct json_writer *json, const void *context)
{
	const struct told_self *told = context;

	put_who(json, told->view, told->now_ms);
	put_extent(json, &told->extent);
	put_kinds(json, &told->extent);
}

void self_answer(const char *store, const struct answer_view *view, uint64_t now_ms,
		 struct answer *ret_answer)
{
	struct told_self told = {.view = view, .now_ms = now_ms};

	if (!view->is_of_user)
		(void)extent_read(store, false, &told.extent);
	answer_json(ret_answer, put_told_self, &told);
}
