/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/row_store.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>

#include "build_elf.h"

#define PAGE 0x10000ULL
/* version 1, "zR", code 1, data -8, RA 16, pcrel sdata4; CFA rsp+8, RA at CFA-8 */
#define X86_CIE "\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
/* A row every 8 bytes of the two pages of code: one lies at the start of the second. */
#define DENSE_STEP 8U
#define DENSE_ROWS_A_PAGE 8192U
#define DENSE_GRANULES 256U

struct fixture {
	struct row_store_memory memory;
	struct row_store *store;
	struct built_elf elf;
	struct elf_image *image;
	struct cfi *cfi;
};

static int compile(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	return cfi_compile(context, low, high, rows, NULL);
}

static int load(struct row_store *store, uint32_t page0, struct cfi *cfi, uint64_t low,
		uint64_t high)
{
	const struct row_source source = {.rows = compile, .context = cfi};

	return row_store_load(store, page0, cfi ? &source : NULL, low, high);
}

static void new_store(struct fixture *fixture, uint32_t page_count, uint32_t shard_count,
		      uint32_t rule_count)
{
	struct row_store_memory *memory = &fixture->memory;

	*memory = (struct row_store_memory){
		.page_count = page_count, .shard_count = shard_count, .rule_count = rule_count};
	memory->pages = calloc(page_count, sizeof(uint64_t));
	memory->shard = calloc(shard_count, sizeof(*memory->shard));
	memory->rules = calloc(rule_count, sizeof(*memory->rules));
	for (uint32_t i = 0; i < shard_count; i++)
		memory->shard[i] = calloc(PP_ROW_SHARD_ROWS, sizeof(uint32_t));
	assert_int_equal(row_store_new(memory, &fixture->store), 0);
}

static void free_fixture(struct fixture *fixture)
{
	row_store_free(fixture->store);
	cfi_free(fixture->cfi);
	elf_image_free(fixture->image);
	for (uint32_t i = 0; i < fixture->memory.shard_count; i++)
		free(fixture->memory.shard[i]);
	free(fixture->memory.shard);
	free(fixture->memory.pages);
	free(fixture->memory.rules);
}

/* Its rows have `rules` different rules. */
static void open_dense(struct fixture *fixture, unsigned int rules)
{
	static uint8_t frame[BUILT_MAX_FRAME];
	struct frame_builder head = {0};
	size_t cie = CIE(&head, X86_CIE), at;
	uint32_t length;

	memset(frame, 0, sizeof(frame));
	FDE(&head, cie, BUILT_TEXT, 2 * PAGE, "");
	memcpy(frame, head.data, head.size);
	at = head.size;
	for (uint32_t row = 0; row < 2 * PAGE / DENSE_STEP; row++) {
		/* advance_loc; def_cfa_offset: 3 bytes while the offset is below 128 */
		if (at + 7 > sizeof(frame))
			break;
		frame[at++] = 0x40 | DENSE_STEP;
		frame[at++] = 0x0e;
		frame[at++] = (uint8_t)(16 + 8 * (row % rules));
	}
	length = (uint32_t)(at - cie) - 4;
	length -= (uint32_t)(head.size - 17 - cie); /* the FDE's own: 17 bytes in head */
	memcpy(frame + head.size - 17, &length, sizeof(length));
	build_elf(&fixture->elf, EM_X86_64, NULL, 0, ".eh_frame", frame, at);
	assert_int_equal(elf_image_from_memory(fixture->elf.data, BUILT_SIZE, &fixture->image), 0);
	assert_int_equal(cfi_open(fixture->image, &fixture->cfi), 0);
}

static int many_offset;

/* One row for all of it, with a rule that no other file has. */
static int one_row(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	(void)context, (void)high;
	if (!rows->row)
		rows->row = calloc(rows->capacity = 1, sizeof(*rows->row));
	assert_non_null(rows->row);
	rows->count = 1;
	rows->row[0] = (struct cfi_row){
		.vaddr = low, .rule = {.kind = PP_RULE_CFA_SP, .cfa_offset = many_offset}};
	return 0;
}
static const struct row_source one_rule = {.rows = one_row};

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

