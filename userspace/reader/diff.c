/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof diff A B: what changed, and whether it is more than chance. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "diff/significance.h"
#include "reader/diff_view.h"
#include "reader/page.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

#define DEFAULT_ROWS 15U
#define MAX_RULES 16U

struct diff {
	struct select_options shared;
	struct select_range range[DIFF_SIDES]; /* of --before and --after */
	struct diff_data data;
	struct diff_facts facts[DIFF_SIDES];
	enum diff_side_id reading;
	struct diff_rule rule[MAX_RULES];
	const char *rule_text[MAX_RULES];
	unsigned int rule_count;
	uint32_t by; /* bits 1 << enum diff_by */
	enum diff_column sort;
	unsigned long rows;
	bool force, no_source;
};

enum { FORMAT_HTML = TABLE_SQL + 1, FORMATS };
static const char *const formats[FORMATS + 1] = {SELECT_TABLE_FORMATS, [FORMAT_HTML] = "html"};

static bool is_page(const struct diff *diff)
{
	return diff->shared.format == FORMAT_HTML;
}

static const char doc[] =
	"Shows what changed from A to B: shares of functions, lines and stacks in percentage "
	"points, each with its p, corrected over the table. A and B are files, or directories of "
	"windows; more windows see smaller changes.  html is a page with the differential flame "
	"graph."
	"\vExit codes: 0; 1: a --fail-if holds; 2: an input cannot be used, or A and B are not "
	"alike (kind, rate, load of the host).\n"
	"Examples:\n"
	"  pyprof diff before.pb.gz after.pb.gz\n"
	"  pyprof diff monday/ tuesday/ --python --by function\n"
	"  pyprof diff /var/lib/pyprofd --before 13:00..14:00 --after 14:10..15:10\n"
	"  pyprof diff main/ branch/ --fail-if 'self > 3% p < 0.01'\n"
	"  pyprof diff main/ branch/ --format html > diff.html\n";

/* ---- options ---- */

static void parse_by(const struct given *given)
{
	uint32_t *by = given->at;

	for (const char *text = given->text; *text;) {
		size_t size = strcspn(text, ","), i;

		for (i = 0; i < DIFF_TABLES; i++)
			if (strlen(diff_by_names[i]) == size &&
			    !strncmp(diff_by_names[i], text, size))
				break;
		if (i == DIFF_TABLES)
			option_refuse(given, "not function, line or stack");
		*by |= 1U << i;
		text += size + (text[size] == ',');
	}
}

static void parse_rule(const struct given *given)
{
	struct diff *diff = given->at;

	if (diff->rule_count == MAX_RULES)
		argp_error(given->argp, "--fail-if: more than %u", MAX_RULES);
	if (diff_rule_parse(given->text, &diff->rule[diff->rule_count]))
		argp_error(given->argp,
			   "--fail-if='%s': not [function|line|stack] self|total > N%% [p < P]",
			   given->text);
	diff->rule_text[diff->rule_count++] = given->text;
}

static void parse_range(const struct given *given)
{
	if (select_range(given->text, wall_ns() / NS_PER_MS, given->at))
		option_refuse(given, "not FROM..UNTIL, as 13:00..14:00, 2h..1h or "
				     "2026-11-21T15:04..");
}

static const char *const sorts[] = {[DIFF_SELF] = "self", [DIFF_TOTAL] = "total", NULL};

static const struct verb_option options[] = {
	{"by", 'b', "WHAT,...", "Tables to show: function, line, stack.  Default: all three", 1,
	 OPTION_CALL, .at = offsetof(struct diff, by), .parse = parse_by},
	{"sort", 's', "COLUMN", "Sort by the change of self (default) or of total", 1, OPTION_WORD,
	 .at = offsetof(struct diff, sort), .words = sorts},
	{"top", 'n', "N", "Show N rows of each table; 0: all.  Default: 15", 1, OPTION_NUMBER,
	 .at = offsetof(struct diff, rows)},
	{"fail-if", 0, "RULE",
	 "Exit with 1 when RULE holds: [function|line|stack] self|total >|< N% [p < P]; may be "
	 "given more than once",
	 1, OPTION_CALL, .parse = parse_rule},
	{"before", 0, "FROM..UNTIL",
	 "The times of A, as --since and --until have them; with these, one directory or URL is "
	 "both A and B",
	 1, OPTION_CALL, .at = offsetof(struct diff, range[DIFF_A]), .parse = parse_range},
	{"after", 0, "FROM..UNTIL", "The times of B", 1, OPTION_CALL,
	 .at = offsetof(struct diff, range[DIFF_B]), .parse = parse_range},
	{"no-source", 0, NULL, "Put no source code into the page", 1, OPTION_FLAG,
	 .at = offsetof(struct diff, no_source)},
	{"force", 0, NULL, "Compare profiles even when they are not alike", 1, OPTION_FLAG,
	 .at = offsetof(struct diff, force)},
	{}};

