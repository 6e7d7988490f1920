/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the table of files, each by its own header: where a file's holes lie, what file
 * system it is in, what the child answers and what time it is are fakes in this file. */
#include <cmocka.h>

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "attach/file_names.h"
#include "attach/file_rows.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "files/client.h"
#include "files/identity.h"

#define NAMED 128U /* a slot, the first of its word of the bitmap */

static struct file files[100];

static uint64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* ---- ids ---- */

static uint32_t put(struct file_slots *slots, struct file *file)
{
	uint32_t id = 0;

	assert_int_equal(file_slots_put(slots, file, &id), 0);
	return id;
}

static void file_slots__files_get_ascending_ids_of_the_first_generation(void **state)
{
	struct file_slots slots = {0};

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		assert_null(file_slots_get(&slots, PP_FILE_FIRST));
		for (uint32_t i = 0; i < 100; i++)
			assert_int_equal(put(&slots, &files[i]), PP_FILE_FIRST + i);
		for (uint32_t i = 0; i < 100; i++)
			assert_ptr_equal(file_slots_get(&slots, PP_FILE_FIRST + i), &files[i]);
		assert_null(file_slots_get(&slots, PP_FILE_FIRST - 1));
		assert_null(file_slots_get(&slots, PP_FILE_FIRST + 100));
		/* Afterwards they are as they were. */
		file_slots_release(&slots);
	}
}

static void file_slots__more_files_than_ids_are_enospc(void **state)
{
	struct file_slots slots = {0};
	uint32_t id = 7;

	(void)state;
	for (uint32_t i = PP_FILE_FIRST; i < FILE_SLOTS; i++)
		if (put(&slots, files) != i)
			fail_msg("slot %u has another id", i);
	assert_int_equal(file_slots_put(&slots, files, &id), -ENOSPC);
	assert_int_equal(id, 7);
	file_slots_release(&slots);
}

/* Drops a slot's file and lets the epochs pass. */
static void rest(struct file_slots *slots, uint32_t slot, const uint64_t *named)
{
	file_slots_drop(slots, slot);
	assert_null(file_slots_get(slots, slot));
	for (unsigned int epoch = 0; epoch < FILE_SLOT_REST_EPOCHS; epoch++)
		file_slots_end_epoch(slots, named);
}

static void file_slots__slot_is_used_again_with_the_next_generation(void **state)
{
	OWNED_MEM uint64_t *named = calloc(FILE_SLOTS / 64, sizeof(*named));
	struct file_slots slots = {0};

	(void)state;
	assert_int_equal(put(&slots, &files[0]), PP_FILE_FIRST);
	assert_int_equal(put(&slots, &files[1]), PP_FILE_FIRST + 1);
	for (uint32_t generation = 1; generation <= FILE_GENERATIONS; generation++) {
		rest(&slots, PP_FILE_FIRST, named);
		assert_int_equal(put(&slots, &files[2]),
				 generation % FILE_GENERATIONS << FILE_SLOT_BITS | PP_FILE_FIRST);
		assert_ptr_equal(file_slots_get(&slots, PP_FILE_FIRST), &files[2]);
	}
	/* The other slot is as it was. */
	assert_ptr_equal(file_slots_get(&slots, PP_FILE_FIRST + 1), &files[1]);
	assert_int_equal(put(&slots, &files[3]), PP_FILE_FIRST + 2);
	file_slots_release(&slots);
}

static void file_slots__slot_rests_for_three_epochs_and_while_it_is_named(void **state)
{
	OWNED_MEM uint64_t *named = calloc(FILE_SLOTS / 64, sizeof(*named));
	struct file_slots slots = {0};

	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		put(&slots, &files[i % 100]);
	for (uint32_t slot = NAMED - 5; slot < NAMED + 5; slot++)
		file_slots_drop(&slots, slot);
	assert_int_equal(slots.resting_count, 10);
	named[NAMED / 64] |= 1ULL << NAMED % 64;
	for (unsigned int epoch = 1; epoch <= FILE_SLOT_REST_EPOCHS; epoch++) {
		assert_int_equal(slots.free_count, 0);
		file_slots_end_epoch(&slots, named);
	}
	assert_int_equal(slots.resting_count, 1);
	file_slots_end_epoch(&slots, named);
	assert_int_equal(slots.free_count, 9);
	for (uint32_t i = 0; i < 9; i++) {
		const uint32_t slot = file_slot(put(&slots, files));

		assert_in_range(slot, NAMED - 5, NAMED + 4);
		assert_int_not_equal(slot, NAMED);
	}
	named[NAMED / 64] = 0;
	file_slots_end_epoch(&slots, named);
	assert_int_equal(slots.resting_count, 0);
	assert_int_equal(file_slot(put(&slots, files)), NAMED);
	assert_int_equal(file_slot(put(&slots, files)), PP_FILE_FIRST + 200);
	file_slots_release(&slots);
}

/* ---- code and holes ---- */

#define MORE (4ULL << 20) /* what code may span beyond four times its bytes */

static struct {
	struct {
		off_t start, end;
	} data[1024];
	size_t count;
	int error;   /* 0, or what the file system says to SEEK_DATA */
	bool is_cut; /* it ends before a hole is looked for */
	unsigned int asked;
} disk;

