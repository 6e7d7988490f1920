/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof export: a profile for other tools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/exports.h"
#include "pprof/pprof.h"
#include "profile/record.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/flame_html.h"

struct export;

struct format {
	bool is_binary;
	bool wants_totals;
	bool wants_addresses; /* else frames that differ only in their addresses become one */
	bool wants_all_labels;
	bool has_no_signs; /* values are 0 or more */
	/* One of these. */
	int (*write)(const struct export *export, const struct input *input,
		     const struct export_facts *facts, FILE *out);
	int (*write_tree)(const struct flame_tree *tree, const struct export_facts *facts,
			  FILE *out);
	int (*write_profile)(struct profile *profile, const struct export_facts *facts, FILE *out);
};

struct export
{
	struct select_options shared;
	const char *path; /* "-": standard output */
	struct totals totals;
	const struct profile *totals_of_cuda; /* kind cuda_calls, to be written behind cuda */
};

/* ---- formats ---- */

static int new_tree(const struct input *input, const struct export *export,
		    const struct export_facts *facts, struct flame_tree **ret_tree)
{
	struct flame_options options = {.value_index = facts->value_index,
					.lines = true,
					.group_by = export->shared.select.group_by};

	if (!options.group_by.keys)
		options.group_by.keys = GROUP_BY_THREAD;
	return flame_tree_new(input_profile(input), &options, ret_tree);
}

static int write_json(const struct export *export, const struct input *input,
		      const struct export_facts *facts, FILE *out)
{
	struct flame_json_facts json = {.title = facts->title,
					.windows = facts->windows,
					.sample_count =
						(uint64_t)text_sum(input, facts->count_index),
					.start_wall_ns = facts->start_wall_ns,
					.duration_ns = facts->duration_ns,
					.totals = &export->totals};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	int err = new_tree(input, export, facts, &tree);

	return err ? err : flame_json_write(tree, &json, out);
}

static int write_bytes(const void *bytes, size_t size, FILE *out)
{
	return size && fwrite(bytes, size, 1, out) != 1 ? -EIO : 0;
}

static int write_folded(const struct export *export, const struct input *input,
			const struct export_facts *facts, FILE *out)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	int err =
		profile_encode_folded_value(input_profile(input), facts->value_index, &text, &size);

	(void)export;
	return err ? err : write_bytes(text, size, out);
}

static int write_pprof(const struct export *export, const struct input *input,
		       const struct export_facts *facts, FILE *out)
{
	struct profile *profile = input_profile(input);
	OWNED_MEM void *bytes = NULL;
	size_t size;
	int err = 0;

	(void)facts;
	if (export->totals_of_cuda)
		err = profile_append_records(profile, PP_PROFILE_CUDA_CALLS,
					     export->totals_of_cuda);
	profile_weigh_modules(profile);
	if (!err)
		err = profile_encode_pprof(profile, &bytes, &size);
	return err ? err : write_bytes(bytes, size, out);
}

static int write_otlp(struct profile *profile, const struct export_facts *facts, FILE *out)
{
	return export_otlp(profile, facts, NULL, out);
}

static int write_callgrind(const struct export *export, const struct input *input,
			   const struct export_facts *facts, FILE *out)
{
	struct profile *profile = input_profile(input);
	OWNED(call_graph) struct call_graph *graph = NULL;
	int err = call_graph_new(profile, facts->value_index, facts->count_index,
				 &export->shared.select.group_by, &graph);

	return err ? err
		   : call_graph_write_callgrind(
			     graph, profile->options.value_type[facts->value_index].type, out);
}

enum {
	FORMAT_PPROF,
	FORMAT_SPEEDSCOPE,
	FORMAT_FOLDED,
	FORMAT_PERFETTO,
	FORMAT_CHROME,
	FORMAT_CALLGRIND,
	FORMAT_JSON,
	FORMAT_OTLP,
	FORMAT_CSV,
	FORMATS
};

static const char *const names[FORMATS + 1] = {
	[FORMAT_PPROF] = "pprof",   [FORMAT_SPEEDSCOPE] = "speedscope",
	[FORMAT_FOLDED] = "folded", [FORMAT_PERFETTO] = "perfetto",
	[FORMAT_CHROME] = "chrome", [FORMAT_CALLGRIND] = "callgrind",
	[FORMAT_JSON] = "json",	    [FORMAT_OTLP] = "otlp",
	[FORMAT_CSV] = "csv",
};

