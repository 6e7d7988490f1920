/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof gpu: what programs have the GPU do, by process, kernel and Python line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/kinds.h"
#include "reader/gpu_table.h"
#include "reader/machine_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"

#define DEFAULT_ROWS 30U
#define PROCESSES_SHOWN 5U /* beside the gauges of GPUs */

static const struct wanted_kinds wanted = {.kind = {PP_PROFILE_CUDA},
					   .count = 1,
					   .nothing = "nothing of a GPU",
					   .how_to_record = "record with `pyprofd --events cuda`"};

struct gpu {
	struct select_options shared;
	enum gpu_view view;
	unsigned long rows;
	const struct profile *totals; /* NULL: there are none */
	struct gpu_usage usage;	      /* gauges of the GPUs */
	bool is_scaled;		      /* launches were counted for a part of the time */
};

static const char *const view_names[] = {[GPU_VIEW_ALL] = "all",
					 [GPU_VIEW_SYNCS] = "syncs",
					 [GPU_VIEW_COPIES] = "copies",
					 [GPU_VIEW_KERNELS] = "kernels",
					 [GPU_VIEW_COLLECTIVES] = "collectives",
					 [GPU_VIEW_MEMORY] = "memory",
					 NULL};

static const struct verb_option options[] = {
	{"view", 0, "VIEW",
	 "all (default); syncs: what waits for the device, by line, the time lost in it, most "
	 "first; copies: what is copied, by line and direction; kernels: how often each is "
	 "launched, and the line with most of that; collectives: what NCCL is called for, by line "
	 "and function, the bytes of this rank; memory: what of the GPU's memory is live, "
	 "allocated and freed, by line",
	 1, OPTION_WORD, .at = offsetof(struct gpu, view), .words = view_names},
	{"top", 'n', "N", "Show N rows; 0: all.  Default: 30", 1, OPTION_NUMBER,
	 .at = offsetof(struct gpu, rows)},
	{}};

static const char doc[] =
	"Shows what programs have the GPU do, by process, device, function, kernel and Python "
	"line: launches, copies with their bytes, synchronisations with the time that is lost in "
	"them, allocations.  All times are the host's."
	"\vExamples:\n"
	"  pyprof gpu gpu.pb.gz\n"
	"  pyprof gpu /var/lib/pyprofd --since 10m --pid 1234\n"
	"  sudo pyprof gpu --view syncs --live --pid 1234\n"
	"  pyprof gpu --format sql gpu.pb.gz | sqlite3 gpu.db\n";

/* ---- the view ---- */

static void on_comment(void *context, const char *text)
{
	struct gpu *gpu = context;

	gpu->is_scaled |= text_tells_scaled_probe(text);
}

/* Of memory, to see how much of it is not known. */
static bool shows_gauges(const struct gpu *gpu)
{
	return gpu->shared.format == TABLE_TEXT &&
	       (gpu->view == GPU_VIEW_ALL || gpu->view == GPU_VIEW_MEMORY);
}

static int print_text(struct gpu *gpu, const struct input *input, const struct gpu_shown *shown)
{
	text_head(stdout, input);
	if (shown->is_scaled)
		text_scaled(stdout);
	if (shows_gauges(gpu))
		gpu_usage_print(&gpu->usage, PROCESSES_SHOWN, text_columns(), shown->color, stdout);
	return gpu_print_text(shown);
}

static int write_tables(const struct gpu *gpu, const struct input *input,
			const struct gpu_shown *shown)
{
	struct table table;

	table_open(&table, stdout, (enum table_format)gpu->shared.format, false);
	text_table_head(&table, input);
	table_fact_string(&table, "view", view_names[gpu->view]);
	return table_close(&table, gpu_put_tables(shown, &table));
}

static int print(struct gpu *gpu, const struct input *input, const struct gpu_shown *shown)
{
	int err = gpu->shared.format == TABLE_TEXT ? print_text(gpu, input, shown)
						   : write_tables(gpu, input, shown);

	if (!err && fflush(stdout))
		err = -errno;
	return err;
}

static int show(struct gpu *gpu, const struct input *input)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	struct gpu_shown shown = {.table = &table,
				  .groups = &groups,
				  .view = gpu->view,
				  .duration_ns = input_totals(input).duration_ns,
				  .rows = (uint32_t)gpu->rows,
				  .color = text_wants_color(),
				  .is_scaled = gpu->is_scaled};
	int err = gpu_table_fill(&table, input_profile(input), gpu->totals, &gpu->shared.select);

	if (err == -EPROTO)
		return input_has_none(&wanted, input_title(input));
	table.code.short_paths = input_short_paths(input);
	if (!err && gpu->view != GPU_VIEW_ALL)
		err = gpu_groups_fill(&groups, &table, gpu->view);
	if (!err)
		err = print(gpu, input, &shown);
	return err ? complain_of(input_title(input), err) : READER_OK;
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
						    .live_more = GPU_LIVE_MORE,
						    .context = gpu};
	OWNED(input) struct input *input = NULL, *gauges = NULL, *calls = NULL;
	int err;

	if (select->kind && !kind_is(select->kind, PP_PROFILE_CUDA))
		return complain("gpu shows kind cuda, not %.60s", select->kind);
	err = choose_kind(select, &wanted);
	if (err)
		return err;
	select->sample_type = "calls";
	err = read_input(input_options, &input);
	if (!err)
		err = gpu_input_totals(select, input, false, &calls, &gpu->totals);
	if (!err && shows_gauges(gpu))
		err = gpu_usage_read(&gpu->usage, select, input, &gauges);
	return err ? err : show(gpu, input);
}

int verb_gpu(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc};
	struct gpu gpu = {.rows = DEFAULT_ROWS, .shared.formats = select_table_formats};
	int status = select_parse(&args, argc, argv, &gpu.shared)
			     ?: select_refuse_groups(&gpu.shared.select, "gpu")
			     ?: run(&gpu);

	gpu_usage_release(&gpu.usage);
	select_release(&gpu.shared.select);
	return status;
}
