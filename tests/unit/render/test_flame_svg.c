/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "render_fixture.h"

#define DEEP 100000U

struct node {
	uint32_t parent;
	int64_t total, self;
	const char *name, *file, *module;
	uint32_t line;
	enum frame_class class;
};

/* main -> { load (300 ms), work (600 ms) -> "<lambda> & friends" (500 ms) }; 1 s in all. */
static const struct node small[] = {
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
	 .class = FRAME_CLASS_NATIVE},
	{.parent = 1,
	 .total = 600000000,
	 .self = 100000000,
	 .name = "work",
	 .file = "/srv/a.py",
	 .line = 9},
	{.parent = 3, .total = 500000000, .self = 500000000, .name = "<lambda> & friends"},
};

static uint32_t string_of(struct fixture *f, const char *text)
{
	return text ? id(f, text) : 0;
}

/* Draws nodes, each with code of its own. */
static char *drawn(const struct node *nodes, uint32_t count)
{
	struct flame_node *node = calloc(count, sizeof(*node));
	struct code *code = calloc(count, sizeof(*code));
	struct flame_tree tree = {.node = node, .node_count = count, .options.value_index = 1};
	struct fixture f = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fixture_init(&f);
	tree.profile = f.profile;
	tree.code = (struct code_table){.profile = f.profile, .code = code, .count = count};
	for (uint32_t i = 0; i < count; i++) {
		node[i] = (struct flame_node){.frame = i,
					      .parent = nodes[i].parent,
					      .self = nodes[i].self,
					      .total = nodes[i].total};
		code[i] = (struct code){.name = string_of(&f, nodes[i].name),
					.file = string_of(&f, nodes[i].file),
					.module = string_of(&f, nodes[i].module),
					.line = nodes[i].line,
					.class = nodes[i].class};
	}
	assert_int_equal(flame_svg_write(out, &tree, "a <b> & c"), 0);
	fclose(out);
	fixture_release(&f);
	free(node);
	free(code);
	return text;
}

/* The root's sum has overflowed. */
static void flame_svg_write__box_is_no_wider_than_the_picture(void **state)
{
	static const struct node nodes[] = {{.total = 1}, {.total = INT64_MAX, .name = "wide"}};
	char *svg = drawn(nodes, 2);

	(void)state;
	assert_non_null(strstr(svg, "width=\"1199.50\""));
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
		     "<rect class=\"p3\" x=\"10.00\" y=\"63\" width=\"719.50\" height=\"16\"/>"));
	assert_non_null(strstr(svg, " x=\"730.00\" y=\"63\" width=\"359.50\""));
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
	static const struct node nodes[] = {
		{.total = 120},
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
	static const struct node empty[] = {{.total = 0}};
	char *svg = drawn(empty, 1);

	(void)state;
	assert_null(strstr(svg, "<rect"));
	assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
	free(svg);
}

static void flame_svg_write__deep_recursion_is_cut_and_told(void **state)
{
	struct node *nodes = calloc(DEEP, sizeof(*nodes));
	char *svg;

	(void)state;
	for (uint32_t i = 0; i < DEEP; i++)
		nodes[i] = (struct node){.parent = i ? i - 1 : 0, .total = 100, .name = "f"};
	svg = drawn(nodes, DEEP);
	assert_non_null(strstr(svg, "the deepest frames are left out"));
	assert_true(strlen(svg) < 200000);
	free(svg);
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flame_svg_write__box_is_no_wider_than_the_picture),
		cmocka_unit_test(flame_svg_write__heavy_children_lie_left),
		cmocka_unit_test(flame_svg_write__flame_grows_upward),
		cmocka_unit_test(flame_svg_write__names_are_text_and_cut),
		cmocka_unit_test(flame_svg_write__nothing_is_a_picture_too),
		cmocka_unit_test(flame_svg_write__deep_recursion_is_cut_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
