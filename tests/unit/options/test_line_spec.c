/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/values.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "file|name", or why not. */
static const char *parsed(const char *text)
{
	static char result[2 * PP_LINE_FILE_BYTES];
	char why[LINE_SPEC_WHY_BYTES] = "";
	struct pp_line_target target;

	if (line_spec_parse(text, &target, why)) {
		snprintf(result, sizeof(result), "%s", why);
		return result;
	}
	assert_int_equal(target.file_bytes, strlen(target.file));
	assert_int_equal(target.name_bytes, strlen(target.name));
	snprintf(result, sizeof(result), "%s|%s", target.file, target.name);
	return result;
}

static void line_spec_parse__file_and_function(void **state)
{
	(void)state;
	assert_string_equal(parsed("train.py:step"), "train.py|step");
	assert_string_equal(parsed("train.py"), "train.py|");
	assert_string_equal(parsed("./pkg/train.py:step"), "pkg/train.py|step");
	assert_string_equal(parsed("/app/pkg/train.py:step"), "/app/pkg/train.py|step");
	assert_string_equal(parsed("<frozen importlib._bootstrap>:_load"),
			    "<frozen importlib._bootstrap>|_load");
}

/* The interpreter's probe does not tell what a function is inside of. */
static void line_spec_parse__name_without_class_and_function_around(void **state)
{
	(void)state;
	assert_string_equal(parsed("train.py:Model.step"), "train.py|step");
	assert_string_equal(parsed("train.py:main.<locals>.inner"), "train.py|inner");
	assert_string_equal(parsed("train.py:<lambda>"), "train.py|<lambda>");
}

static void line_spec_parse__colon_in_a_path_is_none(void **state)
{
	(void)state;
	assert_string_equal(parsed("/srv/a:b/train.py"), "/srv/a:b/train.py|");
	assert_string_equal(parsed("/srv/a:b/train.py:f"), "/srv/a:b/train.py|f");
}

static void line_spec_parse__says_what_is_missing(void **state)
{
	char longest[PP_LINE_FILE_BYTES + 8];

	(void)state;
	assert_non_null(strstr(parsed(""), "names no file"));
	assert_non_null(strstr(parsed(":f"), "names no file"));
	assert_non_null(strstr(parsed("./"), "names no file"));
	assert_non_null(strstr(parsed("a.py:"), "names no function"));
	assert_non_null(strstr(parsed("a.py:Model."), "names no function"));
	memset(longest, 'x', sizeof(longest));
	longest[PP_LINE_FILE_BYTES] = '\0';
	assert_non_null(strstr(parsed(longest), "too long a path"));
	longest[PP_LINE_FILE_BYTES - 1] = '\0';
	assert_int_equal(strlen(parsed(longest)), PP_LINE_FILE_BYTES);
	longest[0] = 'a';
	longest[1] = ':';
	assert_non_null(strstr(parsed(longest), "more than 127 bytes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_spec_parse__file_and_function),
		cmocka_unit_test(line_spec_parse__name_without_class_and_function_around),
		cmocka_unit_test(line_spec_parse__colon_in_a_path_is_none),
		cmocka_unit_test(line_spec_parse__says_what_is_missing),
	};

	return cmocka_run_group_tests_name("options/line_spec", tests, NULL, NULL);
}
