/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "query/select.h"
#include "reader/text.h"

/* ---- keys ---- */

#define KEY_ESCAPE '\033'
#define KEY_BACKSPACE '\177'
#define PAGE_ROWS 10U /* when the screen's height is not known */

void top_view_release(struct top_view *view)
{
	select_free_regex(TAKE(view->regex));
	view->filter[0] = '\0';
}

int top_view_set_filter(struct top_view *view, const char *text)
{
	regex_t *regex = NULL;
	char why[SELECT_WHY_BYTES];
	int err = strlen(text) < sizeof(view->filter) ? 0 : -EINVAL;

	if (!err && text[0])
		err = select_regex(text, why, &regex);
	if (err)
		return err;
	top_view_release(view);
	view->regex = regex;
	memcpy(view->filter, text, strlen(text) + 1);
	return 0;
}

const char *const top_sort_names[] = {[TOP_BY_CPU] = "cpu",
				      [TOP_BY_GIL] = "gil",
				      [TOP_BY_WAIT] = "wait",
				      [TOP_BY_NAME] = "name",
				      NULL};

/* ---- the filter, as it is typed ---- */

static void end_typing(struct top_view *view)
{
	view->is_typing = false;
	view->first = 0;
	if (top_view_set_filter(view, view->typed))
		view->error = "this is not a regular expression";
}

static void type(struct top_view *view, char key)
{
	size_t size = strlen(view->typed);

	if (key == '\r' || key == '\n')
		end_typing(view);
	else if (key == KEY_ESCAPE)
		view->is_typing = false;
	else if ((key == KEY_BACKSPACE || key == '\b') && size)
		view->typed[size - 1] = '\0';
	else if ((unsigned char)key >= ' ' && (unsigned char)key < 0x7f &&
		 size + 1 < sizeof(view->typed))
		memcpy(view->typed + size, (char[]){key, '\0'}, 2);
}

/* ---- the others ---- */

static void scroll(struct top_view *view, bool is_down, unsigned int by)
{
	if (is_down)
		view->first += by;
	else
		view->first -= by < view->first ? by : view->first;
}

/* Returns the length of a sequence such as "[A" after an escape. */
static size_t take_sequence(struct top_view *view, const char *keys, size_t size)
{
	unsigned int page = view->rows > 4 ? view->rows - 4 : PAGE_ROWS;

	if (size < 2 || keys[0] != '[') {
		(void)top_view_set_filter(view, "");
		return 0;
	}
	if (keys[1] == 'A' || keys[1] == 'B')
		scroll(view, keys[1] == 'B', 1);
	if (keys[1] == 'H')
		view->first = 0;
	if (size >= 3 && keys[2] == '~' && (keys[1] == '5' || keys[1] == '6'))
		scroll(view, keys[1] == '6', page);
	return size >= 3 && keys[2] == '~' ? 3 : 2;
}

static bool take_key(struct top_view *view, char key)
{
	switch (key) {
	case 'c':
	case 'g':
	case 'w':
	case 'n':
		view->sort = key == 'c'	  ? TOP_BY_CPU
			     : key == 'g' ? TOP_BY_GIL
			     : key == 'w' ? TOP_BY_WAIT
					  : TOP_BY_NAME;
		view->first = 0;
		return true;
	case '1':
	case '2':
	case '3':
		view->depth = (unsigned int)(key - '0');
		return true;
	case 'i':
		view->shows_idle = !view->shows_idle;
		return true;
	case ' ':
	case 'p':
		view->is_frozen = !view->is_frozen;
		return true;
	case '/':
		view->is_typing = true;
		memcpy(view->typed, view->filter, sizeof(view->typed));
		return true;
	case 'j':
	case 'k':
		scroll(view, key == 'j', 1);
		return true;
	case 'h':
	case '?':
		view->shows_help = true;
		return true;
	case 'q':
		view->wants_end = true;
		return true;
	default:
		return false;
	}
}

