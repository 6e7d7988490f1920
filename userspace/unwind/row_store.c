/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/row_store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/unwind.h>

#include "base/user_quota.h"
#include "unwind/row_space.h"

/* ---- ids of rules ----
 * Unwind rules get ids in rules[]; each user has a share.  A rule keeps its id until ids are
 * short.  Then the ids that no loaded page uses are taken back, and rest while walks may still read
 * them. */

static uint32_t rule_hash(const struct pp_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	word[0] = (word[0] ^ word[1] * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
	return (uint32_t)(word[0] >> 32 ^ word[0] >> 11);
}

static void rule_ids_release(struct rule_ids *ids)
{
	user_quota_release(&ids->quota);
	free(ids->slot);
	free(ids->free);
	free(ids->user);
	free(ids->rest);
}

/* Returns the slot of a rule, or the empty one where it belongs. */
static uint16_t *find_slot(const struct rule_ids *ids, const struct pp_rule *rule)
{
	const uint32_t mask = ids->slot_count - 1;
	uint32_t at = rule_hash(rule) & mask;

	while (ids->slot[at] && memcmp(&ids->rules[ids->slot[at]], rule, sizeof(*rule)) != 0)
		at = (at + 1) & mask;
	return &ids->slot[at];
}

/* Returns the id of a rule; a new one, which counts for the user, is written to rules[] before any
 * row can refer to it.  RULE_ID_NO_INFO: none is left for this user. */
static uint16_t rule_ids_get(struct rule_ids *ids, uint32_t uid, const struct pp_rule *rule)
{
	static const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO};
	uint16_t *slot, id;

	if (!memcmp(rule, &no_info, sizeof(*rule)))
		return RULE_ID_NO_INFO;
	slot = find_slot(ids, rule);
	if (*slot)
		return *slot;
	if (ids->used == ids->count || user_quota_take(&ids->quota, uid, 1)) {
		ids->refused++;
		return RULE_ID_NO_INFO;
	}
	id = ids->free_count ? ids->free[--ids->free_count] : (uint16_t)ids->next++;
	ids->used++;
	ids->rules[id] = *rule;
	ids->user[id] = uid;
	*slot = id;
	return id;
}

/* rules: `count` of them, 2 to PP_MAX_RULES.  Returns 0; -ENOMEM. */
static int rule_ids_init(struct rule_ids *ids, struct pp_rule *rules, uint32_t count)
{
	const struct pp_rule stop = {.kind = PP_RULE_STOP};
	uint32_t slots = 4;

	/* At most half full. */
	while (slots < count * 2)
		slots *= 2;
	*ids = (struct rule_ids){.rules = rules, .count = count, .slot_count = slots};
	ids->slot = calloc(slots, sizeof(*ids->slot));
	ids->free = calloc(count, sizeof(*ids->free));
	ids->user = calloc(count, sizeof(*ids->user));
	ids->rest = calloc(count, sizeof(*ids->rest));
	if (!ids->slot || !ids->free || !ids->user || !ids->rest)
		return -ENOMEM;
	memset(&rules[RULE_ID_NO_INFO], 0, sizeof(*rules));
	ids->used = ids->next = 1;
	ids->quota.total = count - 1;
	return rule_ids_get(ids, 0, &stop) == RULE_ID_STOP ? 0 : -EINVAL;
}

/* Returns whether ids were refused, and it is time to find unused ones: call rule_ids_sweep(). */
static bool rule_ids_want_sweep(const struct rule_ids *ids)
{
	return ids->refused && ids->ticks >= RULE_SWEEP_TICKS;
}

/* Takes back ids whose bit is not set in `named`, a bit for each id. */
static void rule_ids_sweep(struct rule_ids *ids, const uint64_t *named)
{
	memset(ids->slot, 0, ids->slot_count * sizeof(*ids->slot));
	for (uint32_t id = RULE_ID_STOP; id < ids->next; id++) {
		const bool is_named = named[id / 64] >> id % 64 & 1;

		if (ids->rest[id] || ids->rules[id].kind == PP_RULE_NO_INFO)
			continue;
		if (is_named || id == RULE_ID_STOP)
			*find_slot(ids, &ids->rules[id]) = (uint16_t)id;
		else
			ids->rest[id] = RULE_REST_TICKS;
	}
	ids->refused = ids->ticks = 0;
}