off_t lseek(int fd, off_t offset, int whence)
{
	if (fd != -77)
		return syscall(SYS_lseek, fd, offset, whence);
	assert_true(whence == SEEK_DATA || whence == SEEK_HOLE);
	disk.asked++;
	errno = EINVAL; /* of before */
	for (size_t i = 0; !disk.error && i < disk.count; i++) {
		if (offset >= disk.data[i].end)
			continue;
		if (whence == SEEK_DATA)
			return offset > disk.data[i].start ? offset : disk.data[i].start;
		return disk.is_cut ? offset : disk.data[i].end;
	}
	errno = disk.error ? disk.error : ENXIO;
	return -1;
}

static void set_data(const size_t *bounds, size_t count)
{
	memset(&disk, 0, sizeof(disk));
	for (size_t i = 0; i < count; i++) {
		disk.data[i].start = (off_t)bounds[2 * i];
		disk.data[i].end = (off_t)bounds[2 * i + 1];
	}
	disk.count = count;
}

/* Expects that a file with holes has so many bytes of code: two segments may span MORE and four
 * times as many, and no more. */
static void expect_text(uint64_t offset, uint64_t size, uint64_t bytes)
{
	const struct file_identity identity = {.size = 2, .disk_bytes = 1};
	struct foreign_segment segment[2] = {
		{.vaddr = 0x1000, .offset = offset, .file_size = size},
		{.vaddr = 0x1000 + MORE + 4 * bytes + 3, .offset = 0, .file_size = 0}};

	if (segment[1].vaddr < 0x1000 + size)
		fail_msg("the first segment is the longer one");
	assert_int_equal(file_text_check(-77, &identity, segment, 2), 0);
	segment[1].vaddr++;
	assert_int_equal(file_text_check(-77, &identity, segment, 2), -EFBIG);
}

static void file_text_check__holes_do_not_count(void **state)
{
	static const size_t bounds[] = {1000, 2000, 3000, 5000, 9000, 9001};

	(void)state;
	set_data(bounds, 3);
	expect_text(0, 10000, 1000 + 2000 + 1);
	/* What lies in the segment counts. */
	expect_text(1500, 10000, 500 + 2000 + 1);
	expect_text(3000, 1000, 1000);
	expect_text(3000, 2000, 2000);
	expect_text(0, 1000, 0);
	expect_text(0, 1001, 1);
	expect_text(2000, 1000, 0);
	expect_text(9001, 5000, 0);
	/* From the file's first byte on. */
	set_data((const size_t[]){0, 100}, 1);
	expect_text(0, 5000, 100);
	expect_text(0, 100, 100);
}

static void file_text_check__file_system_that_does_not_say_is_believed(void **state)
{
	(void)state;
	set_data(NULL, 0);
	disk.error = EINVAL;
	expect_text(100, 5000, 5000);
	assert_int_equal(disk.asked, 2);
}

static void file_text_check__file_that_shrinks_meanwhile_ends(void **state)
{
	(void)state;
	set_data((const size_t[]){1000, 2000}, 1);
	disk.is_cut = true;
	expect_text(0, 5000, 0);
	assert_int_equal(disk.asked, 2 * 2);
}

static void file_text_check__data_in_256_pieces_is_looked_at(void **state)
{
	(void)state;
	memset(&disk, 0, sizeof(disk));
	for (size_t i = 0; i < 300; i++) {
		disk.data[i].start = (off_t)(10 * i);
		disk.data[i].end = (off_t)(10 * i + 1);
	}
	disk.count = 300;
	expect_text(0, 2560, 256);
	expect_text(0, 3000, 256);
}

static void file_text_check__dense_files_are_not_looked_at(void **state)
{
	const struct foreign_segment segment[] = {{.vaddr = 0x1000, .file_size = 100},
						  {.vaddr = 0x1000 + MORE + 4 * 150 + 3 - 50,
						   .file_size = 50}};
	struct foreign_segment beyond[2];
	struct file_identity identity = {.size = 1000, .disk_bytes = 1000};

	(void)state;
	set_data(NULL, 0);
	memcpy(beyond, segment, sizeof(segment));
	beyond[1].vaddr++;
	for (unsigned int is_fuse = 0; is_fuse < 2; is_fuse++) {
		assert_int_equal(file_text_check(-77, &identity, segment, 2), 0);
		assert_int_equal(file_text_check(-77, &identity, beyond, 2), -EFBIG);
		/* In any order. */
		const struct foreign_segment turned[] = {beyond[1], beyond[0]};

		assert_int_equal(file_text_check(-77, &identity, turned, 2), -EFBIG);
		identity.disk_bytes = 0;
		identity.is_fuse = true;
	}
	assert_int_equal(disk.asked, 0);
	assert_int_equal(file_text_check(-77, &identity, NULL, 0), 0);
	/* A small span, at any address. */
	memset(beyond, 0, sizeof(beyond));
	beyond[0].vaddr = 1ULL << 46;
	beyond[1].vaddr = (1ULL << 46) + MORE;
	assert_int_equal(file_text_check(-77, &identity, beyond, 2), 0);
}

/* ---- rows that found no room ---- */

static struct {
	struct cfi_row row[RULE_CACHE_MAX_ROWS + 2];
	size_t count;
	int result;
	unsigned int asked;
	uint64_t low;
} told;

