/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof flame: a page with the flame graph and its tables, or one static picture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/saturating.h"
#include "pprof/profile_read.h"
#include "reader/page.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/source.h"
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

/* The page of a difference shows what it takes away as the profile before.  ret_values: owned. */
static int split_signs(const struct input *input, struct flame_options *tree, int64_t **ret_values)
{
	const struct profile *profile = input_profile(input);
	const uint32_t count = profile->row_count;
	int64_t *values;

	if (!profile->signs.has_negative)
		return 0;
	values = calloc(count, 2 * sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const int64_t value = profile_row_values(profile, i)[tree->value_index];

		values[value < 0 ? count + i : i] = magnitude_of(value);
	}
	tree->row_value = values;
	tree->row_base = values + count;
	tree->row_value_count = tree->row_base_count = count;
	*ret_values = values;
	return 0;
}

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
	OWNED_MEM int64_t *values = NULL;
	int err = is_svg ? 0 : split_signs(input, &flame_options, &values);

	if (!err)
		err = flame_tree_new(input_profile(input), &flame_options, &tree);
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

/* Of all files together; files with more time come first. */
#define PAGE_SOURCES_MAX_BYTES (4U << 20)
#define PAGE_SOURCES_MAX_FILES 400U
#define CONTEXT_LINES 4U
#define LINE_MAX_BYTES 400U
#define NOTE_BYTES 128U

enum side { SIDE_NOW = 1, SIDE_BEFORE = 2 };

/* A line that ran. */
struct place {
	uint32_t file, line, start_line, name;
	uint32_t sides;	    /* in which it ran: enum side, ored */
	int64_t value;	    /* self */
	int64_t file_value; /* of all lines of the file */
};

static bool is_wanted(const struct flame_tree *tree, const struct code *code)
{
	const char *path = code_text(&tree->code, code->file);
	size_t size = strlen(path);

	return code->class == FRAME_CLASS_PYTHON && code->line && path[0] == '/' && size > 3 &&
	       !strcmp(path + size - 3, ".py");
}

static int compare_files(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return ORDER(left->file, right->file) ?: ORDER(left->line, right->line);
}

/* Files of most time first, their lines in order. */
static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return ORDER(right->file_value, left->file_value) ?: compare_files(a, b);
}

/* Finds where each code ran: of a difference, in which of the two profiles.  ret_sides has
 * an entry for each code. */
static int find_sides(const struct flame_tree *tree, uint32_t *ret_sides)
{
	OWNED_MEM bool *before = calloc(tree->node_count, sizeof(*before));

	if (!before)
		return -ENOMEM;
	for (uint32_t i = 0; tree->options.row_base && i < tree->sample_count; i++)
		if (tree->sample[i].base > 0)
			before[tree->sample[i].node] = true;
	/* A parent comes before its children. */
	for (uint32_t i = tree->node_count; i-- > 1;) {
		const struct flame_node *node = &tree->node[i];

		ret_sides[node->frame] |= (node->total > 0 ? (uint32_t)SIDE_NOW : 0) |
					  (before[i] ? (uint32_t)SIDE_BEFORE : 0);
		if (before[i])
			before[node->parent] = true;
	}
	return 0;
}

/* The places are in the order of their files. */
static void sum_files(struct place *place, uint32_t count)
{
	for (uint32_t i = 0, next; i < count; i = next) {
		int64_t sum = 0;

		for (next = i; next < count && place[next].file == place[i].file; next++)
			if (__builtin_add_overflow(sum, place[next].value, &sum))
				sum = INT64_MAX;
		for (uint32_t j = i; j < next; j++)
			place[j].file_value = sum;
	}
}

/* Sorted; heap. */
static int list_places(const struct flame_tree *tree, struct place **ret_place, uint32_t *ret_count)
{
	OWNED_MEM struct place *place = calloc((size_t)tree->code.count + 1, sizeof(*place));
	OWNED_MEM int64_t *value = calloc((size_t)tree->code.count + 1, sizeof(*value));
	OWNED_MEM uint32_t *sides = calloc((size_t)tree->code.count + 1, sizeof(*sides));
	uint32_t count = 0;
	int err = place && value && sides ? find_sides(tree, sides) : -ENOMEM;

	if (err)
		return err;
	for (uint32_t i = 1; i < tree->node_count; i++)
		if (tree->node[i].total > 0 &&
		    __builtin_add_overflow(value[tree->node[i].frame], tree->node[i].self,
					   &value[tree->node[i].frame]))
			value[tree->node[i].frame] = INT64_MAX;
	for (uint32_t i = 0; i < tree->code.count; i++) {
		const struct code *code = &tree->code.code[i];

		if (sides[i] && is_wanted(tree, code))
			place[count++] = (struct place){.file = code->file,
							.line = code->line,
							.start_line = code->start_line,
							.name = code->name,
							.sides = sides[i],
							.value = value[i]};
	}
	qsort(place, count, sizeof(*place), compare_files);
	sum_files(place, count);
	qsort(place, count, sizeof(*place), compare_places);
	*ret_place = TAKE(place);
	*ret_count = count;
	return 0;
}

