/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof gpu: what programs have the GPU do, by process, kernel and Python line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/kinds.h"
#include "query/gpu_lines.h"
#include "reader/complain.h"
#include "reader/gauge_view.h"
#include "reader/gpu_export.h"
#include "reader/gpu_input.h"
#include "reader/gpu_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"

#define DEFAULT_ROWS 30U
#define PROCESSES_SHOWN 5U /* beside the gauges of GPUs */
#define HOW_TO_RECORD "record with `pyprofd --events cuda`"

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMAT_SQL };

struct gpu {
	struct select_options shared;
	enum gpu_view view;
	enum format format;
	unsigned long rows;
	struct gpu_lines lines;
	int lines_err;
	struct gpu_usage usage; /* gauges of the GPUs */
	bool is_scaled; /* launches were counted for a part of the time */
};

enum {
	OPTION_SYNCS = 1,
	OPTION_COPIES,
	OPTION_KERNELS,
	OPTION_COLLECTIVES,
	OPTION_MEMORY,
	OPTION_CSV,
	OPTION_JSON,
	OPTION_SQL
};

static const struct argp_option options[] = {
	{"syncs", OPTION_SYNCS, NULL, 0,
	 "What waits for the device, by line: the time lost in it, most first", 1},
	{"copies", OPTION_COPIES, NULL, 0, "What is copied, by line and direction", 1},
	{"kernels", OPTION_KERNELS, NULL, 0,
	 "How often each kernel is launched, and the line with most of that", 1},
	{"collectives", OPTION_COLLECTIVES, NULL, 0,
	 "What NCCL is called for, by line and function: the bytes of this rank", 1},
	{"memory", OPTION_MEMORY, NULL, 0,
	 "What of the GPU's memory is live, allocated and freed, by line", 1},
	{"top", 'n', "N", 0, "Show N rows; 0: all.  Default: 30", 1},
	{"csv", OPTION_CSV, NULL, 0, "Write the lines as CSV", 1},
	{"json", OPTION_JSON, NULL, 0, "Write all as JSON", 1},
	{"sql", OPTION_SQL, NULL, 0, "Write a script for sqlite3 with all of it", 1},
	{0},
};

static const char doc[] =
	"Shows what programs have the GPU do, by process, device, function, kernel and Python "
	"line: launches, copies with their bytes, synchronisations with the time that is lost in "
	"them, allocations.  All times are the host's."
	"\vExamples:\n"
	"  pyprof gpu gpu.pb.gz\n"
	"  pyprof gpu /var/lib/pyprofd --since 10m --pid 1234\n"
	"  sudo pyprof gpu --syncs --live --pid 1234\n"
	"  pyprof gpu --sql gpu.pb.gz | sqlite3 gpu.db\n";

/* ---- options ---- */

static void set_view(struct argp_state *state, struct gpu *gpu, enum gpu_view view)
{
	if (gpu->view != GPU_VIEW_ALL && gpu->view != view)
		argp_error(state, "--syncs, --copies, --kernels, --collectives and --memory: one "
				  "at a time");
	gpu->view = view;
}