static int tell_rows(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	assert_ptr_equal(context, &told);
	assert_int_equal(low & 0xffff, 0);
	assert_int_equal(high - low, 1ULL << PP_PAGE_SHIFT);
	assert_int_equal(rows->count, 0);
	told.asked++;
	told.low = low;
	if (rows->capacity < told.count) {
		rows->row = realloc(rows->row, told.count * sizeof(*rows->row));
		assert_non_null(rows->row);
		rows->capacity = told.count;
	}
	for (size_t i = 0; i < told.count; i++) {
		rows->row[i] = told.row[i];
		rows->row[i].vaddr += low;
	}
	rows->count = told.count;
	return told.result;
}

static const struct row_source source = {.rows = tell_rows, .context = &told};

/* So many rows a page, eight bytes apart; the one at 8 * i has the CFA offset i + 1. */
static void tell(size_t count, int result)
{
	told.count = count;
	told.result = result;
	told.asked = 0;
	for (size_t i = 0; i < count; i++)
		told.row[i] = (struct cfi_row){.vaddr = 8 * i,
					       .rule = {.kind = PP_RULE_CFA_SP,
							.cfa_offset = (int32_t)i + 1}};
}

static struct rule_cache cache;

static int rule_setup(void **state)
{
	(void)state;
	memset(&cache, 0, sizeof(cache));
	return 0;
}

static int rule_teardown(void **state)
{
	(void)state;
	rule_cache_release(&cache);
	return 0;
}

/* The CFA offset at an address; 0: there is no rule. */
static int32_t rule_at(uint32_t file, uint64_t vaddr)
{
	struct pp_rule rule = {.kind = PP_RULE_STOP, .cfa_offset = 999};

	assert_int_equal(rule_cache_find(&cache, file, &source, vaddr, &rule), 0);
	assert_int_equal(rule.kind, rule.cfa_offset ? PP_RULE_CFA_SP : PP_RULE_NO_INFO);
	return rule.cfa_offset;
}

static void rule_cache_find__rule_is_that_of_the_last_row_at_or_before(void **state)
{
	(void)state;
	for (size_t count = 1; count < 9; count++) {
		tell(count, 0);
		for (uint64_t vaddr = 0; vaddr < 80; vaddr++) {
			const uint64_t row = vaddr / 8 < count ? vaddr / 8 : count - 1;

			assert_int_equal(rule_at((uint32_t)count, 0x50000 + vaddr), row + 1);
		}
		assert_int_equal(rule_at((uint32_t)count, 0x5ffff), count);
		assert_int_equal(told.asked, 1);
		assert_int_equal(told.low, 0x50000);
	}
}

static void rule_cache_find__page_belongs_to_its_file(void **state)
{
	(void)state;
	tell(1, 0);
	assert_int_equal(rule_at(1, 0x50000), 1);
	assert_int_equal(rule_at(2, 0x50000), 1);
	assert_int_equal(rule_at(1, 0x60000), 1);
	assert_int_equal(told.asked, 3);
	assert_int_equal(rule_at(1, 0x50000), 1);
	assert_int_equal(rule_at(2, 0x5ffff), 1);
	assert_int_equal(rule_at(1, 0x60000), 1);
	assert_int_equal(told.asked, 3);
}

static void rule_cache_find__sixteen_pages_are_kept_and_the_oldest_goes(void **state)
{
	(void)state;
	tell(1, 0);
	for (uint64_t page = 1; page <= RULE_CACHE_PAGES; page++)
		rule_at(1, page << 16);
	for (uint64_t page = 1; page <= RULE_CACHE_PAGES; page++)
		if (page != 5)
			rule_at(1, page << 16);
	assert_int_equal(told.asked, RULE_CACHE_PAGES);
	/* Page 5 was not used for longest. */
	rule_at(1, 99 << 16);
	assert_int_equal(told.asked, RULE_CACHE_PAGES + 1);
	for (uint64_t page = 1; page <= RULE_CACHE_PAGES; page++)
		if (page != 5)
			rule_at(1, page << 16);
	assert_int_equal(told.asked, RULE_CACHE_PAGES + 1);
	rule_at(1, 5 << 16);
	assert_int_equal(told.asked, RULE_CACHE_PAGES + 2);
}

static void rule_cache_find__rows_that_may_come_are_asked_for_again(void **state)
{
	static const int errors[] = {-ENOSPC, -ENOMEM, -ETIMEDOUT, -EAGAIN, -ETIME};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct pp_rule rule = {.kind = PP_RULE_STOP};

		assert_int_equal(rows_may_come(errors[i]), errors[i] != -ETIME);
		tell(1, errors[i]);
		for (unsigned int again = 1; again < 3; again++) {
			assert_int_equal(rule_cache_find(&cache, 1, &source, 0x50000, &rule),
					 errors[i]);
			assert_int_equal(rule.kind, PP_RULE_STOP);
			assert_int_equal(told.asked, again);
		}
	}
	/* The page that was there before them is gone. */
	tell(1, 0);
	assert_int_equal(rule_at(1, 0x50000), 1);
	assert_int_equal(told.asked, 1);
}

