/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>

#include "interpreters.h"
#include "python/python_code.h"

/* PYPROFD_LINE_MODULES: how many files of each standard library are compiled; 0: all. */
#define DEFAULT_MODULES "12"
#define MAX_TABLE_BYTES (1U << 20)

/* Returns the line of an offset, by way of the rows. */
static uint32_t line_at(enum line_table_format format, const uint8_t *table, size_t size,
			uint32_t first_line, uint32_t offset)
{
	struct line_row *rows = calloc(size + 2, sizeof(*rows));
	uint32_t line;
	size_t count;

	assert_non_null(rows);
	count = line_table_rows(format, table, size, first_line, rows, size + 2);
	assert_in_range(count, 1, size + 2);
	line = line_rows_find(rows, count, offset);
	free(rows);
	return line;
}

static uint32_t find_lnotab(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset,
			    int is_python2)
{
	return line_at(is_python2 ? LINE_TABLE_LNOTAB_2 : LINE_TABLE_LNOTAB_3, table, size,
		       first_line, offset);
}

static uint32_t find_310(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset)
{
	return line_at(LINE_TABLE_310, table, size, first_line, offset);
}

static uint32_t find_311(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset)
{
	return line_at(LINE_TABLE_311, table, size, first_line, offset);
}

static void lnotab__signed_and_unsigned_deltas_differ_by_version(void **state)
{
	static const uint8_t table[] = {6, 1, 4, 0xff, 255, 0, 10, 200};

	(void)state;
	assert_int_equal(find_lnotab(table, sizeof(table), 10, 0, 0), 10);
	assert_int_equal(find_lnotab(table, sizeof(table), 10, 5, 0), 10);
	assert_int_equal(find_lnotab(table, sizeof(table), 10, 6, 0), 11);
	assert_int_equal(find_lnotab(table, sizeof(table), 10, 10, 0), 10);
	assert_int_equal(find_lnotab(table, sizeof(table), 10, 10, 1), 266);
	assert_int_equal(find_lnotab(table, sizeof(table), 100, 275, 0), 44);
	assert_int_equal(find_lnotab(NULL, 0, 7, 1000, 0), 7);
}

static void table_310__no_line_ranges_and_empty_entries(void **state)
{
	/* [0,4) line 12; an empty entry of +100; [4,8) none; [8,10) 112 - 2 */
	static const uint8_t table[] = {4, 2, 0, 100, 4, 0x80, 2, 0xfe};

	(void)state;
	assert_int_equal(find_310(table, sizeof(table), 10, 0), 12);
	assert_int_equal(find_310(table, sizeof(table), 10, 3), 12);
	assert_int_equal(find_310(table, sizeof(table), 10, 4), 0);
	assert_int_equal(find_310(table, sizeof(table), 10, 8), 110);
}

static void table_311__every_kind_of_entry(void **state)
{
	static const uint8_t table[] = {
		0xf0, 0x03, 0x01, 0x02, 0x03, /* long, 1 unit: line - 1 */
		0x81, 0x12,		      /* short, 2 units: the same line */
		0xd8, 0x01, 0x02,	      /* one line, kind 11: + 1 */
		0xe8, 0x42, 0x01,	      /* no columns: varint 66 -> + 33 */
		0xf9,			      /* none, 2 units */
		0xe0, 0x00, 0x00,	      /* kind 12: + 2 */
	};

	(void)state;
	assert_int_equal(find_311(table, sizeof(table), 10, 0), 9);
	assert_int_equal(find_311(table, sizeof(table), 10, 2), 9);
	assert_int_equal(find_311(table, sizeof(table), 10, 5), 9);
	assert_int_equal(find_311(table, sizeof(table), 10, 6), 10);
	assert_int_equal(find_311(table, sizeof(table), 10, 8), 43);
	assert_int_equal(find_311(table, sizeof(table), 10, 10), 0);
	assert_int_equal(find_311(table, sizeof(table), 10, 13), 0);
	assert_int_equal(find_311(table, sizeof(table), 10, 14), 45);
}

/* Three kinds say how far the next line is: by no line, one, two.  Two columns follow each. */
static void table_311__one_line_entries_have_two_columns(void **state)
{
	static const uint8_t table[] = {0xd0, 0x01, 0x02, 0xd8, 0x03, 0x04, 0xe0, 0x05, 0x06};

	(void)state;
	assert_int_equal(find_311(table, sizeof(table), 10, 0), 10);
	assert_int_equal(find_311(table, sizeof(table), 10, 2), 11);
	assert_int_equal(find_311(table, sizeof(table), 10, 4), 13);
}

