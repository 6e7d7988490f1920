/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_svg.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* main -> { load (300 ms), work (600 ms) -> "<lambda> & friends" (500 ms) }; 1 s in all. */
static const struct flame_svg_node small[] = {
	{.total = 1000000000},
	{.parent = 0,
	 .total = 1000000000,
	 .self = 100000000,
	 .name = "main",
	 .file = "/srv/a.py",
	 .line = 3},
	{.parent = 1,
	 .total = 300000000,
	 .self = 300000000,
	 .name = "load",
	 .module = "libc.so.6",
	 .kind = FLAME_SVG_NATIVE},
	{.parent = 1,
	 .total = 600000000,
	 .self = 100000000,
	 .name = "work",
	 .file = "/srv/a.py",
	 .line = 9},
	{.parent = 3, .total = 500000000, .self = 500000000, .name = "<lambda> & friends"},
};

static void give(void *arg, uint32_t number, struct flame_svg_node *ret_node)
{
	*ret_node = ((const struct flame_svg_node *)arg)[number];
}

static char *drawn(const struct flame_svg_node *nodes, uint32_t count)
{
	const struct flame_svg svg = {.title = "a <b> & c",
				      .unit = "nanoseconds",
				      .node_count = count,
				      .width_px = 1000,
				      .node = give,
				      .arg = (void *)nodes};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(flame_svg_write(out, &svg), 0);
	fclose(out);
	return text;
}

/* Beside one of a negative value: the root's value is what is left of both. */
static void flame_svg_write__box_is_no_wider_than_the_picture(void **state)
{
	static const struct flame_svg_node nodes[] = {{.total = 1},
						      {.total = UINT64_MAX, .name = "wide"}};
	char *svg = drawn(nodes, 2);

	(void)state;
	assert_non_null(strstr(svg, "width=\"999.50\""));
	assert_non_null(strstr(svg, ">wide</text>"));
	free(svg);
}

static void flame_svg_write__heavy_children_lie_left(void **state)
{
	char *svg = drawn(small, 5);

	(void)state;
	/* Rows of 17 px from 46 on; `work` before `load` though it comes later. */
	assert_non_null(strstr(
		svg, "<title>work\n/srv/a.py:9\ntotal 600 ms (60.00%), self 100 ms (10.00%)</title>"
		     "<rect class=\"p3\" x=\"10.00\" y=\"63\" width=\"599.50\" height=\"16\"/>"));
	assert_non_null(strstr(svg, " x=\"610.00\" y=\"63\" width=\"299.50\""));
	assert_non_null(strstr(
		svg, "<title>load\nlibc.so.6\ntotal 300 ms (30.00%), self 300 ms (30.00%)</title>"
		     "<rect class=\"n"));
	free(svg);
}

static void flame_svg_write__flame_grows_upward(void **state)
{
	char *svg = drawn(small, 5);

	(void)state;
	/* Four rows: the root in the last one, at 46 + 3 * 17. */
	assert_non_null(strstr(svg, "<title>all\ntotal 1.00 s (100.00%), self 0 ns (0.00%)</title>"
				    "<rect class=\"o0\" x=\"10.00\" y=\"97\""));
	free(svg);
}

static void flame_svg_write__names_are_text_and_cut(void **state)
{
	static const struct flame_svg_node nodes[] = {
		{.total = 100},
		{.parent = 0, .total = 10, .name = "größenwahnsinnige_funktion"},
		{.parent = 0, .total = 2, .name = "xy"},
		{.parent = 0, .total = 1, .name = "narrow"},
	};
	char *svg = drawn(small, 5);

	(void)state;
	assert_non_null(strstr(svg, ">&lt;lambda&gt; &amp; friends</text>"));
	assert_non_null(strstr(svg, "<title id=\"title\">a &lt;b&gt; &amp; c</title>"));
	assert_null(strstr(svg, "<script"));
	free(svg);
	svg = drawn(nodes, 4);
	/* (100 px - 6) / (11 px * 0.62) = 13 letters. */
	assert_true(strstr(svg, ">größenwahnsi…</text>") || strstr(svg, ">größenwahnsin…</text>") ||
		    strstr(svg, ">größenwahns…</text>"));
	assert_non_null(strstr(svg, ">xy</text>"));
	assert_null(strstr(svg, ">na…</text>"));
	assert_non_null(strstr(svg, "<title>narrow\n"));
	free(svg);
}

static void flame_svg_write__nothing_is_a_picture_too(void **state)
{
	static const struct flame_svg_node empty[] = {{.total = 0}};
	char *svg = drawn(empty, 1);

	(void)state;
	assert_null(strstr(svg, "<rect"));
	assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
	free(svg);
	svg = drawn(empty, 0);
	assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
	free(svg);
}

static void flame_svg_write__parent_after_child_is_refused(void **state)
{
	static const struct flame_svg_node nodes[] = {{.total = 2}, {.parent = 1, .total = 1}};
	const struct flame_svg svg = {
		.title = "", .unit = "", .node_count = 2, .node = give, .arg = (void *)nodes};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(flame_svg_write(out, &svg), -EINVAL);
	fclose(out);
	free(text);
}

static void chain(void *arg, uint32_t number, struct flame_svg_node *ret_node)
{
	(void)arg;
	*ret_node = (struct flame_svg_node){
		.parent = number ? number - 1 : 0, .total = 100, .name = "f"};
}

static void flame_svg_write__deep_recursion_is_cut_and_told(void **state)
{
	const struct flame_svg svg = {
		.title = "deep", .unit = "count", .node_count = 100000, .node = chain};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(flame_svg_write(out, &svg), 0);
	fclose(out);
	assert_non_null(strstr(text, "the deepest frames are left out"));
	assert_true(size < 200000);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flame_svg_write__box_is_no_wider_than_the_picture),
		cmocka_unit_test(flame_svg_write__heavy_children_lie_left),
		cmocka_unit_test(flame_svg_write__flame_grows_upward),
		cmocka_unit_test(flame_svg_write__names_are_text_and_cut),
		cmocka_unit_test(flame_svg_write__nothing_is_a_picture_too),
		cmocka_unit_test(flame_svg_write__parent_after_child_is_refused),
		cmocka_unit_test(flame_svg_write__deep_recursion_is_cut_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
