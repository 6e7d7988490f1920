/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof lines FILE[:FUNC]: the source with the time of each line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/kinds.h"
#include "base/text.h"
#include "reader/line_views.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

struct lines {
	struct select_options shared;
	struct lines_view view;
	const char *waits;    /* a profile of waits */
	const char *slowdown; /* --max-slowdown; NULL: not given */
	char *target;	      /* owned: as it was typed; NULL: it was not */
	struct totals ran, waited;
};

enum { FORMAT_HTML = TABLE_SQL + 1, FORMATS };
static const char *const formats[FORMATS + 1] = {SELECT_TABLE_FORMATS, [FORMAT_HTML] = "html"};

static const struct verb_option options[] = {
	{"all", 0, NULL, "Show the whole file, not only lines that ran and those around them", 1,
	 OPTION_FLAG, .at = offsetof(struct lines, view.all)},
	{"waits", 0, "PROFILE",
	 "Take waits from this profile of kind offcpu or wall; those of a directory are found "
	 "without it",
	 1, OPTION_TEXT, .at = offsetof(struct lines, waits)},
	{"source", 0, "PATH", "Read the source from PATH, not from where it ran", 1, OPTION_TEXT,
	 .at = offsetof(struct lines, view.source_path)},
	{"exact", 0, NULL,
	 "Count every line of FILE:FUNC that the processes of --pid run from now on, as "
	 "line_profiler does: for CPython 3.6 to 3.11 with probes, as Debian's have them.  It "
	 "slows all of their Python code down",
	 2, OPTION_FLAG, .at = offsetof(struct lines, shared.select.records)},
	{"max-slowdown", 0, "PCT|Nx", SELECT_SLOWDOWN_HELP, 2, OPTION_TEXT,
	 .at = offsetof(struct lines, slowdown)},
	{}};

static const char doc[] =
	"Shows the source of FILE (or of one function) with the time of each line: self is what "
	"the "
	"line took by itself and in C, total with the Python functions that it called, wait is off "
	"the CPU.  FILE is the end of a path: train.py, pkg/train.py."
	"\vExamples:\n"
	"  pyprof lines train.py cpu.pb.gz\n"
	"  pyprof lines train.py:Model.step /var/lib/pyprofd --since 10m\n"
	"  pyprof lines train.py cpu.pb.gz --format html > train.html\n"
	"  sudo pyprof lines train.py --live\n"
	"  sudo pyprof lines train.py:Model.step --exact --pid 1234 --for 10\n";

/* ---- reading ---- */

static int ran_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct lines *lines = context;
	int err = totals_add_window(&lines->ran, profile, window);

	/* A wall profile has both in one. */
	if (!err && kind_is(profile->options.kind, PP_PROFILE_WALL))
		err = totals_add_window(&lines->waited, profile, window);
	return err;
}

static int waited_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct lines *lines = context;

	return totals_add_window(&lines->waited, profile, window);
}

static const char *const kept_labels[] = {"wait", NULL};

static int read_ran(struct lines *lines, struct input **ret_input)
{
	struct input_options input_options = {.select = &lines->shared.select,
					      .keep_labels = kept_labels,
					      .drop_addresses = true,
					      .python_only = lines->view.is_python,
					      .window_done = ran_done,
					      .context = lines};

	if (!lines->waits && !lines->shared.select.kind)
		input_options.live_more = 1U << PP_PROFILE_OFFCPU;
	return read_input(input_options, ret_input);
}

/* Reads the profile of waits; *ret_input is NULL when there is none. */
static int read_waits(struct lines *lines, const struct input *ran, struct input **ret_input)
{
	struct select select = lines->shared.select;
	struct input_options input_options = {.select = &select,
					      .keep_labels = kept_labels,
					      .drop_addresses = true,
					      .python_only = lines->view.is_python,
					      .window_done = waited_done,
					      .context = lines,
					      .kind = kind_get(PP_PROFILE_OFFCPU)->name,
					      .may_be_none = true};
	char *path[] = {(char *)lines->waits};

	*ret_input = NULL;
	if (lines->waits) {
		select.path = path;
		select.path_count = 1;
		select.live = false;
	} else if (select.live && !select.kind) {
		input_options.live_from = ran;
	} else if (select.kind || select.path_count != 1 ||
		   !path_has_kinds(select.path[0], false)) {
		return 0;
	}
	return read_input(input_options, ret_input);
}

/* ---- which files ---- */