bool top_view_keys(struct top_view *view, const char *keys, size_t size)
{
	bool changed = false;

	for (size_t i = 0; i < size; i++) {
		bool was_help = view->shows_help;

		view->error = NULL;
		view->shows_help = false;
		if (view->is_typing) {
			type(view, keys[i]);
			changed = true;
		} else if (keys[i] == KEY_ESCAPE) {
			i += take_sequence(view, keys + i + 1, size - i - 1);
			changed = true;
		} else {
			changed |= take_key(view, keys[i]) || was_help;
		}
	}
	return changed;
}

#define SHOWN_MIN 0.0005 /* of one CPU or thread: less would be shown as 0.0 */
#define WAITS_SHOWN 3U
#define LINE_BYTES 4096U

/* One screen or block: lines scrolled past are counted but not written. */
struct page {
	const struct top_view *view;
	const struct top_model *model;
	FILE *out;
	const char *line_end;
	double duration_ns;
	unsigned int left; /* lines that may still be written; UINT_MAX: no limit */
	unsigned int skip; /* rows of the table */
	unsigned int room; /* columns left in this line */
	const struct short_paths *short_paths; /* NULL: whole paths are shown */
	bool is_short_of_memory;
};

/* ---- lines ---- */

static void begin_line(struct page *page)
{
	page->room = page->view->columns ? page->view->columns : UINT32_MAX;
}

/* Writes as much as fits; the decoder has cleaned names. */
static void put(struct page *page, enum text_color color, const char *text)
{
	size_t size = 0;

	for (; text[size] && page->room; page->room--) {
		size++;
		while (((unsigned char)text[size] & 0xc0) == 0x80)
			size++;
	}
	if (!size)
		return;
	if (color != TEXT_PLAIN)
		fputs(text_color(page->view->color, color), page->out);
	(void)fwrite(text, 1, size, page->out);
	if (color != TEXT_PLAIN)
		fputs(text_color(page->view->color, TEXT_PLAIN), page->out);
}

static void end_line(struct page *page)
{
	fputs(page->line_end, page->out);
	if (page->left && page->left != UINT32_MAX)
		page->left--;
}

/* Writes " WORD WORD ..."; what does not fit goes on in the next line. */
static void put_words(struct page *page, enum text_color color, const char *text)
{
	char word[96];
	size_t size;

	while (*text) {
		size = strcspn(text, " ");
		snprintf(word, sizeof(word), " %.*s", (int)size, text);
		text += size + (text[size] == ' ');
		if (text_columns_of(word) > page->room) {
			end_line(page);
			begin_line(page);
			put(page, TEXT_PLAIN, " ");
		}
		put(page, color, word);
	}
}

/* ---- which rows, in which order ---- */

static int64_t sorted_value(const struct top_view *view, const struct top_row *row)
{
	switch (view->sort) {
	case TOP_BY_GIL:
		return row->gil_ns;
	case TOP_BY_WAIT:
		return row->wait_ns;
	default:
		return row->cpu_ns;
	}
}

static int compare(const void *a, const void *b, void *context)
{
	const struct page *page = context;
	const struct top_row *left = &page->model->row[*(const uint32_t *)a];
	const struct top_row *right = &page->model->row[*(const uint32_t *)b];
	int order;

	if (page->view->sort == TOP_BY_NAME)
		order = strcmp(top_model_name(page->model, left),
			       top_model_name(page->model, right));
	else
		order = ORDER(sorted_value(page->view, right), sorted_value(page->view, left))
				?: ORDER(right->total_ns, left->total_ns);
	return order
		       ?: (left->level == TOP_PROCESS ? ORDER(left->pid, right->pid)
						      : ORDER(left->code, right->code));
}

static bool is_hit(const struct top_view *view, const char *text)
{
	return !regexec(view->regex, text, 0, NULL, 0);
}

