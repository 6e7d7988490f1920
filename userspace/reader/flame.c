/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof flame: a page with the flame graph and its tables, or one static picture. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "pprof/profile_read.h"
#include "reader/page.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/flame_html.h"
#include "render/flame_tree.h"

/* ---- the map of time ---- */

/* What each window of a profile added.  Beyond, the page has no time map: 12 bytes each in it. */
#define PAGE_TIMES_MAX_DELTAS (2U << 20)

struct page_window {
	uint64_t start_wall_ns, duration_ns;
	uint32_t first; /* delta */
};

struct page_delta {
	uint32_t row;
	int64_t value;
};

/* Release with page_times_release(). */
struct page_times {
	struct page_window *window;
	uint32_t window_count, window_capacity;
	struct page_delta *delta;
	uint32_t delta_count, delta_capacity;
	bool is_full;
};

static void page_times_release(struct page_times *times)
{
	free(times->window);
	free(times->delta);
	*times = (struct page_times){0};
}

/* From a window_done.  0 or -ENOMEM. */
static int page_times_add(struct page_times *times, const struct profile_window *window)
{
	int err = ARRAY_RESERVE(times->window, times->window_count, times->window_capacity);

	if (err)
		return err;
	if (window->delta_count > PAGE_TIMES_MAX_DELTAS - times->delta_count)
		times->is_full = true;
	times->window[times->window_count++] =
		(struct page_window){.start_wall_ns = window->start_wall_ns,
				     .duration_ns = window->duration_ns,
				     .first = times->delta_count};
	for (size_t i = 0; !times->is_full && i < window->delta_count; i++) {
		if (!window->delta[i].value)
			continue;
		err = ARRAY_RESERVE(times->delta, times->delta_count, times->delta_capacity);
		if (err)
			return err;
		times->delta[times->delta_count++] = (struct page_delta){
			.row = window->delta[i].row, .value = window->delta[i].value};
	}
	return 0;
}

/* Writes "times":{"start":[MS...],"duration":[MS...],"first":[...],"sample":[...],"value":[...]}:
 * window i has the values first[i] to first[i + 1], each of a sample of the page.  Nothing where
 * there is one window, or too much. */
static void page_times_write(struct json_writer *json, const struct page_times *times,
			     const struct flame_tree *tree)
{
	if (times->window_count < 2 || times->is_full)
		return;
	for (uint32_t i = 0; i < times->delta_count; i++)
		if (times->delta[i].row >= tree->row_count ||
		    tree->sample_of_row[times->delta[i].row] == FLAME_NO_SAMPLE)
			return;
	json_put_open(json, "times", '{');
	json_put_open(json, "start", '[');
	for (uint32_t i = 0; i < times->window_count; i++)
		json_int(json, (int64_t)(times->window[i].start_wall_ns / NS_PER_MS));
	json_close(json, ']');
	json_put_open(json, "duration", '[');
	for (uint32_t i = 0; i < times->window_count; i++)
		json_int(json, (int64_t)(times->window[i].duration_ns / NS_PER_MS));
	json_close(json, ']');
	json_put_open(json, "first", '[');
	for (uint32_t i = 0; i < times->window_count; i++)
		json_int(json, times->window[i].first);
	json_close(json, ']');
	json_put_open(json, "sample", '[');
	for (uint32_t i = 0; i < times->delta_count; i++)
		json_int(json, tree->sample_of_row[times->delta[i].row]);
	json_close(json, ']');
	json_put_open(json, "value", '[');
	for (uint32_t i = 0; i < times->delta_count; i++)
		json_int(json, times->delta[i].value);
	json_close(json, ']');
	json_close(json, '}');
	json_newline(json);
}

#define TITLE_BYTES 1024U

struct flame {
	struct select_options shared;
	bool no_source;
	struct page_times times;
	uint64_t end_wall_ns;
};

enum { FORMAT_HTML, FORMAT_SVG };
static const char *const formats[] = {[FORMAT_HTML] = "html", [FORMAT_SVG] = "svg", NULL};

static const struct verb_option options[] = {{"no-source", 0, NULL,
					      "Put no source code into the page", 1, OPTION_FLAG,
					      .at = offsetof(struct flame, no_source)},
					     {}};

