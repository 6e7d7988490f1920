/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_store.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define SLOT_MS ((uint64_t)MERGE_SLOT_MS)
#define START_MS (1000 * SLOT_MS)
#define DUE_MS (START_MS + SLOT_MS + MERGE_AFTER_MS)
#define ROOM 160U

struct fixture {
	struct store_entry entry[ROOM];
	char path[ROOM][32];
	struct store_listing listing;
};

static struct store_file *add(struct fixture *f, const char *directory, uint64_t start_ms,
			      const char *kind)
{
	struct store_entry *entry = &f->entry[f->listing.count];

	snprintf(f->path[f->listing.count], sizeof(f->path[0]), "./%s/name", directory);
	entry->path = f->path[f->listing.count++];
	entry->file = (struct store_file){.start_ms = start_ms, .duration_ms = 10000};
	snprintf(entry->file.kind, sizeof(entry->file.kind), "%s", kind);
	f->listing.entry = f->entry;
	return &entry->file;
}

static void merge_plan_slot__ends_with_its_five_minutes_or_directory(void **state)
{
	struct merge_slot slot = {0};
	struct fixture f = {0};

	(void)state;
	add(&f, "a", START_MS, "cpu");
	add(&f, "a", START_MS + SLOT_MS - 1, "cpu");
	add(&f, "a", START_MS + SLOT_MS, "cpu");
	add(&f, "b", START_MS + SLOT_MS, "cpu");
	assert_true(merge_plan_slot(&f.listing, DUE_MS + SLOT_MS, &slot));
	assert_int_equal(slot.begin, 0);
	assert_int_equal(slot.end, 2);
	assert_true(merge_plan_slot(&f.listing, DUE_MS + SLOT_MS, &slot));
	assert_int_equal(slot.begin, 2);
	assert_int_equal(slot.end, 3);
	assert_true(merge_plan_slot(&f.listing, DUE_MS + SLOT_MS, &slot));
	assert_int_equal(slot.end, 4);
	assert_false(merge_plan_slot(&f.listing, DUE_MS + SLOT_MS, &slot));
}

static void merge_plan_slot__waits_for_an_hour_after_its_end(void **state)
{
	struct merge_slot slot = {0};
	struct fixture f = {0};

	(void)state;
	add(&f, "a", START_MS + 1, "cpu");
	assert_false(merge_plan_slot(&f.listing, DUE_MS - 1, &slot));
	assert_true(merge_plan_slot(&f.listing, DUE_MS, &slot));
	/* From the future, or from no time at all. */
	f.entry[0].file.start_ms = UINT64_MAX;
	slot = (struct merge_slot){0};
	assert_false(merge_plan_slot(&f.listing, UINT64_MAX, &slot));
}

static void merge_plan_slot__merged_files_are_done(void **state)
{
	struct merge_slot slot = {0};
	struct fixture f = {0};

	(void)state;
	add(&f, "a", START_MS, "cpu")->is_merged = true;
	add(&f, "a", START_MS + 1, "cpu")->is_temporary = true;
	assert_false(merge_plan_slot(&f.listing, UINT64_MAX, &slot));
}

static void merge_plan_group__lists_windows_that_only_cpu_has(void **state)
{
	struct merge_slot slot = {0};
	struct merge_group group;
	struct fixture f = {0};

	(void)state;
	add(&f, "a", START_MS, "cpu");
	add(&f, "a", START_MS + 10000, "cpu");
	add(&f, "a", START_MS + 10000, "gil");
	add(&f, "a", START_MS + 20000, "gil");
	add(&f, "a", START_MS + 30000, "offcpu");
	assert_true(merge_plan_slot(&f.listing, DUE_MS, &slot));
	assert_true(merge_plan_group(&f.listing, &slot, "gil", &group));
	assert_string_equal(group.kind, "gil");
	assert_int_equal(group.window_count, 3);
	assert_int_equal(group.file_count, 2);
	assert_int_equal(group.window[0].start_ms, START_MS);
	assert_false(group.window[0].has_file);
	assert_true(group.window[1].has_file && group.window[2].has_file);
	assert_true(merge_plan_group(&f.listing, &slot, "cpu", &group));
	assert_int_equal(group.window_count, 2);
	assert_true(group.window[0].has_file && group.window[1].has_file);
	assert_false(merge_plan_group(&f.listing, &slot, "wall", &group));
}

