/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: export/tree_exports.c export/perfetto.c export/otlp.c export/call_exports.c base/proto.c render/flame_tree.c render/flame_html.c render/flame_svg.c render/format.c base/json_writer.c render/totals.c render/call_graph.c render/code_table.c render/short_paths.c profile/profile.c profile/stack_table.c base/index_table.c base/intern.c base/utf8.c timeline/trace_format.c render/table.c */
/* Names as a hostile process chose them, cleaned as the reader of profiles cleans them, and values
 * as anyone may write them into a file: each format for another tool stays whole.
 * runs: 500 at most in `make check`: each makes nine files. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "export/exports.h"
#include "json_check.h"
#include "made_profile.h"
#include "render/flame_html.h"
#include "render/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What one writer wrote. */
struct written {
	char *text;
	size_t size;
	FILE *out;
};

static FILE *begin(struct written *written)
{
	*written = (struct written){0};
	written->out = open_memstream(&written->text, &written->size);
	assert(written->out);
	return written->out;
}

static void end(struct written *written, int err)
{
	assert(!err && !fclose(written->out) && written->text);
}

/* ---- what each format is made of ---- */

static void check_json(struct written *written, int err)
{
	end(written, err);
	assert(is_json(written->text, written->size));
	free(written->text);
}

/* RFC 4180: records of as many fields as the first one has. */
static void check_csv(struct written *written, int err)
{
	size_t fields = 1, wanted = 0;
	bool quoted = false;

	end(written, err);
	for (const char *at = written->text; *at; at++) {
		quoted ^= *at == '"';
		if (quoted)
			continue;
		fields += *at == ',';
		if (*at != '\n')
			continue;
		wanted = wanted ? wanted : fields;
		assert(fields == wanted && at[-1] == '\r');
		fields = 1;
	}
	assert(!quoted && fields == 1);
	free(written->text);
}

/* Each line is a whole statement: its quotes are closed. */
static void check_sql(struct written *written, int err)
{
	bool quoted = false;

	end(written, err);
	for (const char *at = written->text; *at; at++) {
		quoted ^= *at == '\'';
		assert(*at != '\n' || (!quoted && at[-1] == ';'));
	}
	assert(!quoted);
	free(written->text);
}

/* Each line has as many cells as the first one. */
static void check_markdown(struct written *written, int err)
{
	size_t cells = 0, wanted = 0;

	end(written, err);
	for (const char *at = written->text; *at; at++) {
		if (*at == '\\' && at[1])
			at++;
		else if (*at == '|')
			cells++;
		if (*at != '\n' || !cells)
			continue;
		wanted = wanted ? wanted : cells;
		assert(cells == wanted);
		cells = 0;
	}
	free(written->text);
}

/* Each line is a whole statement: its quotes are closed. */
static void check_dot(struct written *written, int err)
{
	bool quoted = false;

	end(written, err);
	for (const char *at = written->text; *at; at++) {
		if (*at == '\\')
			at++;
		else
			quoted ^= *at == '"';
		assert(*at && (*at != '\n' || !quoted));
	}
	assert(!quoted && !strcmp(written->text + written->size - 2, "}\n"));
	free(written->text);
}

/* Each line is one of the format's: no name begins another one. */
static void check_callgrind(struct written *written, int err)
{
	static const char *const begins[] = {"ob=",    "fl=",	  "fn=(",     "cob=",	 "cfi=",
					     "cfn=(",  "calls=",  "# ",	      "version", "creator",
					     "events", "summary", "positions"};
	char *rest, *line;

	end(written, err);
	rest = written->text;
	while ((line = strsep(&rest, "\n"))) {
		bool known = !*line || (*line >= '0' && *line <= '9');

		for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
			known |= !strncmp(line, begins[i], strlen(begins[i]));
		assert(known);
	}
	free(written->text);
}

/* One value of Python's marshal format. */
static const uint8_t *skip_marshal(const uint8_t *at, const uint8_t *stop)
{
	uint32_t count = 0;

	assert(at < stop);
	if (*at == 'i' || *at == 'g')
		return at + (*at == 'i' ? 5 : 9);
	if (*at == '{') {
		for (at++; at < stop && *at != '0';)
			at = skip_marshal(at, stop);
		return at + 1;
	}
	assert((*at == 'u' || *at == '(') && stop - at >= 5);
	memcpy(&count, at + 1, sizeof(count));
	if (*at == 'u')
		return at + 5 + count;
	for (at += 5; count; count--)
		at = skip_marshal(at, stop);
	return at;
}

static void check_marshal(struct written *written, int err)
{
	const uint8_t *stop;

	end(written, err);
	stop = (const uint8_t *)written->text + written->size;
	assert(skip_marshal((const uint8_t *)written->text, stop) == stop);
	free(written->text);
}

static uint64_t varint(const uint8_t **at, const uint8_t *stop)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		assert(*at < stop && shift < 64);
		value |= (uint64_t)(**at & 127) << shift;
		if (*(*at)++ < 128)
			return value;
	}
}

static void check_proto(struct written *written, int err)
{
	const uint8_t *at, *stop;

	end(written, err);
	at = (const uint8_t *)written->text;
	stop = at + written->size;
	while (at < stop) {
		uint64_t tag = varint(&at, stop), size = varint(&at, stop);

		assert((tag & 7) == 2 && size <= (uint64_t)(stop - at));
		at += size;
	}
	free(written->text);
}

/* ---- pages ---- */

