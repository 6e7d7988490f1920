/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/places.h"

#include <cmocka.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#define THREADS 2U
#define WAITING 6U
#define PLACES (THREADS + WAITING)

static sem_t gate; /* works wait here */
static atomic_uint done;

static void wait_at_gate(struct work *work)
{
	(void)work;
	sem_wait(&gate);
	atomic_fetch_add(&done, 1);
}

static int setup(void **state)
{
	struct workers *workers;

	assert_int_equal(sem_init(&gate, 0, 0), 0);
	atomic_store(&done, 0);
	assert_int_equal(workers_new(THREADS, WAITING, &workers), 0);
	*state = workers;
	return 0;
}

static int teardown(void **state)
{
	for (unsigned int i = 0; i < 2 * PLACES; i++)
		sem_post(&gate);
	workers_free(*state);
	sem_destroy(&gate);
	return 0;
}

static void work__has_so_many_places(void **state)
{
	struct work work[PLACES + 1];

	for (unsigned int i = 0; i <= PLACES; i++) {
		work[i] = (struct work){.run = wait_at_gate};
		assert_int_equal(workers_add(*state, &work[i]), i < PLACES ? 0 : -EBUSY);
	}
	assert_int_equal(workers_count(*state), PLACES);
	for (unsigned int i = 0; i < PLACES; i++)
		sem_post(&gate);
	workers_end(*state);
	assert_int_equal(atomic_load(&done), PLACES);
	assert_int_equal(workers_count(*state), 0);
	assert_int_equal(workers_add(*state, &work[0]), -EBUSY);
}

/* One user has two of eight places, all users six, and who sees everything the rest. */
static void users__leave_places_to_others(void **state)
{
	struct work work[PLACES];
	unsigned int count = 0;

	memset(work, 0, sizeof(work));
	for (uid_t uid = 1; uid <= 3; uid++) {
		for (unsigned int i = 0; i < 2; i++, count++) {
			work[count] =
				(struct work){.run = wait_at_gate, .is_of_user = true, .uid = uid};
			assert_int_equal(workers_add(*state, &work[count]), 0);
		}
		assert_int_equal(workers_add(*state, &(struct work){.run = wait_at_gate,
								    .is_of_user = true,
								    .uid = uid}),
				 -EBUSY);
	}
	assert_int_equal(
		workers_add(*state,
			    &(struct work){.run = wait_at_gate, .is_of_user = true, .uid = 4}),
		-EBUSY);
	for (; count < PLACES; count++) {
		work[count] = (struct work){.run = wait_at_gate};
		assert_int_equal(workers_add(*state, &work[count]), 0);
	}
	for (unsigned int i = 0; i < PLACES; i++)
		sem_post(&gate);
	workers_end(*state);
	assert_int_equal(atomic_load(&done), PLACES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(work__has_so_many_places),
		TEST(users__leave_places_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
