/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof gpu: what programs have the GPU do, by process, kernel and Python line. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "reader/gpu_table.h"
#include "reader/machine_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

#define LINES_OF_CALL 3U /* that are shown, but with --top 0 */
#define CALLERS_SHOWN 2U
#define ALL_COLUMNS 56U
#define INDENT 2U
#define SHARE_COLUMNS 13U /* "100.0 % ±12.3" */

/* ---- figures ---- */

static const char *ns_text(double ns, char buffer[FORMAT_BYTES])
{
	return isnan(ns) ? "-" : format_value((int64_t)ns, "nanoseconds", buffer);
}

/* Writes a sum, or "-" for one that is 0: it is not measured, or there is nothing of it. */
static const char *sum_text(int64_t value, const char *unit, char buffer[FORMAT_BYTES])
{
	return value ? format_value(value, unit, buffer) : "-";
}

/* Writes the standard error of a value in percent of it. */
static const char *error_text(int64_t value, double variance, char buffer[FORMAT_BYTES])
{
	if (!value)
		return "";
	if (isnan(variance))
		return "±?";
	/* A small part of many calls may be all of it, or a hundred times as much. */
	if (sqrt(variance) >= 10 * (double)value)
		return "±>999 %";
	snprintf(buffer, FORMAT_BYTES, "±%.1f %%", 100 * sqrt(variance) / (double)value);
	return buffer;
}

/* printf() counts bytes; this pads a text of few characters to so many columns. */
static void print_right(const char *text, unsigned int columns)
{
	const unsigned int taken = (unsigned int)text_columns_of(text);

	printf("%*s%s", columns > taken ? (int)(columns - taken) : 0, "", text);
}

static void print_code(const struct gpu_shown *shown, uint32_t number, unsigned int taken)
{
	const struct code_table *table = &shown->table->code;
	const struct code *code = &table->code[number];

	text_code(stdout, table, code, text_room(taken), shown->color);
}

/* ---- by process ---- */

/* What one row of the table says. */
struct figures {
	const int64_t *value;
	double mean, median, late; /* ns; NAN: not known */
};

static void print_figures(const struct figures *figures)
{
	const int64_t *value = figures->value;
	char text[FORMAT_BYTES];

	printf("%9" PRId64, value[GPU_CALLS]);
	printf("%10s", sum_text(value[GPU_HOST], "nanoseconds", text));
	printf("%9s", ns_text(figures->mean, text));
	printf("%9s", ns_text(figures->median, text));
	printf("%9s", ns_text(figures->late, text));
	printf("%10s", sum_text(value[GPU_BYTES], "bytes", text));
}

static struct figures figures_of_call(const struct gpu_call *call)
{
	return (struct figures){.value = call->value,
				.mean = gpu_call_mean(call),
				.median = gpu_call_quantile(call, 0.5),
				.late = gpu_call_quantile(call, 0.99)};
}

/* Calls of one process, device and class: [begin, end) of the table. */
struct section {
	uint32_t begin, end;
};

static void print_section_head(const struct gpu_shown *shown, const struct section *section)
{
	const struct gpu_call *call = shown->table->call;
	struct cuda_sums sums = {0};
	int64_t value[GPU_VALUES] = {0}, timed = 0;
	struct figures figures = {.value = value, .mean = NAN, .median = NAN, .late = NAN};
	bool are_whole = true;

	for (uint32_t i = section->begin; i < section->end; i++) {
		for (unsigned int k = 0; k < GPU_VALUES; k++)
			value[k] = add_saturating(value[k], call[i].value[k]);
		if (call[i].value[GPU_HOST])
			timed = add_saturating(timed, call[i].value[GPU_CALLS]);
		are_whole = are_whole && call[i].is_whole;
		if (call[i].is_whole)
			cuda_sums_add(&sums, call[i].sums);
	}
	if (timed)
		figures.mean = (double)value[GPU_HOST] / (double)timed;
	if (are_whole) {
		figures.median = cuda_sums_quantile(&sums, 0.5);
		figures.late = cuda_sums_quantile(&sums, 0.99);
	}
	printf("%s", text_color(shown->color, TEXT_BOLD));
	print_figures(&figures);
	printf("  %s%s\n", gpu_class_head(call[section->begin].class),
	       text_color(shown->color, TEXT_PLAIN));
}

