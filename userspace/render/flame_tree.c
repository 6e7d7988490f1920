/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/saturating.h"

void flame_tree_free(struct flame_tree *tree)
{
	if (!tree)
		return;
	code_table_release(&tree->code);
	groups_release(&tree->groups);
	index_table_release(&tree->sample_index);
	free(tree->node);
	free(tree->magnitude);
	free(tree->sample_of_row);
	free(tree->sample);
	free(tree);
}

/* ---- nodes ----
 * Stacks are sorted from their roots on, so that each begins with what it has in common with the
 * one before, and no index of nodes is needed: long stacks have many more nodes than all else. */

/* A row with a value, until it has its node. */
struct tree_row {
	uint32_t row, stack;
	uint32_t root; /* 1 + the code of its group; 0: groups are no frames */
};

struct building {
	struct flame_tree *tree;
	uint32_t *code;	      /* owned; by location of the profile */
	struct tree_row *row; /* owned */
	uint32_t row_count;
	uint32_t *path; /* owned: the nodes of the last stack, from the root's on */
};

static void building_release(struct building *building)
{
	free(building->code);
	free(building->row);
	free(building->path);
}

static int append_node(struct flame_tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	int err;

	if (tree->node_count == UINT32_MAX)
		return -E2BIG;
	err = ARRAY_RESERVE(tree->node, tree->node_count, tree->node_capacity);
	if (err)
		return err;
	*ret_node = tree->node_count;
	tree->node[tree->node_count++] = (struct flame_node){.frame = frame, .parent = parent};
	return 0;
}

/* Returns how many frames two stacks have in common, from the root on. */
static uint32_t common_frames(const struct building *building, const struct stack *a,
			      const struct stack *b)
{
	const uint32_t most = a->count < b->count ? a->count : b->count;
	uint32_t common = 0;

	while (common < most && building->code[a->location[a->count - 1 - common]] ==
					building->code[b->location[b->count - 1 - common]])
		common++;
	return common;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct building *building = context;
	const struct tree_row *a = left, *b = right;
	const struct stack *stack = building->tree->profile->stacks.stack;
	const struct stack *of_a = &stack[a->stack], *of_b = &stack[b->stack];
	uint32_t common;

	if (a->root != b->root || a->stack == b->stack)
		return ORDER(a->root, b->root);
	common = common_frames(building, of_a, of_b);
	if (common == of_a->count || common == of_b->count)
		return ORDER(of_a->count, of_b->count);
	return ORDER(building->code[of_a->location[of_a->count - 1 - common]],
		     building->code[of_b->location[of_b->count - 1 - common]]);
}

/* Goes on from the node at path[from] to the leaf of a stack. */
static int append_path(struct building *building, const struct stack *stack, uint32_t from)
{
	int err = 0;

	for (uint32_t i = from; i < stack->count && !err; i++)
		err = append_node(building->tree, building->path[i],
				  building->code[stack->location[stack->count - 1 - i]],
				  &building->path[i + 1]);
	return err;
}

/* Makes the nodes, and puts each row's into ret_node[]. */
static int append_nodes(struct building *building, uint32_t *ret_node)
{
	const struct stack *stack = building->tree->profile->stacks.stack;
	const struct tree_row *before = NULL;
	int err = 0;

	for (uint32_t i = 0; i < building->row_count && !err; i++) {
		const struct tree_row *row = &building->row[i];
		const bool is_new = !before || before->root != row->root;
		const uint32_t common =
			is_new ? 0
			       : common_frames(building, &stack[before->stack], &stack[row->stack]);

		building->path[0] = is_new ? 0 : building->path[0];
		if (is_new && row->root)
			err = append_node(building->tree, 0, row->root - 1, &building->path[0]);
		if (!err)
			err = append_path(building, &stack[row->stack], common);
		ret_node[row->row] = building->path[stack[row->stack].count];
		before = row;
	}
	return err;
}

