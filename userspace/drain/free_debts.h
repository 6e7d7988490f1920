/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sampled blocks were freed unseen: debts[] of pyprofd/probe.h are paid with blocks that have
 * the same stack.  One thread. */
#ifndef DRAIN_FREE_DEBTS_H
#define DRAIN_FREE_DEBTS_H

#include <stdbool.h>

#include <pyprofd/probe.h>

#include "base/cleanup.h"

struct free_debts;

int free_debts_new(struct free_debts **ret_debts); /* 0 or -ENOMEM */
void free_debts_free(struct free_debts *debts);
DEFINE_OWNED(struct free_debts, free_debts)

/* Returns whether a block is taken to be freed: there is a debt of its stack, of which it pays a
 * part.  owed: bytes that debts[] has for that stack; chance: random, for what is owed of a block
 * in part. */
bool free_debts_take(struct free_debts *debts, const struct pp_block *block, __u64 owed,
		     __u32 chance);

#endif