static bool function_matches(const struct page *page, const struct top_row *row)
{
	const struct code *code = &page->model->function.code[row->code];

	return !page->view->regex || is_hit(page->view, top_model_name(page->model, row)) ||
	       is_hit(page->view, code_place(&page->model->function, code));
}

/* Returns whether the process itself matches: then all of its rows are shown. */
static bool process_matches(const struct page *page, const struct top_row *row)
{
	char pid[24];

	if (!page->view->regex)
		return true;
	snprintf(pid, sizeof(pid), "%" PRId64, row->pid);
	return is_hit(page->view, pid) || is_hit(page->view, top_model_name(page->model, row));
}

static bool is_idle(const struct page *page, const struct top_row *row)
{
	int64_t value = sorted_value(page->view, row);

	if (page->view->sort == TOP_BY_NAME)
		value = row->cpu_ns + row->gil_ns + row->wait_ns;
	return (double)value < SHOWN_MIN * page->duration_ns;
}

/* Returns the shown rows of one parent, sorted; heap.  NULL: none. */
static uint32_t *list(struct page *page, uint32_t first, enum top_level level, bool wants_all,
		      uint32_t *ret_count)
{
	const struct top_row *row = page->model->row;
	uint32_t count = 0, *found;

	*ret_count = 0;
	for (uint32_t i = first; i != TOP_NONE; i = row[i].sibling)
		count += row[i].level == level;
	found = count ? calloc(count, sizeof(*found)) : NULL;
	if (!found) {
		page->is_short_of_memory |= count > 0;
		return NULL;
	}
	count = 0;
	for (uint32_t i = first; i != TOP_NONE; i = row[i].sibling) {
		bool is_shown = row[i].level == level;

		if (is_shown && level == TOP_FUNCTION)
			is_shown = wants_all || function_matches(page, &row[i]);
		if (is_shown && (level != TOP_PROCESS || !page->view->shows_idle))
			is_shown = !is_idle(page, &row[i]) ||
				   (level == TOP_FUNCTION && page->view->sort == TOP_BY_CPU &&
				    (double)row[i].total_ns >= SHOWN_MIN * page->duration_ns);
		if (is_shown)
			found[count++] = i;
	}
	qsort_r(found, count, sizeof(*found), compare, page);
	*ret_count = count;
	return found;
}

/* ---- the table ---- */

static void put_percent(struct page *page, double ns, bool is_known)
{
	double share = ns / page->duration_ns;
	char text[32] = "       -";

	if (is_known)
		snprintf(text, sizeof(text), "%8.1f", share * 100);
	put(page, is_known ? text_color_of_share(share) : TEXT_PLAIN, text);
}

/* Returns whether to write the row: it is not scrolled past, and there is room. */
static bool begin_row(struct page *page, const struct top_row *row)
{
	bool has_total = row->level == TOP_FUNCTION;

	if (page->skip) {
		page->skip--;
		return false;
	}
	if (!page->left)
		return false;
	begin_line(page);
	put_percent(page, (double)row->cpu_ns, true);
	if (has_total)
		put_percent(page, (double)row->total_ns, true);
	else
		put(page, TEXT_PLAIN, "        ");
	put_percent(page, (double)row->gil_ns, true);
	put_percent(page, (double)row->wait_ns, page->model->has_waits);
	return true;
}

static int compare_waits(const void *a, const void *b, void *context)
{
	const struct page *page = context;
	const struct top_row *left = &page->model->row[*(const uint32_t *)a];
	const struct top_row *right = &page->model->row[*(const uint32_t *)b];

	return ORDER(right->wait_ns, left->wait_ns)
		       ?: strcmp(top_model_name(page->model, left),
				 top_model_name(page->model, right));
}

