/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof why: what the host does that makes the GPU slow, with the evidence for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/kinds.h"
#include "reader/gpu_table.h"
#include "reader/machine_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "reader/why_processes.h"

#define DEFAULT_ROWS 10U
#define HOW_TO_RECORD "record into a directory with `pyprofd --events cpu,offcpu,cuda`"
#define NVML_PREFIX "nvml:" /* of a device that NVML told of */
#define LAUNCH_PROBE "probe=cuda_launch"

struct why {
	struct select_options shared;
	unsigned long rows;
	bool is_scaled;
	const char *gpu;	      /* --gpu; NULL: all */
	const struct profile *totals; /* NULL: there are none */
	struct why_processes processes;
	struct gpu_usage gauges;
};

static const struct wanted_kinds wanted = {.kind = {PP_PROFILE_CUDA},
					   .count = 1,
					   .nothing = "nothing of a GPU",
					   .how_to_record = HOW_TO_RECORD};

static const char doc[] =
	"Says why GPUs are slow, as far as the host is to blame: synchronisations, a process that "
	"has nothing queued, launches, copies, allocations.  Each finding has its evidence, the "
	"lines it comes from, what it rests on, what it cannot know, and what to try.  A directory "
	"with the kinds cpu, offcpu and cuda tells most."
	"\vExamples:\n"
	"  pyprof why /var/lib/pyprofd --since 10m --pid 1234\n"
	"  pyprof why --gpu 0 gpu/\n"
	"  pyprof why --format json gpu.pb.gz\n"
	"  sudo pyprof why --live --pid 1234\n";

/* ---- options ---- */

static void parse_gpu(const struct given *given)
{
	struct why *why = given->at;
	const char *text = given->text;
	const size_t prefix =
		strncmp(text, NVML_PREFIX, strlen(NVML_PREFIX)) ? 0 : strlen(NVML_PREFIX);
	const char *number = text + prefix;
	char label[48], said[SELECT_WHY_BYTES];

	if (why->gpu)
		argp_error(given->argp, "--gpu: one device at a time");
	if (!number[0] || strlen(number) > 9 || number[strspn(number, "0123456789")])
		option_refuse(given, "not the number of a device: give one as 0 or nvml:0");
	snprintf(label, sizeof(label), "device=^%.*s%.9s$", (int)prefix, NVML_PREFIX, number);
	if (select_add_label(&why->shared.select, label, said))
		option_refuse(given, said);
	why->gpu = text;
}

static const struct verb_option options[] = {
	{"gpu", 0, "N",
	 "Only calls for device N, as programs count them; nvml:N, as NVML does: of a device that "
	 "was chosen before pyprofd began",
	 1, OPTION_CALL, .parse = parse_gpu},
	{"top", 'n', "N", "Show N processes; 0: all.  Default: 10", 1, OPTION_NUMBER,
	 .at = offsetof(struct why, rows)},
	{}};

/* A part of a process's calls or time has other rates and shares than the process. */
static void refuse_parts(struct argp_state *state, void *verb)
{
	const struct why *why = verb;
	const struct select *select = &why->shared.select;

	if (select->thread || select->focus || select->ignore || select->sample_type ||
	    select->label_count > (why->gpu ? 1U : 0U))
		argp_error(state, "why judges whole processes: leave out --thread, --focus, "
				  "--ignore, --label and --sample-type");
}

/* ---- calls ---- */

/* "probe=cuda_launch hits=505102 ns_per_hit=811 on=0.300": probes/probe_bounds.c. */
static bool is_of_scaled_launches(const char *text)
{
	return !strncmp(text, LAUNCH_PROBE, strlen(LAUNCH_PROBE)) && text_tells_scaled_probe(text);
}

static void on_comment(void *context, const char *text)
{
	struct why *why = context;

	why->is_scaled |= is_of_scaled_launches(text);
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	return why_add_window(&((struct why *)context)->processes, profile, window);
}

static int add_calls(struct why *why, const struct input *input)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	int err = gpu_table_fill(&table, input_profile(input), why->totals, &why->shared.select);

	table.code.short_paths = input_short_paths(input);
	return err ? err : why_add_calls(&why->processes, &table);
}

/* ---- samples ---- */

/* clock=cycles counts no time. */
static bool counts_ns(const struct input *input)
{
	const unsigned int value = profile_reader_value_index(input_reader(input));

	return !strcmp(input_profile(input)->options.value_type[value].unit, "nanoseconds");
}

static int samples_done(void *context, struct profile *profile, const struct profile_window *window)
{
	return why_samples_add(context, profile, window);
}

/* Reads the same windows of another kind, of the processes that call CUDA.  *ret_input is NULL
 * where there are none. */
