/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof info: what a profile contains, how complete it is, and what recording it cost. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/saturating.h"
#include "profile/comments.h"
#include "reader/program_times.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/code_table.h"
#include "render/format.h"

#define MAX_FACTS 96U
#define FACT_NAME_BYTES 40U
#define NAME_COLUMNS 14U
#define MAX_COMMENTS_SHOWN 8U
#define DEFAULT_PROCESSES 10U

struct fact_sum {
	char name[FACT_NAME_BYTES];
	uint64_t sum, max;
};

struct info {
	struct select_options shared;
	struct fact_sum fact[MAX_FACTS];
	unsigned int fact_count;
	struct program_times times;
	unsigned long processes;
};

static const struct verb_option options[] = {
	{"top", 'n', "N", "Show N processes; 0: all.  Default: 10", 1, OPTION_NUMBER,
	 .at = offsetof(struct info, processes)},
	{}};

static const char doc[] =
	"Tells what is in a profile: kind, sample types, times, processes, the "
	"share of stacks that are complete, what was lost, and the profiler's own "
	"cost."
	"\vExamples:\n"
	"  pyprof info cpu.pb.gz\n"
	"  pyprof info /var/lib/pyprofd --since 1h --kind offcpu\n"
	"  sudo pyprof info --live\n";

/* ---- capture metadata: "facts samples=12 complete=11", summed over windows ---- */

static struct fact_sum *find_sum(struct info *info, const char *name, size_t size)
{
	for (unsigned int i = 0; i < info->fact_count; i++)
		if (strlen(info->fact[i].name) == size && !strncmp(info->fact[i].name, name, size))
			return &info->fact[i];
	return NULL;
}

static void add_fact(struct info *info, const struct fact *fact)
{
	struct fact_sum *sum = find_sum(info, fact->name, fact->name_size);

	if (program_times_add(&info->times, fact->name, fact->name_size, fact->number))
		return;
	if (!sum) {
		if (info->fact_count == MAX_FACTS || fact->name_size >= FACT_NAME_BYTES)
			return;
		sum = &info->fact[info->fact_count++];
		memcpy(sum->name, fact->name, fact->name_size);
	}
	sum->sum += fact->number;
	if (fact->number > sum->max)
		sum->max = fact->number;
}

static void on_comment(void *context, const char *text)
{
	struct fact fact;

	while (fact_next(&text, &fact) && fact.is_number)
		add_fact(context, &fact);
}

static const struct fact_sum *fact_of(struct info *info, const char *name)
{
	return find_sum(info, name, strlen(name));
}

static uint64_t fact_sum(struct info *info, const char *name)
{
	return fact_of(info, name) ? fact_of(info, name)->sum : 0;
}

static void print_reasons(const struct info *info, const char *prefix, FILE *out)
{
	for (unsigned int i = 0; i < info->fact_count; i++)
		if (!strncmp(info->fact[i].name, prefix, strlen(prefix)))
			fprintf(out, "; %" PRIu64 " %s", info->fact[i].sum,
				info->fact[i].name + strlen(prefix));
	fprintf(out, "\n");
}

static void print_host(struct info *info, uint64_t elapsed_ns, FILE *out)
{
	const struct fact_sum *cpus = fact_of(info, "host_cpus");
	uint64_t steal_ns = fact_sum(info, "host_steal_ns");
	double capacity_ns;

	if (!cpus || !cpus->max || !elapsed_ns)
		return;
	capacity_ns = (double)elapsed_ns * (double)cpus->max;
	fprintf(out, "host load     %.0f %% of %" PRIu64 " CPUs\n",
		100.0 * (double)fact_sum(info, "host_busy_ns") / capacity_ns, cpus->max);
	if (steal_ns)
		fprintf(out,
			"steal         %.1f %% of the CPUs went to other guests of the hypervisor; "
			"samples due then came late and count\n",
			100.0 * (double)steal_ns / capacity_ns);
}

/* Prints how long the profiler held a CPU at a time. */
static void print_times(const struct info *info, FILE *out)
{
	static const char *const names[] = {
#define PROGRAM_NAME(id, name) name,
		PP_PROGRAMS(PROGRAM_NAME)};
	char median[FORMAT_BYTES], most[FORMAT_BYTES], all[FORMAT_BYTES];

	for (unsigned int i = 0; i < PP_PROGRAM_COUNT; i++) {
		uint64_t runs = program_times_runs(&info->times, i);

		if (!runs)
			continue;
		fprintf(out,
			"%-13s %" PRIu64
			" walks in %s; half took up to %s, 99.9 %% up to %s, all up to %s\n",
			"time a walk", runs, names[i],
			format_value((int64_t)program_times_ns(&info->times, i, 0.5), "nanoseconds",
				     median),
			format_value((int64_t)program_times_ns(&info->times, i, 0.999),
				     "nanoseconds", most),
			format_value((int64_t)program_times_ns(&info->times, i, 1), "nanoseconds",
				     all));
	}
}

