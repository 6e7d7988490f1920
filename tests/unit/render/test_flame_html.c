/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The data in two parts, the second one byte by byte. */
static int write_text(FILE *data, void *arg)
{
	const char *text = arg;
	size_t half = strlen(text) / 2;

	fwrite(text, 1, half, data);
	for (text += half; *text; text++) {
		fputc(*text, data);
		fflush(data);
	}
	return 0;
}

static int refuse(FILE *data, void *arg)
{
	fputs("{", data);
	return *(int *)arg;
}

static char *page_of(const char *title, const char *json)
{
	char *page = NULL;
	size_t size;
	FILE *out = open_memstream(&page, &size);

	assert_non_null(out);
	assert_int_equal(flame_html_write(out, title, write_text, (void *)json), 0);
	fclose(out);
	assert_int_equal(strlen(page), size);
	return page;
}

static size_t count_of(const char *text, const char *wanted)
{
	size_t count = 0;

	for (; (text = strstr(text, wanted)); text++)
		count++;
	return count;
}

static void flame_html_write__hostile_names_stay_inside_of_the_data(void **state)
{
	const char *json = "{\"strings\":[\"</script><script>alert(1)</script>\",\"<!--<script\"]}";
	char *plain = page_of("t", "{}"), *page = page_of("t", json);

	(void)state;
	/* No tag more than a page without names has. */
	assert_int_equal(count_of(page, "<"), count_of(plain, "<"));
	assert_non_null(strstr(
		page, "{\"strings\":[\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\","
		      "\"\\u003c!--\\u003cscript\"]}"));
	free(plain);
	free(page);
}

static void flame_html_write__title_is_text(void **state)
{
	char *page = page_of("a</title><b>&\"'\x01\xff", "{}");

	(void)state;
	assert_non_null(strstr(page, "<title>a&lt;/title&gt;&lt;b&gt;&amp;&quot;&#39;"
				     "\\x01\xef\xbf\xbd</title>"));
	free(page);
}

static void flame_html_write__page_is_whole_and_needs_no_network(void **state)
{
	char *page = page_of("t", "{}");

	(void)state;
	assert_int_equal(strncmp(page, "<!doctype html>\n", 16), 0);
	assert_string_equal(page + strlen(page) - 8, "</html>\n");
	assert_null(strstr(page, "@TITLE@"));
	assert_null(strstr(page, "@DATA@"));
	assert_null(strstr(page, "@STYLE@"));
	assert_null(strstr(page, "@SCRIPT@"));
	assert_null(strstr(page, "\nimport "));
	assert_null(strstr(page, "\nexport "));
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_non_null(strstr(page, "default-src 'none'"));
	free(page);
}

static void flame_html_write__error_of_the_data_is_returned(void **state)
{
	char *page = NULL;
	size_t size;
	FILE *out = open_memstream(&page, &size);
	int err = -ENODATA;

	(void)state;
	assert_int_equal(flame_html_write(out, "t", refuse, &err), -ENODATA);
	fclose(out);
	free(page);
}

static void flame_html_write__full_disk_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	int err;

	(void)state;
	if (!full)
		skip();
	setvbuf(full, NULL, _IONBF, 0);
	err = flame_html_write(full, "t", write_text, (void *)"{\"a\":1}");
	assert_int_equal(err, -ENOSPC);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flame_html_write__hostile_names_stay_inside_of_the_data),
		cmocka_unit_test(flame_html_write__title_is_text),
		cmocka_unit_test(flame_html_write__page_is_whole_and_needs_no_network),
		cmocka_unit_test(flame_html_write__error_of_the_data_is_returned),
		cmocka_unit_test(flame_html_write__full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