static void open_libc(struct fixture *fixture)
{
	const char *path = NULL;
	int fd;

	if (!dl_iterate_phdr(find_libc, &path)) {
		print_message("skipped: libc is linked in\n");
		skip();
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_image_open(fd, &fixture->image), 0);
	close(fd);
	assert_int_equal(cfi_open(fixture->image, &fixture->cfi), 0);
}

/* As the kernel side looks a rule up; false: the page is not loaded. */
static bool look_up(const struct fixture *fixture, uint32_t page0, uint64_t vaddr,
		    struct pp_rule *ret_rule)
{
	uint64_t entry = fixture->memory.pages[(uint32_t)(page0 + (uint32_t)(vaddr >> 16))];
	const uint32_t *row;
	uint32_t at = 0;

	if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED))
		return false;
	row = fixture->memory.shard[PP_PAGE_ROW_START(entry) >> PP_ROW_SHARD_SHIFT] +
	      (PP_PAGE_ROW_START(entry) & (PP_ROW_SHARD_ROWS - 1));
	for (uint32_t half = 32768; half; half >>= 1)
		if (at + half < PP_PAGE_ROW_COUNT(entry) &&
		    PP_ROW_PC_LOW(row[at + half]) <= (vaddr & 0xffff))
			at += half;
	*ret_rule = fixture->memory.rules[PP_ROW_RULE(row[at])];
	return true;
}

static uint64_t page_entry(const struct fixture *fixture, uint32_t page0, uint64_t vaddr)
{
	return fixture->memory.pages[(uint32_t)(page0 + (uint32_t)(vaddr >> 16))];
}

/* No row is hidden by the next. */
static void check_rows(const struct fixture *fixture, uint32_t page0, uint64_t low, uint64_t high)
{
	for (uint64_t vaddr = low; vaddr < high; vaddr += PAGE) {
		uint64_t entry = page_entry(fixture, page0, vaddr);
		const uint32_t *row =
			fixture->memory.shard[PP_PAGE_ROW_START(entry) >> PP_ROW_SHARD_SHIFT] +
			(PP_PAGE_ROW_START(entry) & (PP_ROW_SHARD_ROWS - 1));

		assert_int_equal(PP_ROW_PC_LOW(row[0]), 0);
		for (uint32_t i = 1; i < PP_PAGE_ROW_COUNT(entry); i++) {
			assert_true(PP_ROW_PC_LOW(row[i]) > PP_ROW_PC_LOW(row[i - 1]));
			assert_int_not_equal(PP_ROW_RULE(row[i]), PP_ROW_RULE(row[i - 1]));
		}
	}
}

static void check_lookups(struct fixture *fixture, uint32_t page0, uint64_t low, uint64_t high,
			  int count)
{
	struct pp_rule ours, expected;
	uint64_t random = 99;

	for (int i = 0; i < count; i++) {
		uint64_t vaddr;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		vaddr = low + (random >> 16) % (high - low);
		assert_true(look_up(fixture, page0, vaddr, &ours));
		fixture->image->work->spent = 0; /* thousands of them are the test's alone */
		cfi_rule_at(fixture->cfi, vaddr, &expected);
		assert_memory_equal(&ours, &expected, sizeof(ours));
	}
}

static void row_store_load__lookups_agree_with_single_rules(void **state)
{
	struct fixture fixture = {0};
	struct row_store_stats stats;
	uint32_t page0;

	(void)state;
	open_libc(&fixture);
	new_store(&fixture, 1024, 2, 4096);
	assert_int_equal(row_store_add_file(fixture.store, 0, fixture.image->min_vaddr,
					    fixture.image->max_vaddr, &page0),
			 0);
	assert_int_equal(load(fixture.store, page0, fixture.cfi, fixture.image->min_vaddr,
			      fixture.image->max_vaddr),
			 0);
	check_lookups(&fixture, page0, fixture.image->min_vaddr, fixture.image->max_vaddr, 5000);
	check_rows(&fixture, page0, 0, fixture.image->max_vaddr);
	row_store_get_stats(fixture.store, &stats);
	assert_int_equal(stats.pages_loaded, (fixture.image->max_vaddr + PAGE - 1) / PAGE);
	assert_int_equal(stats.rules_exhausted, 0);
	assert_int_equal(fixture.memory.rules[0].kind, PP_RULE_NO_INFO);
	assert_int_equal(fixture.memory.rules[1].kind, PP_RULE_STOP);
	print_message("libc: %u rules, %lu rows\n", stats.rules_used, stats.rows_used);
	free_fixture(&fixture);
}

