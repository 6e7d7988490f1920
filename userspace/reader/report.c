/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof report: a table of what takes the time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reader/callers.h"
#include "reader/complain.h"
#include "reader/gauge_view.h"
#include "reader/machine_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "render/totals.h"

#define DEFAULT_ROWS 30U
#define FEW_SAMPLES 100 /* with fewer, a share is hardly more than a hint */
#define WANTED_ERROR 0.01
#define PROCESSES_SHOWN 5U
#define WIDE_COLUMNS 110U
#define SHARE_COLUMNS 16U
#define TIME_COLUMNS 11U
#define SAMPLES_COLUMNS 10U

enum sort { SORT_SELF, SORT_TOTAL, SORT_NAME, SORT_FILE };

struct report {
	struct select_options shared;
	struct totals totals;
	struct totals_options by;
	struct machine machine;
	struct gpu_usage gpus;
	int comment_err;
	enum sort sort;
	unsigned long rows; /* 0: all */
	regex_t *callers, *callees;
	bool is_scaled; /* of some probe */
};

static const struct argp_option options[] = {
	{"by", 'b', "WHAT", 0,
	 "What a row is: function (default), line, file, module, thread, process, comm, "
	 "thread-name, container, wait, or another label: app, service_name, rank, ...; "
	 "label:KEY for any",
	 1},
	{"sort", 's', "COLUMN", 0, "Sort by self (default), total, name or file", 1},
	{"top", 'n', "N", 0, "Show N rows; 0: all.  Default: 30", 1},
	{"callers", 'c', "REGEX", 0, "Show who calls the functions that match", 1},
	{"callees", 'C', "REGEX", 0, "Show what the functions that match call", 1},
	{0},
};

static const char doc[] =
	"Shows what takes the time: for each function its own (self) and with what it calls "
	"(total), each share with its standard error."
	"\vExamples:\n"
	"  pyprof report cpu.pb.gz\n"
	"  pyprof report /var/lib/pyprofd --since 1h --by line --focus train\n"
	"  pyprof report cpu.pb.gz --by thread\n"
	"  pyprof report cpu.pb.gz --callers '^json.loads$'\n"
	"  sudo pyprof report --live --for 5\n";

/* ---- options ---- */

static int parse_by(struct report *report, const char *text, char why[SELECT_WHY_BYTES])
{
	static const struct {
		const char *name;
		enum code_by by;
	} known[] = {{"function", CODE_BY_FUNCTION},
		     {"line", CODE_BY_LINE},
		     {"file", CODE_BY_FILE},
		     {"module", CODE_BY_MODULE}};

	report->by = (struct totals_options){0};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, text))
			continue;
		report->by.code_by = known[i].by;
		return 0;
	}
	report->by.by = TOTALS_BY_GROUP;
	return select_add_groups(&report->by.group_by, text, why);
}

static bool parse_sort(struct report *report, const char *text)
{
	static const char *const known[] = {[SORT_SELF] = "self",
					    [SORT_TOTAL] = "total",
					    [SORT_NAME] = "name",
					    [SORT_FILE] = "file"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i], text))
			continue;
		report->sort = (enum sort)i;
		return true;
	}
	return false;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct report *report = state->input;
	char why[SELECT_WHY_BYTES] = "";

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &report->shared;
		return 0;
	case 'b':
		if (parse_by(report, text, why))
			argp_error(state, "--by=%s: see --help; %s", text, why);
		return 0;
	case 's':
		if (!parse_sort(report, text))
			argp_error(state, "--sort=%s: not self, total, name or file", text);
		return 0;
	case 'n':
		report->rows = select_number(state, "top", text);
		return 0;
	case 'c':
		if (!report->callers && select_regex_option(text, "callers", &report->callers))
			exit(READER_BAD_INPUT);
		return 0;
	case 'C':
		if (!report->callees && select_regex_option(text, "callees", &report->callees))
			exit(READER_BAD_INPUT);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- rows ---- */

static const char *row_name(const struct totals *totals, const struct totals_row *row)
{
	const struct code *code;

	if (totals->by == TOTALS_BY_GROUP)
		return code_text(&totals->code, totals->groups.group[row->group].label);
	code = &totals->code.code[row->code];
	if (totals->code.by == CODE_BY_FUNCTION || totals->code.by == CODE_BY_LINE)
		return code->name ? code_text(&totals->code, code->name) : "[unknown]";
	if (!code->file && !code->module)
		return code->class == FRAME_CLASS_PYTHON ? "[python]" : "[unknown]";
	return code->file ? code_shown_place(&totals->code, code) : code_place(&totals->code, code);
}