/* ---- reading ---- */

static void path_begin(void *context, int path)
{
	((struct diff *)context)->reading = path ? DIFF_B : DIFF_A;
}

static void on_comment(void *context, const char *text)
{
	struct diff *diff = context;

	diff_facts_add_comment(&diff->facts[diff->reading], text);
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct diff *diff = context;

	diff_facts_add_window(&diff->facts[diff->reading], window->period, window->total);
	return diff_data_add_window(&diff->data, diff->reading, profile, window);
}

/* Checks whether the sides can be compared, and prints why not. */
static int check_alike(struct diff *diff, const struct input *input)
{
	char why[DIFF_WHY_BYTES];
	enum comparable unlike;

	diff->facts[DIFF_A].unit_ns = diff->facts[DIFF_B].unit_ns =
		format_unit_ns(input_value_type(input)->unit);
	unlike = comparable_sides(&diff->facts[DIFF_A], &diff->facts[DIFF_B], why);
	if (unlike == COMPARABLE)
		return 0;
	if (unlike == NOT_COMPARABLE && diff->force) {
		complain("%s and %s are not alike: %s", input_path(input, DIFF_A),
			 input_path(input, DIFF_B), why);
		return 0;
	}
	return complain("%s and %s cannot be compared: %s%s", input_path(input, DIFF_A),
			input_path(input, DIFF_B), why,
			unlike == NOT_COMPARABLE ? "; --force compares them nevertheless" : "");
}

/* ---- the page ---- */

/* There is no map of time: A and B are of two times, and which windows of one belong to
 * those of the other nobody knows. */
static int put_more(void *context, struct json_writer *json, const struct flame_tree *tree)
{
	const struct profile_read_totals *totals = context;

	return page_sources_write(json, tree, totals->end_wall_ns);
}

static int write_html(const struct diff *diff, const struct input *input)
{
	const struct diff_side *a = &diff->data.side[DIFF_A], *b = &diff->data.side[DIFF_B];
	const struct grouping *by = &diff->shared.select.group_by;
	struct flame_options flame_options = {
		.value_index = profile_reader_value_index(input_reader(input)),
		.lines = true,
		.group_by = by->keys ? *by : (struct grouping){.keys = GROUP_BY_COMM},
		.row_value = b->value,
		.row_base = a->value,
		.row_value_count = b->value_count,
		.row_base_count = a->value_count};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	struct flame_json_facts facts;
	struct profile_read_totals totals = input_totals(input);
	char title[512];
	int err = flame_tree_new(input_profile(input), &flame_options, &tree);

	if (err)
		return err;
	snprintf(title, sizeof(title), "%s, before: %s", input_path(input, DIFF_B),
		 input_path(input, DIFF_A));
	facts = (struct flame_json_facts){.title = title,
					  .short_paths = input_short_paths(input),
					  .windows = b->windows,
					  .sample_count = (uint64_t)b->all.samples,
					  .duration_ns = b->duration_ns,
					  .put_more = diff->no_source ? NULL : put_more,
					  .context = &totals};
	return page_write(tree, &facts);
}

/* ---- the verb ---- */