static void row_store_new__has_some_shards_and_not_too_many(void **state)
{
	static const uint32_t refused[] = {0, PP_MAX_ROW_SHARDS + 1};
	struct row_store *store = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct row_store_memory memory = {.page_count = 16,
							.shard_count = refused[i]};

		assert_int_equal(row_store_new(&memory, &store), -EINVAL);
		assert_null(store);
	}
}

static void row_store_load__takes_whole_pages_and_leaves_loaded_ones(void **state)
{
	struct fixture fixture = {0};
	uint32_t page0;
	struct pp_rule rule;
	uint64_t before;

	(void)state;
	open_dense(&fixture, 3);
	new_store(&fixture, 16, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &page0), 0);
	assert_int_equal(
		load(fixture.store, page0, fixture.cfi, BUILT_TEXT + 100, BUILT_TEXT + 101), 0);
	assert_false(look_up(&fixture, page0, BUILT_TEXT - 1, &rule));
	assert_false(look_up(&fixture, page0, BUILT_TEXT + PAGE, &rule));
	check_lookups(&fixture, page0, BUILT_TEXT, BUILT_TEXT + PAGE, 200);
	before = page_entry(&fixture, page0, BUILT_TEXT);
	assert_int_equal(PP_PAGE_ROW_COUNT(before), DENSE_ROWS_A_PAGE);
	/* Far more than the file has. */
	assert_int_equal(load(fixture.store, page0, fixture.cfi, 0, 1ULL << 40), 0);
	assert_int_equal(page_entry(&fixture, page0, BUILT_TEXT), before);
	check_lookups(&fixture, page0, 0, BUILT_SIZE, 300);
	check_rows(&fixture, page0, 0, BUILT_SIZE);
	assert_int_equal(page_entry(&fixture, page0, BUILT_SIZE), 0);
	free_fixture(&fixture);
}

static void row_store_load__code_without_information_shares_one_row(void **state)
{
	struct fixture fixture = {0};
	struct row_store_stats before, after;
	struct pp_rule rule;
	uint32_t page0;

	(void)state;
	new_store(&fixture, 1024, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0x400000, 0x1400000, &page0), 0);
	row_store_get_stats(fixture.store, &before);
	assert_int_equal(load(fixture.store, page0, NULL, 0x400000, 0x1400000), 0);
	row_store_get_stats(fixture.store, &after);
	assert_int_equal(after.pages_loaded, 256);
	assert_int_equal(after.rows_used, before.rows_used);
	assert_true(look_up(&fixture, page0, 0x13fffff, &rule));
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	row_store_remove_file(fixture.store, page0, 0x400000, 0x1400000);
	row_store_get_stats(fixture.store, &after);
	assert_int_equal(after.pages_loaded, 0);
	free_fixture(&fixture);
}

/* Nothing is known of the first 16 bytes of each page. */
static int late_row(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	(void)context, (void)high;
	rows->row = calloc(rows->capacity = 2, sizeof(*rows->row));
	assert_non_null(rows->row);
	rows->count = 2;
	rows->row[0] = (struct cfi_row){.vaddr = low, .rule = {.kind = PP_RULE_NO_INFO}};
	rows->row[1] = (struct cfi_row){.vaddr = low + 16,
					.rule = {.kind = PP_RULE_CFA_SP, .cfa_offset = 24}};
	return 0;
}

static void row_store_load__page_that_begins_without_information_keeps_its_only_rule(void **state)
{
	const struct row_source source = {.rows = late_row};
	struct fixture fixture = {0};
	struct pp_rule rule;
	uint32_t page0;

	(void)state;
	new_store(&fixture, 16, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, PAGE, &page0), 0);
	assert_int_equal(row_store_load(fixture.store, page0, &source, 0, PAGE), 0);
	assert_true(look_up(&fixture, page0, 15, &rule));
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	assert_true(look_up(&fixture, page0, 16, &rule));
	assert_int_equal(rule.kind, PP_RULE_CFA_SP);
	assert_int_equal(rule.cfa_offset, 24);
	free_fixture(&fixture);
}