static int compare_texts(const struct totals *totals, const struct totals_row *a,
			 const struct totals_row *b, enum sort sort)
{
	int order = 0;

	if (sort == SORT_FILE && totals->by == TOTALS_BY_CODE) {
		const struct code *code_a = &totals->code.code[a->code];
		const struct code *code_b = &totals->code.code[b->code];

		order = strcmp(code_place(&totals->code, code_a),
			       code_place(&totals->code, code_b));
		if (!order)
			order = (code_line(code_a) > code_line(code_b)) -
				(code_line(code_a) < code_line(code_b));
	}
	return order ? order : strcmp(row_name(totals, a), row_name(totals, b));
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct report *report = context;
	const struct totals_row *row_a = a, *row_b = b;
	bool by_total = report->sort == SORT_TOTAL;
	int64_t first_a = by_total ? row_a->total.value : row_a->self.value;
	int64_t first_b = by_total ? row_b->total.value : row_b->self.value;
	int64_t then_a = by_total ? row_a->self.value : row_a->total.value;
	int64_t then_b = by_total ? row_b->self.value : row_b->total.value;

	if (report->sort == SORT_NAME || report->sort == SORT_FILE)
		return compare_texts(&report->totals, row_a, row_b, report->sort);
	if (first_a != first_b)
		return first_a > first_b ? -1 : 1;
	if (then_a != then_b)
		return then_a > then_b ? -1 : 1;
	return compare_texts(&report->totals, row_a, row_b, SORT_NAME);
}

static void print_share(const struct totals *totals, const struct totals_sum *sum, bool color)
{
	double share = totals_share(totals, sum), error = totals_share_error(totals, sum);

	printf("%s%7.1f %%%s", text_color(color, text_color_of_share(share)), share * 100,
	       text_color(color, TEXT_PLAIN));
	if (error < 0)
		printf("%8s", "?");
	else
		printf("%s %6.1f%s", text_color(color, TEXT_DIM), error * 100,
		       text_color(color, TEXT_PLAIN));
}

/* Returns whether times fit: a narrow terminal has no room for them beside shares, names and
 * places. */
static bool shows_times(const struct totals *totals)
{
	unsigned int columns = text_columns();

	return totals->by == TOTALS_BY_GROUP || !columns || columns >= WIDE_COLUMNS;
}

/* Returns the columns before the name, with the blank after them. */
static unsigned int figures_columns(const struct totals *totals)
{
	unsigned int sums = totals->by == TOTALS_BY_CODE ? 2 : 1;

	return sums * (SHARE_COLUMNS + (shows_times(totals) ? TIME_COLUMNS : 0)) +
	       (totals->all.samples ? SAMPLES_COLUMNS : 0) + 1;
}

static bool has_few(const struct totals_row *row)
{
	return row->total.samples && row->total.samples < FEW_SAMPLES;
}

static void print_row(const struct report *report, const struct totals_row *row, const char *unit,
		      bool color)
{
	const struct totals *totals = &report->totals;
	unsigned int room = text_room(figures_columns(totals));
	char self[FORMAT_BYTES], total[FORMAT_BYTES], cut[TEXT_PLACE_BYTES];
	const char *name = row_name(totals, row);

	print_share(totals, &row->self, color);
	if (totals->by == TOTALS_BY_CODE)
		print_share(totals, &row->total, color);
	if (shows_times(totals))
		printf(" %10s", format_value(row->self.value, unit, self));
	if (shows_times(totals) && totals->by == TOTALS_BY_CODE)
		printf(" %10s", format_value(row->total.value, unit, total));
	if (totals->all.samples)
		printf(" %8" PRId64 "%c", row->total.samples, has_few(row) ? '~' : ' ');
	printf(" ");
	if (totals->by == TOTALS_BY_CODE &&
	    (totals->code.by == CODE_BY_FUNCTION || totals->code.by == CODE_BY_LINE))
		text_code(&totals->code, &totals->code.code[row->code], name, room, color);
	else
		printf("%s%s%s", text_color(color, TEXT_BOLD),
		       room ? path_fit(name, room, cut, sizeof(cut)) : name,
		       text_color(color, TEXT_PLAIN));
	printf("\n");
}