/* Finds the code of a group, which is a frame below the root. */
static int group_root(struct flame_tree *tree, uint32_t label_set, uint32_t *ret_root)
{
	struct code code = {.class = FRAME_CLASS_OTHER};
	uint32_t group;
	int err = groups_of_set(&tree->groups, label_set, &group);

	if (err)
		return err;
	code.name = tree->groups.group[group].label;
	err = code_table_add(&tree->code, &code, ret_root);
	++*ret_root;
	return err;
}

static int take_codes(struct building *building, const struct stack *stack)
{
	int err = 0;

	for (uint32_t i = stack->count; i-- > 0 && !err;)
		err = code_table_of_location(&building->tree->code, stack->location[i],
					     &building->code[stack->location[i]]);
	return err;
}

/* ---- samples ---- */

static bool sample_equal(const void *context, uint32_t index, const void *key)
{
	const struct flame_tree *tree = context;
	const struct flame_sample *a = &tree->sample[index], *b = key;

	return a->node == b->node && a->group == b->group;
}

static int add_sample(struct flame_tree *tree, const struct flame_sample *sample,
		      uint32_t *ret_sample)
{
	uint64_t mixed = (uint64_t)sample->group << 32 | sample->node;
	uint32_t hash = (uint32_t)XXH3_64bits(&mixed, sizeof(mixed)), at;
	int err;

	if (index_table_find(&tree->sample_index, hash, sample_equal, tree, sample, &at)) {
		tree->sample[at].value = add_saturating(tree->sample[at].value, sample->value);
		tree->sample[at].base = add_saturating(tree->sample[at].base, sample->base);
		*ret_sample = at;
		return 0;
	}
	err = INDEX_RESERVE(&tree->sample_index, hash, tree->sample, tree->sample_count,
			    tree->sample_capacity);
	if (err)
		return err;
	*ret_sample = tree->sample_count;
	tree->sample[tree->sample_count++] = *sample;
	return 0;
}

static struct flame_sample values_of(const struct flame_tree *tree, uint32_t row)
{
	const struct flame_options *options = &tree->options;
	struct flame_sample sample = {0};

	if (!options->row_base) {
		sample.value = profile_row_values(tree->profile, row)[options->value_index];
		return sample;
	}
	if (row < options->row_value_count)
		sample.value = options->row_value[row];
	if (row < options->row_base_count)
		sample.base = options->row_base[row];
	return sample;
}

static int take_row(struct building *building, uint32_t row)
{
	struct flame_tree *tree = building->tree;
	const struct profile_row *at = &tree->profile->row[row];
	const struct flame_sample sample = values_of(tree, row);
	struct tree_row made = {.row = row, .stack = at->stack};
	int err = 0;

	if (!sample.value && !sample.base)
		return 0;
	if (tree->options.group_frames)
		err = group_root(tree, at->label_set, &made.root);
	if (!err)
		err = take_codes(building, &tree->profile->stacks.stack[at->stack]);
	building->row[building->row_count++] = made;
	return err;
}

static int add_row(struct flame_tree *tree, uint32_t row, uint32_t node)
{
	struct flame_sample sample = values_of(tree, row);
	int err;

	if (!sample.value && !sample.base)
		return 0;
	sample.node = node;
	err = groups_of_set(&tree->groups, tree->profile->row[row].label_set, &sample.group);
	return err ? err : add_sample(tree, &sample, &tree->sample_of_row[row]);
}

static uint32_t longest_stack(const struct stack_table *stacks)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < stacks->stack_count; i++)
		if (stacks->stack[i].count > longest)
			longest = stacks->stack[i].count;
	return longest;
}

/* Makes the nodes of all rows, in an order of their own, and then the samples in that of the
 * rows. */
