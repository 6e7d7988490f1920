/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/table.h"

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct table_column columns[] = {
	{"share", "SHARE", 9}, {"bytes", "SIZE", 10}, {"raw", NULL, 0}, {"name", "NAME", 0}};

/* Two rows; the second one has names as a hostile process chose them, and a share that is not
 * known. */
static char *written(enum table_format format, bool color)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct table table;

	table_open(&table, out, format, color);
	table_fact_string(&table, "profile", "p");
	table_fact_real(&table, "seconds", 1.5);
	table_begin(&table, "rows", columns, 4);
	table_paint(&table, "\033[31m");
	table_real(&table, 0.25, 2, "25 %");
	table_value(&table, 1536, "bytes");
	table_int(&table, -7, NULL);
	table_string(&table, "main", NULL);
	table_real(&table, NAN, 2, NULL);
	table_value(&table, 0, "bytes");
	table_int(&table, 8, NULL);
	table_string(&table, "=a|\"b'<c>\\", "größe|x");
	table_end(&table);
	table_more_rows(&table, 3);
	table_begin(&table, "others", columns, 1);
	table_end(&table);
	assert_int_equal(table_close(&table, 0), 0);
	fclose(out);
	return text;
}

static void expect(enum table_format format, bool color, const char *wanted)
{
	char *text = written(format, color);

	assert_string_equal(text, wanted);
	free(text);
}

static void table__text_is_aligned_and_painted(void **state)
{
	(void)state;
	expect(TABLE_TEXT, false,
	       "    SHARE      SIZE  NAME\n"
	       "     25 %  1.50 KiB  main\n"
	       "        -       0 B  größe|x\n"
	       "... 3 more rows; --top 0 shows all\n");
	expect(TABLE_TEXT, true,
	       "\033[1m    SHARE      SIZE  NAME\033[0m\n"
	       "\033[31m     25 %\033[0m  1.50 KiB  main\n"
	       "        -       0 B  größe|x\n"
	       "... 3 more rows; --top 0 shows all\n");
}

static void table__csv_has_raw_values_quoted_names_and_one_table(void **state)
{
	(void)state;
	expect(TABLE_CSV, true,
	       "share,bytes,raw,name\r\n"
	       "0.25,1536,-7,\"main\"\r\n"
	       ",0,8,\"'=a|\"\"b'<c>\\\"\r\n");
}

static void table__json_has_facts_and_arrays(void **state)
{
	(void)state;
	expect(TABLE_JSON, true,
	       "{\"profile\":\"p\",\"seconds\":1.5,\"rows\":[\n"
	       "{\"share\":0.25,\"bytes\":1536,\"raw\":-7,\"name\":\"main\"},\n"
	       "{\"share\":null,\"bytes\":0,\"raw\":8,\"name\":\"=a|\\\"b'\\u003cc>\\\\\"}],"
	       "\"others\":[]}\n");
}

static void table__markdown_escapes_what_it_would_read(void **state)
{
	(void)state;
	expect(TABLE_MARKDOWN, true,
	       "| SHARE | SIZE | NAME |\n| ---: | ---: | --- |\n"
	       "| 25 % | 1.50 KiB | main |\n"
	       "| - | 0 B | größe\\|x |\n\n"
	       "... 3 more rows; --top 0 shows all\n");
}

static void table__sql_makes_tables(void **state)
{
	(void)state;
	expect(TABLE_SQL, true,
	       "BEGIN;\nCREATE TABLE \"rows\" (\"share\",\"bytes\",\"raw\",\"name\");\n"
	       "INSERT INTO \"rows\" VALUES(0.25,1536,-7,'main');\n"
	       "INSERT INTO \"rows\" VALUES(NULL,0,8,'=a|\"b''<c>\\');\n"
	       "CREATE TABLE \"others\" (\"share\");\nCOMMIT;\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__text_is_aligned_and_painted),
		cmocka_unit_test(table__csv_has_raw_values_quoted_names_and_one_table),
		cmocka_unit_test(table__json_has_facts_and_arrays),
		cmocka_unit_test(table__markdown_escapes_what_it_would_read),
		cmocka_unit_test(table__sql_makes_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