static void print_titles(const struct report *report, bool color)
{
	const struct totals *totals = &report->totals;

	printf("%s%9s%7s", text_color(color, TEXT_BOLD), "SELF %", "+-");
	if (totals->by == TOTALS_BY_CODE)
		printf("%9s%7s", "TOTAL %", "+-");
	if (shows_times(totals))
		printf(" %10s", "SELF");
	if (shows_times(totals) && totals->by == TOTALS_BY_CODE)
		printf(" %10s", "TOTAL");
	if (totals->all.samples)
		printf(" %8s ", "SAMPLES");
	printf(" %s%s\n",
	       totals->by == TOTALS_BY_GROUP	   ? "OF"
	       : totals->code.by == CODE_BY_MODULE ? "MODULE"
	       : totals->code.by == CODE_BY_FILE   ? "FILE"
						   : "FUNCTION",
	       text_color(color, TEXT_PLAIN));
}

/* Prints how many samples the figures are based on. */
static void print_foot(const struct totals *totals, const struct totals_row *row, uint32_t count)
{
	char span[FORMAT_BYTES];
	uint64_t wanted_ns = 0;
	bool few = false;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns = totals_wanted_ns(totals, &row[i].total, WANTED_ERROR);

		few |= has_few(&row[i]);
		if (ns > wanted_ns)
			wanted_ns = ns;
	}
	if (!count)
		return;
	if (few)
		printf("~ rests on fewer than %d samples.", FEW_SAMPLES);
	if (wanted_ns)
		printf("%sRecord %s for an error (+-) of at most 1 %% of all.",
		       !few		     ? ""
		       : shows_times(totals) ? " "
					     : "\n",
		       format_span(wanted_ns, span));
	if (few || wanted_ns)
		printf("\n");
}

static void print_rows(const struct report *report, const struct totals_row *row, uint32_t count,
		       const char *unit, bool color)
{
	uint32_t shown = report->rows && count > report->rows ? (uint32_t)report->rows : count;

	print_titles(report, color);
	for (uint32_t i = 0; i < shown; i++)
		print_row(report, &row[i], unit, color);
	if (shown < count)
		printf("... %" PRIu32 " more rows; --top 0 shows all\n", count - shown);
	print_foot(&report->totals, row, shown);
}

/* ---- the verb ---- */

static int compare_groups(const void *a, const void *b, void *context)
{
	const int64_t *total = context;
	uint32_t group_a = *(const uint32_t *)a, group_b = *(const uint32_t *)b;

	if (total[group_a] != total[group_b])
		return total[group_a] > total[group_b] ? -1 : 1;
	return (group_a > group_b) - (group_a < group_b);
}

/* Prints one table per group, the group with the most time first. */
static int print_groups(struct report *report, const char *unit, bool color)
{
	struct totals *totals = &report->totals;
	uint32_t groups = totals->groups.count;
	OWNED_MEM int64_t *self = calloc((size_t)groups + 1, sizeof(*self));
	OWNED_MEM uint32_t *order = calloc((size_t)groups + 1, sizeof(*order));
	OWNED_MEM struct totals_row *row = calloc((size_t)totals->count + 1, sizeof(*row));
	char text[FORMAT_BYTES], share[FORMAT_BYTES];

	if (!self || !order || !row)
		return -ENOMEM;
	for (uint32_t i = 0; i < groups; i++)
		order[i] = i;
	for (uint32_t i = 0; i < totals->count; i++)
		self[totals->row[i].group] += totals->row[i].self.value;
	qsort_r(order, groups, sizeof(*order), compare_groups, self);
	for (uint32_t g = 0; g < groups; g++) {
		uint32_t count = 0;

		for (uint32_t i = 0; i < totals->count; i++)
			if (totals->row[i].group == order[g])
				row[count++] = totals->row[i];
		printf("\n%s%s: %s, %s of all%s\n", text_color(color, TEXT_BLUE),
		       code_text(&totals->code, totals->groups.group[order[g]].label),
		       format_value(self[order[g]], unit, text),
		       format_share(totals->all.value
					    ? (double)self[order[g]] / (double)totals->all.value
					    : 0,
				    share),
		       text_color(color, TEXT_PLAIN));
		print_rows(report, row, count, unit, color);
	}
	return 0;
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct report *report = context;

	return totals_add_window(&report->totals, profile, window);
}