/* Prints the rows that meet a rule to `out`. */
static bool rules_hold(const struct diff *diff, const struct diff_view *view, FILE *out)
{
	bool held = false;

	for (unsigned int r = 0; r < diff->rule_count; r++) {
		const struct diff_rule *rule = &diff->rule[r];
		const struct diff_table *table = &diff->data.table[rule->by];

		for (uint32_t i = 0; i < table->count; i++) {
			const struct diff_row *row = &table->row[i];
			const struct diff_change *change = &row->change[rule->column];

			if (!diff_rule_holds(rule, row))
				continue;
			held = true;
			fprintf(out, "fail-if '%s': %+.2f %% (%.2f %%, then %.2f %%), p %.2g: ",
				diff->rule_text[r],
				(change->share[DIFF_B] - change->share[DIFF_A]) * 100,
				change->share[DIFF_A] * 100, change->share[DIFF_B] * 100,
				change->p);
			diff_view_name(view, rule->by, row, out);
			fprintf(out, "\n");
		}
	}
	return held;
}

static int write_tables(const struct diff *diff, const struct diff_view *view,
			const uint32_t tests[DIFF_TABLES])
{
	struct table table;
	int err;

	table_open(&table, stdout, (enum table_format)diff->shared.format, text_wants_color());
	err = diff_view_head(view, &table);
	if (!err)
		err = diff_view_tables(view, diff->by, tests, &table);
	if (!err && diff->rule_count && table.format == TABLE_TEXT)
		printf("\n");
	return table_close(&table, err);
}

static int show(struct diff *diff, const struct input *input, bool *ret_held)
{
	struct diff_view view = {.input = input,
				 .data = &diff->data,
				 .facts = diff->facts,
				 .rows = diff->rows,
				 .sort = diff->sort};
	uint32_t tests[DIFF_TABLES] = {0};
	int err = 0;

	for (unsigned int by = 0; !err && by < DIFF_TABLES; by++)
		err = significance_of_table(&diff->data, (enum diff_by)by, &tests[by]);
	if (!err)
		err = is_page(diff) ? write_html(diff, input) : write_tables(diff, &view, tests);
	if (err)
		return err;
	*ret_held = rules_hold(diff, &view, diff->shared.format == TABLE_TEXT ? stdout : stderr);
	return 0;
}

/* With times of their own, both sides may be one directory. */
static int divide(struct diff *diff)
{
	struct select *select = &diff->shared.select;
	char **both;

	if (!diff->range[DIFF_A].text && !diff->range[DIFF_B].text)
		return 0;
	select->range = diff->range;
	if (select->path_count != 1)
		return 0;
	both = reallocarray(select->path, DIFF_SIDES, sizeof(*both));
	if (!both)
		return -ENOMEM;
	select->path = both;
	select->path[select->path_count++] = both[DIFF_A];
	return 0;
}

static int run(struct diff *diff)
{
	static const char *const kept[] = {"comm", NULL};
	struct input_options input_options = {.select = &diff->shared.select,
					      .keep_labels = is_page(diff) ? kept : input_no_labels,
					      .drop_addresses = true,
					      .window_done = window_done,
					      .path_begin = path_begin,
					      .comment = on_comment,
					      .context = diff};
	const struct select *select = &diff->shared.select;
	OWNED(input) struct input *input = NULL;
	bool held = false;
	int err;

	if (divide(diff))
		return READER_BAD_INPUT;
	if (select->path_count != DIFF_SIDES)
		return complain(
			"diff needs two profiles or directories: pyprof diff A B; or the "
			"times of both sides: pyprof diff DIR --before 2h..1h --after 1h..");
	if (is_page(diff) && isatty(STDOUT_FILENO))
		return complain("a page is not written to a terminal: pyprof diff A B --format "
				"html > diff.html");
	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		diff->facts[s].is_part = select->thread || select->focus || select->ignore;
	err = read_input(input_options, &input);
	if (!err)
		err = check_alike(diff, input);
	if (err)
		return err;
	err = show(diff, input, &held);
	if (err)
		return complain_of(input_title(input), err);
	return held ? READER_FAILED : READER_OK;
}

int verb_diff(int argc, char **argv)
{
	static const struct verb_args args = {options, "A B", .doc = doc};
	struct diff diff = {.rows = DEFAULT_ROWS,
			    .shared = {.formats = formats, .files_alone = true}};
	int status = select_parse(&args, argc, argv, &diff.shared);

	if (!diff.by)
		diff.by = (1U << DIFF_TABLES) - 1;
	if (!status && !is_page(&diff))
		status = select_refuse_groups(&diff.shared.select, "diff");
	if (!status)
		status = run(&diff);
	diff_data_release(&diff.data);
	select_release(&diff.shared.select);
	return status;
}
