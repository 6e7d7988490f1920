/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof report: a table of what takes the time. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "reader/machine_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "render/table.h"
#include "render/totals.h"

#define DEFAULT_ROWS 30U
#define FEW_SAMPLES 100 /* with fewer, a share is hardly more than a hint */
#define WANTED_ERROR 0.01
#define PROCESSES_SHOWN 5U
#define WIDE_COLUMNS 110U
#define SHARE_COLUMNS 9
#define ERROR_COLUMNS 7
#define TIME_COLUMNS 11
#define SAMPLES_COLUMNS 10
#define COLUMNS_MAX 14U

enum sort { SORT_SELF, SORT_TOTAL, SORT_NAME, SORT_FILE };

struct report {
	struct select_options shared;
	struct totals totals;
	struct totals_options by;
	struct machine machine;
	struct gpu_usage gpus;
	enum sort sort;
	unsigned long rows; /* 0: all */
	regex_t *callers, *callees;
	bool is_scaled;	  /* of some probe */
	const char *path; /* "-": standard output */
	struct table_column column[COLUMNS_MAX];
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

static void parse_by(const struct given *given)
{
	static const struct {
		const char *name;
		enum code_by by;
	} known[] = {{"function", CODE_BY_FUNCTION},
		     {"line", CODE_BY_LINE},
		     {"file", CODE_BY_FILE},
		     {"module", CODE_BY_MODULE}};
	struct totals_options *by = given->at;
	char why[SELECT_WHY_BYTES];

	*by = (struct totals_options){0};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, given->text))
			continue;
		by->code_by = known[i].by;
		return;
	}
	by->by = TOTALS_BY_GROUP;
	if (select_add_groups(&by->group_by, given->text, why))
		argp_error(given->argp, "--by=%s: see --help; %s", given->text, why);
}

static const char *const sorts[] = {[SORT_SELF] = "self",
				    [SORT_TOTAL] = "total",
				    [SORT_NAME] = "name",
				    [SORT_FILE] = "file",
				    NULL};

static const struct verb_option options[] = {
	{"by", 'b', "WHAT",
	 "What a row is: function (default), line, file, module, thread, process, comm, "
	 "thread-name, container, wait, or another label: app, service_name, rank, ...; "
	 "label:KEY for any",
	 1, OPTION_CALL, .at = offsetof(struct report, by), .parse = parse_by},
	{"sort", 's', "COLUMN", "Sort by self (default), total, name or file", 1, OPTION_WORD,
	 .at = offsetof(struct report, sort), .words = sorts},
	{"top", 'n', "N", "Show N rows; 0: all.  Default: 30", 1, OPTION_NUMBER,
	 .at = offsetof(struct report, rows)},
	{"callers", 'c', "REGEX", "Show who calls the functions that match", 1, OPTION_REGEX,
	 .at = offsetof(struct report, callers)},
	{"callees", 'C', "REGEX", "Show what the functions that match call", 1, OPTION_REGEX,
	 .at = offsetof(struct report, callees)},
	{}};

static void check_callers(struct argp_state *argp, void *verb)
{
	const struct report *report = verb;

	if ((report->callers || report->callees) && report->shared.format != TABLE_TEXT)
		argp_error(argp, "--callers and --callees are shown as text alone");
}

/* ---- rows ---- */

static const char *row_name(const struct totals *totals, const struct totals_row *row)
{
	const struct code *code;

	if (totals->by == TOTALS_BY_GROUP)
		return code_text(&totals->code, totals->groups.group[row->group].label);
	code = &totals->code.code[row->code];
	if (totals->code.by == CODE_BY_FUNCTION || totals->code.by == CODE_BY_LINE)
		return code_name(&totals->code, code);
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

		order = strcmp(code_place(&totals->code, code_a), code_place(&totals->code, code_b))
				?: ORDER(code_line(code_a), code_line(code_b));
	}
	return order ?: strcmp(row_name(totals, a), row_name(totals, b));
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct report *report = context;
	const struct totals_row *left = a, *right = b;
	const int by_self = ORDER(magnitude_of(right->self.value), magnitude_of(left->self.value));
	const int by_total =
		ORDER(magnitude_of(right->total.value), magnitude_of(left->total.value));

	if (report->sort == SORT_NAME || report->sort == SORT_FILE)
		return compare_texts(&report->totals, left, right, report->sort);
	return (report->sort == SORT_TOTAL ? by_total ?: by_self : by_self ?: by_total)
		       ?: compare_texts(&report->totals, left, right, SORT_NAME);
}