static void truncated_table__gives_the_last_line_it_tells(void **state)
{
	/* The cut goes through the second entry, whose delta must not count. */
	static const uint8_t table_311[] = {0xd8, 0x01, 0x02, 0xe8, 0x42};
	static const uint8_t table_310[] = {4, 2, 6};

	(void)state;
	assert_int_equal(find_311(table_311, sizeof(table_311), 10, 50), 11);
	assert_int_equal(find_310(table_310, sizeof(table_310), 10, 50), 12);
	assert_int_equal(find_lnotab(table_310, sizeof(table_310), 10, 50, 0), 12);
}

/* PEP 626: a delta of -128 means no line, and only that. */
static void table_310__line_deltas_within_bounds(void **state)
{
	static const uint8_t table[] = {2, 0x81, 2, 0x80, 2, 0x7f, 255, 1, 255, 1};

	(void)state;
	assert_int_equal(find_310(table, sizeof(table), 1000, 0), 1000 - 127);
	assert_int_equal(find_310(table, sizeof(table), 1000, 1), 1000 - 127);
	assert_int_equal(find_310(table, sizeof(table), 1000, 2), 0);
	assert_int_equal(find_310(table, sizeof(table), 1000, 5), 1000);
	assert_int_equal(find_310(table, sizeof(table), 1000, 6 + 254), 1001);
	assert_int_equal(find_310(table, sizeof(table), 1000, 6 + 255), 1002);
	/* beyond its end: the last line */
	assert_int_equal(find_310(table, sizeof(table), 1000, 6 + 510), 1002);
	assert_int_equal(find_310(table, 4, 1000, 4), 1000 - 127);
}

/* Objects/locations.md: a varint has 6 bits a byte, the least significant first; a signed one its
 * sign in bit 0. */
