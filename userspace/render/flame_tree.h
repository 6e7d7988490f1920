/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of a profile as one prefix tree from root to leaves: the input of flame graph, tree,
 * folded, speedscope and Chrome's format. */
#ifndef RENDER_FLAME_TREE_H
#define RENDER_FLAME_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/index_table.h"
#include "profile/profile_data.h"
#include "render/code_table.h"

/* Node 0 is the root: no frame.  parent < own index. */
struct flame_node {
	uint32_t frame, parent;
	int64_t self, total;
};

/* At most one for each pair of node and group. */
struct flame_sample {
	uint32_t node, group;
	int64_t value, base;
};

#define FLAME_NO_SAMPLE UINT32_MAX /* a row without a value */

struct flame_options {
	unsigned int value_index; /* which of the profile's values */
	bool lines; /* frames of one function on different lines are different frames */
	struct grouping group_by;
	bool group_frames; /* groups are also frames below the root */
	/* Values by row of the profile to use instead of its own, and the values before (for a
	 * differential tree); rows from the counts on have 0.  NULL: none. */
	const int64_t *row_value, *row_base;
	uint32_t row_value_count, row_base_count;
};

/* Strings that the tree creates (group labels) go into profile.strings. */
struct flame_tree {
	struct profile *profile; /* borrowed */
	struct flame_options options;
	struct code_table code; /* what node.frame names */
	struct groups groups;	/* what sample.group names */
	struct flame_node *node;
	uint32_t node_count, node_capacity;
	struct flame_sample *sample;
	uint32_t sample_count, sample_capacity;
	struct index_table sample_index;
	uint32_t *sample_of_row; /* owned: by row of the profile; FLAME_NO_SAMPLE */
	uint32_t row_count;
	/* owned, by node: the magnitudes of all samples in it; NULL: that is its total */
	int64_t *magnitude;
};

/* Returns how much there is of a node, whatever its sign. */
static inline int64_t flame_tree_weight(const struct flame_tree *tree, uint32_t node)
{
	return tree->magnitude ? tree->magnitude[node] : tree->node[node].total;
}
/* Returns what shares of totals are of. */
static inline int64_t flame_tree_whole(const struct flame_tree *tree)
{
	return profile_signed_whole(tree->profile) ?: tree->node[0].total;
}

/* Builds a tree.  Returns 0; -ENOMEM; -E2BIG above UINT32_MAX nodes. */
int flame_tree_new(struct profile *profile, const struct flame_options *options,
		   struct flame_tree **ret_tree);
void flame_tree_free(struct flame_tree *tree);
DEFINE_OWNED(struct flame_tree, flame_tree)

/* Lists the children of each node in the order of display: largest weight first, then by name.
 * Returns as grouped_init(). */
int flame_tree_children(const struct flame_tree *tree, struct grouped *ret_children);

#endif