/* A walk that began two ticks ago is over: nobody reads the rule any more. */
static void give_back(struct rule_ids *ids, uint32_t id)
{
	ids->rules[id] = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	ids->free[ids->free_count++] = (uint16_t)id;
	ids->used--;
	user_quota_give(&ids->quota, ids->user[id], 1);
}

/* Frees what has rested. */
static void rule_ids_tick(struct rule_ids *ids)
{
	ids->ticks++;
	for (uint32_t id = RULE_ID_STOP; id < ids->next; id++)
		if (ids->rest[id] && !--ids->rest[id])
			give_back(ids, id);
}

#define PAGE_BYTES (1ULL << PP_PAGE_SHIFT)
/* compiled at once, so that an FDE that crosses pages is executed once */
#define LOAD_UNIT_BYTES (1ULL << 20)
#define PAGE_FLAGS(flags) ((uint64_t)(flags) << 48)
/* When less than this share of the rows is free (or soon will be), a tick evicts unused pages. */
#define RESERVE_SHARE 16U

struct row_store {
	struct row_store_memory memory;
	struct row_space *space;
	struct index_ranges ranges;
	struct user_quota rows; /* granules */
	struct rule_ids rules;
	uint64_t *fresh;    /* a bit a page: loaded since the last tick */
	uint32_t hand;	    /* the page that the eviction checks next */
	uint32_t empty_row; /* one NO_INFO row that all pages without code share */
	struct cfi_rows scratch;
	struct row_store_stats stats;
};

static uint32_t *row_at(const struct row_store *store, uint32_t row)
{
	return &store->memory.shard[row >> PP_ROW_SHARD_SHIFT][row & (PP_ROW_SHARD_ROWS - 1)];
}

int row_store_new(const struct row_store_memory *memory, struct row_store **ret_store)
{
	OWNED(row_store) struct row_store *store = NULL;
	int err;

	if (memory->rule_count < 2 || memory->rule_count > PP_MAX_RULES || memory->page_count < 2)
		return -EINVAL;
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->memory = *memory;
	index_ranges_init(&store->ranges, memory->page_count, WALK_REST_TICKS);
	store->rows.total = (uint64_t)memory->shard_count * ROW_SHARD_GRANULES;
	err = row_space_new(memory->shard_count, &store->space);
	if (err)
		return err;
	store->fresh = calloc(memory->page_count / 64 + 1, sizeof(*store->fresh));
	if (!store->fresh)
		return -ENOMEM;
	err = rule_ids_init(&store->rules, memory->rules, memory->rule_count);
	if (err)
		return err;
	err = row_space_take(store->space, 1, &store->empty_row);
	if (err)
		return err;
	*row_at(store, store->empty_row) = PP_ROW(0, RULE_ID_NO_INFO);
	*ret_store = TAKE(store);
	return 0;
}

void row_store_free(struct row_store *store)
{
	if (!store)
		return;
	row_space_free(store->space);
	index_ranges_release(&store->ranges);
	user_quota_release(&store->rows);
	rule_ids_release(&store->rules);
	free(store->fresh);
	free(store->scratch.row);
	free(store);
}

static bool is_loaded(const struct row_store *store, uint32_t page)
{
	uint64_t entry = __atomic_load_n(&store->memory.pages[page], __ATOMIC_RELAXED);

	return PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED;
}

/* Unloads a page of a user.  The kernel side may set PP_PAGE_USED in between: what it leaves is not
 * a loaded page. */
static void unload_page(struct row_store *store, uint32_t uid, uint32_t page)
{
	uint64_t entry = __atomic_exchange_n(&store->memory.pages[page], 0, __ATOMIC_ACQ_REL);

	if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED))
		return;
	store->stats.pages_loaded--;
	if (PP_PAGE_ROW_START(entry) == store->empty_row)
		return;
	row_space_give(store->space, PP_PAGE_ROW_START(entry), PP_PAGE_ROW_COUNT(entry));
	user_quota_give(&store->rows, uid, row_space_granules(PP_PAGE_ROW_COUNT(entry)));
}