static void put_share(struct table *table, const struct totals *totals,
		      const struct totals_sum *sum)
{
	double share = totals_share(totals, sum), error = totals_share_error(totals, sum);
	char text[FORMAT_BYTES], error_text[FORMAT_BYTES];

	snprintf(error_text, sizeof(error_text), "%.1f", error * 100);
	table_paint(table, text_color(table->color, text_color_of_share(share)));
	table_real(table, share, 6, format_share(share, text));
	table_paint(table, text_color(table->color, TEXT_DIM));
	table_real(table, error < 0 ? NAN : error, 6, error < 0 ? "?" : error_text);
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

	return sums * (SHARE_COLUMNS + ERROR_COLUMNS + (shows_times(totals) ? TIME_COLUMNS : 0)) +
	       (totals->all.samples ? SAMPLES_COLUMNS : 0) + 1;
}

static bool has_few(const struct totals_row *row)
{
	return row->total.samples && magnitude_of(row->total.samples) < FEW_SAMPLES;
}

/* Gives the cells of what a row is: code, or what samples were grouped by. */
static void put_name(const struct report *report, const struct totals_row *row, struct table *table)
{
	const struct totals *totals = &report->totals;
	const unsigned int taken = figures_columns(totals);
	const unsigned int room = table->format == TABLE_TEXT ? text_room(taken) : 0;
	const char *name = row_name(totals, row);
	const struct code *code = &totals->code.code[row->code];
	char cut[TEXT_PLACE_BYTES], shown[TEXT_PLACE_BYTES + 16];

	snprintf(shown, sizeof(shown), "%s%s%s", text_color(table->color, TEXT_BOLD),
		 room ? path_fit(name, room, cut, sizeof(cut)) : name,
		 text_color(table->color, TEXT_PLAIN));
	if (totals->by == TOTALS_BY_GROUP) {
		table_string(table, name, shown);
		return;
	}
	if (totals->code.by == CODE_BY_FUNCTION || totals->code.by == CODE_BY_LINE) {
		text_code_cells(table, &totals->code, code, taken);
	} else {
		table_string(table, code_text(&totals->code, code->name), shown);
		table_string(table, code_text(&totals->code, code->file), NULL);
		table_int(table, code_line(code), NULL);
	}
	table_string(table, code_text(&totals->code, code->module), NULL);
	table_string(table, frame_class_name((enum frame_class)code->class), NULL);
	table_string(table,
		     totals->groups.by.keys
			     ? code_text(&totals->code, totals->groups.group[row->group].label)
			     : "",
		     NULL);
}

static void put_row(const struct report *report, const struct totals_row *row, const char *unit,
		    struct table *table)
{
	const struct totals *totals = &report->totals;
	const bool is_of_code = totals->by == TOTALS_BY_CODE;
	char samples[FORMAT_BYTES];

	put_share(table, totals, &row->self);
	if (is_of_code)
		put_share(table, totals, &row->total);
	table_value(table, row->self.value, unit);
	if (is_of_code)
		table_value(table, row->total.value, unit);
	table_int(table, row->self.samples, NULL);
	snprintf(samples, sizeof(samples), "%" PRId64 "%c", row->total.samples,
		 has_few(row) ? '~' : ' ');
	table_int(table, row->total.samples, samples);
	put_name(report, row, table);
}

static void begin_rows(struct report *report, struct table *table)
{
	static const struct table_column of_code[] = {{"self_share", "SELF %", SHARE_COLUMNS},
						      {"self_error", "+-", ERROR_COLUMNS},
						      {"total_share", "TOTAL %", SHARE_COLUMNS},
						      {"total_error", "+-", ERROR_COLUMNS},
						      {"self", "SELF", TIME_COLUMNS},
						      {"total", "TOTAL", TIME_COLUMNS},
						      {"self_samples", NULL, 0},
						      {"total_samples", "SAMPLES ",
						       SAMPLES_COLUMNS},
						      {"name", "FUNCTION", -1},
						      {"file", NULL, 0},
						      {"line", NULL, 0},
						      {"module", NULL, 0},
						      {"class", NULL, 0},
						      {"group", NULL, 0}};
	static const struct table_column of_groups[] = {{"self_share", "SELF %", SHARE_COLUMNS},
							{"self_error", "+-", ERROR_COLUMNS},
							{"self", "SELF", TIME_COLUMNS},
							{"self_samples", NULL, 0},
							{"total_samples", "SAMPLES ",
							 SAMPLES_COLUMNS},
							{"name", "OF", -1}};
	const struct totals *totals = &report->totals;
	const bool is_of_code = totals->by == TOTALS_BY_CODE;
	const size_t count = is_of_code ? ARRAY_SIZE(of_code) : ARRAY_SIZE(of_groups);
	struct table_column *column = report->column;

	memcpy(column, is_of_code ? of_code : of_groups, count * sizeof(*column));
	for (size_t i = 0; i < count; i++) {
		if (column[i].width == TIME_COLUMNS && !shows_times(totals))
			column[i].title = NULL;
		if (column[i].width == SAMPLES_COLUMNS && !totals->all.samples)
			column[i].title = NULL;
		if (is_of_code && column[i].title && !strcmp(column[i].title, "FUNCTION"))
			column[i].title = totals->code.by == CODE_BY_MODULE ? "MODULE"
					  : totals->code.by == CODE_BY_FILE ? "FILE"
									    : "FUNCTION";
	}
	table_begin(table, "rows", column, (unsigned int)count);
}