static int read_samples(struct why *why, enum pp_profile kind, struct why_samples *samples,
			struct input **ret_input)
{
	static const char *const labels[] = {"pid", "tid", "gpu", "wait", NULL};
	struct select select = why->shared.select; /* a copy, whose parts are borrowed */
	const struct input_options input_options = {.select = &select,
						    .kind = kind_get(kind)->name,
						    .keep_labels = labels,
						    .drop_addresses = true,
						    .window_done = samples_done,
						    .context = samples,
						    .may_be_none = true};

	select.label_count = 0;
	if (why->processes.count <= SELECT_MAX_PIDS) {
		select.comm = NULL;
		select.pid_count = why->processes.count;
		for (uint32_t i = 0; i < why->processes.count; i++)
			select.pid[i] = why->processes.process[i].pid;
	}
	return read_input(input_options, ret_input);
}

static int add_samples(struct why *why)
{
	static const enum pp_profile kinds[] = {PP_PROFILE_WALL, PP_PROFILE_CPU};
	const struct select *select = &why->shared.select;

	if (select->live || !why->processes.count)
		return 0;
	for (int i = 0; i < select->path_count; i++)
		if (!path_has_kinds(select->path[i], true))
			return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(why_samples_release) struct why_samples samples;
		OWNED(input) struct input *input = NULL;
		int err;

		why_samples_init(&samples, &why->processes);
		err = read_samples(why, kinds[i], &samples, &input);
		if (err)
			return err;
		if (!input || !counts_ns(input))
			continue;
		err = why_samples_end(&samples, input_short_paths(input),
				      kinds[i] == PP_PROFILE_WALL);
		return err ? complain_of(input_title(input), err) : 0;
	}
	return 0;
}

/* ---- the verb ---- */

static int print(const struct why *why, const struct input *input)
{
	struct why_shown shown = {.processes = &why->processes,
				  .gauges = &why->gauges,
				  .title = input_title(input),
				  .duration_ns = input_totals(input).duration_ns,
				  .rows = (uint32_t)why->rows,
				  .color = text_wants_color(),
				  .is_scaled = why->is_scaled};
	struct table table;
	int err = 0;

	if (why->shared.format == TABLE_JSON) {
		err = why_print_json(&shown, stdout);
	} else if (why->shared.format != TABLE_TEXT) {
		table_open(&table, stdout, (enum table_format)why->shared.format, false);
		text_table_head(&table, input);
		err = table_close(&table, why_put_table(&shown, &table));
	} else {
		text_head(stdout, input);
		if (why->is_scaled)
			text_scaled(stdout);
		why_print_text(&shown);
	}
	if (!err && fflush(stdout))
		err = -errno;
	return err;
}

static int show(struct why *why, const struct input *input)
{
	int err = add_calls(why, input);

	if (err == -EPROTO)
		return input_has_none(&wanted, input_title(input));
	if (!err) {
		err = add_samples(why);
		if (err)
			return READER_BAD_INPUT;
		why_judge(&why->processes, why->is_scaled);
		err = print(why, input);
	}
	return err ? complain_of(input_title(input), err) : READER_OK;
}

static int run(struct why *why)
{
	static const char *const labels[] = {"pid", "tid",	 "comm",   "device",
					     "api", "direction", "kernel", NULL};
	struct select *select = &why->shared.select;
	const struct input_options input_options = {.select = select,
						    .keep_labels = labels,
						    .drop_addresses = true,
						    .window_done = window_done,
						    .comment = on_comment,
						    .live_more = GPU_LIVE_MORE,
						    .context = why};
	OWNED(input) struct input *input = NULL, *gauges = NULL, *calls = NULL;
	int err;

	if (select->kind && !kind_is(select->kind, PP_PROFILE_CUDA))
		return complain("why begins with kind cuda, not %.60s", select->kind);
	err = choose_kind(select, &wanted);
	if (err)
		return err;
	select->sample_type = "calls";
	err = read_input(input_options, &input);
	if (!err)
		err = gpu_input_totals(select, input, false, &calls, &why->totals);
	if (!err)
		err = gpu_usage_read(&why->gauges, select, input, &gauges);
	return err ? err : show(why, input);
}

int verb_why(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc,
					      .check = refuse_parts};
	struct why why = {.rows = DEFAULT_ROWS, .shared.formats = select_table_formats};
	int status = select_parse(&args, argc, argv, &why.shared)
			     ?: select_refuse_groups(&why.shared.select, "why")
			     ?: run(&why);

	why_processes_release(&why.processes);
	gpu_usage_release(&why.gauges);
	select_release(&why.shared.select);
	return status;
}