/* Whose pages may go. */
enum eviction { EVICT_GREEDY, EVICT_ALL };

/* Evicts a page, unless it was used since the hand last passed, or just loaded. */
static void evict_page(struct row_store *store, enum eviction whose, uint32_t page)
{
	uint64_t *entry = &store->memory.pages[page];
	const uint64_t now = __atomic_load_n(entry, __ATOMIC_RELAXED);
	const struct index_range *range;

	if (!(PP_PAGE_FLAGS(now) & PP_PAGE_LOADED) || PP_PAGE_ROW_START(now) == store->empty_row ||
	    store->fresh[page / 64] >> (page % 64) & 1)
		return;
	range = index_ranges_find(&store->ranges, page);
	if (!range || (whose == EVICT_GREEDY && !user_quota_is_greedy(&store->rows, range->uid)))
		return;
	if (PP_PAGE_FLAGS(now) & PP_PAGE_USED_MASK) {
		__atomic_and_fetch(entry, ~PAGE_FLAGS(PP_PAGE_USED_MASK), __ATOMIC_RELAXED);
		return;
	}
	unload_page(store, range->uid, page);
	store->stats.evicted_pages++;
}

/* Evicts pages until `granules` are free or will be, or two rounds are done: a page that was used
 * gets a second chance. */
static void evict_rounds(struct row_store *store, enum eviction whose, uint32_t granules)
{
	const uint32_t page_count = store->memory.page_count;

	for (uint32_t step = 0; step < 2 * page_count; step++) {
		uint32_t page = store->hand;

		if (store->space->free_count + store->space->resting_count >= granules)
			return;
		store->hand = (page + 1) % page_count;
		evict_page(store, whose, page);
	}
}

static void evict_until(struct row_store *store, uint32_t granules)
{
	if (user_quota_has_greedy(&store->rows))
		evict_rounds(store, EVICT_GREEDY, granules);
	evict_rounds(store, EVICT_ALL, granules);
}

static uint32_t reserve_granules(const struct row_store *store)
{
	return store->memory.shard_count * ROW_SHARD_GRANULES / RESERVE_SHARE;
}

/* Returns the index of an address's page; page0 wraps. */
static uint32_t page_of(uint32_t page0, uint64_t vaddr)
{
	return page0 + (uint32_t)(vaddr >> PP_PAGE_SHIFT);
}

int row_store_add_file(struct row_store *store, uint32_t uid, uint64_t min_vaddr,
		       uint64_t max_vaddr, uint32_t *ret_page0)
{
	uint64_t first_page = min_vaddr >> PP_PAGE_SHIFT, count;
	uint32_t first;
	int err;

	if (max_vaddr <= min_vaddr)
		return -ENOSPC;
	count = ((max_vaddr - 1) >> PP_PAGE_SHIFT) - first_page + 1;
	err = count > store->memory.page_count
		      ? -ENOSPC
		      : index_ranges_take(&store->ranges, uid, (uint32_t)count, &first);
	if (err)
		return err;
	*ret_page0 = first - (uint32_t)first_page;
	return 0;
}

void row_store_remove_file(struct row_store *store, uint32_t page0, uint64_t min_vaddr,
			   uint64_t max_vaddr)
{
	const struct index_range *range =
		index_ranges_find(&store->ranges, page_of(page0, min_vaddr));

	(void)max_vaddr; /* the range has it */
	if (!range)
		return;
	for (uint32_t i = 0; i < range->count; i++)
		unload_page(store, range->uid, range->first + i);
	index_ranges_give(&store->ranges, range->first);
}

/* What is loaded: a file of a user. */
struct loading {
	uint32_t page0, uid;
	const struct row_source *source; /* NULL: it has no unwind information */
};

/* Takes row space for a user.  Half of what is kept in reserve is not for those who hold more than
 * their share; a tick restores all of it. */