static int build(struct flame_tree *tree)
{
	const struct profile *profile = tree->profile;
	const struct stack_table *stacks = &profile->stacks;
	const size_t rows = (size_t)profile->row_count + 1;
	OWNED_MEM uint32_t *node = calloc(rows, sizeof(*node));
	CLEANUP(building_release) struct building building = {
		.tree = tree,
		.code = calloc((size_t)stacks->location_count + 1, sizeof(*building.code)),
		.row = calloc(rows, sizeof(*building.row)),
		.path = calloc((size_t)longest_stack(stacks) + 1, sizeof(*building.path))};
	uint32_t root;
	int err = node && building.code && building.row && building.path
			  ? append_node(tree, 0, 0, &root)
			  : -ENOMEM;

	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = take_row(&building, i);
	if (err)
		return err;
	qsort_r(building.row, building.row_count, sizeof(*building.row), compare_rows, &building);
	err = append_nodes(&building, node);
	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = add_row(tree, i, node[i]);
	return err;
}

static void add_magnitude(const struct flame_tree *tree, uint32_t node, int64_t magnitude)
{
	tree->magnitude[node] = add_saturating(tree->magnitude[node], magnitude);
}

/* Sums totals up.  Children come after their parents. */
static int sum_up(struct flame_tree *tree)
{
	if (tree->profile->signs.has_negative) {
		tree->magnitude = calloc(tree->node_count, sizeof(*tree->magnitude));
		if (!tree->magnitude)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < tree->sample_count; i++) {
		struct flame_node *node = &tree->node[tree->sample[i].node];

		node->self = add_saturating(node->self, tree->sample[i].value);
		if (tree->magnitude)
			add_magnitude(tree, tree->sample[i].node,
				      magnitude_of(tree->sample[i].value));
	}
	for (uint32_t i = tree->node_count; i-- > 0;) {
		struct flame_node *node = &tree->node[i];

		node->total = add_saturating(node->total, node->self);
		if (!i)
			break;
		tree->node[node->parent].total =
			add_saturating(tree->node[node->parent].total, node->total);
		if (tree->magnitude)
			add_magnitude(tree, node->parent, tree->magnitude[i]);
	}
	return 0;
}

int flame_tree_new(struct profile *profile, const struct flame_options *options,
		   struct flame_tree **ret_tree)
{
	OWNED(flame_tree) struct flame_tree *tree = calloc(1, sizeof(*tree));
	int err;

	if (!tree)
		return -ENOMEM;
	tree->sample_of_row =
		malloc(((size_t)profile->row_count + 1) * sizeof(*tree->sample_of_row));
	if (!tree->sample_of_row)
		return -ENOMEM;
	memset(tree->sample_of_row, 0xff,
	       ((size_t)profile->row_count + 1) * sizeof(*tree->sample_of_row));
	tree->row_count = profile->row_count;
	tree->profile = profile;
	tree->options = *options;
	code_table_init(&tree->code, profile, options->lines ? CODE_BY_LINE : CODE_BY_FUNCTION);
	groups_init(&tree->groups, profile, &options->group_by);
	err = build(tree);
	if (!err)
		err = sum_up(tree);
	if (err)
		return err;
	*ret_tree = TAKE(tree);
	return 0;
}

/* ---- children ---- */

static int compare_children(const void *a, const void *b, void *context)
{
	const struct flame_tree *tree = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct flame_node *node_a = &tree->node[left], *node_b = &tree->node[right];
	int order = ORDER(flame_tree_weight(tree, right), flame_tree_weight(tree, left));

	if (order)
		return order;
	order = strcmp(code_text(&tree->code, tree->code.code[node_a->frame].name),
		       code_text(&tree->code, tree->code.code[node_b->frame].name));
	return order ? order : ORDER(node_a->frame, node_b->frame);
}

int flame_tree_children(const struct flame_tree *tree, struct grouped *ret_children)
{
	/* The root is nobody's child. */
	const uint32_t count = tree->node_count - 1;
	int err = GROUPED_INIT(ret_children, tree->node + 1, parent, count, tree->node_count);
	uint32_t *child = ret_children->item, *first = ret_children->first;

	if (err)
		return err;
	for (uint32_t i = 0; i < count; i++)
		child[i]++;
	for (uint32_t i = 0; i < tree->node_count; i++)
		if (first[i + 1] - first[i] > 1)
			qsort_r(child + first[i], first[i + 1] - first[i], sizeof(*child),
				compare_children, (void *)tree);
	return 0;
}
