/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/line_table.c */
#include <cmocka.h>

#include "interpreters.h"
#include "python/python_code.h"

/* PYPROFD_LINE_MODULES: how many files of each standard library are compiled; 0: all. */
#define DEFAULT_MODULES "12"
#define MAX_TABLE_BYTES (1U << 20)

static void lnotab__signed_and_unsigned_deltas_differ_by_version(void **state)
{
	static const uint8_t table[] = {6, 1, 4, 0xff, 255, 0, 10, 200};

	(void)state;
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 10, 0, 0), 10);
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 10, 5, 0), 10);
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 10, 6, 0), 11);
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 10, 10, 0), 10);
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 10, 10, 1), 266);
	assert_int_equal(line_table_find_lnotab(table, sizeof(table), 100, 275, 0), 44);
	assert_int_equal(line_table_find_lnotab(NULL, 0, 7, 1000, 0), 7);
}

static void table_310__no_line_ranges_and_empty_entries(void **state)
{
	/* [0,4) line 12; an empty entry of +100; [4,8) none; [8,10) 112 - 2 */
	static const uint8_t table[] = {4, 2, 0, 100, 4, 0x80, 2, 0xfe};

	(void)state;
	assert_int_equal(line_table_find_310(table, sizeof(table), 10, 0), 12);
	assert_int_equal(line_table_find_310(table, sizeof(table), 10, 3), 12);
	assert_int_equal(line_table_find_310(table, sizeof(table), 10, 4), 0);
	assert_int_equal(line_table_find_310(table, sizeof(table), 10, 8), 110);
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
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 0), 9);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 2), 9);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 5), 9);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 6), 10);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 8), 43);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 10), 0);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 13), 0);
	assert_int_equal(line_table_find_311(table, sizeof(table), 10, 14), 45);
}

static void truncated_table__gives_the_last_line_it_tells(void **state)
{
	/* The cut goes through the second entry, whose delta must not count. */
	static const uint8_t table_311[] = {0xd8, 0x01, 0x02, 0xe8, 0x42};
	static const uint8_t table_310[] = {4, 2, 6};

	(void)state;
	assert_int_equal(line_table_find_311(table_311, sizeof(table_311), 10, 50), 11);
	assert_int_equal(line_table_find_310(table_310, sizeof(table_310), 10, 50), 12);
	assert_int_equal(line_table_find_lnotab(table_310, sizeof(table_310), 10, 50, 0), 12);
}

/* One interpreter's own answers. */
struct oracle {
	FILE *text;
	char *line;
	size_t capacity;
	unsigned int version; /* sys.hexversion >> 16 */
	uint8_t *table;
	size_t table_size;
	uint32_t first_line;
	uint64_t code_objects, instructions, wrong;
};

static size_t bytes_of_hex(const char *hex, uint8_t *bytes, size_t max_bytes)
{
	size_t size = 0;

	while (size < max_bytes && sscanf(hex + 2 * size, "%2hhx", &bytes[size]) == 1)
		size++;
	return size;
}

static uint32_t find(const struct oracle *oracle, uint32_t offset)
{
	if (oracle->version >= 0x030b)
		return line_table_find_311(oracle->table, oracle->table_size, oracle->first_line,
					   offset);
	if (oracle->version == 0x030a)
		return line_table_find_310(oracle->table, oracle->table_size, oracle->first_line,
					   offset);
	return line_table_find_lnotab(oracle->table, oracle->table_size, oracle->first_line, offset,
				      oracle->version < 0x0300);
}

static void check_range(struct oracle *oracle, uint32_t start, uint32_t end, uint32_t line)
{
	uint32_t unit = oracle->version >= 0x0306 ? 2 : 1;

	for (uint32_t offset = start; offset < end; offset += unit) {
		uint32_t found = find(oracle, offset);

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
		oracle->table_size =
			bytes_of_hex(oracle->line + hex, oracle->table, MAX_TABLE_BYTES);
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
	assert_non_null(oracle.table);
	oracle.text = popen(command, "r");
	assert_non_null(oracle.text);
	while (getline(&oracle.line, &oracle.capacity, oracle.text) > 0)
		check_line(&oracle);
	assert_int_equal(pclose(oracle.text), 0);
	print_message("# %s: %lu instructions of %lu code objects, %lu wrong\n", interpreter->label,
		      oracle.instructions, oracle.code_objects, oracle.wrong);
	free(oracle.line);
	free(oracle.table);
	assert_true(oracle.instructions > 1000);
	assert_int_equal(oracle.wrong, 0);
}

static void every_instruction__has_the_line_that_the_interpreter_says(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters);

	(void)state;
	if (!count) {
		print_message("# skipped: no CPython at hand\n");
		skip();
	}
	for (size_t i = 0; i < count; i++)
		check_interpreter(&interpreters[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lnotab__signed_and_unsigned_deltas_differ_by_version),
		cmocka_unit_test(table_310__no_line_ranges_and_empty_entries),
		cmocka_unit_test(table_311__every_kind_of_entry),
		cmocka_unit_test(truncated_table__gives_the_last_line_it_tells),
		cmocka_unit_test(every_instruction__has_the_line_that_the_interpreter_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