static int show_files(struct lines *lines, const struct input *input, struct table *table)
{
	const struct profile *profile = input_profile(input);
	OWNED_MEM uint8_t *seen = calloc(intern_count(profile->strings), 1);
	uint32_t count = 0;
	int err = 0;

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < profile->stacks.location_count; i++) {
		uint32_t file = profile->stacks.location[i].file;

		if (seen[file] ||
		    !line_path_matches(intern_get(profile->strings, file, NULL), lines->view.file))
			continue;
		seen[file] = 1;
		count++;
		err = lines_put(&lines->view, file, table);
	}
	if (err)
		return err;
	if (count)
		return 0;
	return complain("%s: no %s in a file of that name%s%s", lines->view.file,
			lines->view.is_exact ? "line was counted" : "sample",
			lines->view.function ? "; the function is what follows the last ':': " : "",
			lines->view.function ? lines->view.function : "");
}

static int write_page(struct lines *lines, const struct input *input)
{
	int err;

	lines_begin_html(&lines->view);
	err = show_files(lines, input, NULL);
	lines_end_html();
	return err;
}

static int write_table(struct lines *lines, const struct input *input,
		       const struct profile_read_totals *totals)
{
	char recorded[FORMAT_BYTES];
	struct table table;
	int err;

	table_open(&table, stdout, (enum table_format)lines->shared.format, text_wants_color());
	if (lines->shared.select.records && table_is_for_people(&table))
		/* The file's name is nobody's: it is gone when we end. */
		printf("lines, exact: %s recorded\n",
		       format_value((int64_t)totals->duration_ns, "nanoseconds", recorded));
	else
		text_table_head(&table, input);
	if (!table_is_for_people(&table))
		lines_begin(&lines->view, &table);
	err = show_files(lines, input, &table);
	if (!table_is_for_people(&table))
		table_end(&table);
	return table_close(&table, err);
}

static int show(struct lines *lines, const struct input *input)
{
	const struct profile_read_totals totals = input_totals(input);
	int err;

	lines->view.profile = input_profile(input);
	lines->view.ran = &lines->ran;
	lines->view.waited = lines->waited.windows ? &lines->waited : NULL;
	lines->view.end_wall_ns = totals.end_wall_ns;
	lines->view.unit = input_value_type(input)->unit;
	lines->view.title = input_title(input);
	err = lines->shared.format == FORMAT_HTML ? write_page(lines, input)
						  : write_table(lines, input, &totals);
	return err < 0 ? complain_of(input_title(input), err) : err;
}

static int run(struct lines *lines)
{
	static const struct totals_options ran = {.code_by = CODE_BY_SOURCE_LINE};
	static const struct totals_options waited = {.code_by = CODE_BY_SOURCE_LINE,
						     .group_by = {.keys = GROUP_BY_WAIT}};
	OWNED(input) struct input *input = NULL;
	OWNED(input) struct input *waits = NULL;
	int err;

	totals_init(&lines->ran, &ran);
	totals_init(&lines->waited, &waited);
	err = read_ran(lines, &input);
	if (!err)
		lines_find_exact(&lines->view, input_profile(input));
	if (!err && !lines->view.is_exact && !lines->waited.windows)
		err = read_waits(lines, input, &waits);
	return err ? err : show(lines, input);
}

/* Has the lines counted, and shows that profile. */
static int run_exact(struct lines *lines)
{
	CLEANUP(exact_release) struct exact exact = {};
	int err = exact_record(&lines->shared.select, lines->target, lines->slowdown, &exact);

	return err ? err : run(lines);
}

/* Splits "w.py:Model.step". */
static void split_target(struct lines *lines)
{
	char *text = lines->shared.leading[0];
	size_t size = line_target_file_bytes(text);

	if (!size)
		size = strlen(text);
	if (text[size]) {
		text[size] = '\0';
		lines->view.function = text + size + 1;
	}
	lines->view.file = text;
	lines->view.is_python =
		(size > 3 && !strcmp(text + size - 3, ".py")) || !strncmp(text, "<", 1);
}

static int run_target(struct lines *lines)
{
	if (!lines->shared.leading_count)
		return complain("the source file is missing: pyprof lines train.py cpu.pb.gz");
	lines->target = strdup(lines->shared.leading[0]);
	if (!lines->target)
		return complain_of(lines->shared.leading[0], -ENOMEM);
	split_target(lines);
	return lines->shared.select.records ? run_exact(lines) : run(lines);
}

int verb_lines(int argc, char **argv)
{
	static const struct verb_args args = {options,
					      "FILE[:FUNC] PROFILE|DIR...\nFILE[:FUNC] --live\n"
					      "FILE[:FUNC] --exact --pid PID",
					      .doc = doc};
	struct lines lines = {.shared = {.leading_wanted = 1, .formats = formats}};
	int status = select_parse(&args, argc, argv, &lines.shared)
			     ?: select_refuse_groups(&lines.shared.select, "lines")
			     ?: run_target(&lines);

	totals_release(&lines.ran);
	totals_release(&lines.waited);
	free(lines.target);
	select_release(&lines.shared.select);
	return status;
}