static void row_store_add_file__ranges_are_apart_and_rest_two_ticks(void **state)
{
	struct fixture fixture = {0};
	struct row_store_stats stats;
	uint32_t first, second, third, index = 7;

	(void)state;
	new_store(&fixture, 8, 1, 64);
	/* 7 pages beside page 0: 3, then 4. */
	assert_int_equal(row_store_add_file(fixture.store, 0, 0x10000, 0x3ffff, &first), 0);
	assert_int_equal((uint32_t)(first + 1), 1);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0x12345, 0x50000, &second), 0);
	assert_int_equal((uint32_t)(second + 1), 4);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, 1, &index), -ENOSPC);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, UINT64_MAX, &index), -ENOSPC);
	assert_int_equal(row_store_add_file(fixture.store, 0, 5, 5, &index), -ENOSPC);
	assert_int_equal(index, 7);
	row_store_get_stats(fixture.store, &stats);
	row_store_remove_file(fixture.store, first, 0x10000, 0x3ffff);
	row_store_tick(fixture.store);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, 1, &third), -ENOSPC);
	row_store_tick(fixture.store);
	/* An address above 4 GiB of pages: page0 wraps. */
	assert_int_equal(row_store_add_file(fixture.store, 0, 1ULL << 52, (1ULL << 52) + 1, &third),
			 0);
	assert_int_equal((uint32_t)(third + (uint32_t)(1ULL << 36)), 1);
	free_fixture(&fixture);
}

static void row_store_load__out_of_space_evicts_what_is_not_used(void **state)
{
	struct fixture fixture = {0};
	struct row_store_stats stats;
	uint32_t page0[16], files = 0;
	struct pp_rule rule;
	int err = 0;

	(void)state;
	open_dense(&fixture, 3);
	new_store(&fixture, 256, 1, 64);
	while (files < 16) {
		assert_int_equal(row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &page0[files]),
				 0);
		err = load(fixture.store, page0[files], fixture.cfi, 0, BUILT_SIZE);
		if (err)
			break;
		files++;
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(files, 4095 / DENSE_GRANULES); /* one holds the shared row */
	row_store_get_stats(fixture.store, &stats);
	/* All are fresh: none may go before a tick has passed. */
	assert_int_equal(stats.evicted_pages, 0);
	row_store_tick(fixture.store);
	/* The kernel side uses the first file only. */
	for (uint64_t vaddr = BUILT_TEXT; vaddr < BUILT_SIZE; vaddr += PAGE)
		__atomic_or_fetch(&fixture.memory.pages[page0[0] + (vaddr >> 16)],
				  (uint64_t)PP_PAGE_USED << 48, __ATOMIC_RELAXED);
	row_store_tick(fixture.store);
	row_store_get_stats(fixture.store, &stats);
	assert_true(stats.evicted_pages > 0 && stats.evicted_pages < 6);
	assert_true(look_up(&fixture, page0[0], BUILT_TEXT, &rule));
	assert_false(look_up(&fixture, page0[1], BUILT_TEXT, &rule));
	/* What was evicted rests. */
	assert_int_equal(load(fixture.store, page0[files], fixture.cfi, 0, BUILT_SIZE), -ENOSPC);
	row_store_tick(fixture.store);
	row_store_tick(fixture.store);
	assert_int_equal(load(fixture.store, page0[files], fixture.cfi, 0, BUILT_SIZE), 0);
	check_lookups(&fixture, page0[files], 0, BUILT_SIZE, 200);
	check_rows(&fixture, page0[files], 0, BUILT_SIZE);
	check_lookups(&fixture, page0[0], 0, BUILT_SIZE, 200);
	free_fixture(&fixture);
}

/* No page that was loaded since the last tick may go, at whatever number it lies. */
static void row_store_load__fresh_pages_stay_wherever_they_lie(void **state)
{
	static const uint64_t gaps[] = {0, 61, 130};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		struct fixture fixture = {0};
		struct row_store_stats stats;
		uint32_t page0, files = 0;

		open_dense(&fixture, 3);
		new_store(&fixture, 256, 1, 64);
		if (gaps[i])
			assert_int_equal(
				row_store_add_file(fixture.store, 0, 0, gaps[i] * PAGE, &page0), 0);
		for (int err = 0; !err && files < 16; files += !err) {
			assert_int_equal(
				row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &page0), 0);
			err = load(fixture.store, page0, fixture.cfi, BUILT_TEXT, BUILT_SIZE);
		}
		assert_int_equal(files, 4095 / DENSE_GRANULES);
		row_store_get_stats(fixture.store, &stats);
		assert_int_equal(stats.evicted_pages, 0);
		row_store_tick(fixture.store);
		row_store_tick(fixture.store);
		row_store_get_stats(fixture.store, &stats);
		assert_true(stats.evicted_pages > 0);
		free_fixture(&fixture);
	}
}