/* What stands in the page's script element: no name ends it. */
static void check_page(const struct flame_tree *tree, const struct totals *totals,
		       const char *title)
{
	const struct flame_json_facts facts = {.title = title, .totals = totals};
	struct written written;
	FILE *out = begin(&written);
	const int err = flame_json_write(tree, &facts, out);

	assert(!fflush(out) && !memchr(written.text, '<', written.size));
	check_json(&written, err);
}

static void check_svg(struct flame_tree *tree, const char *title)
{
	struct written written;
	FILE *out = begin(&written);
	size_t opened = 0, closed = 0;

	end(&written, flame_svg_write(out, tree, title));
	assert(!strstr(written.text, "<script"));
	for (const char *at = written.text; *at; at++) {
		opened += *at == '<' && at[1] != '/' && at[1] != '?';
		closed += (*at == '<' && at[1] == '/') || (*at == '/' && at[1] == '>');
	}
	assert(opened == closed);
	free(written.text);
}

/* ---- all of one profile ---- */

static void check_trees(struct profile *profile, const struct totals *totals,
			const struct export_facts *facts)
{
	const struct flame_options options = {.lines = true, .group_by = {.keys = GROUP_BY_THREAD}};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	struct written written;
	FILE *out;

	assert(!flame_tree_new(profile, &options, &tree));
	out = begin(&written);
	check_json(&written, export_speedscope(tree, facts, out));
	out = begin(&written);
	check_json(&written, export_chrome(tree, facts, out));
	check_page(tree, totals, facts->title);
	check_svg(tree, facts->title);
}

static void check_graphs(struct profile *profile, const struct export_facts *facts)
{
	const struct dot_options dot = {.title = facts->title, .unit = "nanoseconds"};
	OWNED(call_graph) struct call_graph *graph = NULL;
	struct written written;
	FILE *out;

	assert(!call_graph_new(profile, 0, facts->count_index, &(struct grouping){0}, &graph));
	out = begin(&written);
	check_dot(&written, call_graph_write_dot(graph, &dot, out));
	out = begin(&written);
	check_marshal(&written, call_graph_write_pstats(graph, 1e-9, facts->value_index & 1, out));
	out = begin(&written);
	check_callgrind(&written, call_graph_write_callgrind(graph, "samples", out));
}

/* Names as cells of each format of a table. */
static int write_table(const struct totals *totals, enum table_format format, FILE *out)
{
	static const struct table_column columns[] = {
		{"name", "NAME", 20}, {"file", "FILE", 0}, {"self", "SELF", 9}};
	struct table table;

	table_open(&table, out, format, true);
	table_begin(&table, "rows", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct code *code = &totals->code.code[totals->row[i].code];

		table_string(&table, code_text(&totals->code, code->name), NULL);
		table_string(&table, code_text(&totals->code, code->file), NULL);
		table_value(&table, totals->row[i].self.value, "nanoseconds");
	}
	table_end(&table);
	return table_close(&table, 0);
}

static void check_tables(const struct totals *totals)
{
	struct written written;
	FILE *out = begin(&written);

	check_csv(&written, write_table(totals, TABLE_CSV, out));
	out = begin(&written);
	check_json(&written, write_table(totals, TABLE_JSON, out));
	out = begin(&written);
	check_sql(&written, write_table(totals, TABLE_SQL, out));
	out = begin(&written);
	check_markdown(&written, write_table(totals, TABLE_MARKDOWN, out));
	out = begin(&written);
	end(&written, write_table(totals, TABLE_TEXT, out));
	free(written.text);
}

static void check_streams(struct profile *profile, const struct export_facts *facts)
{
	struct written written;
	FILE *out = begin(&written);

	check_proto(&written, export_otlp(profile, facts, NULL, out));
	/* A million samples take a tenth of a second: tests/unit/export has such sums. */
	if (facts->windows > 1)
		return;
	out = begin(&written);
	check_proto(&written, export_perfetto(profile, facts, out));
}

/* One window of all rows. */
static void fill_totals(struct profile *profile, struct totals *totals)
{
	static const struct totals_options options = {.code_by = CODE_BY_FUNCTION};
	OWNED_MEM struct profile_delta *delta = calloc(profile->row_count + 1U, sizeof(*delta));
	struct profile_window window = {.delta = delta, .delta_count = profile->row_count};

	assert(delta);
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const int64_t value = profile_row_values(profile, i)[0];

		delta[i] = (struct profile_delta){.row = i, .value = value, .count = value};
		window.total = value > 0 && window.total < INT64_MAX - value ? window.total + value
									     : window.total;
	}
	totals_init(totals, &options);
	assert(!totals_add_window(totals, profile, &window));
}

/* The first byte: how large values are, and whether they are counts; then a profile. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	CLEANUP(totals_release) struct totals totals = {0};
	struct export_facts facts = {.duration_ns = 1000000000};

	if (!size)
		return 0;
	made_profile(data + 1, size - 1, true, &strings, &profile);
	for (uint32_t i = 0; i < profile->row_count; i++)
		profile->value[i] = (int64_t)((uint64_t)profile->value[i] << data[0] % 64);
	facts.windows = data[0] % 64 < 4 ? 1 : 2;
	facts.count_index = data[0] & 64 ? -1 : 0;
	facts.title = intern_get(strings, intern_count(strings) / 2, NULL);
	fill_totals(profile, &totals);
	check_trees(profile, &totals, &facts);
	check_graphs(profile, &facts);
	check_streams(profile, &facts);
	check_tables(&totals);
	return 0;
}