/* Prints what the child that parses files was asked, which is part of the agent's own cost. */
static void print_asked(struct info *info, uint64_t elapsed_ns, FILE *out)
{
	char text[FORMAT_BYTES];

	if (!elapsed_ns || !fact_sum(info, "child_cpu_ns"))
		return;
	fprintf(out, "files parsed  %.2f %% of one CPU in a child, part of own cost; %s of answers",
		100.0 * (double)fact_sum(info, "child_cpu_ns") / (double)elapsed_ns,
		format_value((int64_t)fact_sum(info, "child_bytes"), "bytes", text));
	print_reasons(info, "asked_", out);
}

static void put_facts(struct info *info, FILE *out)
{
	uint64_t samples = fact_sum(info, "samples"), elapsed_ns = fact_sum(info, "elapsed_ns");
	const struct fact_sum *rss = fact_of(info, "own_rss_bytes");
	const struct fact_sum *stall = fact_of(info, "loop_stall_max_ns");
	char text[FORMAT_BYTES];

	if (!info->fact_count) {
		fprintf(out, "stacks        the profile does not tell how whole they are\n");
		return;
	}
	fprintf(out, "stacks        %.1f %% of %" PRIu64 " samples complete",
		samples ? 100.0 * (double)fact_sum(info, "complete") / (double)samples : 100.0,
		samples);
	print_reasons(info, "cut_", out);
	fprintf(out, "lost          %" PRIu64 " samples", fact_sum(info, "lost"));
	print_reasons(info, "lost_", out);
	fprintf(out, "own cost      %.2f %% of one CPU in user space and on its behalf",
		elapsed_ns ? 100.0 * (double)fact_sum(info, "own_cpu_ns") / (double)elapsed_ns : 0);
	if (rss)
		fprintf(out, ", %s of memory", format_value((int64_t)rss->max, "bytes", text));
	fprintf(out, "\n");
	print_asked(info, elapsed_ns, out);
	if (stall)
		fprintf(out, "loop          busy for %s at a time at most\n",
			format_value((int64_t)stall->max, "nanoseconds", text));
	print_times(info, out);
	print_host(info, elapsed_ns, out);
}

static void print_facts(struct info *info)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	put_facts(info, out);
	if (!close_memory_file(out, &text))
		text_wrap(stdout, text, NAME_COLUMNS, text_columns());
}

/* ---- the profile ---- */

static void print_time(const char *name, uint64_t wall_ns_value)
{
	time_t seconds = (time_t)(wall_ns_value / NS_PER_SEC);
	struct tm parts;
	char text[64];

	if (!wall_ns_value)
		return;
	localtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &parts);
	printf("%-13s %s\n", name, text);
}

static void print_types(const struct input *input)
{
	const struct profile *profile = input_profile(input);
	const struct profile_options *types = &profile->options;
	unsigned int shown = profile_reader_value_index(input_reader(input));
	char text[FORMAT_BYTES];

	for (size_t i = 0; i < types->value_count; i++) {
		printf("%-13s %s/%s: %s%s\n", i ? "" : "sample types", types->value_type[i].type,
		       types->value_type[i].unit,
		       format_value(text_sum(input, (int)i), types->value_type[i].unit, text),
		       i == shown ? "  (shown)" : "");
	}
	if (types->period)
		printf("%-13s %s of %s\n", "period",
		       format_value(types->period, types->period_type.unit, text),
		       types->period_type.type);
}

static void print_sizes(const struct input *input)
{
	const struct profile *profile = input_profile(input);
	const struct profile_read_totals totals = input_totals(input);
	char packed[FORMAT_BYTES], raw[FORMAT_BYTES];

	printf("%-13s %" PRIu64 " (%s, unpacked %s)\n", "files", totals.files,
	       format_value((int64_t)totals.bytes, "bytes", packed),
	       format_value((int64_t)totals.raw_bytes, "bytes", raw));
	if (totals.windows != totals.files)
		printf("%-13s %" PRIu64 "\n", "windows", totals.windows);
	print_time("from", totals.start_wall_ns);
	print_time("to", totals.end_wall_ns);
	if (totals.duration_ns)
		printf("%-13s %s\n", "recorded",
		       format_value((int64_t)totals.duration_ns, "nanoseconds", packed));
	printf("%-13s %" PRIu32 " stacks of %" PRIu32 " frames, %" PRIu32
	       " sets of labels, %" PRIu32 " rows\n",
	       "distinct", profile->stacks.stack_count, profile->stacks.location_count,
	       profile->label_set_count, profile->row_count);
}

