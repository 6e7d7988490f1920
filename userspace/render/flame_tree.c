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
	index_table_release(&tree->node_index);
	index_table_release(&tree->sample_index);
	free(tree->node);
	free(tree->magnitude);
	free(tree->sample_of_row);
	free(tree->sample);
	free(tree);
}

/* ---- nodes ---- */

struct edge {
	uint32_t parent, frame;
};

static bool node_equal(const void *context, uint32_t index, const void *key)
{
	const struct flame_tree *tree = context;
	const struct flame_node *node = &tree->node[index];
	const struct edge *edge = key;

	/* The root is in no index, so no node is confused with its frame 0. */
	return node->parent == edge->parent && node->frame == edge->frame;
}

static int append_node(struct flame_tree *tree, struct edge edge)
{
	int err;

	if (tree->node_count == UINT32_MAX)
		return -E2BIG;
	err = ARRAY_RESERVE(tree->node, tree->node_count, tree->node_capacity);
	if (err)
		return err;
	tree->node[tree->node_count++] =
		(struct flame_node){.frame = edge.frame, .parent = edge.parent};
	return 0;
}

static int child_of(struct flame_tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	struct edge edge = {parent, frame};
	uint32_t hash = (uint32_t)XXH3_64bits(&edge, sizeof(edge));
	int err;

	if (index_table_find(&tree->node_index, hash, node_equal, tree, &edge, ret_node))
		return 0;
	err = index_table_add(&tree->node_index, hash, tree->node_count);
	if (!err)
		err = append_node(tree, edge);
	if (!err)
		*ret_node = tree->node_count - 1;
	return err;
}

static int group_node(struct flame_tree *tree, uint32_t group, uint32_t *ret_node)
{
	struct code code = {.name = tree->groups.group[group].label, .class = FRAME_CLASS_OTHER};
	uint32_t frame;
	int err = code_table_add(&tree->code, &code, &frame);

	return err ? err : child_of(tree, 0, frame, ret_node);
}

static int stack_node(struct flame_tree *tree, uint32_t stack_id, uint32_t node, uint32_t *ret_node)
{
	const struct stack *stack = &tree->profile->stacks.stack[stack_id];
	uint32_t frame;

	for (uint32_t i = stack->count; i-- > 0;) {
		int err = code_table_of_location(&tree->code, stack->location[i], &frame);

		if (!err)
			err = child_of(tree, node, frame, &node);
		if (err)
			return err;
	}
	*ret_node = node;
	return 0;
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

/* node_of_stack: node + 1 of stacks that were walked already; not used with frames of groups. */
static int add_row(struct flame_tree *tree, uint32_t row, uint32_t *node_of_stack)
{
	const struct profile_row *at = &tree->profile->row[row];
	struct flame_sample sample = values_of(tree, row);
	uint32_t root = 0;
	int err;

	if (!sample.value && !sample.base)
		return 0;
	err = groups_of_set(&tree->groups, at->label_set, &sample.group);
	if (!err && tree->options.group_frames)
		err = group_node(tree, sample.group, &root);
	if (err)
		return err;
	if (root || !node_of_stack[at->stack]) {
		err = stack_node(tree, at->stack, root, &sample.node);
		if (err)
			return err;
		if (!root)
			node_of_stack[at->stack] = sample.node + 1;
	} else {
		sample.node = node_of_stack[at->stack] - 1;
	}
	return add_sample(tree, &sample, &tree->sample_of_row[row]);
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
	OWNED_MEM uint32_t *node_of_stack =
		calloc((size_t)profile->stacks.stack_count + 1, sizeof(*node_of_stack));
	int err;

	if (!tree || !node_of_stack)
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
	err = append_node(tree, (struct edge){0, 0});
	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = add_row(tree, i, node_of_stack);
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