static void mark_used(const struct fixture *fixture, uint32_t page0)
{
	for (uint64_t vaddr = 0; vaddr < BUILT_SIZE; vaddr += PAGE)
		__atomic_or_fetch(&fixture->memory.pages[page0 + (vaddr >> 16)],
				  (uint64_t)PP_PAGE_USED << 48, __ATOMIC_RELAXED);
}

/* One user fills the rows, and uses all of them all the time. */
static void row_store_load__greedy_user_does_not_displace_others(void **state)
{
	enum { GREEDY = 1000, OTHER = 1001 };
	struct fixture fixture = {0};
	uint32_t page0[40], files = 0, other, late;
	struct pp_rule rule;

	(void)state;
	open_dense(&fixture, 3);
	new_store(&fixture, 256, 2, 64);
	assert_int_equal(row_store_add_file(fixture.store, OTHER, 0, BUILT_SIZE, &other), 0);
	assert_int_equal(load(fixture.store, other, fixture.cfi, 0, BUILT_SIZE), 0);
	for (; files < 40; files++) {
		assert_int_equal(
			row_store_add_file(fixture.store, GREEDY, 0, BUILT_SIZE, &page0[files]), 0);
		if (load(fixture.store, page0[files], fixture.cfi, 0, BUILT_SIZE))
			break;
	}
	for (int i = 0; i < 8; i++) {
		for (uint32_t file = 0; file <= files; file++) {
			(void)load(fixture.store, page0[file], fixture.cfi, 0, BUILT_SIZE);
			mark_used(&fixture, page0[file]);
		}
		row_store_tick(fixture.store);
	}
	assert_true(row_store_quotas(fixture.store).rows->refused > 0);
	/* The other one's rows were not used for a while, but they stay, and more find room. */
	assert_true(look_up(&fixture, other, BUILT_TEXT, &rule));
	assert_int_equal(row_store_add_file(fixture.store, OTHER, 0, BUILT_SIZE, &late), 0);
	assert_int_equal(load(fixture.store, late, fixture.cfi, BUILT_TEXT, BUILT_TEXT + PAGE), 0);
	assert_true(look_up(&fixture, late, BUILT_TEXT, &rule));
	free_fixture(&fixture);
}

static void row_store_add_file__user_leaves_pages_to_others(void **state)
{
	struct fixture fixture = {0};
	uint32_t page0;

	(void)state;
	new_store(&fixture, 1025, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 1000, 0, 513 * PAGE, &page0), -EDQUOT);
	assert_int_equal(row_store_add_file(fixture.store, 1000, 0, 512 * PAGE, &page0), 0);
	assert_int_equal(row_store_add_file(fixture.store, 1000, 0, PAGE, &page0), -EDQUOT);
	assert_int_equal(row_store_add_file(fixture.store, 1001, 0, 256 * PAGE, &page0), 0);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, 256 * PAGE, &page0), 0);
	assert_int_equal(row_store_quotas(fixture.store).pages->refused, 2);
	free_fixture(&fixture);
}

static void row_store_load__user_leaves_rules_to_others(void **state)
{
	struct fixture fixture = {0};
	uint32_t first, second;
	struct pp_rule rule;

	(void)state;
	open_dense(&fixture, 8);
	/* 15 beside NO_INFO: STOP and half of the 14 that are left */
	new_store(&fixture, 64, 1, 16);
	assert_int_equal(row_store_add_file(fixture.store, 1000, 0, BUILT_SIZE, &first), 0);
	assert_int_equal(load(fixture.store, first, fixture.cfi, 0, BUILT_SIZE), 0);
	assert_int_equal(user_quota_held(row_store_quotas(fixture.store).rules, 1000), 7);
	assert_int_equal(row_store_add_file(fixture.store, 1001, 0, BUILT_SIZE, &second), 0);
	assert_int_equal(load(fixture.store, second, fixture.cfi, 0, BUILT_SIZE), 0);
	check_lookups(&fixture, second, BUILT_TEXT, BUILT_SIZE, 300);
	assert_true(look_up(&fixture, first, BUILT_TEXT, &rule));
	free_fixture(&fixture);
}