/* Prints how many samples the figures are based on. */
static void print_foot(const struct totals *totals, const struct totals_row *row, uint32_t count,
		       FILE *out)
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
		fprintf(out, "~ rests on fewer than %d samples.", FEW_SAMPLES);
	if (wanted_ns)
		fprintf(out, "%sRecord %s for an error (+-) of at most 1 %% of all.",
			!few		      ? ""
			: shows_times(totals) ? " "
					      : "\n",
			format_span(wanted_ns, span));
	if (few || wanted_ns)
		fprintf(out, "\n");
}

static uint32_t shown_of(const struct report *report, uint32_t count)
{
	return report->rows && count > report->rows ? (uint32_t)report->rows : count;
}

/* One table for people; a program gets all groups in one, and all rows. */
static void print_rows(struct report *report, const struct totals_row *row, uint32_t count,
		       const char *unit, struct table *table)
{
	uint32_t shown = table_is_for_people(table) ? shown_of(report, count) : count;

	begin_rows(report, table);
	for (uint32_t i = 0; i < shown; i++)
		put_row(report, &row[i], unit, table);
	table_end(table);
	if (!table_is_for_people(table))
		return;
	table_more_rows(table, count - shown);
	print_foot(&report->totals, row, shown, table->out);
}

/* ---- the verb ---- */

