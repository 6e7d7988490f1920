/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/page_cache.h"

#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 3U
#define BYTES (PAGES * PAGE_CACHE_PAGE_BYTES)

static uint8_t *memory; /* the last page is not there */

static int setup(void **state)
{
	(void)state;
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)(i / 7);
	return munmap(memory + 2 * PAGE_CACHE_PAGE_BYTES, PAGE_CACHE_PAGE_BYTES);
}

static int teardown(void **state)
{
	(void)state;
	return munmap(memory, 2 * PAGE_CACHE_PAGE_BYTES);
}

static void assert_reads(struct page_cache *cache, size_t at, size_t size)
{
	uint8_t buffer[BYTES];

	assert_int_equal(page_cache_read(cache, (uintptr_t)memory + at, buffer, size), 0);
	assert_memory_equal(buffer, memory + at, size);
}

static void reads__inside_of_a_page_and_over_its_end_are_what_is_there(void **state)
{
	struct page_cache cache;

	page_cache_init(&cache, getpid());

	(void)state;
	assert_reads(&cache, 0, 8);
	assert_reads(&cache, PAGE_CACHE_PAGE_BYTES - 8, 8);
	assert_reads(&cache, PAGE_CACHE_PAGE_BYTES - 3, 8);
	assert_reads(&cache, 5, PAGE_CACHE_PAGE_BYTES + 9);
	assert_reads(&cache, 2 * PAGE_CACHE_PAGE_BYTES - 1, 1);
}

static void page__is_read_once(void **state)
{
	struct page_cache cache;

	page_cache_init(&cache, getpid());
	uint8_t was = memory[100], now;

	(void)state;
	assert_reads(&cache, 0, 8);
	memory[100] = (uint8_t)(was + 1);
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory + 100, &now, 1), 0);
	assert_int_equal(now, was);
}

/* The block around it may not be mapped as a whole. */
static void page__near_the_end_of_a_mapping_is_read_once_too(void **state)
{
	const size_t last = 2 * PAGE_CACHE_PAGE_BYTES - 4;
	struct page_cache cache;
	uint8_t was = memory[last], now;

	(void)state;
	page_cache_init(&cache, getpid());
	assert_reads(&cache, last, 4);
	memory[last] = (uint8_t)(was + 1);
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory + last, &now, 1), 0);
	assert_int_equal(now, was);
}

static void page__that_is_not_there_is_a_fault_each_time(void **state)
{
	struct page_cache cache;

	page_cache_init(&cache, getpid());
	const uint64_t missing = (uintptr_t)memory + 2 * PAGE_CACHE_PAGE_BYTES;
	uint8_t buffer[8];

	(void)state;
	assert_int_equal(page_cache_read(&cache, missing, buffer, 8), -EFAULT);
	assert_int_equal(page_cache_read(&cache, missing, buffer, 8), -EFAULT);
	assert_int_equal(page_cache_read(&cache, missing - 4, buffer, 8), -EFAULT);
	assert_int_equal(page_cache_read(&cache, 0, buffer, 8), -EFAULT);
	assert_int_equal(page_cache_read(&cache, UINT64_MAX - 3, buffer, 8), -EFAULT);
	assert_reads(&cache, 2 * PAGE_CACHE_PAGE_BYTES - 8, 8);
}

static void page__read_after_a_witness_has_changed_is_stale(void **state)
{
	uint64_t word = 0x1234567800000001, was = word;
	const struct page_witness low = {
		.address = (uintptr_t)&word, .word = was, .mask = UINT32_MAX};
	struct page_cache cache;
	uint8_t byte;

	(void)state;
	page_cache_init(&cache, getpid());
	page_cache_watch(&cache, &low, 1);
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory, &byte, 1), 0);
	word ^= 1ULL << 40; /* not what is looked at */
	assert_true(page_cache_holds(&cache));
	word ^= 2;
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory + 1, &byte, 1), 0);
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory + PAGE_CACHE_PAGE_BYTES, &byte,
					 1),
			 -ESTALE);
	/* It came back: what was read meanwhile may still be of another moment. */
	word = was;
	assert_false(page_cache_holds(&cache));
	assert_int_equal(page_cache_read(&cache, (uintptr_t)memory, &byte, 1), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			reads__inside_of_a_page_and_over_its_end_are_what_is_there, setup,
			teardown),
		cmocka_unit_test_setup_teardown(page__is_read_once, setup, teardown),
		cmocka_unit_test_setup_teardown(page__read_after_a_witness_has_changed_is_stale,
						setup, teardown),
		cmocka_unit_test_setup_teardown(page__near_the_end_of_a_mapping_is_read_once_too,
						setup, teardown),
		cmocka_unit_test_setup_teardown(page__that_is_not_there_is_a_fault_each_time, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("base/page_cache", tests, NULL, NULL);
}