static const char doc[] =
	"Writes a page of HTML that needs nothing else: flame graph, sandwich, table "
	"and lines, to search and to zoom; or one static picture, svg."
	"\vExamples:\n"
	"  pyprof flame cpu.pb.gz > cpu.html\n"
	"  pyprof flame /var/lib/pyprofd --since 1h --comm '^gunicorn' > cpu.html\n"
	"  pyprof flame --format svg --python cpu.pb.gz > cpu.svg\n"
	"  sudo pyprofd --interval 100ms -d 60 -o tenths/     windows of 0.1 s\n"
	"  pyprof flame tenths > cpu.html     and a map of its time, a column a second\n"
	"  sudo pyprof flame --live --pid 1234 > cpu.html\n";

/* ---- HTML ---- */

static int put_more(void *context, struct json_writer *json, const struct flame_tree *tree)
{
	const struct flame *flame = context;

	page_times_write(json, &flame->times, tree);
	return flame->no_source ? 0 : page_sources_write(json, tree, flame->end_wall_ns);
}

static int write_html(struct flame *flame, const struct flame_tree *tree, const struct input *input,
		      const char *title)
{
	const int count_index = profile_reader_count_index(input_reader(input));
	const struct profile_read_totals totals = input_totals(input);
	const struct flame_json_facts facts = {.title = title,
					       .windows = totals.windows,
					       .sample_count =
						       (uint64_t)text_sum(input, count_index),
					       .start_wall_ns = totals.start_wall_ns,
					       .duration_ns = totals.duration_ns,
					       .short_paths = input_short_paths(input),
					       .put_more = put_more,
					       .context = flame};

	flame->end_wall_ns = totals.end_wall_ns;
	if (flame->times.is_full)
		complain("the page has no time map, as there are too many values: choose fewer "
			 "windows with --since and --until");
	return page_write(tree, &facts);
}

/* ---- the verb ---- */

static int write_flame(struct flame *flame, const struct input *input)
{
	const bool is_svg = flame->shared.format == FORMAT_SVG;
	const char *name = input_title(input);
	const struct grouping *by = &flame->shared.select.group_by;
	char missing[COVERAGE_BYTES], title[TITLE_BYTES];
	struct flame_options flame_options = {
		.value_index = profile_reader_value_index(input_reader(input)),
		.lines = !is_svg,
		.group_by = by->keys ? *by : (struct grouping){.keys = GROUP_BY_THREAD},
		.group_frames = is_svg && by->keys};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	int err = flame_tree_new(input_profile(input), &flame_options, &tree);

	if (input_coverage(input, missing)[0])
		snprintf(title, sizeof(title), "%.600s: %s", name, missing);
	else
		snprintf(title, sizeof(title), "%s", name);
	if (!err)
		err = is_svg ? flame_svg_write(stdout, tree, title)
			     : write_html(flame, tree, input, title);
	if (fflush(stdout) && !err)
		err = -errno;
	if (!err)
		return READER_OK;
	return complain_of(err == -ENOMEM ? input_title(input) : "cannot write to standard output",
			   err);
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct flame *flame = context;

	(void)profile;
	/* The page adds up the windows of a time that is chosen, which are levels here. */
	return window->is_level ? 0 : page_times_add(&flame->times, window);
}

static int run(struct flame *flame)
{
	const bool is_svg = flame->shared.format == FORMAT_SVG;
	struct input_options input_options = {.select = &flame->shared.select,
					      .keep_labels = input_thread_labels,
					      .drop_addresses = true,
					      .drop_lines = is_svg,
					      .window_done = is_svg ? NULL : window_done,
					      .context = flame};
	OWNED(input) struct input *input = NULL;
	int err;

	if (isatty(STDOUT_FILENO))
		return complain("flame does not write to a terminal: pyprof flame cpu.pb.gz > "
				"cpu.html");
	err = read_input(input_options, &input);
	return err ? err : write_flame(flame, input);
}

int verb_flame(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc};
	struct flame flame = {.shared.formats = formats};
	int status = select_parse(&args, argc, argv, &flame.shared) ?: run(&flame);

	page_times_release(&flame.times);
	select_release(&flame.shared.select);
	return status;
}
