/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's side of the unwind tables: allocates pages[], row space and rule ids within a fixed
 * budget, and evicts what the kernel side has not used. It writes plain memory: attach maps the BPF
 * arrays there, tests give it malloc'd memory. One thread. */
#ifndef UNWIND_ROW_STORE_H
#define UNWIND_ROW_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/unwind.h>

#include "base/cleanup.h"
#include "base/user_quota.h"
#include "unwind/cfi.h"

enum { RULE_ID_NO_INFO = 0, RULE_ID_STOP = 1 };
#define RULE_REST_TICKS 2U /* as row space: unwind/row_space.h */
/* Between two looks for unused ids, each of which reads all loaded rows: 3 million take 5 ms. */
#define RULE_SWEEP_TICKS 10U

struct rule_ids {
	struct pp_rule *rules; /* borrowed; `count` of them */
	uint32_t count;
	uint32_t used;	/* ids that are taken, or rest */
	uint32_t next;	/* from this one on none was ever taken */
	uint16_t *free; /* owned; ids below `next` that were given back */
	uint32_t free_count;
	uint32_t *user;	     /* owned; by id, whose share it is part of */
	uint8_t *rest;	     /* owned; by id, ticks until it is free; 0: it does not rest */
	uint16_t *slot;	     /* owned; hash table of ids; 0: empty, because rule 0 is not in it */
	uint32_t slot_count; /* a power of two */
	uint32_t refused;    /* since the last sweep */
	uint32_t ticks;	     /* since then */
	struct user_quota quota;
};

struct row_store_memory {
	uint64_t *pages; /* PP_MAX_PAGES, or fewer */
	uint32_t page_count;
	uint32_t **shard; /* shard_count pointers to PP_ROW_SHARD_ROWS rows each */
	uint32_t shard_count;
	struct pp_rule *rules;
	uint32_t rule_count;
};

struct row_store_stats {
	uint64_t rows_used, rows_total; /* allocated capacity, in rows */
	uint32_t pages_loaded, rules_used;
	uint64_t evicted_pages, rules_exhausted;
};

/* What users share of the store.  Users who were refused something can be told by name. */
struct row_store_quotas {
	struct user_quota *pages; /* entries of pages[] */
	struct user_quota *rows; /* granules; the greedy are refused and evicted first when short */
	struct user_quota *rules; /* ids; given back when ids are short and no page has them */
};

struct row_store;
int row_store_new(const struct row_store_memory *memory, struct row_store **ret_store);
void row_store_free(struct row_store *store);
DEFINE_OWNED(struct row_store, row_store)

/* Reserves pages[] for a user's file whose addresses span [min_vaddr, max_vaddr). *ret_page0 is the
 * index of address 0 (modulo 2^32). Returns 0; -EDQUOT: the user's share is used up; -ENOSPC. */
int row_store_add_file(struct row_store *store, uint32_t uid, uint64_t min_vaddr,
		       uint64_t max_vaddr, uint32_t *ret_page0);
/* Unloads the file's pages and frees its page range, which is reused after two calls of
 * row_store_tick(). */
void row_store_remove_file(struct row_store *store, uint32_t page0, uint64_t min_vaddr,
			   uint64_t max_vaddr);
/* Where the rows of a file come from: as cfi_compile(), rows of [low, high). */
struct row_source {
	int (*rows)(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows);
	void *context;
};
/* Publishes the rows of every 64 KiB page that [low, high) touches and that lies in the file's
 * span; pages are compiled whole. source NULL: a file without unwind information, all rows are
 * NO_INFO.
 * Pages that are loaded already stay as they are. When row space runs out, pages are evicted: of
 * users who hold more than their share, else unused ones.
 * Returns 0; -ENOSPC; what the source returns; -ENOMEM. */
int row_store_load(struct row_store *store, uint32_t page0, const struct row_source *source,
		   uint64_t low, uint64_t high);
/* Finds the rule that is published for an address of a file. Returns 0; -ENOENT: its page is not
 * loaded. */
int row_store_rule_at(const struct row_store *store, uint32_t page0, uint64_t vaddr,
		      struct pp_rule *ret_rule);
/* Makes freed row space reusable. Call it about once a second and at least 10 ms apart: then no
 * walk that could still read the old rows is running. */
void row_store_tick(struct row_store *store);
struct row_store_quotas row_store_quotas(struct row_store *store);
void row_store_get_stats(const struct row_store *store, struct row_store_stats *ret_stats);

#endif