static void row_store_remove_file__rows_stay_readable_for_two_ticks(void **state)
{
	struct fixture fixture = {0};
	uint32_t first, other, reused;
	uint64_t entry;
	uint32_t *row, old;

	(void)state;
	open_dense(&fixture, 3);
	new_store(&fixture, 256, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &first), 0);
	assert_int_equal(load(fixture.store, first, fixture.cfi, 0, BUILT_SIZE), 0);
	entry = page_entry(&fixture, first, BUILT_TEXT);
	row = fixture.memory.shard[0] + PP_PAGE_ROW_START(entry);
	row_store_remove_file(fixture.store, first, 0, BUILT_SIZE);
	assert_int_equal(page_entry(&fixture, first, BUILT_TEXT), 0);
	/* A walk that read the page before goes on in its rows. */
	old = row[5];
	for (int i = 0; i < 2; i++) {
		while (!row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &other))
			if (load(fixture.store, other, fixture.cfi, 0, BUILT_SIZE))
				break;
		assert_int_equal(row[5], old);
		row[5] = 0xdead0000 + (uint32_t)i;
		old = row[5];
		row_store_tick(fixture.store);
	}
	assert_int_equal(row[5], old);
	reused = other;
	for (int i = 0; i < 2; i++)
		load(fixture.store, reused, fixture.cfi, 0, BUILT_SIZE);
	assert_int_not_equal(row[5], old);
	free_fixture(&fixture);
}

static void row_store_load__late_use_mark_does_not_revive_a_page(void **state)
{
	struct fixture fixture = {0};
	struct pp_rule rule;
	uint32_t page0;

	(void)state;
	open_dense(&fixture, 3);
	new_store(&fixture, 16, 1, 64);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &page0), 0);
	/* The kernel side read the page, the agent unloaded it, the mark came afterwards. */
	fixture.memory.pages[page0 + 1] = (uint64_t)PP_PAGE_USED << 48;
	assert_false(look_up(&fixture, page0, BUILT_TEXT, &rule));
	assert_int_equal(load(fixture.store, page0, fixture.cfi, 0, BUILT_SIZE), 0);
	check_lookups(&fixture, page0, 0, BUILT_SIZE, 200);
	free_fixture(&fixture);
}

/* A file whose rules nobody else has takes all ids; when it is gone, they are the next file's,
 * after the time that walks may still read them. */
