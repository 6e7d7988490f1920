/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* stderr as a file that can be read back. */
struct capture {
	FILE *file;
	int before;
	char text[8192];
};

static void begin(struct capture *capture)
{
	capture->file = tmpfile();
	assert_non_null(capture->file);
	fflush(stderr);
	capture->before = dup(STDERR_FILENO);
	assert_true(capture->before >= 0);
	assert_int_equal(dup2(fileno(capture->file), STDERR_FILENO), STDERR_FILENO);
}

/* A program whose stderr is the journal has its DEVICE:INODE in $JOURNAL_STREAM. */
static void name_the_journal(void)
{
	struct stat stat;
	char text[64];

	assert_int_equal(fstat(STDERR_FILENO, &stat), 0);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)stat.st_dev,
		 (unsigned long long)stat.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
}

static const char *end(struct capture *capture)
{
	size_t size;

	fflush(stderr);
	assert_int_equal(dup2(capture->before, STDERR_FILENO), STDERR_FILENO);
	close(capture->before);
	unsetenv("JOURNAL_STREAM");
	rewind(capture->file);
	size = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
	capture->text[size] = '\0';
	fclose(capture->file);
	return capture->text;
}

static void log_warn__name_with_control_codes_and_one_line_without_them(void **state)
{
	struct capture capture = {};

	(void)state;
	begin(&capture);
	log_warn("process %d (%.16s): x", 7,
		 "\033[2Ja\r\xe2\x80\xae"
		 "b");
	assert_string_equal(end(&capture), "pyprofd: process 7 (\\x1b[2Ja\\r\\u202eb): x\n");
}

static void log_info__name_with_a_forged_priority_and_the_journal_sees_one_line(void **state)
{
	struct capture capture = {};

	(void)state;
	begin(&capture);
	name_the_journal();
	log_info("process (%s)", "a\n<3>b");
	assert_string_equal(end(&capture), "<6>pyprofd: process (a\\n<3>b)\n");
}

static void log_warn_errno__text_and_the_error_follows_it(void **state)
{
	struct capture capture = {};

	(void)state;
	begin(&capture);
	assert_int_equal(log_warn_errno(-ENOENT, "no '%s'",
					"gr\xc3\xbc"
					"n"),
			 -ENOENT);
	assert_string_equal(end(&capture), "pyprofd: no 'gr\xc3\xbc"
					   "n': No such file or directory\n");
}

/* The longest message, of bytes that grow most. */
static void log_warn__long_text_and_it_is_cut(void **state)
{
	struct capture capture = {};
	char text[2048];

	(void)state;
	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	begin(&capture);
	log_warn("%s", text);
	assert_int_equal(strlen(end(&capture)), strlen("pyprofd: \n") + 1023 * strlen("\\x01"));
}

static void log_debug__default_level_and_it_is_dropped(void **state)
{
	struct capture capture = {};

	(void)state;
	begin(&capture);
	log_debug("x");
	assert_string_equal(end(&capture), "");
	begin(&capture);
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("x");
	log_set_level(LOG_LEVEL_INFO);
	assert_string_equal(end(&capture), "pyprofd: x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_warn__name_with_control_codes_and_one_line_without_them),
		cmocka_unit_test(
			log_info__name_with_a_forged_priority_and_the_journal_sees_one_line),
		cmocka_unit_test(log_warn_errno__text_and_the_error_follows_it),
		cmocka_unit_test(log_warn__long_text_and_it_is_cut),
		cmocka_unit_test(log_debug__default_level_and_it_is_dropped),
	};

	return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
