/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void assert_written(const char *text, size_t size, const char *wanted)
{
	char *written = NULL;
	size_t length;
	FILE *out = open_memstream(&written, &length);

	assert_int_equal(markup_write(out, text, size), 0);
	fclose(out);
	assert_string_equal(written, wanted);
	free(written);
}

static void markup_write__nothing_is_taken_for_markup(void **state)
{
	(void)state;
	assert_written("", 0, "");
	assert_written("std::map<int>::operator&&", 25, "std::map&lt;int&gt;::operator&amp;&amp;");
	assert_written("\"'", 2, "&quot;&#39;");
	assert_written("größe 🎉", strlen("größe 🎉"), "größe 🎉");
}

static void markup_write__what_xml_forbids_is_replaced(void **state)
{
	(void)state;
	assert_written("a\0b\x1b[31m", 8,
		       "a\\x00"
		       "b\\x1b[31m");
	assert_written("\xff<\xc3", 3, "\xef\xbf\xbd&lt;\xef\xbf\xbd");
	/* U+FFFE and U+FFFF; U+FFFD itself stays. */
	assert_written("x\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbdy", 11,
		       "x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markup_write__nothing_is_taken_for_markup),
		cmocka_unit_test(markup_write__what_xml_forbids_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
