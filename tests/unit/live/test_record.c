/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/record.h"

static char *written(const struct live_record *record)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	live_record_write(out, record);
	assert_int_equal(fclose(out), 0);
	assert_true(size < LIVE_LINE_BYTES);
	return text;
}

static int parse(const char *text, char line[256], struct live_record *ret_record)
{
	snprintf(line, 256, "%s", text);
	return live_record_parse(line, strlen(line), ret_record);
}

static void record__is_written_as_documented(void **state)
{
	struct live_record record = {.kind = LIVE_THREAD,
				     .number = {42, 3, LIVE_GIL_HELD, 1500},
				     .text = {"worker 1", "tcp socket"}};
	char *text = written(&record);

	(void)state;
	assert_string_equal(text, "thread\t42\t3\t1\t1500\tworker 1\ttcp socket\n");
	free(text);
}

static void record__any_text_comes_back(void **state)
{
	struct live_record record = {.kind = LIVE_FRAME,
				     .number = {LIVE_NATIVE, UINT64_MAX},
				     .text = {"a\tb\nc\\x41\x1b[2J\x7f", "\xc3\xa9\xff", NULL}};
	char *text = written(&record);
	struct live_record again;

	(void)state;
	assert_null(strpbrk(text, "\x1b\x7f"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_int_equal(live_record_parse(text, strlen(text) - 1, &again), 0);
	assert_int_equal(again.kind, LIVE_FRAME);
	assert_true(again.number[1] == UINT64_MAX);
	assert_string_equal(again.text[0], record.text[0]);
	assert_string_equal(again.text[1], record.text[1]);
	assert_string_equal(again.text[2], "");
	free(text);
}

static void record__long_texts_are_cut(void **state)
{
	char *name = malloc(100001), *text;
	struct live_record record = {.kind = LIVE_FRAME, .text = {name, name, name}}, again;

	(void)state;
	memset(name, '\n', 100000);
	name[100000] = '\0';
	text = written(&record);
	assert_int_equal(live_record_parse(text, strlen(text) - 1, &again), 0);
	assert_int_equal(strlen(again.text[0]), 5000);
	assert_int_equal(strlen(again.text[2]), 5000);
	free(text);
	/* The longest that is not cut, and one more. */
	for (size_t size = 4999; size <= 5001; size++) {
		name[size] = '\0';
		text = written(&record);
		assert_int_equal(live_record_parse(text, strlen(text) - 1, &again), 0);
		assert_int_equal(strlen(again.text[1]), size < 5000 ? size : 5000);
		name[size] = '\n';
		free(text);
	}
	free(name);
}

/* Each byte but NUL, alone: control characters and the backslash are escaped, all come back. */
static void record__each_byte_comes_back(void **state)
{
	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		const char name[2] = {(char)byte};
		struct live_record record = {.kind = LIVE_PROCESS, .text = {name}}, again;
		char *text = written(&record), escaped[8];
		bool is_plain = byte >= ' ' && byte != '\\' && byte != 0x7f;

		snprintf(escaped, sizeof(escaped), is_plain ? "%c\n" : "\\x%02x\n", byte);
		assert_string_equal(strrchr(text, '\t') + 1, escaped);
		assert_int_equal(live_record_parse(text, strlen(text) - 1, &again), 0);
		assert_string_equal(again.text[0], name);
		free(text);
	}
}

static void record__line_of_more_bytes_than_a_reader_keeps_is_refused(void **state)
{
	char *line = malloc(LIVE_LINE_BYTES + 1);
	struct live_record record;

	(void)state;
	assert_non_null(line);
	memset(line, 'a', LIVE_LINE_BYTES);
	memcpy(line, "error\t1\t", 8);
	assert_int_equal(live_record_parse(line, LIVE_LINE_BYTES, &record), -EBADMSG);
	assert_int_equal(live_record_parse(line, LIVE_LINE_BYTES - 1, &record), 0);
	assert_int_equal(strlen(record.text[0]), LIVE_LINE_BYTES - 1 - 8);
	free(line);
}

static void record__of_a_later_version(void **state)
{
	struct live_record record;
	char line[256];

	(void)state;
	assert_int_equal(parse("colour\tred", line, &record), -ENOENT);
	assert_int_equal(parse("", line, &record), -ENOENT);
	assert_int_equal(parse("stack\t1\t2\tand more", line, &record), 0);
	assert_int_equal(record.number[1], 2);
}

static void record__what_is_wrong_is_refused(void **state)
{
	static const char *const cases[] = {
		"stack",
		"stack\t1",
		"stack\t1\t",
		"stack\t1\t-2",
		"stack\t1\t0x2",
		"stack\t1\t18446744073709551616",
		"error\t1",
		"error\t1\tbad \\",
		"error\t1\tbad \\x",
		"error\t1\tbad \\x4",
		"error\t1\tbad \\x4g",
		"error\t1\tbad \\x00",
		"error\t1\tbad \\n",
		"stack\t1\t:",
		"stack\t1\t/",
		"stack\t1\t18446744073709551610 ",
		"stack\t1\t20000000000000000000",
		"stack\t1\t2 ",
		"error\t1\tbad \\xg4",
		"error\t1\tbad \\x4:",
		"error\t1\tbad \\x/4",
		"error\t1\tbad \\x4`",
		"error\t1\tbad \\y41",
	};
	struct live_record record = {.kind = LIVE_END};
	char line[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (parse(cases[i], line, &record) != -EBADMSG)
			fail_msg("'%s'", cases[i]);
		assert_int_equal(record.kind, LIVE_END);
	}
	memcpy(line, "end\t1\t2\t3\0\t4", 12);
	assert_int_equal(live_record_parse(line, 11, &record), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__is_written_as_documented),
		cmocka_unit_test(record__any_text_comes_back),
		cmocka_unit_test(record__long_texts_are_cut),
		cmocka_unit_test(record__each_byte_comes_back),
		cmocka_unit_test(record__line_of_more_bytes_than_a_reader_keeps_is_refused),
		cmocka_unit_test(record__of_a_later_version),
		cmocka_unit_test(record__what_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