static void rule_cache_find__page_of_which_reading_failed_is_forgotten(void **state)
{
	struct pp_rule rule;

	(void)state;
	tell(1, 0);
	for (uint64_t page = 1; page <= RULE_CACHE_PAGES; page++)
		rule_at(1, page << 16);
	tell(2, -ETIMEDOUT);
	assert_int_equal(rule_cache_find(&cache, 1, &source, 99 << 16, &rule), -ETIMEDOUT);
	tell(1, 0);
	rule_at(1, 1 << 16);
	assert_int_equal(told.asked, 1);
}

static void rule_cache_find__file_without_rows_has_no_rule(void **state)
{
	(void)state;
	assert_false(rows_may_come(0));
	assert_false(rows_may_come(-ENODATA));
	/* What came before the error does not count. */
	tell(3, -EBADMSG);
	assert_int_equal(rule_at(1, 0x50000), 0);
	assert_int_equal(rule_at(1, 0x50008), 0);
	assert_int_equal(told.asked, 1);
	tell(0, 0);
	assert_int_equal(rule_at(2, 0x50000), 0);
	assert_int_equal(rule_at(2, 0x50000), 0);
	assert_int_equal(told.asked, 1);
}

static void rule_cache_find__very_many_rows_are_not_kept(void **state)
{
	(void)state;
	tell(RULE_CACHE_MAX_ROWS, 0);
	assert_int_equal(rule_at(1, 0x50008), 2);
	assert_int_equal(rule_at(1, 0x50010), 3);
	assert_int_equal(told.asked, 1);
	tell(RULE_CACHE_MAX_ROWS + 1, 0);
	assert_int_equal(rule_at(2, 0x50008), 2);
	assert_int_equal(rule_at(2, 0x50010), 3);
	assert_int_equal(told.asked, 2);
	/* Nothing is left of them. */
	tell(1, 0);
	assert_int_equal(rule_at(1, 8), 1);
	assert_int_equal(told.asked, 1);
	for (size_t i = 0; i < RULE_CACHE_PAGES; i++)
		assert_true(cache.page[i].rows.capacity <= RULE_CACHE_MAX_ROWS);
}

/* ---- names ---- */

static struct file_names *names;
static struct file_link *list_of[2];

static int names_setup(void **state)
{
	(void)state;
	now_ns = 1000;
	list_of[0] = list_of[1] = NULL;
	return file_names_new(&names);
}

static int names_teardown(void **state)
{
	(void)state;
	file_names_free(names);
	return 0;
}

static struct file_name name_of(uint64_t inode)
{
	return (struct file_name){.kind = FILE_NAME_MAPPED,
				  .key = {.major = 8, .minor = 1, .inode = inode},
				  .text = "/lib/a",
				  .text_bytes = 6};
}