static void table_311__numbers_within_bounds(void **state)
{
	static const struct {
		uint8_t table[12];
		size_t size;
		uint32_t line; /* of a code object that begins at line 1,000,000,000 */
	} expected[] = {
		{{0xe8, 0x3e}, 2, 1000000031},
		{{0xe8, 0x3f}, 2, 1000000000 - 31},
		{{0xe8, 0x40, 0x01}, 3, 1000000032},
		{{0xe8, 0x41, 0x01}, 3, 1000000000 - 32},
		{{0xe8, 0x7e, 0x3f}, 3, 1000002047},
		{{0xe8, 0x40, 0x40, 0x40, 0x40, 0x20}, 6, 1000000000 + (1 << 28)},
		{{0xe8, 0x40, 0x40, 0x40, 0x40, 0x40, 0x01}, 7, 1000000000 + (1 << 29)},
		/* the seventh byte's bits do not fit into an int */
		{{0xe8, 0x42, 0x40, 0x40, 0x40, 0x40, 0x40, 0x3f}, 8, 1000000001},
		{{0xe8, 0x42}, 2, 1000000000}, /* cut */
		{{0xe8}, 1, 1000000000},
		/* long: line, end line, column, end column, of two bytes each */
		{{0xf0, 0x42, 0x01, 0x40, 0x01, 0x40, 0x01, 0x40, 0x01}, 9, 1000000033},
		{{0xf0, 0x42, 0x01, 0x40, 0x01, 0x40, 0x01, 0x40}, 8, 1000000000},
		{{0xf0, 0x02, 0x00, 0x00}, 4, 1000000000},
		/* one line: 10, 11, 12 and two columns */
		{{0xd0, 0x00, 0x00}, 3, 1000000000},
		{{0xd8, 0x00, 0x00}, 3, 1000000001},
		{{0xe0, 0x00, 0x00}, 3, 1000000002},
		{{0xe0, 0x00}, 2, 1000000000},
		/* short: 0 to 9, and one byte of columns */
		{{0x80, 0x00}, 2, 1000000000},
		{{0xc8, 0x00}, 2, 1000000000},
		{{0xf8}, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		uint32_t line = find_311(expected[i].table, expected[i].size, 1000000000, 0);

		if (line != expected[i].line)
			fail_msg("table %zu: line %u", i, line);
	}
}

/* An entry covers 1 to 8 code units of 2 bytes. */
static void table_311__lengths_within_bounds(void **state)
{
	(void)state;
	for (uint32_t units = 1; units <= 8; units++) {
		/* no columns, + 1; one line, + 1 */
		const uint8_t table[] = {(uint8_t)(0xe8 | (units - 1)), 2, 0xd8, 0, 0};

		assert_int_equal(find_311(table, sizeof(table), 10, 2 * units - 1), 11);
		assert_int_equal(find_311(table, sizeof(table), 10, 2 * units), 12);
		/* beyond the end: the last line */
		assert_int_equal(find_311(table, sizeof(table), 10, 2 * units + 2), 12);
	}
}

static void lnotab__ranges_within_bounds(void **state)
{
	static const uint8_t table[] = {0, 1, 2, 0x7f, 2, 0x80};

	(void)state;
	assert_int_equal(find_lnotab(table, sizeof(table), 200, 0, 0), 201);
	assert_int_equal(find_lnotab(table, sizeof(table), 200, 1, 0), 201);
	assert_int_equal(find_lnotab(table, sizeof(table), 200, 2, 0), 328);
	assert_int_equal(find_lnotab(table, sizeof(table), 200, 4, 0), 200);
	assert_int_equal(find_lnotab(table, sizeof(table), 200, 4, 1), 456);
	assert_int_equal(find_lnotab(table, 5, 200, 4, 0), 328); /* half an entry */
}

/* No code object has a line above INT_MAX: a table that says so is damaged. */
static void line_tables__lines_beyond_an_int_are_none(void **state)
{
	static const uint8_t one_more_311[] = {0xd8, 0, 0}, less_311[] = {0xe8, 0x03};
	static const uint8_t one_more[] = {2, 1}, less[] = {2, 0xff};

	(void)state;
	assert_int_equal(find_311(one_more_311, 3, INT32_MAX - 1, 0), INT32_MAX);
	assert_int_equal(find_311(one_more_311, 3, INT32_MAX, 0), 0);
	assert_int_equal(find_311(less_311, 2, 0, 0), 0);
	assert_int_equal(find_311(one_more_311, 3, INT32_MAX, 9), 0);
	assert_int_equal(find_310(one_more, 2, INT32_MAX - 1, 0), INT32_MAX);
	assert_int_equal(find_310(one_more, 2, INT32_MAX, 0), 0);
	assert_int_equal(find_310(one_more, 2, INT32_MAX, 9), 0);
	assert_int_equal(find_lnotab(one_more, 2, INT32_MAX - 1, 2, 0), INT32_MAX);
	assert_int_equal(find_lnotab(one_more, 2, INT32_MAX, 2, 0), 0);
	assert_int_equal(find_lnotab(less, 2, 0, 2, 0), 0);
}

/* One interpreter's own answers. */
struct oracle {
	FILE *text;
	char *line;
	size_t capacity;
	unsigned int version; /* sys.hexversion >> 16 */
	uint8_t *table;
	struct line_row *rows;
	size_t row_count;
	uint32_t first_line; /* for messages */
	uint64_t code_objects, instructions, wrong;
};

static size_t bytes_of_hex(const char *hex, uint8_t *bytes, size_t max_bytes)
{
	size_t size = 0;

	while (size < max_bytes && sscanf(hex + 2 * size, "%2hhx", &bytes[size]) == 1)
		size++;
	return size;
}

static void check_range(struct oracle *oracle, uint32_t start, uint32_t end, uint32_t line)
{
	uint32_t unit = oracle->version >= 0x0306 ? 2 : 1;

	for (uint32_t offset = start; offset < end; offset += unit) {
		uint32_t found = line_rows_find(oracle->rows, oracle->row_count, offset);

		oracle->instructions++;
		if (found == line)
			continue;
		if (oracle->wrong++ < 10)
			print_error("%#x: code object %lu at line %u, offset %u: %u, not %u\n",
				    oracle->version, oracle->code_objects, oracle->first_line,
				    offset, found, line);
	}
}

static void check_line(struct oracle *oracle)
{
	unsigned int version, first, start, end, line;
	int hex = 0;

	if (sscanf(oracle->line, "V %u", &version) == 1) {
		oracle->version = version >> 16;
	} else if (sscanf(oracle->line, "C %u %n", &first, &hex) == 1) {
		oracle->code_objects++;
		oracle->first_line = first;
		oracle->row_count = line_table_rows(
			line_table_format(oracle->version >> 8, oracle->version & 0xff),
			oracle->table,
			bytes_of_hex(oracle->line + hex, oracle->table, MAX_TABLE_BYTES), first,
			oracle->rows, MAX_TABLE_BYTES);
	} else if (sscanf(oracle->line, "L %u %u %u", &start, &end, &line) == 3) {
		check_range(oracle, start, end, line);
	}
}

static void check_interpreter(const struct interpreter *interpreter)
{
	const char *modules = getenv("PYPROFD_LINE_MODULES");
	struct oracle oracle = {0};
	char command[1024];

	snprintf(command, sizeof(command), "%s - %s < tests/unit/python/line_oracle.py",
		 interpreter->command, modules ? modules : DEFAULT_MODULES);
	oracle.table = malloc(MAX_TABLE_BYTES);
	oracle.rows = calloc(MAX_TABLE_BYTES, sizeof(*oracle.rows));
	assert_non_null(oracle.table);
	assert_non_null(oracle.rows);
	oracle.text = popen(command, "r");
	assert_non_null(oracle.text);
	while (getline(&oracle.line, &oracle.capacity, oracle.text) > 0)
		check_line(&oracle);
	assert_int_equal(pclose(oracle.text), 0);
	print_message("# %s: %lu instructions of %lu code objects, %lu wrong\n", interpreter->label,
		      oracle.instructions, oracle.code_objects, oracle.wrong);
	free(oracle.line);
	free(oracle.table);
	free(oracle.rows);
	assert_true(oracle.instructions > 1000);
	assert_int_equal(oracle.wrong, 0);
}

static void rows__of_equal_lines_are_one(void **state)
{
	static const uint8_t table[] = {4, 2, 4, 0, 4, 1, 4, 0};
	struct line_row row[4];

	(void)state;
	assert_int_equal(line_table_rows(LINE_TABLE_310, table, sizeof(table), 10, row, 4), 2);
	assert_int_equal(row[0].start, 0);
	assert_int_equal(row[0].line, 12);
	assert_int_equal(row[1].start, 8);
	assert_int_equal(row[1].line, 13);
}

/* A function of more lines than there is room for keeps its first ones. */
static void rows__beyond_the_room_are_left_out(void **state)
{
	static const uint8_t table_310[] = {2, 1, 2, 1, 2, 1};
	static const uint8_t table_311[] = {0xd8, 0, 0, 0xd8, 0, 0, 0xd8, 0, 0};
	static const struct {
		enum line_table_format format;
		const uint8_t *table;
		size_t size;
		uint32_t second; /* start of the second row */
	} expected[] = {
		{LINE_TABLE_LNOTAB_2, table_310, 6, 2},
		{LINE_TABLE_LNOTAB_3, table_310, 6, 2},
		{LINE_TABLE_310, table_310, 6, 2},
		{LINE_TABLE_311, table_311, 9, 2},
	};
	struct line_row row[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		memset(row, 0xee, sizeof(row));
		assert_int_equal(line_table_rows(expected[i].format, expected[i].table,
						 expected[i].size, 10, row, 2),
				 2);
		assert_int_equal(row[0].start, 0);
		assert_int_equal(row[1].start, expected[i].second);
		assert_int_equal(row[2].start, 0xeeeeeeee);
		assert_int_equal(line_rows_find(row, 2, 1000), row[1].line);
		assert_int_equal(line_table_rows(expected[i].format, expected[i].table,
						 expected[i].size, 10, row, 0),
				 0);
	}
	assert_int_equal(line_rows_find(row, 0, 5), 0);
}

/* 255 is the longest step of an lnotab; longer ones are several entries. */
static void rows__end_where_no_offset_can_be(void **state)
{
	const size_t entries = UINT32_MAX / 255 + 2;
	uint8_t *table = calloc(entries, 2);
	struct line_row row[8];

	(void)state;
	assert_non_null(table);
	for (size_t i = 0; i < entries; i++)
		table[2 * i] = 255;
	table[2 * entries - 1] = 1;
	assert_int_equal(line_table_rows(LINE_TABLE_LNOTAB_3, table, 2 * entries, 10, row, 8), 1);
	assert_int_equal(line_rows_find(row, 1, UINT32_MAX), 10);
	free(table);
}

static void every_instruction__has_the_line_that_the_interpreter_says(void **state)
{
	(void)state;
	interpreters_check(check_interpreter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lnotab__signed_and_unsigned_deltas_differ_by_version),
		cmocka_unit_test(table_310__no_line_ranges_and_empty_entries),
		cmocka_unit_test(table_311__every_kind_of_entry),
		cmocka_unit_test(table_310__line_deltas_within_bounds),
		cmocka_unit_test(table_311__numbers_within_bounds),
		cmocka_unit_test(table_311__lengths_within_bounds),
		cmocka_unit_test(lnotab__ranges_within_bounds),
		cmocka_unit_test(line_tables__lines_beyond_an_int_are_none),
		cmocka_unit_test(table_311__one_line_entries_have_two_columns),
		cmocka_unit_test(truncated_table__gives_the_last_line_it_tells),
		cmocka_unit_test(rows__of_equal_lines_are_one),
		cmocka_unit_test(rows__beyond_the_room_are_left_out),
		cmocka_unit_test(rows__end_where_no_offset_can_be),
		cmocka_unit_test(every_instruction__has_the_line_that_the_interpreter_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