static void on_comment(void *context, const char *text)
{
	struct report *report = context;

	if (!report->comment_err)
		report->comment_err = machine_add(&report->machine, text);
	if (!report->comment_err)
		report->comment_err = gpu_usage_add(&report->gpus, text);
	report->is_scaled |= text_tells_scaled_probe(text);
}

/* Returns whether the profile has no filter: ledgers ignore filters, so they are right only for all
 * samples. */
static bool is_of_all(const struct report *report)
{
	const struct select *select = &report->shared.select;

	return report->by.by == TOTALS_BY_CODE && !select->pid_count && !select->comm &&
	       !select->thread && !select->label_count && !select->focus && !select->ignore &&
	       !select->group_by.keys;
}

/* Drops stacks that have only values of another sample type. */
static void drop_empty(struct totals *totals)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < totals->count; i++)
		if (totals->row[i].total.value)
			totals->row[kept++] = totals->row[i];
	totals->count = kept;
}

static int print_report(struct report *report, const struct input *input)
{
	const struct profile *profile = input_profile(input);
	const char *unit =
		profile->options.value_type[profile_reader_value_index(input_reader(input))].unit;
	bool color = text_wants_color(report->shared.no_color);
	struct profile_read_totals totals;

	text_head(stdout, input);
	if (report->is_scaled)
		text_scaled(stdout);
	report->totals.code.short_paths = input_short_paths(input);
	if (report->callers || report->callees)
		return callers_print(input, report->callers, report->callees, color);
	if (!profile->row_count)
		return 0;
	if (is_of_all(report)) {
		profile_reader_totals(input_reader(input), &totals);
		/* Users other than root get no capture metadata of windows from --live. */
		if (!report->machine.elapsed_ns)
			report->machine.elapsed_ns = totals.duration_ns;
		machine_print(&report->machine, PROCESSES_SHOWN, text_columns(), color, stdout);
		gpu_usage_print(&report->gpus, PROCESSES_SHOWN, text_columns(), color, stdout);
	}
	drop_empty(&report->totals);
	qsort_r(report->totals.row, report->totals.count, sizeof(report->totals.row[0]),
		compare_rows, report);
	if (report->totals.by == TOTALS_BY_CODE && report->totals.groups.by.keys)
		return print_groups(report, unit, color);
	print_rows(report, report->totals.row, report->totals.count, unit, color);
	return 0;
}

static int run(struct report *report)
{
	static const char *const none[] = {NULL};
	const char *kept[GROUPS_MAX_KEYS];
	struct input_options input_options = {.select = &report->shared.select,
					      .keep_labels = none,
					      .drop_addresses = true,
					      .drop_lines = report->by.code_by != CODE_BY_LINE,
					      .window_done = window_done,
					      .comment = on_comment,
					      .live_ledger = is_of_all(report),
					      .context = report};
	OWNED(input) struct input *input = NULL;
	int err;

	if (report->by.by == TOTALS_BY_GROUP) {
		groups_label_keys(&report->by.group_by, kept);
		input_options.keep_labels = kept;
	} else {
		report->by.group_by = report->shared.select.group_by;
	}
	if (report->callers || report->callees)
		input_options.window_done = NULL;
	totals_init(&report->totals, &report->by);
	err = read_input(input_options, report->shared.no_progress, &input);
	if (err)
		return err;
	err = report->comment_err ? report->comment_err : print_report(report, input);
	if (err)
		complain_of(input_title(input), err);
	return err ? READER_BAD_INPUT : READER_OK;
}

int verb_report(int argc, char **argv)
{
	struct report report = {.rows = DEFAULT_ROWS};
	int status = READER_BAD_INPUT;

	if (!select_parse(options, parse, doc, "PROFILE|DIR...\n--live", argc, argv, &report))
		status = run(&report);
	totals_release(&report.totals);
	machine_release(&report.machine);
	gpu_usage_release(&report.gpus);
	select_free_regex(report.callers);
	select_free_regex(report.callees);
	select_release(&report.shared.select);
	return status;
}