static int take_rows(struct row_store *store, uint32_t uid, uint32_t count, uint32_t *ret_start)
{
	int err;

	if (store->space->free_count < reserve_granules(store) / 2 && store->rows.users > 1 &&
	    user_quota_is_greedy(&store->rows, uid)) {
		user_quota_refuse(&store->rows, uid);
		return -ENOSPC;
	}
	err = user_quota_note(&store->rows, uid, row_space_granules(count));
	if (err)
		return err;
	err = row_space_take(store->space, count, ret_start);
	if (err)
		user_quota_give(&store->rows, uid, row_space_granules(count));
	return err;
}

static uint16_t get_rule(struct row_store *store, uint32_t uid, const struct pp_rule *rule)
{
	const uint16_t id = rule_ids_get(&store->rules, uid, rule);

	store->stats.rules_exhausted += !id && rule->kind != PP_RULE_NO_INFO;
	return id;
}

/* Publishes the rows row[0, count) of one page, at once.  row[0] may be before the page. */
static int publish_page(struct row_store *store, const struct loading *loading, uint32_t page,
			const struct cfi_row *row, size_t count)
{
	static const struct cfi_row nothing = {.rule.kind = PP_RULE_NO_INFO};
	uint32_t start = store->empty_row, kept = 0;
	uint32_t *to;
	int err;

	/* Only a forged file has a row for every byte. */
	if (count > UINT16_MAX) {
		row = &nothing;
		count = 1;
	}
	if (count > 1 || row->rule.kind != PP_RULE_NO_INFO) {
		err = take_rows(store, loading->uid, (uint32_t)count, &start);
		if (err)
			return err;
	}
	to = row_at(store, start);
	for (size_t i = 0; i < count; i++) {
		uint32_t low = i ? (uint16_t)row[i].vaddr : 0;
		uint16_t id = get_rule(store, loading->uid, &row[i].rule);

		if (start == store->empty_row)
			id = RULE_ID_NO_INFO;
		if (kept && PP_ROW_RULE(to[kept - 1]) == id)
			continue; /* neither rule got an id */
		to[kept++] = PP_ROW(low, id);
	}
	/* Fill up the allocated length, which will be freed, not only the part used. */
	for (; kept < count; kept++)
		to[kept] = PP_ROW(UINT16_MAX, PP_ROW_RULE(to[kept - 1]));
	__atomic_store_n(&store->memory.pages[page], PP_PAGE(start, kept, PP_PAGE_LOADED),
			 __ATOMIC_RELEASE);
	store->fresh[page / 64] |= 1ULL << (page % 64);
	store->stats.pages_loaded++;
	return 0;
}

/* Loads pages [low, high), none of which is loaded, all in one unit. */
static int load_run(struct row_store *store, const struct loading *loading, uint64_t low,
		    uint64_t high)
{
	const struct row_source *source = loading->source;
	struct cfi_row no_row = {.vaddr = low};
	struct cfi_rows none = {.row = &no_row, .count = 1};
	struct cfi_rows *rows = source ? &store->scratch : &none;
	size_t at = 0;
	int err;

	if (source) {
		rows->count = 0;
		err = source->rows(source->context, low, high, rows);
		if (err)
			return err;
	}
	for (uint64_t vaddr = low; vaddr < high; vaddr += PAGE_BYTES) {
		size_t end;

		while (at + 1 < rows->count && rows->row[at + 1].vaddr <= vaddr)
			at++;
		for (end = at + 1; end < rows->count; end++)
			if (rows->row[end].vaddr >= vaddr + PAGE_BYTES)
				break;
		err = publish_page(store, loading, page_of(loading->page0, vaddr), &rows->row[at],
				   end - at);
		if (err)
			return err;
	}
	return 0;
}

static int load_unit(struct row_store *store, const struct loading *loading, uint64_t low,
		     uint64_t high)
{
	while (low < high) {
		uint64_t run_end;
		int err;

		if (is_loaded(store, page_of(loading->page0, low))) {
			low += PAGE_BYTES;
			continue;
		}
		for (run_end = low + PAGE_BYTES; run_end < high; run_end += PAGE_BYTES)
			if (is_loaded(store, page_of(loading->page0, run_end)))
				break;
		err = load_run(store, loading, low, run_end);
		if (err)
			return err;
		low = run_end;
	}
	return 0;
}

