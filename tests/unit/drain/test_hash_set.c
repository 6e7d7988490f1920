/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/hash_set.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 60000U

struct entry {
	uint64_t hash;
	uint32_t number;
};

static void add(struct hash_set *set, uint64_t hash, uint32_t number)
{
	struct entry *entry = malloc(sizeof(*entry));

	assert_non_null(entry);
	*entry = (struct entry){.hash = hash, .number = number};
	assert_int_equal(hash_set_add(set, entry), 0);
}

static void find__what_was_added_however_large_the_set_is(void **state)
{
	struct hash_set set;

	(void)state;
	hash_set_init(&set);
	assert_null(hash_set_find(&set, 7));
	for (uint32_t i = 0; i < ENTRIES; i++)
		add(&set, i * 0x9e3779b97f4a7c15ULL, i);
	assert_int_equal(set.count, ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const struct entry *found = hash_set_find(&set, i * 0x9e3779b97f4a7c15ULL);

		assert_non_null(found);
		assert_int_equal(found->number, i);
	}
	assert_null(hash_set_find(&set, 5));
	hash_set_release(&set);
}

/* Returns how many slots the longest look-up passes. */
static size_t longest(const struct hash_set *set)
{
	size_t most = 0;

	for (size_t at = 0; at <= set->table.mask; at++) {
		const struct index_slot *slot = &set->table.slot[at];
		const size_t from = at - INDEX_START(slot->hash, set->table.mask);

		if (slot->index_plus_1 && (from & set->table.mask) > most)
			most = from & set->table.mask;
	}
	return most;
}

/* A program can make stacks whose hashes differ in a few bits.  With a known place for each hash
 * 60,000 of them were one run: 24 us a look-up. */
static void find__stays_short_whatever_bits_differ(void **state)
{
	(void)state;
	for (unsigned int shift = 0; shift < 48; shift += 2) {
		struct hash_set set;

		hash_set_init(&set);
		for (uint64_t i = 0; i < ENTRIES; i++)
			add(&set, (i << shift) + 0x5555, 0);
		assert_in_range(longest(&set), 0, 1000);
		hash_set_release(&set);
	}
}

static void sets__have_places_of_their_own(void **state)
{
	struct hash_set one, other;

	(void)state;
	hash_set_init(&one);
	hash_set_init(&other);
	assert_int_not_equal(one.factor, other.factor);
	assert_int_equal(one.factor & other.factor & 1, 1);
	hash_set_release(&one);
	hash_set_release(&other);
}

static void get__finds_it_or_adds_zeros(void **state)
{
	struct hash_set set;
	struct entry *made;

	(void)state;
	hash_set_init(&set);
	made = hash_set_get(&set, 77, sizeof(*made));
	assert_non_null(made);
	assert_int_equal(made->hash, 77);
	assert_int_equal(made->number, 0);
	made->number = 5;
	assert_ptr_equal(hash_set_get(&set, 77, sizeof(*made)), made);
	assert_int_equal(made->number, 5);
	assert_int_equal(set.count, 1);
	assert_ptr_equal(hash_set_find(&set, 77), made);
	hash_set_release(&set);
}

static bool is_even(const void *context, const void *entry)
{
	assert_string_equal(context, "context");
	return !(((const struct entry *)entry)->number & 1);
}

static void filter__keeps_what_may_stay(void **state)
{
	struct hash_set set;

	(void)state;
	hash_set_init(&set);
	for (uint32_t i = 0; i < 5000; i++)
		add(&set, i << 9 | 1, i);
	hash_set_filter(&set, is_even, "context");
	assert_int_equal(set.count, 2500);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(hash_set_find(&set, i << 9 | 1) != NULL, !(i & 1));
	hash_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__what_was_added_however_large_the_set_is),
		cmocka_unit_test(find__stays_short_whatever_bits_differ),
		cmocka_unit_test(sets__have_places_of_their_own),
		cmocka_unit_test(get__finds_it_or_adds_zeros),
		cmocka_unit_test(filter__keeps_what_may_stay),
	};

	return cmocka_run_group_tests_name("drain/hash_set", tests, NULL, NULL);
}