/* Writes "  sleep 60 %, poll 38 %": shares of the time that all threads of a process waited. */
static void put_waits(struct page *page, const struct top_row *process)
{
	const struct top_row *row = page->model->row;
	uint32_t count = 0, wait[64];

	for (uint32_t i = process->child; i != TOP_NONE; i = row[i].sibling)
		if (row[i].level == TOP_WAIT && count < ARRAY_SIZE(wait))
			wait[count++] = i;
	qsort_r(wait, count, sizeof(wait[0]), compare_waits, page);
	for (uint32_t i = 0; i < count && i < WAITS_SHOWN && process->wait_ns > 0; i++) {
		double share = (double)row[wait[i]].wait_ns / (double)process->wait_ns;
		char text[96];

		if (share < 0.005)
			break;
		snprintf(text, sizeof(text), "%s%.40s %.0f %%",
			 i ? ", " : "  waits: ", top_model_name(page->model, &row[wait[i]]),
			 share * 100);
		put(page, TEXT_DIM, text);
	}
}

static void print_lines(struct page *page, const struct top_row *function)
{
	uint32_t count;
	OWNED_MEM uint32_t *line = list(page, function->child, TOP_LINE, true, &count);

	for (uint32_t i = 0; i < count && i < page->view->lines; i++) {
		const struct top_row *row = &page->model->row[line[i]];
		char text[48];

		if (!begin_row(page, row))
			continue;
		snprintf(text, sizeof(text), "        line %" PRIu32,
			 page->model->line.code[row->code].line);
		put(page, TEXT_DIM, text);
		end_line(page);
	}
}

static void put_function(struct page *page, const struct top_row *row)
{
	struct code_table table = page->model->function;
	const char *name = top_model_name(page->model, row), *shown;
	char place[TEXT_PLACE_BYTES];
	struct text_cut cut;

	table.short_paths = page->short_paths;
	shown = text_place(&table, &table.code[row->code], place);
	name = name[0] ? name : "[unknown]";
	text_fit(page->room == UINT32_MAX ? 0 : page->room, &name, &shown, &cut);
	put(page, TEXT_PLAIN, name);
	put(page, TEXT_PLAIN, "  ");
	put(page, TEXT_DIM, shown);
}

static void print_functions(struct page *page, const uint32_t *function, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < page->view->functions; i++) {
		const struct top_row *row = &page->model->row[function[i]];

		if (begin_row(page, row)) {
			put(page, TEXT_PLAIN, "    ");
			put_function(page, row);
			end_line(page);
		}
		if (page->view->depth > 2)
			print_lines(page, row);
	}
}

static void print_process(struct page *page, const struct top_row *row)
{
	bool is_whole = process_matches(page, row);
	uint32_t count = 0;
	OWNED_MEM uint32_t *function = NULL;
	char text[32];

	if (page->view->depth > 1 || !is_whole)
		function = list(page, row->child, TOP_FUNCTION, is_whole, &count);
	if (!is_whole && !count)
		return;
	if (begin_row(page, row)) {
		const char *name = top_model_name(page->model, row);

		snprintf(text, sizeof(text), "  %" PRId64 " ", row->pid);
		put(page, TEXT_PLAIN, text);
		put(page, TEXT_BOLD, name[0] ? name : "[unknown]");
		put_waits(page, row);
		end_line(page);
	}
	if (page->view->depth > 1)
		print_functions(page, function, count);
}

/* ---- around it ---- */

static int64_t sum_cpu(const struct top_model *model)
{
	int64_t sum = 0;

	for (uint32_t i = model->first; i != TOP_NONE; i = model->row[i].sibling)
		sum += model->row[i].cpu_ns;
	return sum;
}