/* CSV is what `pyprof report` writes. */
static const struct format formats[FORMAT_CSV] = {
	[FORMAT_PPROF] = {.is_binary = true,
			  .wants_addresses = true,
			  .wants_all_labels = true,
			  .write = write_pprof},
	[FORMAT_SPEEDSCOPE] = {.has_no_signs = true, .write_tree = export_speedscope},
	[FORMAT_FOLDED] = {.write = write_folded},
	[FORMAT_PERFETTO] = {.is_binary = true,
			     .has_no_signs = true,
			     .write_profile = export_perfetto},
	[FORMAT_CHROME] = {.has_no_signs = true, .write_tree = export_chrome},
	[FORMAT_CALLGRIND] = {.has_no_signs = true, .write = write_callgrind},
	[FORMAT_JSON] = {.wants_totals = true, .write = write_json},
	[FORMAT_OTLP] = {.is_binary = true,
			 .wants_addresses = true,
			 .wants_all_labels = true,
			 .write_profile = write_otlp},
};

/* ---- options ---- */

static const struct verb_option options[] = {{"output", 'o', "FILE",
					      "Write to FILE, not to standard output", 2,
					      OPTION_TEXT, .at = offsetof(struct export, path)},
					     {}};

static const char doc[] =
	"Writes a profile for another tool: pprof, merged and filtered; speedscope, one profile "
	"per thread; folded stacks for flamegraph.pl; perfetto, a trace of samples; chrome, trace "
	"events; callgrind for KCachegrind; csv, a table of functions with errors; json, the same "
	"with all stacks; otlp, OpenTelemetry's ExportProfilesServiceRequest."
	"\vExamples:\n"
	"  pyprof export --format speedscope cpu.pb.gz > cpu.json\n"
	"  pyprof export --format pprof /var/lib/pyprofd --since 1h --pid 1234 -o hour.pb.gz\n"
	"  pyprof export --format csv cpu.pb.gz | sort -t, -k5 -rn | head\n"
	"  sudo pyprof export --live --for 60 -o now.pb.gz\n";

/* ---- the verb ---- */

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	return totals_add_window(&((struct export *)context)->totals, profile, window);
}

static int write_to(const struct export *export, const struct input *input, FILE *out)
{
	const struct format *format = &formats[export->shared.format];
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	const struct profile_read_totals totals = input_totals(input);
	const struct export_facts facts = {
		.title = input_title(input),
		.value_index = profile_reader_value_index(input_reader(input)),
		.count_index = profile_reader_count_index(input_reader(input)),
		.windows = totals.windows,
		.start_wall_ns = totals.start_wall_ns,
		.duration_ns = totals.duration_ns};
	int err;

	if (format->write)
		return format->write(export, input, &facts, out);
	if (format->write_profile)
		return format->write_profile(input_profile(input), &facts, out);
	err = new_tree(input, export, &facts, &tree);
	return err ? err : format->write_tree(tree, &facts, out);
}

static int write_out(const struct export *export, const struct input *input)
{
	FILE *out;
	int status = output_file_open(export->path, &out);

	return status ? status : output_file_close(export->path, out, write_to(export, input, out));
}

/* Files of a directory do not have them behind their samples. */
static bool wants_totals_of_cuda(const struct export *export, const struct profile *profile)
{
	return formats[export->shared.format].write == write_pprof &&
	       kind_is(profile_kind(profile), PP_PROFILE_CUDA) &&
	       record_values_at(profile, PP_PROFILE_CUDA_CALLS) < 0 &&
	       match_takes_processes(&export->shared.select);
}

static int run(struct export *export)
{
	static const struct totals_options functions = {.code_by = CODE_BY_FUNCTION};
	const struct format *format = &formats[export->shared.format];
	struct input_options input_options = {
		.select = &export->shared.select,
		.keep_labels = format->wants_all_labels ? NULL : input_thread_labels,
		.drop_addresses = !format->wants_addresses,
		.window_done = format->wants_totals ? window_done : NULL,
		.context = export};
	OWNED(input) struct input *input = NULL, *calls = NULL;
	int err;

	if (format->is_binary && !strcmp(export->path, "-") && isatty(STDOUT_FILENO))
		return complain("%s is binary and not written to a terminal: give a file with -o "
				"FILE or > FILE",
				names[export->shared.format]);
	totals_init(&export->totals, &functions);
	if (export->shared.select.kind && kind_is(export->shared.select.kind, PP_PROFILE_CUDA))
		input_options.live_more = GPU_LIVE_MORE;
	err = read_input(input_options, &input);
	if (!err && format->has_no_signs && input_profile(input)->signs.has_negative)
		return complain(
			"%s has no negative values: choose folded, csv, json, pprof or otlp",
			names[export->shared.format]);
	if (!err && wants_totals_of_cuda(export, input_profile(input)))
		err = gpu_input_totals(&export->shared.select, input, true, &calls,
				       &export->totals_of_cuda);
	return err ? err : write_out(export, input);
}

int verb_export(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc};
	struct export export = {.path = "-", .shared.formats = names};
	int status = select_parse(&args, argc, argv, &export.shared);

	if (!status)
		status = export.shared.format == FORMAT_CSV
				 ? report_write_csv(&export.shared, export.path)
				 : run(&export);
	totals_release(&export.totals);
	select_release(&export.shared.select);
	return status;
}