/* Writes what a graph's calls did: "12 captured", "340 kernels in graphs". */
static void print_graph_note(const struct gpu_call *call)
{
	const int64_t *value = call->is_whole ? call->sums->value : NULL;

	if (value && value[PP_EXACT_CAPTURED])
		printf(", %" PRId64 " captured", value[PP_EXACT_CAPTURED]);
	if (value && value[PP_EXACT_NODES])
		printf(", %" PRId64 " kernels in graphs", value[PP_EXACT_NODES]);
}

static void print_call(const struct gpu_shown *shown, const struct gpu_call *call)
{
	const struct gpu_table *table = shown->table;
	const char *api = gpu_text(table, call->is.api), *kernel = gpu_text(table, call->is.kernel);
	const char *name = kernel[0] ? kernel : api[0] ? api : "[function lost]";
	const char *place = kernel[0] ? api : gpu_text(table, call->is.direction);
	const struct figures figures = figures_of_call(call);
	struct text_cut cut;

	print_figures(&figures);
	text_fit(text_room(ALL_COLUMNS + 2 + INDENT), &name, &place, &cut);
	printf("  %*s%s%s%s", (int)INDENT, "", name, place[0] ? "  " : "", place);
	print_graph_note(call);
	printf("\n");
}

/* Writes "61.0 % ±1.3": a line's share of a sum, and its standard error. */
static const char *share_text(int64_t value, double all, double error,
			      char buffer[2 * FORMAT_BYTES])
{
	char share[FORMAT_BYTES];

	format_share(all > 0 ? (double)value / all : 0, share);
	if (isnan(error))
		snprintf(buffer, 2 * FORMAT_BYTES, "%s ±?", share);
	else
		snprintf(buffer, 2 * FORMAT_BYTES, "%s ±%.1f", share,
			 all > 0 ? 100 * error / all : 0);
	return buffer;
}

static void print_line_of_call(const struct gpu_shown *shown, const struct gpu_call *call,
			       const struct gpu_line *line)
{
	const enum gpu_value rank = gpu_call_rank(call);
	char text[FORMAT_BYTES], share[2 * FORMAT_BYTES];

	printf("%9" PRId64, line->value[GPU_CALLS]);
	printf("%10s", sum_text(line->value[GPU_HOST], "nanoseconds", text));
	printf("%37s", sum_text(line->value[GPU_BYTES], "bytes", text));
	share_text(line->value[rank], (double)call->value[rank],
		   gpu_line_error(shown->table, line, rank), share);
	print_right(share, SHARE_COLUMNS + 2 + INDENT);
	printf("  ");
	print_code(shown, line->code, ALL_COLUMNS + SHARE_COLUMNS + 4 + INDENT);
	printf("\n");
}

/* Returns whether anything was called.  What is live has a view of its own. */
static bool has_any(const int64_t value[GPU_VALUES])
{
	for (unsigned int i = 0; i < GPU_LIVE; i++)
		if (value[i])
			return true;
	return false;
}

static void print_lines_of_call(const struct gpu_shown *shown, const struct gpu_call *call)
{
	const uint32_t most = shown->rows ? LINES_OF_CALL : UINT32_MAX;

	const struct gpu_line *line = &shown->table->line[call->first_line];
	uint32_t count = call->line_count;

	/* The last ones may only have what is live. */
	while (count && !has_any(line[count - 1].value))
		count--;
	for (uint32_t i = 0; i < count && i < most; i++)
		print_line_of_call(shown, call, &line[i]);
	if (count > most)
		printf("%*s... %" PRIu32 " more lines\n", (int)(ALL_COLUMNS + 2 + 2 * INDENT), "",
		       count - most);
}

static void print_process(const struct gpu_shown *shown, const struct gpu_call *call)
{
	const char *comm = gpu_text(shown->table, call->is.comm);
	const char *device = gpu_text(shown->table, call->is.device);

	printf("\n%s%s", text_color(shown->color, TEXT_BLUE), comm[0] ? comm : "[unknown process]");
	if (call->is.pid)
		printf(" %" PRId64, call->is.pid);
	if (device[0])
		printf(", device %s", device);
	printf("%s\n", text_color(shown->color, TEXT_PLAIN));
}

static int compare_weights(const void *left, const void *right, void *context)
{
	const struct gpu_call *call = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return ORDER(gpu_weight(call[b].value), gpu_weight(call[a].value)) ?: ORDER(a, b);
}