static void print_head(struct page *page, uint64_t end_wall_ns)
{
	const struct top_view *view = page->view;
	time_t seconds = (time_t)(end_wall_ns / NS_PER_SEC);
	char text[LINE_BYTES], missing[COVERAGE_BYTES], clock[16] = "";
	struct tm parts;

	if (localtime_r(&seconds, &parts))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	begin_line(page);
	snprintf(text, sizeof(text),
		 "pyprof top  %s  %.1f s  %.1f %% CPU  %" PRIu32 " process%s  by %s", clock,
		 page->duration_ns / NS_PER_SEC,
		 (double)sum_cpu(page->model) / page->duration_ns * 100, page->model->processes,
		 page->model->processes == 1 ? "" : "es", top_sort_names[view->sort]);
	put(page, TEXT_PLAIN, text);
	if (view->filter[0]) {
		put(page, TEXT_PLAIN, "  /");
		put(page, TEXT_BOLD, view->filter);
		put(page, TEXT_PLAIN, "/");
	}
	if (view->is_frozen)
		put(page, TEXT_YELLOW, "  frozen");
	if (top_model_coverage(page->model, missing)[0]) {
		put(page, TEXT_PLAIN, " ");
		put_words(page, TEXT_YELLOW, missing);
	}
	end_line(page);
}

static void print_status(struct page *page)
{
	const struct top_view *view = page->view;

	begin_line(page);
	if (view->is_typing) {
		put(page, TEXT_BOLD, "filter: ");
		put(page, TEXT_PLAIN, view->typed);
		put(page, TEXT_PLAIN, "_");
	} else if (view->error) {
		put(page, TEXT_RED, view->error);
	} else {
		put(page, TEXT_DIM,
		    "c cpu  g gil  w wait  n name  / filter  1 2 3 depth  i idle  space freeze  "
		    "? help  q quit");
	}
	end_line(page);
}

static void print_help(struct page *page)
{
	static const char *const text[] = {
		"c g w n    sort by CPU, GIL, waits, name",
		"/          show what matches a regular expression: process, pid, function, file",
		"Esc        no filter",
		"1 2 3      processes; their functions; the functions' lines",
		"i          processes that have nothing to show, too",
		"space p    freeze, and go on",
		"arrows j k PgUp PgDn   scroll",
		"q Ctrl-C   quit",
		"",
		"%CPU    of one CPU, by itself; of a Python function with what it runs in C",
		"%TOTAL  with what it calls",
		"%GIL    of the time a thread of it held the GIL",
		"%WAIT   off the CPU, all threads added up",
	};

	for (size_t i = 0; i < ARRAY_SIZE(text) && page->left; i++) {
		begin_line(page);
		put(page, TEXT_PLAIN, text[i]);
		end_line(page);
	}
}

static void print_table(struct page *page)
{
	uint32_t count;
	OWNED_MEM uint32_t *process = list(page, page->model->first, TOP_PROCESS, true, &count);

	begin_line(page);
	put(page, TEXT_BOLD, "    %CPU  %TOTAL    %GIL   %WAIT  NAME");
	end_line(page);
	for (uint32_t i = 0; i < count; i++)
		print_process(page, &page->model->row[process[i]]);
}

int top_view_print(const struct top_view *view, const struct top_model *model, const char *line_end,
		   FILE *out)
{
	struct page page = {
		.view = view,
		.model = model,
		.out = out,
		.line_end = line_end,
		.left = view->rows ? view->rows : UINT32_MAX,
		.skip = view->first,
	};
	CLEANUP(short_paths_release) struct short_paths short_paths = {0};

	if (model && model->function.profile && !view->full_paths) {
		if (short_paths_of_profile(model->function.profile, &short_paths))
			return -ENOMEM;
		page.short_paths = &short_paths;
	}
	if (view->rows)
		print_status(&page);
	if (view->shows_help) {
		print_help(&page);
	} else if (!model) {
		begin_line(&page);
		put(&page, TEXT_DIM, "waiting for the first window ...");
		end_line(&page);
	} else {
		const struct profile_read_totals totals = top_model_totals(model);

		page.duration_ns = totals.duration_ns ? (double)totals.duration_ns : 1;
		print_head(&page, totals.end_wall_ns);
		print_table(&page);
	}
	return page.is_short_of_memory ? -ENOMEM : 0;
}