static void row_store_tick__rules_of_files_that_are_gone_are_given_again(void **state)
{
	struct fixture fixture = {0};
	struct user_quota *quota;
	struct row_store_stats stats;
	struct pp_rule rule;
	uint32_t page0, other;

	(void)state;
	new_store(&fixture, 16, 1, 12);
	open_dense(&fixture, 14);
	quota = row_store_quotas(fixture.store).rules;
	assert_int_equal(
		row_store_add_file(fixture.store, 0, BUILT_TEXT, BUILT_TEXT + PAGE, &page0), 0);
	assert_int_equal(load(fixture.store, page0, fixture.cfi, BUILT_TEXT, BUILT_TEXT + PAGE), 0);
	row_store_get_stats(fixture.store, &stats);
	assert_int_equal(stats.rules_used, 12);
	assert_true(stats.rules_exhausted > 0);
	/* While its pages are loaded no id is taken back. */
	for (unsigned int i = 0; i < 3 * RULE_SWEEP_TICKS; i++)
		row_store_tick(fixture.store);
	assert_int_equal(quota->used, 11);
	assert_int_equal(row_store_rule_at(fixture.store, page0, BUILT_TEXT + 8, &rule), 0);
	assert_int_equal(rule.cfa_offset, 16);
	/* Another user's file finds none. */
	assert_int_equal(
		row_store_add_file(fixture.store, 1000, BUILT_TEXT, BUILT_TEXT + PAGE, &other), 0);
	row_store_remove_file(fixture.store, page0, BUILT_TEXT, BUILT_TEXT + PAGE);
	many_offset = 1000;
	assert_int_equal(
		row_store_load(fixture.store, other, &one_rule, BUILT_TEXT, BUILT_TEXT + PAGE), 0);
	assert_int_equal(row_store_rule_at(fixture.store, other, BUILT_TEXT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	for (unsigned int i = 0; i < RULE_REST_TICKS; i++)
		row_store_tick(fixture.store);
	assert_int_equal(quota->used, 11); /* they rest */
	assert_int_not_equal(fixture.memory.rules[5].kind, PP_RULE_NO_INFO);
	row_store_tick(fixture.store);
	assert_int_equal(quota->used, 1); /* PP_RULE_STOP */
	/* What was loaded without a rule has it when it is loaded again. */
	row_store_remove_file(fixture.store, other, BUILT_TEXT, BUILT_TEXT + PAGE);
	assert_int_equal(
		row_store_add_file(fixture.store, 1000, BUILT_TEXT, BUILT_TEXT + PAGE, &other), 0);
	assert_int_equal(
		row_store_load(fixture.store, other, &one_rule, BUILT_TEXT, BUILT_TEXT + PAGE), 0);
	assert_int_equal(row_store_rule_at(fixture.store, other, BUILT_TEXT, &rule), 0);
	assert_int_equal(rule.cfa_offset, many_offset);
	assert_int_equal(user_quota_held(quota, 1000), 1);
	assert_int_equal(quota->used, 2);
	free_fixture(&fixture);
}

static void row_store_load__exhausted_rules_become_no_info(void **state)
{
	struct fixture fixture = {0};
	struct row_store_stats stats;
	struct pp_rule rule, expected;
	uint32_t page0;

	(void)state;
	open_dense(&fixture, 8);
	/* NO_INFO, STOP, and the entry's and two more of eight */
	new_store(&fixture, 16, 1, 5);
	assert_int_equal(row_store_add_file(fixture.store, 0, 0, BUILT_SIZE, &page0), 0);
	assert_int_equal(load(fixture.store, page0, fixture.cfi, 0, BUILT_SIZE), 0);
	row_store_get_stats(fixture.store, &stats);
	assert_int_equal(stats.rules_used, 5);
	assert_true(stats.rules_exhausted > 1000);
	for (uint64_t vaddr = 0; vaddr < BUILT_SIZE; vaddr++) {
		fixture.image->work->spent = 0; /* as above */
		cfi_rule_at(fixture.cfi, vaddr & ~7ULL, &expected);
		assert_true(look_up(&fixture, page0, vaddr & ~7ULL, &rule));
		if (memcmp(&rule, &expected, sizeof(rule)))
			assert_int_equal(rule.kind, PP_RULE_NO_INFO);
		vaddr += 997;
	}
	free_fixture(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_store_load__lookups_agree_with_single_rules),
		cmocka_unit_test(row_store_new__has_some_shards_and_not_too_many),
		cmocka_unit_test(row_store_load__takes_whole_pages_and_leaves_loaded_ones),
		cmocka_unit_test(row_store_load__code_without_information_shares_one_row),
		cmocka_unit_test(
			row_store_load__page_that_begins_without_information_keeps_its_only_rule),
		cmocka_unit_test(row_store_add_file__ranges_are_apart_and_rest_two_ticks),
		cmocka_unit_test(row_store_load__out_of_space_evicts_what_is_not_used),
		cmocka_unit_test(row_store_load__fresh_pages_stay_wherever_they_lie),
		cmocka_unit_test(row_store_load__greedy_user_does_not_displace_others),
		cmocka_unit_test(row_store_add_file__user_leaves_pages_to_others),
		cmocka_unit_test(row_store_load__user_leaves_rules_to_others),
		cmocka_unit_test(row_store_remove_file__rows_stay_readable_for_two_ticks),
		cmocka_unit_test(row_store_load__late_use_mark_does_not_revive_a_page),
		cmocka_unit_test(row_store_tick__rules_of_files_that_are_gone_are_given_again),
		cmocka_unit_test(row_store_load__exhausted_rules_become_no_info),
	};

	return cmocka_run_group_tests_name("unwind/row_store", tests, NULL, NULL);
}
