/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof tree: the call tree in the terminal, hottest first. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/flame_tree.h"
#include "render/format.h"

#define DEFAULT_MIN_SHARE 0.01
#define MAX_DEPTH 1000U /* of lines in a terminal */

#define TREE_FIGURES_COLUMNS 19U
#define TREE_SELF_COLUMNS 14U

struct tree {
	struct select_options shared;
	double min_share;
	unsigned long depth; /* 0: all */
	unsigned int by;     /* in what[] */
};

enum { BY_FUNCTION, BY_LINE };
static const char *const what[] = {[BY_FUNCTION] = "function", [BY_LINE] = "line", NULL};

static const struct verb_option options[] = {
	{"min", 'm', "PERCENT", "Leave out calls below this share of all time.  Default: 1", 1,
	 OPTION_SHARE, .at = offsetof(struct tree, min_share)},
	{"depth", 'd', "N", "Show N levels; 0: all, the default", 1, OPTION_NUMBER,
	 .at = offsetof(struct tree, depth)},
	{"by", 'b', "WHAT", "What a call is of: function (default), or line", 1, OPTION_WORD,
	 .at = offsetof(struct tree, by), .words = what},
	{}};

static const char doc[] = "Shows the call tree, hottest first.  A chain of calls that all take the "
			  "same is one line after the other, without a step to the right."
			  "\vExamples:\n"
			  "  pyprof tree cpu.pb.gz --python\n"
			  "  pyprof tree /var/lib/pyprofd --since 10m --group-by process --min 5\n"
			  "  sudo pyprof tree --live --pid 1234\n";

/* ---- printing ---- */

/* The state of the walk at one node whose children are being shown. */
struct level {
	uint32_t next, end; /* in child[] */
	bool indents;	    /* its children are indented further */
};

struct walk {
	const struct tree *options;
	const struct flame_tree *flame;
	struct grouped children; /* borrowed */
	const char *unit;
	struct level level[MAX_DEPTH];
	unsigned int depth;
	bool color;
};

static double share_of(const struct walk *walk, int64_t value)
{
	const int64_t whole = flame_tree_whole(walk->flame);

	return whole ? (double)value / (double)whole : 0;
}

/* Returns how many children are shown: they are sorted, so the others are at the end. */
static uint32_t shown_children(const struct walk *walk, uint32_t node)
{
	const uint32_t *first = &walk->children.first[node];
	uint32_t at = first[0];

	while (at < first[1] &&
	       share_of(walk, flame_tree_weight(walk->flame, walk->children.item[at])) >=
		       walk->options->min_share)
		at++;
	return at - first[0];
}

static void print_bars(const struct walk *walk, bool is_last)
{
	for (unsigned int i = 0; i + 1 < walk->depth; i++)
		if (walk->level[i].indents)
			fputs(walk->level[i].next < walk->level[i].end ? "│ " : "  ", stdout);
	if (walk->level[walk->depth - 1].indents)
		fputs(is_last ? "└─" : "├─", stdout);
}

static void print_node(const struct walk *walk, uint32_t node_index, bool is_last)
{
	const struct flame_node *node = &walk->flame->node[node_index];
	const struct code_table *table = &walk->flame->code;
	const struct code *code = &table->code[node->frame];
	double share = share_of(walk, node->total), self = share_of(walk, node->self);
	bool has_self = fabs(self) >= walk->options->min_share && node->self != node->total;
	unsigned int bars = 0;
	char text[FORMAT_BYTES];

	printf("%s%6.1f %%%s %9s ", text_color(walk->color, text_color_of_share(share)),
	       share * 100, text_color(walk->color, TEXT_PLAIN),
	       format_value(node->total, walk->unit, text));
	print_bars(walk, is_last);
	for (unsigned int i = 0; i < walk->depth; i++)
		bars += walk->level[i].indents ? 2 : 0;
	text_code(stdout, table, code,
		  text_room(TREE_FIGURES_COLUMNS + bars + (has_self ? TREE_SELF_COLUMNS : 0)),
		  walk->color);
	if (has_self)
		printf("  self %.1f %%", self * 100);
	printf("\n");
}

static void enter(struct walk *walk, uint32_t node)
{
	uint32_t shown = shown_children(walk, node);

	if (!shown || walk->depth == MAX_DEPTH ||
	    (walk->options->depth && walk->depth >= walk->options->depth))
		return;
	walk->level[walk->depth++] = (struct level){.next = walk->children.first[node],
						    .end = walk->children.first[node] + shown,
						    .indents = shown > 1};
}

static void print_tree(struct walk *walk)
{
	enter(walk, 0);
	while (walk->depth) {
		struct level *level = &walk->level[walk->depth - 1];
		uint32_t node;

		if (level->next == level->end) {
			walk->depth--;
			continue;
		}
		node = walk->children.item[level->next++];
		print_node(walk, node, level->next == level->end);
		enter(walk, node);
	}
}

static int print(const struct tree *tree, const struct input *input)
{
	struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	struct flame_options flame_options = {.value_index = value_index,
					      .lines = tree->by == BY_LINE,
					      .group_by = tree->shared.select.group_by,
					      .group_frames = tree->shared.select.group_by.keys};
	OWNED(flame_tree) struct flame_tree *flame = NULL;
	CLEANUP(grouped_release) struct grouped children = {0};
	OWNED_MEM struct walk *walk = calloc(1, sizeof(*walk));
	int err = walk ? flame_tree_new(profile, &flame_options, &flame) : -ENOMEM;

	if (!err)
		err = flame_tree_children(flame, &children);
	if (err)
		return err;
	*walk = (struct walk){.options = tree,
			      .flame = flame,
			      .children = children,
			      .unit = input_value_type(input)->unit,
			      .color = text_wants_color()};
	flame->code.short_paths = input_short_paths(input);
	text_head(stdout, input);
	print_tree(walk);
	return 0;
}

static int run(struct tree *tree)
{
	struct input_options input_options = {.select = &tree->shared.select,
					      .keep_labels = input_no_labels,
					      .drop_addresses = true,
					      .drop_lines = tree->by != BY_LINE};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);

	if (err)
		return err;
	err = print(tree, input);
	return err ? complain_of(input_title(input), err) : READER_OK;
}

int verb_tree(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc};
	struct tree tree = {.min_share = DEFAULT_MIN_SHARE};
	int status = select_parse(&args, argc, argv, &tree.shared) ?: run(&tree);

	select_release(&tree.shared.select);
	return status;
}
