/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/task.h"

#include <cmocka.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BURNT_NS 60000000ULL
#define TOUCHED_BYTES (64U << 20)

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void *burn(void *context)
{
	while (thread_ns() < BURNT_NS)
		;
	return context;
}

static void cpu__is_that_of_all_threads(void **state)
{
	const uint64_t before_ns = own_cost_cpu_ns();
	pthread_t thread[2];
	uint64_t spent_ns;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, burn, NULL), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	spent_ns = own_cost_cpu_ns() - before_ns;
	/* The kernel may count in ticks. */
	assert_true(spent_ns >= 2 * BURNT_NS * 9 / 10 && spent_ns < 4 * BURNT_NS);
}

static void rss__grows_by_what_is_touched_and_shrinks(void **state)
{
	const uint64_t before = own_cost_rss_bytes();
	char *memory = mmap(NULL, TOUCHED_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t touched;

	(void)state;
	assert_true(memory != MAP_FAILED && before > 0);
	assert_true(own_cost_rss_bytes() < before + TOUCHED_BYTES / 4);
	memset(memory, 1, TOUCHED_BYTES);
	touched = own_cost_rss_bytes();
	assert_true(touched > before + TOUCHED_BYTES * 3ULL / 4);
	assert_true(touched < before + TOUCHED_BYTES * 5ULL / 4);
	munmap(memory, TOUCHED_BYTES);
	assert_true(own_cost_rss_bytes() < before + TOUCHED_BYTES / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu__is_that_of_all_threads),
		cmocka_unit_test(rss__grows_by_what_is_touched_and_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
