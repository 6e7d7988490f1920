/* SPDX-License-Identifier: BSD-2-Clause */
#include "render_fixture.h"

#include <malloc.h>

#include "export/exports.h"
#include "render/flame_html.h"

static uint32_t child(const struct flame_tree *tree, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < tree->node_count; i++)
		if (tree->node[i].parent == parent &&
		    !strcmp(code_text(&tree->code, tree->code.code[tree->node[i].frame].name),
			    name))
			return i;
	fail_msg("no node %s", name);
	return 0;
}

static void flame_tree__totals_add_up_to_the_root(void **state)
{
	const struct flame_options options = {.value_index = 1};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	CLEANUP(grouped_release) struct grouped children = {0};
	uint32_t top;

	(void)state;
	fixture_init(&f);
	add(&f, "main;a", 2, 0);
	add(&f, "main;b;a", 5, 0);
	add(&f, "main", 1, 0);
	assert_int_equal(flame_tree_new(f.profile, &options, &tree), 0);
	assert_int_equal(tree->node[0].total, 80);
	top = child(tree, 0, "main");
	assert_int_equal(tree->node[top].self, 10);
	assert_int_equal(tree->node[child(tree, top, "b")].total, 50);
	for (uint32_t i = 1; i < tree->node_count; i++)
		assert_true(tree->node[i].parent < i);
	assert_int_equal(flame_tree_children(tree, &children), 0);
	assert_int_equal(children.first[top + 1] - children.first[top], 2);
	assert_int_equal(children.item[children.first[top]], child(tree, top, "b"));
}

/* A difference: main;a has lost 50, main;b gained 40, and what is left of both is -10. */
static void flame_tree__of_both_signs_hides_nothing(void **state)
{
	const struct flame_options options = {.value_index = 1};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	CLEANUP(grouped_release) struct grouped children = {0};
	OWNED_MEM char *svg = NULL;
	uint32_t top;
	size_t size;
	FILE *out;

	(void)state;
	fixture_init(&f);
	add(&f, "main;b", 4, 0);
	add(&f, "main;a", -5, 0);
	f.profile->signs = (struct profile_signs){.all = 90, .base = 80, .has_negative = true};
	assert_int_equal(flame_tree_new(f.profile, &options, &tree), 0);
	top = child(tree, 0, "main");
	assert_int_equal(tree->node[top].total, -10);
	assert_int_equal(flame_tree_weight(tree, top), 90);
	assert_int_equal(flame_tree_whole(tree), 80);
	assert_int_equal(flame_tree_children(tree, &children), 0);
	assert_int_equal(children.item[children.first[top]], child(tree, top, "a"));
	out = open_memstream(&svg, &size);
	assert_int_equal(flame_svg_write(out, tree, "title"), 0);
	fclose(out);
	assert_non_null(strstr(svg, "total -50.0 ns (-62.50%), self -50.0 ns (-62.50%)"));
	assert_non_null(strstr(svg, "total 40.0 ns (50.00%)"));
	assert_non_null(strstr(svg, "-10.0 ns; widths are of both signs"));
}

static void flame_tree__groups_can_be_taken_alone(void **state)
{
	const struct flame_options options = {.value_index = 1,
					      .group_by = {.keys = GROUP_BY_PROCESS}};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;

	(void)state;
	fixture_init(&f);
	add(&f, "main;a", 2, 7);
	add(&f, "main;a", 5, 8);
	assert_int_equal(flame_tree_new(f.profile, &options, &tree), 0);
	assert_int_equal(tree->groups.count, 2);
	assert_int_equal(tree->sample_count, 2);
	assert_int_equal(tree->node_count, 3);
	assert_int_equal(tree->sample[1].group, 1);
	assert_int_equal(tree->sample[1].value, 50);
}

#define LONG_STACKS 200U
#define LONG_FRAMES 1000U

/* Stacks of many frames have more nodes than their file has bytes: 24 bytes each are all that stays
 * of them. */
static void flame_tree__of_long_stacks_has_nothing_beside_its_nodes(void **state)
{
	const struct flame_options options = {.value_index = 1};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	uint32_t location[LONG_FRAMES], random = 1, stack, row;
	int64_t value[] = {1, PERIOD};
	struct mallinfo2 before, after;

	(void)state;
	fixture_init(&f);
	add(&f, "a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p", 1, 0);
	for (uint32_t i = 0; i < LONG_STACKS; i++) {
		for (uint32_t at = 0; at < LONG_FRAMES; at++) {
			random = random * 1664525 + 1013904223;
			location[at] = random >> 28;
		}
		assert_int_equal(profile_add_stack(f.profile, location, LONG_FRAMES, &stack), 0);
		assert_int_equal(profile_add_row(f.profile, stack, 0, value, &row), 0);
	}
	before = mallinfo2();
	assert_int_equal(flame_tree_new(f.profile, &options, &tree), 0);
	after = mallinfo2();
	assert_true(tree->node_count > LONG_STACKS * (LONG_FRAMES - 20));
	assert_true(after.uordblks + after.hblkhd <
		    before.uordblks + before.hblkhd +
			    tree->node_capacity * sizeof(struct flame_node) + (1 << 20));
	assert_int_equal(tree->node[0].total, (LONG_STACKS + 1) * PERIOD);
}