static void file_names__every_part_of_a_name_tells_files_apart(void **state)
{
	const struct file_name name = {.kind = FILE_NAME_OPENED,
				       .key = {1, 2, 3, 4},
				       .changed_ns = 5,
				       .text = "path",
				       .text_bytes = 4};
	struct file_name other[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		other[i] = name;
	other[0].kind = FILE_NAME_MAPPED;
	other[1].key.major++;
	other[2].key.minor++;
	other[3].key.inode++;
	other[4].key.inode_generation++;
	other[5].changed_ns++;
	other[6].text = "patH";
	other[7].text_bytes--;
	assert_int_equal(file_names_set(names, &name, &files[0], &list_of[0]), 0);
	assert_ptr_equal(file_names_find(names, &name), &files[0]);
	for (size_t i = 0; i < 8; i++)
		assert_null(file_names_find(names, &other[i]));
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(file_names_set(names, &other[i], &files[1], &list_of[1]), 0);
	assert_ptr_equal(file_names_find(names, &name), &files[0]);
	for (size_t i = 0; i < 8; i++)
		assert_ptr_equal(file_names_find(names, &other[i]), &files[1]);
	file_names_drop(names, &list_of[1]);
	assert_null(list_of[1]);
	for (size_t i = 0; i < 8; i++)
		assert_null(file_names_find(names, &other[i]));
	assert_ptr_equal(file_names_find(names, &name), &files[0]);
}

static void file_names_set__name_goes_from_one_file_to_another(void **state)
{
	const struct file_name a = name_of(1), b = name_of(2), c = name_of(3);

	(void)state;
	assert_int_equal(file_names_set(names, &a, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_set(names, &b, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_set(names, &c, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_set(names, &b, &files[1], &list_of[1]), 0);
	assert_ptr_equal(file_names_find(names, &b), &files[1]);
	file_names_drop(names, &list_of[1]);
	assert_null(file_names_find(names, &b));
	assert_int_equal(file_names_set(names, &b, &files[1], &list_of[1]), 0);
	file_names_drop(names, &list_of[0]);
	assert_null(file_names_find(names, &a));
	assert_null(file_names_find(names, &c));
	assert_ptr_equal(file_names_find(names, &b), &files[1]);
	file_names_drop(names, &list_of[1]);
	assert_null(file_names_find(names, &b));
}

static void file_names_set__name_that_is_too_long_finds_nothing(void **state)
{
	static char text[8193];
	struct file_name name = name_of(1);

	(void)state;
	memset(text, 'a', sizeof(text));
	name.text = text;
	name.text_bytes = 8192;
	assert_int_equal(file_names_set(names, &name, &files[0], &list_of[0]), 0);
	assert_ptr_equal(file_names_find(names, &name), &files[0]);
	name.text_bytes = 8193;
	assert_int_equal(file_names_set(names, &name, &files[1], &list_of[1]), 0);
	assert_null(file_names_find(names, &name));
	assert_null(list_of[1]);
}

static void file_names_tidy__lent_name_goes_when_nobody_looked_for_it(void **state)
{
	const struct file_name own = name_of(1), lent = name_of(2), used = name_of(3),
			       again = name_of(4), given = name_of(5);

	(void)state;
	assert_int_equal(file_names_set(names, &own, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_lend(names, &lent, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_lend(names, &used, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_lend(names, &again, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_lend(names, &given, &files[0], &list_of[0]), 0);
	/* The moment itself is no earlier one. */
	file_names_tidy(names, 1000);
	now_ns = 2000;
	assert_ptr_equal(file_names_find(names, &used), &files[0]);
	assert_int_equal(file_names_lend(names, &again, &files[0], &list_of[0]), 0);
	assert_int_equal(file_names_set(names, &given, &files[0], &list_of[0]), 0);
	file_names_tidy(names, 1001);
	assert_null(file_names_find(names, &lent));
	assert_ptr_equal(file_names_find(names, &used), &files[0]);
	assert_ptr_equal(file_names_find(names, &again), &files[0]);
	/* Those of the file's own stay for ever. */
	file_names_tidy(names, UINT64_MAX);
	assert_null(file_names_find(names, &used));
	assert_null(file_names_find(names, &again));
	assert_ptr_equal(file_names_find(names, &given), &files[0]);
	assert_ptr_equal(file_names_find(names, &own), &files[0]);
	/* What remains is still one list. */
	file_names_drop(names, &list_of[0]);
	assert_null(file_names_find(names, &own));
	assert_null(list_of[0]);
}

static void file_names_free__of_none_does_nothing(void **state)
{
	(void)state;
	file_names_free(NULL);
}

/* ---- what the child answers ---- */

static struct foreign_facts facts;
static int examine_result;

int foreign_examine(struct foreign *foreign, const struct foreign_file *file,
		    struct foreign_facts *ret_facts, struct python_info **ret_python,
		    const char **ret_reason)
{
	(void)foreign, (void)file, (void)ret_python;
	*ret_reason = "a reason";
	if (!examine_result)
		*ret_facts = facts;
	return examine_result;
}

int foreign_rows(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		 uint64_t high, struct cfi_rows *rows)
{
	(void)foreign, (void)file, (void)low, (void)high, (void)rows;
	return -ENOTSUP; /* files' own rows: test_file_rows.c */
}

static int facts_setup(void **state)
{
	(void)state;
	memset(&facts, 0, sizeof(facts));
	facts.has_symbols = 1;
	examine_result = 0;
	now_ns = 5000;
	return 0;
}

static struct file asked(void)
{
	struct file file = {.error = 1, .unread_ns = 1, .min_vaddr = 1, .max_vaddr = 1};

	file_facts_ask(NULL, NULL, &file);
	return file;
}

static void file_facts_ask__span_is_that_of_all_segments(void **state)
{
	struct file file;

	(void)state;
	facts.segment_count = 3;
	facts.segment[0] = (struct foreign_segment){.vaddr = 0x2000, .file_size = 0x800};
	facts.segment[1] = (struct foreign_segment){
		.vaddr = 0x2700, .file_size = 0x200, .memory_size = 0x5000};
	facts.segment[2] = (struct foreign_segment){.vaddr = 0x1000, .file_size = 0x10};
	/* One that is not counted. */
	facts.segment[3] = (struct foreign_segment){.vaddr = 0x10, .file_size = 0x100000};
	file = asked();
	assert_int_equal(file.error, 0);
	assert_int_equal(file.segment_count, 3);
	assert_memory_equal(file.segment, facts.segment, sizeof(file.segment));
	assert_int_equal(file.min_vaddr, 0x1000);
	assert_int_equal(file.max_vaddr, 0x2900);
	assert_int_equal(file.unread_ns, 0);
	assert_string_equal(file.python_reason, "a reason");
	/* Without code there is no address in it. */
	facts.segment_count = 0;
	file = asked();
	assert_int_equal(file.min_vaddr, UINT64_MAX);
	assert_int_equal(file.max_vaddr, 0);
}

static void file_facts_ask__rows_errors_are_the_files(void **state)
{
	static const struct {
		int32_t rows_error;
		bool has_rows, is_refused;
	} cases[] = {{0, true, false},	    {-ENODATA, false, false}, {-EBADMSG, false, false},
		     {-E2BIG, false, true}, {-ENOTSUP, false, true},  {-ETIME, false, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct file file;

		facts.rows_error = cases[i].rows_error;
		file = asked();
		assert_int_equal(file.error, 0);
		assert_int_equal(file.has_rows, cases[i].has_rows);
		assert_int_equal(file.is_refused, cases[i].is_refused);
	}
	facts.fde_count = FILE_GIANT_FDES;
	assert_false(asked().is_giant);
	facts.fde_count++;
	assert_true(asked().is_giant);
}

static void file_facts_ask__file_that_was_not_examined_says_since_when(void **state)
{
	struct file file = {.lates = FILE_LATES_MAX - 1};

	(void)state;
	examine_result = -ETIMEDOUT;
	assert_int_equal(asked().unread_ns, 5000);
	assert_int_equal(asked().error, -ETIMEDOUT);
	assert_false(asked().is_refused);
	examine_result = -EAGAIN;
	assert_int_equal(asked().unread_ns, 5000);
	examine_result = -ENOEXEC;
	assert_int_equal(asked().unread_ns, 0);
	assert_int_equal(asked().error, -ENOEXEC);
	assert_false(asked().is_refused);
	examine_result = -E2BIG;
	assert_true(asked().is_refused);
	examine_result = -ETIME;
	file_facts_ask(NULL, NULL, &file);
	assert_int_equal(file.error, -ETIMEDOUT);
	file_facts_ask(NULL, NULL, &file);
	assert_int_equal(file.error, -ETIME);
	assert_true(file.is_refused);
	assert_int_equal(file.unread_ns, 0);
}

static void file_facts_ask__debug_file_is_looked_for_where_symbols_are_missing(void **state)
{
	struct file file;

	(void)state;
	facts.debug.build_id_bytes = BUILD_ID_MAX_BYTES;
	memset(facts.debug.build_id, 0x5a, sizeof(facts.debug.build_id));
	file = asked();
	assert_null(file.debug);
	assert_int_equal(file.build_id_size, BUILD_ID_MAX_BYTES);
	assert_memory_equal(file.build_id, facts.debug.build_id, BUILD_ID_MAX_BYTES);
	facts.has_symbols = 0;
	file = asked();
	assert_non_null(file.debug);
	assert_memory_equal(file.debug, &facts.debug, sizeof(facts.debug));
	free(file.debug);
	/* By its link alone; a build-id that is too long is none. */
	facts.debug.build_id_bytes = 0;
	strcpy(facts.debug.link, "a.debug");
	file = asked();
	assert_non_null(file.debug);
	assert_string_equal(file.debug->link, "a.debug");
	assert_int_equal(file.build_id_size, 0);
	free(file.debug);
	facts.debug.link[0] = '\0';
	assert_null(asked().debug);
	facts.has_symbols = 1;
	facts.debug.build_id_bytes = BUILD_ID_MAX_BYTES + 1;
	assert_int_equal(asked().build_id_size, 0);
}

/* Two segments of one page, [0x1000, 0x2000) and [0x3000, 0x3800) of the file. */
static void file_bias__pages_of_a_segment_are_its_own(void **state)
{
	static const struct {
		uint64_t offset, bias;
	} cases[] = {{0x0000, 0x70000000 - 0x0000},  {0x1000, 0x70000000 - 0x11000},
		     {0x2000, 0x70000000 - 0x2000},  {0x3000, 0x70000000 - 0x23000},
		     {0x3fff, 0x70000000 - 0x23fff}, {0x4000, 0x70000000 - 0x4000}};
	const struct file file = {
		.segment_count = 2,
		.segment = {{.vaddr = 0x11000, .offset = 0x1000, .file_size = 0x1000},
			    {.vaddr = 0x23000, .offset = 0x3000, .file_size = 0x800}}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mapping mapping = {.start = 0x70000000, .offset = cases[i].offset};

		assert_int_equal(file_bias(&file, &mapping), cases[i].bias);
	}
}

/* The first segment ends in the page with which the second one begins. */
static void file_bias__page_that_two_segments_share_is_the_second_ones(void **state)
{
	const struct file file = {
		.segment_count = 2,
		.segment = {{.vaddr = 0x11000, .offset = 0x1000, .file_size = 0x1800},
			    {.vaddr = 0x22000, .offset = 0x2000, .file_size = 0x800}}};
	const struct mapping mapping = {.start = 0x70000000, .offset = 0x2000};

	(void)state;
	assert_int_equal(file_bias(&file, &mapping), 0x70000000 - 0x22000);
}

/* ---- identity ---- */

static uint32_t file_system; /* 0: the real one */

int fstatfs(int fd, struct statfs *status)
{
	const int result = (int)syscall(SYS_fstatfs, fd, status);

	if (file_system)
		status->f_type = file_system;
	return result;
}

static int identity_setup(void **state)
{
	(void)state;
	file_system = 0;
	return 0;
}

/* A file in memory of so many bytes, each `byte`. */
static int file_of(size_t size, uint8_t byte)
{
	int fd = memfd_create("parts", MFD_CLOEXEC);
	OWNED_MEM uint8_t *bytes = malloc(size + 1);

	assert_true(fd >= 0);
	assert_non_null(bytes);
	memset(bytes, byte, size);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	return fd;
}

static void file_identity_read__is_what_the_kernel_says(void **state)
{
	OWNED_FD int fd = file_of(5000, 1);
	struct file_identity identity;
	struct stat status;

	(void)state;
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(file_identity_read(fd, &identity), 0);
	assert_int_equal(identity.key.inode, status.st_ino);
	assert_int_equal(identity.size, 5000);
	assert_int_equal(identity.disk_bytes, status.st_blocks * 512);
	assert_int_equal(identity.changed_ns, (uint64_t)status.st_ctim.tv_sec * NS_PER_SEC +
						      (uint64_t)status.st_ctim.tv_nsec);
	assert_int_equal(identity.owner, geteuid());
	assert_true(identity.is_settled);
	assert_false(identity.is_fuse);
	for (unsigned int bit = 0; bit < 9; bit++) {
		assert_int_equal(fchmod(fd, 0600 | 1U << bit), 0);
		assert_int_equal(file_identity_read(fd, &identity), 0);
		assert_int_equal(identity.is_settled, bit != 1 && bit != 4);
	}
	assert_int_equal(fchmod(fd, 0600), 0);
	file_system = FUSE_SUPER_MAGIC;
	assert_int_equal(file_identity_read(fd, &identity), 0);
	assert_false(identity.is_settled);
	assert_true(identity.is_fuse);
}

static void file_identity_read__errors_are_told(void **state)
{
	struct file_identity identity = {.size = 9};

	(void)state;
	assert_int_equal(file_identity_read(-1, &identity), -EBADF);
	assert_int_equal(identity.size, 9);
}

static unsigned int mappings_here(void)
{
	OWNED_FILE FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:parts") != NULL;
	return count;
}

/* The file as fstat() shows it, unless told otherwise, and as a mapping shows it. */
static struct file_identity identity_of(int fd, struct file_key *ret_mapping)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	*ret_mapping = (struct file_key){.major = major(status.st_dev),
					 .minor = minor(status.st_dev),
					 .inode = status.st_ino};
	return (struct file_identity){.key = *ret_mapping};
}

static void file_identity_is_of__equal_numbers_are_the_file(void **state)
{
	struct file_key mapping;
	const struct file_identity known = identity_of(fileno(stdin), &mapping);
	struct file_identity own = known;

	(void)state;
	/* Nothing is mapped for it. */
	assert_true(file_identity_is_of(-1, &own, &mapping));
	own.key.inode_generation = 5;
	assert_true(file_identity_is_of(-1, &own, &mapping));
	mapping.inode_generation = 5;
	assert_true(file_identity_is_of(-1, &own, &mapping));
	mapping.inode_generation = 6;
	assert_false(file_identity_is_of(-1, &own, &mapping));
	own.key.inode_generation = 0;
	assert_true(file_identity_is_of(-1, &own, &mapping));
	mapping = (struct file_key){0};
	own.key = mapping;
	assert_false(file_identity_is_of(-1, &own, &mapping));
}

/* overlayfs: fstat() shows another device than mappings do. */
static void file_identity_is_of__what_a_mapping_of_ours_shows_is_the_file(void **state)
{
	OWNED_FD int fd = file_of(10, 1);
	struct file_key mapping, other;
	struct file_identity own = identity_of(fd, &mapping);

	(void)state;
	own.key.minor++;
	assert_true(file_identity_is_of(fd, &own, &mapping));
	other = mapping;
	other.inode++;
	assert_false(file_identity_is_of(fd, &own, &other));
	other = mapping;
	other.major++;
	assert_false(file_identity_is_of(fd, &own, &other));
	other = mapping;
	other.minor += 2;
	assert_false(file_identity_is_of(fd, &own, &other));
	/* Generations that differ are those of two files. */
	own.key.inode_generation = 5;
	assert_true(file_identity_is_of(fd, &own, &mapping));
	mapping.inode_generation = 6;
	assert_false(file_identity_is_of(fd, &own, &mapping));
	own.key.inode_generation = 0;
	assert_true(file_identity_is_of(fd, &own, &mapping));
	assert_int_equal(mappings_here(), 0);
	/* What cannot be mapped is not the file. */
	assert_false(file_identity_is_of(-1, &own, &mapping));
}

static void file_identity_is_of__on_btrfs_numbers_need_a_generation(void **state)
{
	OWNED_FD int fd = file_of(10, 1);
	struct file_key mapping;
	struct file_identity own = identity_of(fd, &mapping);

	(void)state;
	own.key.minor++;
	file_system = BTRFS_SUPER_MAGIC;
	assert_false(file_identity_is_of(fd, &own, &mapping));
	own.key.inode_generation = 5;
	assert_false(file_identity_is_of(fd, &own, &mapping));
	mapping.inode_generation = 5;
	assert_true(file_identity_is_of(fd, &own, &mapping));
	own.key.inode_generation = 0;
	assert_false(file_identity_is_of(fd, &own, &mapping));
}

static bool stands_for(int a, const struct file_identity *of_a, int b,
		       const struct file_identity *of_b)
{
	bool must_compare;

	return file_may_stand_for(of_a, of_b, &must_compare) &&
	       (!must_compare || file_is_equal(a, b, of_a->size));
}

static void file_stands_for__equal_bytes_of_any_number(void **state)
{
	static const size_t sizes[] = {0, 1, 4096, 65535, 65536, 65537, 200000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		OWNED_FD int a = file_of(sizes[i], 7);
		OWNED_FD int b = file_of(sizes[i], 7);
		const struct file_identity identity = {.size = sizes[i], .is_settled = true};
		/* The first, one in between, the last. */
		const size_t at[] = {0, sizes[i] / 2, sizes[i] - 1};

		assert_true(stands_for(a, &identity, b, &identity));
		for (size_t k = 0; sizes[i] && k < 3; k++) {
			assert_int_equal(pwrite(b, "x", 1, (off_t)at[k]), 1);
			assert_false(stands_for(a, &identity, b, &identity));
			assert_int_equal(pwrite(b, "\7", 1, (off_t)at[k]), 1);
		}
	}
}

static void file_stands_for__only_settled_files_of_root_or_one_owner(void **state)
{
	OWNED_FD int fd = file_of(10, 7);
	struct file_identity a = {.size = 10, .is_settled = true}, b = a;

	(void)state;
	assert_true(stands_for(fd, &a, fd, &b));
	assert_false(stands_for(-1, &a, fd, &b));
	assert_false(stands_for(fd, &a, -1, &b));
	b.size = 9;
	assert_false(stands_for(fd, &a, fd, &b));
	/* It is shorter than it says. */
	a.size = b.size = 11;
	assert_false(stands_for(fd, &a, fd, &b));
	a.size = b.size = 10;
	a.is_settled = false;
	assert_false(stands_for(fd, &a, fd, &b));
	a.is_settled = true;
	b.is_settled = false;
	assert_false(stands_for(fd, &a, fd, &b));
	b.is_settled = true;
	b.owner = 1000;
	assert_true(stands_for(fd, &a, fd, &b));
	a.owner = 1000;
	assert_true(stands_for(fd, &a, fd, &b));
	a.owner = 1001;
	assert_false(stands_for(fd, &a, fd, &b));
	b.owner = 0;
	assert_false(stands_for(fd, &a, fd, &b));
}

/* Of large files nothing is read: these have no such size. */
static void file_stands_for__large_files_are_roots(void **state)
{
	OWNED_FD int fd = file_of(10, 7);
	struct file_identity a = {.size = FILE_COMPARE_MAX_BYTES + 1, .is_settled = true}, b = a;

	(void)state;
	assert_true(stands_for(fd, &a, fd, &b));
	b.owner = 1000;
	assert_false(stands_for(fd, &a, fd, &b));
	a.owner = 1000;
	assert_false(stands_for(fd, &a, fd, &b));
	a.owner = b.owner = 0;
	a.size = b.size = FILE_COMPARE_MAX_BYTES;
	assert_false(stands_for(fd, &a, fd, &b));
}

#define TEST(name) cmocka_unit_test(name)
#define TEST_OF(name, part) cmocka_unit_test_setup(name, part##_setup)
#define TEST_WITH(name, part) cmocka_unit_test_setup_teardown(name, part##_setup, part##_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_slots__files_get_ascending_ids_of_the_first_generation),
		TEST(file_slots__more_files_than_ids_are_enospc),
		TEST(file_slots__slot_is_used_again_with_the_next_generation),
		TEST(file_slots__slot_rests_for_three_epochs_and_while_it_is_named),
		TEST(file_text_check__holes_do_not_count),
		TEST(file_text_check__file_system_that_does_not_say_is_believed),
		TEST(file_text_check__file_that_shrinks_meanwhile_ends),
		TEST(file_text_check__data_in_256_pieces_is_looked_at),
		TEST(file_text_check__dense_files_are_not_looked_at),
		TEST_WITH(rule_cache_find__rule_is_that_of_the_last_row_at_or_before, rule),
		TEST_WITH(rule_cache_find__page_belongs_to_its_file, rule),
		TEST_WITH(rule_cache_find__sixteen_pages_are_kept_and_the_oldest_goes, rule),
		TEST_WITH(rule_cache_find__rows_that_may_come_are_asked_for_again, rule),
		TEST_WITH(rule_cache_find__page_of_which_reading_failed_is_forgotten, rule),
		TEST_WITH(rule_cache_find__file_without_rows_has_no_rule, rule),
		TEST_WITH(rule_cache_find__very_many_rows_are_not_kept, rule),
		TEST_WITH(file_names__every_part_of_a_name_tells_files_apart, names),
		TEST_WITH(file_names_set__name_goes_from_one_file_to_another, names),
		TEST_WITH(file_names_set__name_that_is_too_long_finds_nothing, names),
		TEST_WITH(file_names_tidy__lent_name_goes_when_nobody_looked_for_it, names),
		TEST_WITH(file_names_free__of_none_does_nothing, names),
		TEST_OF(file_facts_ask__span_is_that_of_all_segments, facts),
		TEST_OF(file_facts_ask__rows_errors_are_the_files, facts),
		TEST_OF(file_facts_ask__file_that_was_not_examined_says_since_when, facts),
		TEST_OF(file_facts_ask__debug_file_is_looked_for_where_symbols_are_missing, facts),
		TEST(file_bias__pages_of_a_segment_are_its_own),
		TEST(file_bias__page_that_two_segments_share_is_the_second_ones),
		TEST_OF(file_identity_read__is_what_the_kernel_says, identity),
		TEST_OF(file_identity_read__errors_are_told, identity),
		TEST_OF(file_identity_is_of__equal_numbers_are_the_file, identity),
		TEST_OF(file_identity_is_of__what_a_mapping_of_ours_shows_is_the_file, identity),
		TEST_OF(file_identity_is_of__on_btrfs_numbers_need_a_generation, identity),
		TEST(file_stands_for__equal_bytes_of_any_number),
		TEST(file_stands_for__only_settled_files_of_root_or_one_owner),
		TEST(file_stands_for__large_files_are_roots),
	};

	return cmocka_run_group_tests_name("attach/file_parts", tests, NULL, NULL);
}