static void set_format(struct argp_state *state, struct gpu *gpu, enum format format)
{
	if (gpu->format != FORMAT_TEXT && gpu->format != format)
		argp_error(state, "--csv, --json and --sql: one at a time");
	gpu->format = format;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct gpu *gpu = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &gpu->shared;
		return 0;
	case OPTION_SYNCS:
	case OPTION_COPIES:
	case OPTION_KERNELS:
	case OPTION_COLLECTIVES:
	case OPTION_MEMORY:
		set_view(state, gpu, GPU_VIEW_SYNCS + (enum gpu_view)(key - OPTION_SYNCS));
		return 0;
	case OPTION_CSV:
	case OPTION_JSON:
	case OPTION_SQL:
		set_format(state, gpu, FORMAT_CSV + (enum format)(key - OPTION_CSV));
		return 0;
	case 'n':
		gpu->rows = select_number(state, "top", text);
		return 0;
	case ARGP_KEY_END:
		if (gpu->format == FORMAT_SQL && gpu->view != GPU_VIEW_ALL)
			argp_error(state, "--sql writes all of it: leave out --syncs, --copies, "
					  "--kernels, --collectives or --memory");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the view ---- */

static void on_comment(void *context, const char *text)
{
	struct gpu *gpu = context;

	if (!gpu->lines_err)
		gpu->lines_err = gpu_lines_add(&gpu->lines, text);
	if (!gpu->lines_err)
		gpu->lines_err = gpu_usage_add(&gpu->usage, text);
	gpu->is_scaled |= text_tells_scaled_probe(text);
}

static int print(struct gpu *gpu, const struct input *input, const struct gpu_shown *shown)
{
	int err = 0;

	switch (gpu->format) {
	case FORMAT_CSV:
		err = gpu_print_csv(shown, stdout);
		break;
	case FORMAT_JSON:
		err = gpu_print_json(shown, stdout);
		break;
	case FORMAT_SQL:
		err = gpu_print_sql(shown, stdout);
		break;
	default:
		text_head(stdout, input);
		if (shown->is_scaled)
			text_scaled(stdout);
		/* Of memory, to see how much of it is not known. */
		if (gpu->view == GPU_VIEW_ALL || gpu->view == GPU_VIEW_MEMORY)
			gpu_usage_print(&gpu->usage, PROCESSES_SHOWN, text_columns(), shown->color,
					stdout);
		err = gpu_print_text(shown);
	}
	if (!err && fflush(stdout))
		err = -errno;
	return err;
}

static int show(struct gpu *gpu, const struct input *input)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	struct profile_read_totals totals;
	struct gpu_shown shown = {.table = &table,
				  .groups = &groups,
				  .view = gpu->view,
				  .title = input_title(input),
				  .rows = (uint32_t)gpu->rows,
				  .color = text_wants_color(gpu->shared.no_color),
				  .has_around = gpu->lines.has_around,
				  .is_scaled = gpu->is_scaled};
	int err = gpu->lines_err;

	profile_reader_totals(input_reader(input), &totals);
	shown.duration_ns = totals.duration_ns;
	if (!err)
		err = gpu_table_fill(&table, input_profile(input), &gpu->lines);
	if (err == -EPROTO)
		return gpu_input_none(input_title(input), HOW_TO_RECORD);
	table.code.short_paths = input_short_paths(input);
	if (!err && gpu->view != GPU_VIEW_ALL)
		err = gpu_groups_fill(&groups, &table, gpu->view);
	if (!err)
		err = print(gpu, input, &shown);
	if (err)
		complain_of(input_title(input), err);
	return err ? READER_BAD_INPUT : READER_OK;
}

static int run(struct gpu *gpu)
{
	static const char *const labels[] = {"pid",	  "comm",   "device", "api",
					     "direction", "kernel", NULL};
	struct select *select = &gpu->shared.select;
	const struct input_options input_options = {.select = select,
						    .keep_labels = labels,
						    .drop_addresses = true,
						    .comment = on_comment,
						    .context = gpu};
	OWNED(input) struct input *input = NULL;
	int err;

	if (select->kind && !kind_is(select->kind, PP_PROFILE_CUDA))
		return complain("gpu shows kind cuda, not %.60s", select->kind);
	err = gpu_input_check(&gpu->shared, HOW_TO_RECORD);
	if (err)
		return err;
	select->kind = kind_get(PP_PROFILE_CUDA)->name;
	select->sample_type = "calls";
	gpu->lines.select = gpu->usage.select = select;
	err = read_input(input_options, gpu->shared.no_progress, &input);
	return err ? err : show(gpu, input);
}

int verb_gpu(int argc, char **argv)
{
	struct gpu gpu = {.rows = DEFAULT_ROWS};
	int status = READER_BAD_INPUT;

	if (!select_parse(options, parse, doc, "PROFILE|DIR...\n--live", argc, argv, &gpu) &&
	    !select_refuse_groups(&gpu.shared.select, "gpu"))
		status = run(&gpu);
	gpu_lines_release(&gpu.lines);
	gpu_usage_release(&gpu.usage);
	select_release(&gpu.shared.select);
	return status;
}