/* Returns whether the places of one side fit the source: the lines are there, and the
 * functions begin at theirs. */
static bool fits(const struct flame_tree *tree, const struct source *source,
		 const struct place *place, uint32_t count, enum side side)
{
	for (uint32_t i = 0; i < count; i++)
		if (place[i].sides & (uint32_t)side &&
		    (place[i].line > source->count ||
		     (place[i].start_line &&
		      !source_defines(source, place[i].start_line,
				      code_text(&tree->code, place[i].name)))))
			return false;
	return true;
}

/* Returns the sides whose lines may be shown with the source.  Writes a note when the source is not
 * that of both sides, as far as can be told, or when nothing may be shown. */
static uint32_t note_changes(const struct flame_tree *tree, const struct source *source,
			     const struct place *place, uint32_t count, uint64_t end_wall_ns,
			     char note[NOTE_BYTES])
{
	note[0] = '\0';
	if (source->error) {
		snprintf(note, NOTE_BYTES, "The source %s.", source->error);
		return 0;
	}
	if (!fits(tree, source, place, count, SIDE_NOW) ||
	    (end_wall_ns && (uint64_t)source->modified_s > end_wall_ns / NS_PER_SEC)) {
		snprintf(note, NOTE_BYTES, "The source has changed since it ran.");
		return 0;
	}
	if (fits(tree, source, place, count, SIDE_BEFORE))
		return SIDE_NOW | SIDE_BEFORE;
	snprintf(note, NOTE_BYTES,
		 "The source has changed since the profile before: that one's figures stand at its "
		 "own line numbers.");
	return SIDE_NOW;
}

static void put_line(struct json_writer *json, const struct source *source, uint32_t line,
		     size_t *left)
{
	const char *text = source_line(source, line);
	char cut[LINE_MAX_BYTES + 8];

	if (!text)
		return;
	/* Never within a character. */
	if (strlen(text) > LINE_MAX_BYTES) {
		size_t size = LINE_MAX_BYTES;

		while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
			size--;
		snprintf(cut, sizeof(cut), "%.*s…", (int)size, text);
		text = cut;
	}
	*left -= strlen(text) < *left ? strlen(text) : *left;
	json_open(json, '[');
	json_int(json, line);
	json_string(json, text);
	json_close(json, ']');
}

static int put_file(struct json_writer *json, const struct flame_tree *tree,
		    const struct place *place, uint32_t count, uint64_t end_wall_ns, size_t *left)
{
	const char *path = code_text(&tree->code, place->file);
	CLEANUP(source_release) struct source source = {0};
	uint32_t shown = 0, sides;
	char note[NOTE_BYTES];
	int err = source_read(path, SOURCE_NAMED_BY_PROFILE, &source);

	if (err)
		return err;
	sides = note_changes(tree, &source, place, count, end_wall_ns, note);
	json_open(json, '{');
	json_put_string(json, "file", path);
	json_put_string(json, "note", note);
	json_put_open(json, "lines", '[');
	for (uint32_t i = 0; *left && i < count; i++) {
		uint32_t from = place[i].line > CONTEXT_LINES ? place[i].line - CONTEXT_LINES : 1;

		if (!(place[i].sides & sides))
			continue;
		for (uint32_t line = from > shown ? from : shown + 1;
		     line <= place[i].line + CONTEXT_LINES && line <= source.count; line++) {
			put_line(json, &source, line, left);
			shown = line;
		}
	}
	json_close(json, ']');
	json_close(json, '}');
	return 0;
}

int page_sources_write(struct json_writer *json, const struct flame_tree *tree,
		       uint64_t end_wall_ns)
{
	OWNED_MEM struct place *place = NULL;
	size_t left = PAGE_SOURCES_MAX_BYTES;
	uint32_t count, files = 0;
	int err = list_places(tree, &place, &count);

	if (err)
		return err;
	json_put_open(json, "sources", '[');
	for (uint32_t i = 0, next; !err && left && files < PAGE_SOURCES_MAX_FILES && i < count;
	     i = next, files++) {
		for (next = i + 1; next < count && place[next].file == place[i].file; next++)
			;
		if (files)
			json_newline(json);
		err = put_file(json, tree, &place[i], next - i, end_wall_ns, &left);
	}
	json_close(json, ']');
	json_newline(json);
	return err;
}

/* ---- the page ---- */

struct page {
	const struct flame_tree *tree;
	const struct flame_json_facts *facts;
};

static int write_data(FILE *data, void *arg)
{
	const struct page *page = arg;

	return flame_json_write(page->tree, page->facts, data);
}

int page_write(const struct flame_tree *tree, const struct flame_json_facts *facts)
{
	struct page page = {.tree = tree, .facts = facts};
	int err = flame_html_write(stdout, facts->title, write_data, &page);

	return fflush(stdout) && !err ? -errno : err;
}