/* Prints one table per group for people, the group with the most time first. */
static int print_groups(struct report *report, const char *unit, struct table *table)
{
	struct totals *totals = &report->totals;
	const uint32_t groups = totals->groups.count;
	OWNED_MEM int64_t *self = calloc((size_t)groups + 1, sizeof(*self));
	OWNED_MEM uint32_t *order = NULL;
	OWNED_MEM struct totals_row *row = calloc((size_t)totals->count + 1, sizeof(*row));
	CLEANUP(grouped_release) struct grouped rows = {0};
	char text[FORMAT_BYTES], share[FORMAT_BYTES];

	if (!self || !row || GROUPED_INIT(&rows, totals->row, group, totals->count, groups))
		return -ENOMEM;
	for (uint32_t i = 0; i < totals->count; i++)
		self[totals->row[i].group] += totals->row[i].self.value;
	order = text_order(self, groups);
	if (!order)
		return -ENOMEM;
	for (uint32_t g = 0; g < groups; g++) {
		const uint32_t *first = &rows.first[order[g]], count = first[1] - first[0];

		for (uint32_t i = 0; i < count; i++)
			row[i] = totals->row[rows.item[first[0] + i]];
		fprintf(table->out, "\n%s%s: %s, %s of all%s\n%s",
			text_color(table->color, TEXT_BLUE),
			code_text(&totals->code, totals->groups.group[order[g]].label),
			format_value(self[order[g]], unit, text),
			format_share(totals_share(totals,
						  &(struct totals_sum){.value = self[order[g]]}),
				     share),
			text_color(table->color, TEXT_PLAIN),
			table->format == TABLE_MARKDOWN ? "\n" : "");
		print_rows(report, row, count, unit, table);
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

	machine_add_facts(&report->machine, text);
	report->is_scaled |= text_tells_scaled_probe(text);
}

/* Returns whether the profile has no filter: what the machine did is right for all samples only. */
static bool is_of_all(const struct report *report)
{
	const struct select *select = &report->shared.select;

	return report->by.by == TOTALS_BY_CODE && !match_asks_labels(select) &&
	       !match_asks_stacks(select) && !select->group_by.keys;
}

static bool shows_machine(const struct report *report)
{
	return is_of_all(report) && report->shared.format == TABLE_TEXT;
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

/* Prints the time of the whole machine, which filters do not touch. */
static void print_machine(struct report *report, const struct input *input,
			  const struct table *table)
{
	/* Users other than root get no capture metadata of windows from --live. */
	if (!report->machine.elapsed_ns)
		report->machine.elapsed_ns = input_totals(input).duration_ns;
	machine_print(&report->machine, PROCESSES_SHOWN, text_columns(), table->color, table->out);
	gpu_usage_print(&report->gpus, PROCESSES_SHOWN, text_columns(), table->color, table->out);
}

static int print_report(struct report *report, const struct input *input, struct table *table)
{
	const struct profile *profile = input_profile(input);
	const char *unit = input_value_type(input)->unit;
	const bool is_for_people = table_is_for_people(table);

	text_table_head(table, input);
	if (report->is_scaled && is_for_people)
		text_scaled(table->out);
	report->totals.code.short_paths = input_short_paths(input);
	if (report->callers || report->callees)
		return callers_print(input, report->callers, report->callees, table->color,
				     table->out);
	if (!profile->row_count && is_for_people)
		return 0;
	if (shows_machine(report))
		print_machine(report, input, table);
	drop_empty(&report->totals);
	qsort_r(report->totals.row, report->totals.count, sizeof(report->totals.row[0]),
		compare_rows, report);
	if (report->totals.by == TOTALS_BY_CODE && report->totals.groups.by.keys && is_for_people)
		return print_groups(report, unit, table);
	print_rows(report, report->totals.row, report->totals.count, unit, table);
	return 0;
}

static int print(struct report *report, const struct input *input)
{
	struct table table;
	FILE *out;
	int status = output_file_open(report->path, &out);

	if (status)
		return status;
	table_open(&table, out, (enum table_format)report->shared.format, text_wants_color());
	return output_file_close(report->path, out,
				 table_close(&table, print_report(report, input, &table)));
}

/* *ret_input has the texts of the processes; NULL: there are none. */
static int read_machine(struct report *report, const struct input *input, struct input **ret_input)
{
	struct input_options input_options = machine_input();
	int err;

	if (!shows_machine(report))
		return 0;
	input_options.select = &report->shared.select;
	err = read_records(input_options, input, ret_input);
	if (!err && *ret_input && machine_fill(&report->machine, input_profile(*ret_input), false))
		return complain_of(input_title(*ret_input), -ENOMEM);
	return err;
}

/* Of kinds that tell of processors: each takes another look at a directory.  *ret_input has the
 * texts of the GPUs; NULL: there are none. */
static int read_gpus(struct report *report, const struct input *input, struct input **ret_input)
{
	const char *kind = profile_kind(input_profile(input));

	if (!shows_machine(report) ||
	    !(kind_is(kind, PP_PROFILE_CPU) || kind_is(kind, PP_PROFILE_CUDA) ||
	      kind_is(kind, PP_PROFILE_GPU)))
		return 0;
	return gpu_usage_read(&report->gpus, &report->shared.select, input, ret_input);
}

static int run(struct report *report)
{
	const char *kept[GROUPS_MAX_KEYS];
	struct input_options input_options = {
		.select = &report->shared.select,
		.keep_labels = input_no_labels,
		.drop_addresses = true,
		.drop_lines = report->by.code_by != CODE_BY_LINE,
		.window_done = window_done,
		.comment = on_comment,
		.live_more =
			shows_machine(report) ? 1U << PP_PROFILE_GPU | 1U << PP_PROFILE_LEDGER : 0,
		.context = report};
	OWNED(input) struct input *input = NULL, *gpus = NULL, *processes = NULL;
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
	err = read_input(input_options, &input);
	if (!err)
		err = read_machine(report, input, &processes);
	if (!err)
		err = read_gpus(report, input, &gpus);
	return err ? err : print(report, input);
}

static void release(struct report *report)
{
	totals_release(&report->totals);
	machine_release(&report->machine);
	gpu_usage_release(&report->gpus);
	select_free_regex(report->callers);
	select_free_regex(report->callees);
}

int report_write_csv(const struct select_options *shared, const char *path)
{
	struct report report = {.shared = *shared, .path = path};
	int status;

	report.shared.format = TABLE_CSV;
	status = run(&report);
	release(&report);
	return status;
}

int verb_report(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc,
					      .check = check_callers};
	struct report report = {
		.rows = DEFAULT_ROWS, .path = "-", .shared.formats = select_table_formats};
	int status = select_parse(&args, argc, argv, &report.shared) ?: run(&report);

	release(&report);
	select_release(&report.shared.select);
	return status;
}