/* Marks the heaviest calls.  *ret_left: how many with figures are not among them. */
static int choose_calls(const struct gpu_shown *shown, uint8_t **ret_is_shown, uint32_t *ret_left)
{
	const struct gpu_table *table = shown->table;
	OWNED_MEM uint32_t *order = calloc((size_t)table->call_count + 1, sizeof(*order));
	OWNED_MEM uint8_t *is_shown = calloc((size_t)table->call_count + 1, 1);
	uint32_t count = 0;

	if (!order || !is_shown)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->call_count; i++)
		if (has_any(table->call[i].value))
			order[count++] = i;
	qsort_r(order, count, sizeof(*order), compare_weights, table->call);
	for (uint32_t i = 0; i < count && (!shown->rows || i < shown->rows); i++)
		is_shown[order[i]] = 1;
	*ret_left = shown->rows && count > shown->rows ? count - shown->rows : 0;
	*ret_is_shown = TAKE(is_shown);
	return 0;
}

/* Returns the section that begins at a call. */
static struct section section_at(const struct gpu_table *table, uint32_t begin)
{
	const struct gpu_call *first = &table->call[begin];
	struct section section = {.begin = begin, .end = begin + 1};

	while (section.end < table->call_count &&
	       table->call[section.end].process == first->process &&
	       table->call[section.end].class == first->class)
		section.end++;
	return section;
}

static bool is_any_shown(const struct section *section, const uint8_t *is_shown)
{
	for (uint32_t i = section->begin; i < section->end; i++)
		if (is_shown[i])
			return true;
	return false;
}

static int print_all(const struct gpu_shown *shown)
{
	const struct gpu_table *table = shown->table;
	OWNED_MEM uint8_t *is_shown = NULL;
	uint32_t process = UINT32_MAX, left;
	int err = choose_calls(shown, &is_shown, &left);

	if (err || !table->call_count)
		return err;
	printf("%s%9s%10s%9s%9s%9s%10s  %s%s\n", text_color(shown->color, TEXT_BOLD), "CALLS",
	       "HOST TIME", "MEAN", "P50", "P99", "BYTES", "FUNCTION, KERNEL, LINE",
	       text_color(shown->color, TEXT_PLAIN));
	for (uint32_t i = 0; i < table->call_count;) {
		const struct section section = section_at(table, i);

		i = section.end;
		if (!is_any_shown(&section, is_shown))
			continue;
		if (table->call[section.begin].process != process)
			print_process(shown, &table->call[section.begin]);
		process = table->call[section.begin].process;
		print_section_head(shown, &section);
		for (uint32_t k = section.begin; k < section.end; k++) {
			if (!is_shown[k])
				continue;
			print_call(shown, &table->call[k]);
			print_lines_of_call(shown, &table->call[k]);
		}
	}
	if (left)
		printf("... %" PRIu32 " more functions and kernels; --top 0 shows all\n", left);
	return 0;
}

/* ---- other views ---- */

/* Prints the callers of a group's line, as far as they are Python. */
static void print_callers(const struct gpu_shown *shown, const struct gpu_group *group,
			  unsigned int indent)
{
	const struct gpu_table *table = shown->table;
	const struct profile *profile = table->profile;
	const struct stack *stack;
	unsigned int count = 0;

	if (group->stack == GPU_NO_STACK)
		return;
	stack = &profile->stacks.stack[group->stack];
	for (uint32_t i = gpu_stack_place(profile, stack, gpu_text(table, group->word)) + 1;
	     i < stack->count && count < CALLERS_SHOWN; i++) {
		const struct frame *frame = &profile->stacks.location[stack->location[i]];
		const char *file = frame_file(profile, frame);

		if (frame->kind != FRAME_PYTHON)
			continue;
		if (!count)
			printf("%*s%s", (int)indent, "", text_color(shown->color, TEXT_DIM));
		printf("%s%s %s:%" PRIu32, count++ ? " < " : "< ", frame_name(profile, frame),
		       short_paths_get(table->code.short_paths, frame->file, file), frame->line);
	}
	if (count)
		printf("%s\n", text_color(shown->color, TEXT_PLAIN));
}

static double mean_of(const struct gpu_group *group, enum gpu_value value)
{
	return group->value[value] && group->value[GPU_CALLS]
		       ? (double)group->value[value] / (double)group->value[GPU_CALLS]
		       : NAN;
}

static double seconds_of(const struct gpu_shown *shown)
{
	return (double)shown->duration_ns / 1e9;
}