static void print_labels(const struct profile *profile)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fprintf(out, "%-13s", "labels");
	for (uint32_t i = 0; i < profile->key_count; i++)
		fprintf(out, " %s", profile->key[i].name);
	fprintf(out, "%s\n", profile->key_count ? "" : " none");
	if (!close_memory_file(out, &text))
		text_wrap(stdout, text, NAME_COLUMNS, text_columns());
}

static void print_comments(const struct profile *profile)
{
	unsigned int shown = 0;

	for (uint32_t i = 0; i < profile->comment_count; i++) {
		const char *text = intern_get(profile->strings, profile->comment[i], NULL);

		if (facts_are_of_window(text))
			continue;
		if (shown++ < MAX_COMMENTS_SHOWN)
			printf("%-13s %s\n", shown == 1 ? "comments" : "", text);
	}
}

static int sum_processes(const struct input *input, struct groups *groups, int64_t **ret_sum)
{
	const struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	OWNED_MEM int64_t *sum = calloc((size_t)profile->label_set_count + 1, sizeof(*sum));
	uint32_t group;

	if (!sum)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		int err = groups_of_set(groups, profile->row[i].label_set, &group);

		if (err)
			return err;
		sum[group] =
			add_saturating(sum[group], profile_row_values(profile, i)[value_index]);
	}
	*ret_sum = TAKE(sum);
	return 0;
}

/* Writes processes, that with the largest sum first. */
static int put_processes(const struct info *info, const struct input *input, struct table *table)
{
	static const struct table_column columns[] = {{"value", "VALUE", 25},
						      {"process", "PROCESS", 0}};
	struct profile *profile = input_profile(input);
	const char *unit = input_value_type(input)->unit;
	CLEANUP(groups_release) struct groups groups;
	OWNED_MEM uint32_t *order = NULL;
	OWNED_MEM int64_t *sum = NULL;
	uint32_t shown;
	int err;

	groups_init(&groups, profile, &(struct grouping){.keys = GROUP_BY_PROCESS});
	err = sum_processes(input, &groups, &sum);
	if (err)
		return err;
	order = text_order(sum, groups.count);
	if (!order)
		return -ENOMEM;
	shown = info->processes && groups.count > info->processes && table_is_for_people(table)
			? (uint32_t)info->processes
			: groups.count;
	if (table->format == TABLE_TEXT)
		printf("%-13s %" PRIu32 "\n", "processes", groups.count);
	table_begin(table, "processes", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < shown; i++) {
		table_value(table, sum[order[i]], unit);
		table_string(table,
			     intern_get(profile->strings, groups.group[order[i]].label, NULL),
			     NULL);
	}
	table_end(table);
	if (table_is_for_people(table) && shown < groups.count)
		printf("%-13s ... %" PRIu32 " more; --top 0 shows all\n", "", groups.count - shown);
	return 0;
}

static void print_all(struct info *info, const struct input *input)
{
	printf("%-13s %s\n%-13s %s\n", "profile", input_title(input), "kind",
	       input_profile(input)->options.kind);
	print_sizes(input);
	print_types(input);
	print_labels(input_profile(input));
	print_facts(info);
	print_comments(input_profile(input));
}

/* Writes the capture metadata of all windows as it is: sums, and the largest of a window. */
static void put_metadata(const struct info *info, struct table *table)
{
	static const struct table_column columns[] = {
		{"fact", "FACT", 0}, {"sum", "SUM", 20}, {"max", "MAX", 20}};

	table_begin(table, "facts", columns, ARRAY_SIZE(columns));
	for (unsigned int i = 0; i < info->fact_count; i++) {
		const struct fact_sum *fact = &info->fact[i];

		table_string(table, fact->name, NULL);
		table_int(table, (int64_t)fact->sum, NULL);
		table_int(table, (int64_t)fact->max, NULL);
	}
	table_end(table);
}

static int print(struct info *info, const struct input *input)
{
	struct table table;

	table_open(&table, stdout, (enum table_format)info->shared.format, text_wants_color());
	if (table.format == TABLE_TEXT) {
		print_all(info, input);
	} else {
		text_table_head(&table, input);
		table_fact_string(&table, "kind", input_profile(input)->options.kind);
		put_metadata(info, &table);
	}
	return table_close(&table, put_processes(info, input, &table));
}

static int run(struct info *info)
{
	struct input_options input_options = {
		.select = &info->shared.select, .comment = on_comment, .context = info};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);

	if (err)
		return err;
	err = print(info, input);
	return err ? complain_of(input_title(input), err) : READER_OK;
}

int verb_info(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc};
	struct info info = {.processes = DEFAULT_PROCESSES, .shared.formats = select_table_formats};
	int status = select_parse(&args, argc, argv, &info.shared)
			     ?: select_refuse_groups(&info.shared.select, "info")
			     ?: run(&info);

	select_release(&info.shared.select);
	return status;
}