static void flame_json__escapes_what_would_end_a_script(void **state)
{
	const struct flame_options options = {.value_index = 1};
	const struct flame_json_facts facts = {.title = "a\"b</script>"};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(flame_tree) struct flame_tree *tree = NULL;
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out;

	(void)state;
	fixture_init(&f);
	add(&f, "<module>;a", 2, 0);
	assert_int_equal(flame_tree_new(f.profile, &options, &tree), 0);
	out = open_memstream(&text, &size);
	assert_int_equal(flame_json_write(tree, &facts, out), 0);
	fclose(out);
	assert_null(strchr(text, '<'));
	assert_non_null(strstr(text, "\"title\":\"a\\\"b\\u003c/script>\""));
	assert_non_null(strstr(text, "\"frame\":[0,0,1]"));
	assert_non_null(strstr(text, "\"parent\":[0,0,1]"));
	assert_non_null(strstr(text, "\"value\":[20]"));
}

static void call_graph__recursion_counts_once(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(call_graph) struct call_graph *graph = NULL;
	bool found = false;

	(void)state;
	fixture_init(&f);
	add(&f, "main;fib;fib;fib", 3, 0);
	add(&f, "main;fib", 1, 0);
	assert_int_equal(call_graph_new(f.profile, 1, 0, &(struct grouping){0}, &graph), 0);
	assert_int_equal(graph->total, 40);
	assert_int_equal(graph->edge_count, 2);
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct call_edge *edge = &graph->edge[i];

		if (edge->caller != edge->callee)
			continue;
		found = true;
		assert_int_equal(edge->sums.total, 30);
		assert_int_equal(edge->sums.self, 30);
		assert_int_equal(edge->sums.total_samples, 3);
		assert_int_equal(graph->function[edge->callee].sums.total, 40);
	}
	assert_true(found);
}

/* "30/10": calls, and those that come from outside of the function. */
static void call_graph__calls_and_primitive_ones_are_told_apart(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(call_graph) struct call_graph *graph = NULL;
	const struct call_function *fib;

	(void)state;
	fixture_init(&f);
	add(&f, "main", 1, 0);
	add(&f, "main;fib", 2, 0);
	add(&f, "main;fib;fib", 3, 0);
	add(&f, "main;fib;fib;fib", 5, 0);
	add(&f, "main;fib;other;fib", 7, 0);
	assert_int_equal(call_graph_new(f.profile, 1, 0, &(struct grouping){0}, &graph), 0);
	assert_string_equal(code_text(&graph->code, graph->code.code[1].name), "fib");
	fib = &graph->function[1];
	assert_int_equal(fib->sums.self_samples, 17);
	assert_int_equal(fib->sums.outer_samples, 2);
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct call_edge *edge = &graph->edge[i];

		if (edge->callee == 1 && edge->caller == 0)
			assert_int_equal(edge->sums.outer_samples, 2);
		/* The pair itself is deeper in one of them. */
		if (edge->callee == 1 && edge->caller == 1) {
			assert_int_equal(edge->sums.self_samples, 8);
			assert_int_equal(edge->sums.outer_samples, 3);
		}
	}
}

static void call_graph_calls_index__is_that_of_exact_calls(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	assert_int_equal(call_graph_calls_index(f.profile), -ENOENT);
	f.profile->options.value_type[0].type = "calls";
	assert_int_equal(call_graph_calls_index(f.profile), 0);
	f.profile->options.value_type[0].unit = "bytes";
	assert_int_equal(call_graph_calls_index(f.profile), -ENOENT);
}

static void pstats__begins_as_a_dict_that_says_what_it_is(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(call_graph) struct call_graph *graph = NULL;
	OWNED_MEM char *bytes = NULL;
	size_t size;
	FILE *out;

	(void)state;
	fixture_init(&f);
	add(&f, "main", 1, 0);
	assert_int_equal(call_graph_new(f.profile, 1, 0, &(struct grouping){0}, &graph), 0);
	out = open_memstream(&bytes, &size);
	assert_int_equal(call_graph_write_pstats(graph, 1e-9, false, out), 0);
	fclose(out);
	assert_memory_equal(bytes, "{(\3\0\0\0u\1\0\0\0~i\0\0\0\0u", 17);
	assert_non_null(memmem(bytes, size, "sampled", 7));
	assert_int_equal(bytes[size - 1], '0');
}

static void pstats__exact_calls_are_written_as_such(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(call_graph) struct call_graph *graph = NULL;
	OWNED_MEM char *bytes = NULL;
	size_t size;
	FILE *out;

	(void)state;
	fixture_init(&f);
	add(&f, "fib", 2, 0);
	add(&f, "fib;fib", 3, 0);
	assert_int_equal(call_graph_new(f.profile, 1, 0, &(struct grouping){0}, &graph), 0);
	out = open_memstream(&bytes, &size);
	assert_int_equal(call_graph_write_pstats(graph, 1e-9, true, out), 0);
	fclose(out);
	assert_null(memmem(bytes, size, "sampled", 7));
	/* Two primitive ones of five; by its caller, itself, three of three. */
	assert_non_null(memmem(bytes, size, "(\5\0\0\0i\2\0\0\0i\5\0\0\0g", 16));
	assert_non_null(memmem(bytes, size, "(\4\0\0\0i\3\0\0\0i\3\0\0\0g", 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flame_tree__totals_add_up_to_the_root),
		cmocka_unit_test(flame_tree__of_both_signs_hides_nothing),
		cmocka_unit_test(flame_tree__groups_can_be_taken_alone),
		cmocka_unit_test(flame_tree__of_long_stacks_has_nothing_beside_its_nodes),
		cmocka_unit_test(flame_json__escapes_what_would_end_a_script),
		cmocka_unit_test(call_graph__recursion_counts_once),
		cmocka_unit_test(call_graph__calls_and_primitive_ones_are_told_apart),
		cmocka_unit_test(call_graph_calls_index__is_that_of_exact_calls),
		cmocka_unit_test(pstats__begins_as_a_dict_that_says_what_it_is),
		cmocka_unit_test(pstats__exact_calls_are_written_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