static const char *rate_text(double rate, const char *unit, char buffer[FORMAT_BYTES])
{
	if (!isfinite(rate))
		return "-";
	if (unit[0])
		return format_value((int64_t)rate, unit, buffer);
	snprintf(buffer, FORMAT_BYTES, rate < 10 ? "%.2f" : "%.0f", rate);
	return buffer;
}

#define SYNC_COLUMNS 76U
static void print_sync(const struct gpu_shown *shown, const struct gpu_group *group)
{
	const double wall = (double)group->value[GPU_WAIT] / (double)shown->duration_ns;
	char text[FORMAT_BYTES];

	printf("%s%10s%s",
	       text_color(shown->color,
			  shown->duration_ns ? text_color_of_share(wall) : TEXT_PLAIN),
	       sum_text(group->value[GPU_WAIT], "nanoseconds", text),
	       text_color(shown->color, TEXT_PLAIN));
	print_right(error_text(group->value[GPU_WAIT], group->variance[GPU_WAIT], text), 9);
	printf("%9s", shown->duration_ns ? format_share(wall, text) : "-");
	printf("%9" PRId64, group->value[GPU_CALLS]);
	printf("%9s", ns_text(mean_of(group, GPU_WAIT), text));
	printf("  %-26.26s  ", gpu_text(shown->table, group->word));
	print_code(shown, group->code, SYNC_COLUMNS);
	printf("\n");
	print_callers(shown, group, SYNC_COLUMNS);
}

/* A copy by its direction, a collective by its function. */
#define MOVED_COLUMNS 65U
#define DIRECTION_COLUMNS 9U
#define COLLECTIVE_COLUMNS 17U
static void print_moved(const struct gpu_shown *shown, const struct gpu_group *group,
			unsigned int word_columns)
{
	char text[FORMAT_BYTES];

	printf("%10s", sum_text(group->value[GPU_BYTES], "bytes", text));
	print_right(error_text(group->value[GPU_BYTES], group->variance[GPU_BYTES], text), 9);
	printf("%9" PRId64, group->value[GPU_CALLS]);
	printf("%11s", isnan(mean_of(group, GPU_BYTES))
			       ? "-"
			       : format_value((int64_t)mean_of(group, GPU_BYTES), "bytes", text));
	printf("%12s",
	       rate_text((double)group->value[GPU_BYTES] / seconds_of(shown), "bytes", text));
	printf("%10s", sum_text(group->value[GPU_HOST], "nanoseconds", text));
	printf("  %-*.*s", (int)word_columns, (int)word_columns,
	       gpu_text(shown->table, group->word));
	printf("  ");
	print_code(shown, group->code, MOVED_COLUMNS + word_columns);
	printf("\n");
}

static void print_copy(const struct gpu_shown *shown, const struct gpu_group *group)
{
	print_moved(shown, group, DIRECTION_COLUMNS);
}

static void print_collective(const struct gpu_shown *shown, const struct gpu_group *group)
{
	print_moved(shown, group, COLLECTIVE_COLUMNS);
	print_callers(shown, group, MOVED_COLUMNS + COLLECTIVE_COLUMNS);
}

#define KERNEL_COLUMNS 30U
static void print_kernel(const struct gpu_shown *shown, const struct gpu_group *group)
{
	const double all = (double)shown->groups->all[GPU_CALLS];
	const double share = all > 0 ? (double)group->value[GPU_CALLS] / all : 0;
	const char *kernel = gpu_text(shown->table, group->word), *none = "";
	char text[FORMAT_BYTES], line_share[2 * FORMAT_BYTES];
	const double calls = (double)group->value[GPU_CALLS];
	struct text_cut cut;

	printf("%9" PRId64, group->value[GPU_CALLS]);
	printf("%s%9s%s", text_color(shown->color, text_color_of_share(share)),
	       format_share(share, text), text_color(shown->color, TEXT_PLAIN));
	printf("%10s", rate_text(calls / seconds_of(shown), "", text));
	kernel = kernel[0] ? kernel : "[unknown]";
	text_fit(text_room(KERNEL_COLUMNS), &kernel, &none, &cut);
	printf("  %s%s%s\n", text_color(shown->color, TEXT_BOLD), kernel,
	       text_color(shown->color, TEXT_PLAIN));
	share_text(group->line_value[GPU_CALLS], calls, sqrt(group->line_variance[GPU_CALLS]),
		   line_share);
	print_right(line_share, KERNEL_COLUMNS + SHARE_COLUMNS + INDENT);
	printf("  ");
	print_code(shown, group->code, KERNEL_COLUMNS + SHARE_COLUMNS + 2 + INDENT);
	printf("\n");
}