static void merge_plan_group__one_window_stays_as_it_is(void **state)
{
	struct merge_slot slot = {.begin = 0, .end = 2};
	struct merge_group group;
	struct fixture f = {0};

	(void)state;
	add(&f, "a", START_MS, "cpu");
	add(&f, "a", START_MS, "gil");
	assert_false(merge_plan_group(&f.listing, &slot, "cpu", &group));
	assert_false(merge_plan_group(&f.listing, &slot, "gil", &group));
	/* The clock was set back: two windows that begin alike are two. */
	f.entry[1].file = f.entry[0].file;
	f.entry[1].file.duration_ms++;
	assert_true(merge_plan_group(&f.listing, &slot, "cpu", &group));
	assert_int_equal(group.window_count, 2);
}

static void merge_plan_group__takes_64_windows_at_a_time(void **state)
{
	struct merge_slot slot = {0};
	struct merge_group group;
	struct fixture f = {0};

	(void)state;
	for (uint64_t i = 0; i < MERGE_WINDOWS_MAX + 2; i++) {
		add(&f, "a", START_MS + i * 1000, "cpu");
		add(&f, "a", START_MS + i * 1000, "gil");
	}
	assert_true(merge_plan_slot(&f.listing, DUE_MS, &slot));
	assert_true(merge_plan_group(&f.listing, &slot, "gil", &group));
	assert_int_equal(group.window_count, MERGE_WINDOWS_MAX);
	assert_int_equal(group.file_count, MERGE_WINDOWS_MAX);
	assert_true(merge_plan_group(&f.listing, &slot, "cpu", &group));
	assert_int_equal(group.file_count, MERGE_WINDOWS_MAX);
}

/* Wherever the file of such a merge lies in the list: it has the start of its first window, which
 * may be gone. */
static void merge_plan_group__what_was_begun_is_not_begun_again(void **state)
{
	static const struct {
		const char *directory, *kind;
		uint64_t start_ms;
		bool is_begun;
	} row[] = {{"a", "cpu", START_MS, true},
		   {"a", "cpu", START_MS + 5000, true},
		   {"a", "cpu", START_MS + 25000, true},
		   {"a", "gil", START_MS, false},
		   {"b", "cpu", START_MS, false},
		   {"a", "cpu", START_MS - 1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (size_t at = 0; at < 4; at++) {
			struct merge_slot slot = {.begin = at == 0, .end = 4};
			struct merge_group group;
			struct fixture f = {0};

			for (size_t window = 0, entry = 0; entry < 4; entry++) {
				struct store_file *file;

				if (entry != at) {
					add(&f, "a", START_MS + 10000 * ++window, "cpu");
					continue;
				}
				file = add(&f, row[i].directory, row[i].start_ms, row[i].kind);
				file->is_merged = file->is_merging = true;
			}
			if (merge_plan_group(&f.listing, &slot, "cpu", &group) == row[i].is_begun)
				fail_msg("row %zu at %zu", i, at);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_plan_slot__ends_with_its_five_minutes_or_directory),
		cmocka_unit_test(merge_plan_slot__waits_for_an_hour_after_its_end),
		cmocka_unit_test(merge_plan_slot__merged_files_are_done),
		cmocka_unit_test(merge_plan_group__lists_windows_that_only_cpu_has),
		cmocka_unit_test(merge_plan_group__one_window_stays_as_it_is),
		cmocka_unit_test(merge_plan_group__what_was_begun_is_not_begun_again),
		cmocka_unit_test(merge_plan_group__takes_64_windows_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