int row_store_load(struct row_store *store, uint32_t page0, const struct row_source *source,
		   uint64_t low, uint64_t high)
{
	struct loading loading = {.page0 = page0, .source = source};
	const struct index_range *range;
	uint64_t pages;

	if (high <= low)
		return 0;
	range = index_ranges_find(&store->ranges, page_of(page0, low));
	if (!range)
		return -ENOSPC;
	loading.uid = range->uid;
	low &= ~(PAGE_BYTES - 1);
	pages = ((high - low - 1) >> PP_PAGE_SHIFT) + 1;
	if (pages > range->first + range->count - page_of(page0, low))
		pages = range->first + range->count - page_of(page0, low);
	high = low + pages * PAGE_BYTES;
	while (low < high) {
		uint64_t end = (low | (LOAD_UNIT_BYTES - 1)) + 1;
		int err = load_unit(store, &loading, low, end < high ? end : high);

		if (err == -ENOSPC) {
			/* This is for a later attempt: evicted space is not usable yet.  Free
			 * granules may exist but not be consecutive. */
			evict_until(store, store->space->free_count + reserve_granules(store));
		}
		if (err)
			return err;
		low = end;
	}
	return 0;
}

int row_store_rule_at(const struct row_store *store, uint32_t page0, uint64_t vaddr,
		      struct pp_rule *ret_rule)
{
	const uint32_t page = page_of(page0, vaddr);
	const uint32_t *row;
	uint32_t low = 0, high;
	uint64_t entry;

	if (page >= store->memory.page_count)
		return -ENOENT;
	entry = __atomic_load_n(&store->memory.pages[page], __ATOMIC_ACQUIRE);
	if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED))
		return -ENOENT;
	row = row_at(store, PP_PAGE_ROW_START(entry));
	high = PP_PAGE_ROW_COUNT(entry);
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (PP_ROW_PC_LOW(row[middle]) <= (uint16_t)vaddr)
			low = middle;
		else
			high = middle;
	}
	*ret_rule = store->memory.rules[PP_ROW_RULE(row[low])];
	return 0;
}

/* Marks the ids of all rows of loaded pages. */
static void name_rules(const struct row_store *store, uint64_t *named)
{
	for (uint32_t page = 0; page < store->memory.page_count; page++) {
		const uint64_t entry =
			__atomic_load_n(&store->memory.pages[page], __ATOMIC_RELAXED);
		const uint32_t *row;

		if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED))
			continue;
		row = row_at(store, PP_PAGE_ROW_START(entry));
		for (uint32_t i = 0; i < PP_PAGE_ROW_COUNT(entry); i++)
			named[PP_ROW_RULE(row[i]) / 64] |= 1ULL << PP_ROW_RULE(row[i]) % 64;
	}
}

/* Ids are short: those that no page has any more go to whoever needs some. */
static void sweep_rules(struct row_store *store)
{
	OWNED_MEM uint64_t *named = calloc(PP_MAX_RULES / 64, sizeof(*named));

	if (!named)
		return;
	name_rules(store, named);
	rule_ids_sweep(&store->rules, named);
}

void row_store_tick(struct row_store *store)
{
	rule_ids_tick(&store->rules);
	if (rule_ids_want_sweep(&store->rules))
		sweep_rules(store);
	row_space_tick(store->space);
	index_ranges_tick(&store->ranges);
	evict_until(store, reserve_granules(store));
	memset(store->fresh, 0, (store->memory.page_count / 64 + 1) * sizeof(*store->fresh));
}

struct row_store_quotas row_store_quotas(struct row_store *store)
{
	return (struct row_store_quotas){
		.pages = &store->ranges.quota, .rows = &store->rows, .rules = &store->rules.quota};
}

void row_store_get_stats(const struct row_store *store, struct row_store_stats *ret_stats)
{
	const uint64_t total = (uint64_t)store->memory.shard_count * ROW_SHARD_GRANULES;

	*ret_stats = store->stats;
	ret_stats->rules_used = store->rules.used;
	ret_stats->rows_total = total * ROW_GRANULE_ROWS;
	ret_stats->rows_used = (total - store->space->free_count) * ROW_GRANULE_ROWS;
}
