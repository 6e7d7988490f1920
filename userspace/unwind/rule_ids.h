/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives unwind rules their ids in rules[].  Users have a share each.  Whatever is seen on a machine
 * keeps its id until ids are short; then those that no loaded page has are taken back, and rest
 * while walks may still read them.  Private to row_store.c. */
#ifndef UNWIND_RULE_IDS_H
#define UNWIND_RULE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/unwind.h>

#include "base/user_quota.h"

enum { RULE_ID_NO_INFO = 0, RULE_ID_STOP = 1 };
#define RULE_REST_TICKS 2U /* as row space: unwind/row_space.h */
/* Between two looks for unused ids, each of which reads all loaded rows: 3 million take 5 ms. */
#define RULE_SWEEP_TICKS 10U

struct rule_ids {
	struct pp_rule *rules; /* borrowed; `count` of them */
	uint32_t count;
	uint32_t used;	      /* ids that are taken, or rest */
	uint32_t next;	      /* from this one on none was ever taken */
	uint16_t *free;	      /* owned; ids below `next` that were given back */
	uint32_t free_count;
	uint32_t *user;	      /* owned; by id, whose share it is part of */
	uint8_t *rest;	      /* owned; by id, ticks until it is free; 0: it does not rest */
	uint16_t *slot;	      /* owned; hash table of ids; 0: empty, because rule 0 is not in it */
	uint32_t slot_count;  /* a power of two */
	uint32_t refused;     /* since the last sweep */
	uint32_t ticks;	      /* since then */
	struct user_quota quota;
};
/* rules: `count` of them, 2 to PP_MAX_RULES.  Returns 0; -ENOMEM. */
int rule_ids_init(struct rule_ids *ids, struct pp_rule *rules, uint32_t count);
void rule_ids_release(struct rule_ids *ids);

/* Returns the id of a rule; a new one, which counts for the user, is written to rules[] before any
 * row can refer to it.  RULE_ID_NO_INFO: none is left for this user. */
uint16_t rule_ids_get(struct rule_ids *ids, uint32_t uid, const struct pp_rule *rule);

/* Returns whether ids were refused, and it is time to find unused ones: call rule_ids_sweep(). */
bool rule_ids_want_sweep(const struct rule_ids *ids);
/* Takes back ids whose bit is not set in `named`, a bit for each id. */
void rule_ids_sweep(struct rule_ids *ids, const uint64_t *named);
/* Frees what has rested. */
void rule_ids_tick(struct rule_ids *ids);

#endif