#define MEMORY_COLUMNS 86U
static void print_memory(const struct gpu_shown *shown, const struct gpu_group *group)
{
	const bool has_bytes = group->value[GPU_BYTES];
	const enum gpu_value rank = has_bytes ? GPU_BYTES : GPU_CALLS;
	char text[FORMAT_BYTES];

	printf("%10s", sum_text(group->value[GPU_LIVE], "bytes", text));
	if (group->value[GPU_BLOCKS])
		printf("%9" PRId64, group->value[GPU_BLOCKS]);
	else
		printf("%9s", "-");
	printf("%11s", sum_text(group->value[GPU_BYTES], "bytes", text));
	printf("%9" PRId64, group->value[GPU_CALLS]);
	print_right(error_text(group->value[rank], group->variance[rank], text), 9);
	printf("%10s", sum_text(group->value[GPU_HOST], "nanoseconds", text));
	printf("  %-22.22s  ", gpu_text(shown->table, group->word));
	print_code(shown, group->code, MEMORY_COLUMNS);
	printf("\n");
}

/* What the views by line and kernel are made of; the widths of titles are those of figures. */
#define MOVED_TITLES "     BYTES        ±    CALLS  MEAN SIZE     BYTES/S HOST TIME"
static const struct view {
	void (*print)(const struct gpu_shown *shown, const struct gpu_group *group);
	const char *titles, *nothing;
} views[] = {
	[GPU_VIEW_SYNCS] = {print_sync,
			    "      LOST        ±  OF WALL    CALLS     MEAN  "
			    "FUNCTION                    LINE",
			    "No call waited for the device"},
	[GPU_VIEW_COPIES] = {print_copy, MOVED_TITLES "  DIRECTION  LINE", "Nothing was copied"},
	[GPU_VIEW_KERNELS] = {print_kernel,
			      " LAUNCHES    SHARE     PER S  "
			      "KERNEL, AND THE LINE WITH MOST OF ITS LAUNCHES",
			      "No kernel was launched"},
	[GPU_VIEW_COLLECTIVES] = {print_collective, MOVED_TITLES "  FUNCTION           LINE",
				  "No function of a libnccl.so was called"},
	[GPU_VIEW_MEMORY] = {print_memory,
			     "      LIVE   BLOCKS  ALLOCATED    CALLS        ± HOST TIME  "
			     "FUNCTION                LINE",
			     "Nothing was allocated or freed"},
};

/* Says what is live all in all, and what is not in that. */
static void print_live(const struct gpu_shown *shown)
{
	const int64_t *all = shown->groups->all;
	char live[FORMAT_BYTES], asked[FORMAT_BYTES];

	if (!shown->table->has_live) {
		printf("What is live is not in these profiles: an earlier pyprofd wrote them.\n");
		return;
	}
	printf("%s live in %" PRId64 " blocks at the end of the last window; %s asked for in all.\n"
	       "Memory that was allocated before pyprofd came is not in it.\n",
	       format_value(all[GPU_LIVE], "bytes", live), all[GPU_BLOCKS],
	       format_value(all[GPU_BYTES], "bytes", asked));
}

static int print_groups(const struct gpu_shown *shown)
{
	const struct gpu_groups *groups = shown->groups;
	const struct view *view = &views[shown->view];

	if (!groups->count) {
		printf("%s.\n", view->nothing);
		return 0;
	}
	printf("%s%s%s\n", text_color(shown->color, TEXT_BOLD), view->titles,
	       text_color(shown->color, TEXT_PLAIN));
	for (uint32_t i = 0; i < groups->count && (!shown->rows || i < shown->rows); i++)
		view->print(shown, &groups->group[i]);
	if (shown->rows && groups->count > shown->rows)
		printf("... %" PRIu32 " more rows; --top 0 shows all\n",
		       groups->count - shown->rows);
	if (shown->view == GPU_VIEW_MEMORY)
		print_live(shown);
	return 0;
}

static int print_view(const struct gpu_shown *shown)
{
	printf("%sAll times are the host's: how long a kernel takes on the device is not in "
	       "them.%s\n",
	       text_color(shown->color, TEXT_DIM), text_color(shown->color, TEXT_PLAIN));
	return shown->view == GPU_VIEW_ALL ? print_all(shown) : print_groups(shown);
}

/* ---- the verb ---- */

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
	return print_view(shown);
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
